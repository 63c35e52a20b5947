package daemon

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/sources"
)

// SourceFlags say where tenants' repositories may be, and where their credentials are.
type SourceFlags struct {
	hosts       []string
	credentials string
	// Accept names heads of sources that are accepted, by the source's name.
	Accept map[string]string
}

// Register adds the flags.
func (f *SourceFlags) Register(fs *pflag.FlagSet) {
	fs.StringSliceVar(&f.hosts, "source-hosts", nil, "hosts that tenants' own repositories (spec.sources of fleet.yaml) may be on: host, host:port or *.domain; without it none is read")
	fs.StringVar(&f.credentials, "source-credentials-dir", "", "directory with a directory <source> for each source that names no Secret: username, password, bearer, ca.crt, ssh-privatekey, known_hosts")
}

// Open makes the Keeper of the fleet's sources, with its mirrors below a state
// directory; empty: in a temporary one.
func (f *SourceFlags) Open(state string, opts sources.Options) (*sources.Keeper, error) {
	opts.Hosts, opts.Credentials.Dir, opts.Accept = f.hosts, f.credentials, map[string]tree.Hash{}
	if state != "" {
		opts.Dir = filepath.Join(state, "sources")
	}
	for name, commit := range f.Accept {
		h, err := tree.ParseHash(commit)
		if err != nil {
			return nil, &UsageError{Message: fmt.Sprintf("--source %s: %v; name the commit with all its digits", name, err)}
		}
		opts.Accept[name] = h
	}
	return sources.New(opts)
}

// Accepted says whether what an operator accepts is what the sources' copies have now.
func (f *SourceFlags) Accepted(list []sources.Status) error {
	of := map[string]sources.Status{}
	for _, st := range list {
		of[st.Name] = st
	}
	for name, commit := range f.Accept {
		switch st, known := of[name]; {
		case !known:
			return fmt.Errorf("accept source %s: fleet.yaml names no such source", name)
		case st.Copied == commit:
		case st.Frozen != "":
			return fmt.Errorf("accept source %s: %s", name, st.Frozen)
		default:
			return fmt.Errorf("accept source %s: its head is %s, not %s; look at it again", name, st.Head, commit)
		}
	}
	return nil
}

// Requester is who asked for a contract: its tenant, or the cluster whose agent did,
// which the author of a request names ("cluster rome, for …").
func Requester(c *v1alpha1.Contract) string {
	in := c.Spec.Intent
	if cluster, ok := strings.CutPrefix(in.Author, "cluster "); ok && strings.HasPrefix(in.Path, "requests/") {
		cluster, _, _ = strings.Cut(cluster, ",")
		cluster, _, _ = strings.Cut(cluster, " ")
		return cluster
	}
	return c.Metadata.Namespace
}

// IdentityOf is a daemon's name among others.
func IdentityOf(flag string) string {
	host, _ := os.Hostname()
	return fmt.Sprintf("%s-%s", host, flag)
}
