package accepted

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/fleetbroker/fleetbroker/internal/api/statefile"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
)

// File is the name of the file in a state directory.
const File = "accepted.json"

// Heads are those last accepted: by a round that acted on them, or by
// an operator after a rewrite. Zero: none yet.
type Heads struct {
	Inputs, Ledger tree.Hash
	// Root is the digest of the trust root under which they were accepted, empty
	// without one.
	Root string
	// Dropped are heads that an operator let go of and that no commit of ours names
	// yet: `<branch> <commit>`, with commas between.
	Dropped string
	// Market is the market snapshot pushed last: `<ref> <commit>`.
	Market string
}

type headsJSON struct {
	Inputs string `json:"inputs,omitempty"`
	Ledger string `json:"ledger,omitempty"`
	Root   string `json:"root,omitempty"`

	Dropped string `json:"dropped,omitempty"`
	Market  string `json:"market,omitempty"`
}

// Read reads the accepted heads of a state directory; "" has none. A damaged file is
// an error and not "none": it must not open the way for a rewrite.
func Read(state string) (Heads, error) {
	var a Heads
	if state == "" {
		return a, nil
	}
	var j headsJSON
	name := filepath.Join(state, File)
	err := statefile.ReadJSON(name, &j)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return a, nil
	}
	for _, f := range []struct {
		text string
		to   *tree.Hash
	}{{j.Inputs, &a.Inputs}, {j.Ledger, &a.Ledger}} {
		if err == nil && f.text != "" {
			*f.to, err = tree.ParseHash(f.text)
		}
	}
	a.Root, a.Dropped, a.Market = j.Root, j.Dropped, j.Market
	if err != nil {
		return Heads{}, fmt.Errorf("read the accepted heads: %w (%s)", err, name)
	}
	return a, nil
}

// Write replaces the accepted heads of a state directory, which it makes.
func Write(state string, a Heads) error {
	j := headsJSON{Root: a.Root, Dropped: a.Dropped, Market: a.Market}
	if !a.Inputs.IsZero() {
		j.Inputs = a.Inputs.String()
	}
	if !a.Ledger.IsZero() {
		j.Ledger = a.Ledger.String()
	}
	err := os.MkdirAll(state, 0o700)
	if err == nil {
		err = statefile.ReplaceJSON(filepath.Join(state, File), j)
	}
	if err != nil {
		return fmt.Errorf("keep the accepted heads: %w", err)
	}
	return nil
}
