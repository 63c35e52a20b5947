package cli

import (
	"github.com/spf13/pflag"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
)

// boundsFlags say how large the tree of a commit may be. Daemons of one fleet and
// its auditors give the same: by them a commit speaks or says nothing.
type boundsFlags struct{ of tree.Bounds }

// Least of what may be asked for: a small fleet repo with its documents.
var leastBounds = tree.Bounds{Entries: 1_000, Depth: 8, Bytes: 1 << 20}

func (f *boundsFlags) register(fs *pflag.FlagSet) {
	d := tree.DefaultBounds
	fs.Int64Var(&f.of.Entries, "max-tree-entries", d.Entries, "files and directories that a commit's tree may have, and one tenant's directory half of; a larger commit says nothing, a larger tenant's directory is left as it was last read")
	fs.IntVar(&f.of.Depth, "max-tree-depth", d.Depth, "how deep directories of a commit's tree may lie; a deeper commit says nothing, a deeper tenant's directory is left as it was last read")
	fs.Int64Var(&f.of.Bytes, "max-tree-bytes", d.Bytes, "bytes that the files of a commit's tree may have, and those of one tenant half of; a larger commit says nothing, a larger tenant's directory is left as it was last read")
}

func (f *boundsFlags) read() (tree.Bounds, error) {
	for _, b := range []struct {
		flag      string
		is, least int64
	}{
		{"max-tree-entries", f.of.Entries, leastBounds.Entries},
		{"max-tree-depth", int64(f.of.Depth), int64(leastBounds.Depth)},
		{"max-tree-bytes", f.of.Bytes, leastBounds.Bytes},
	} {
		if b.is < b.least {
			return f.of, usagef("--%s %d is less than %d: a fleet repo as `fleetbroker init` makes it would say nothing", b.flag, b.is, b.least)
		}
	}
	return f.of, nil
}
