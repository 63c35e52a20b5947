package sources

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
)

// leastDisk is what --source-disk may be: one fetch, as received and as kept.
const leastDisk = 2 * maxReceived

// Flags say where tenants' repositories may be, and where their credentials are.
type Flags struct {
	hosts       []string
	credentials string
	disk        int64
	// Accept names heads of sources that are accepted, by the source's name.
	Accept map[string]string
}

// Register adds the flags.
func (f *Flags) Register(fs *pflag.FlagSet) {
	fs.StringSliceVar(&f.hosts, "source-hosts", nil, "hosts that tenants' own repositories (spec.sources of fleet.yaml) may be on: host, host:port or *.domain; without it none is read")
	fs.StringVar(&f.credentials, "source-credentials-dir", "", "directory with a directory <source> for each source that names no Secret: username, password, bearer, ca.crt, ssh-privatekey, known_hosts, forge-token, webhook-secret")
	fs.Int64Var(&f.disk, "source-disk", DefaultDisk, "bytes of the state directory that local copies of tenants' own repositories may take together; at least 128 MiB")
}

// Open makes the Keeper of the fleet's sources, with its mirrors below a state
// directory; empty: in a temporary one.
func (f *Flags) Open(state string, opts Options) (*Keeper, error) {
	if f.disk < leastDisk {
		return nil, fmt.Errorf("--source-disk=%d is too little for one source; give at least %d", f.disk, leastDisk)
	}
	opts.Disk = f.disk
	opts.Hosts, opts.Credentials.Dir, opts.Accept = f.hosts, f.credentials, map[string]tree.Hash{}
	if state != "" {
		opts.Dir = filepath.Join(state, "sources")
	}
	for name, commit := range f.Accept {
		h, err := tree.ParseHash(commit)
		if err != nil {
			return nil, fmt.Errorf("--source %s: %w; name the commit with all its digits", name, err)
		}
		opts.Accept[name] = h
	}
	return New(opts)
}

// Accepted says whether what an operator accepts is what the sources' copies have now.
func (f *Flags) Accepted(list []Status) error {
	of := map[string]Status{}
	for _, st := range list {
		of[st.Name] = st
	}
	for name, commit := range f.Accept {
		switch st, known := of[name]; {
		case !known:
			return fmt.Errorf("accept source %s: fleet.yaml names no such source", name)
		case st.Frozen != "":
			return fmt.Errorf("accept source %s: %s", name, st.Frozen)
		case st.Copied == commit:
		default:
			return fmt.Errorf("accept source %s: its head is %s, not %s; look at it again", name, st.Head, commit)
		}
	}
	return nil
}
