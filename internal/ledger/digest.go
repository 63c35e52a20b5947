package ledger

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Digest names what a commit decides: the files below contracts/ that it
// changes, with the hash of what they hold then (zero: deleted). It is a
// commit's Plan trailer, so that history alone shows whether the commit is what
// was decided. Other paths are left out, and so is the list of what is set aside,
// which trailers of its own name.
func Digest(files map[string]tree.Hash) string {
	var b bytes.Buffer
	for _, name := range sortedKeys(files) {
		if strings.HasPrefix(name, Root+"/") && name != Root+"/"+SetAsideFile {
			fmt.Fprintf(&b, "%s %s\n", files[name], name)
		}
	}
	return fmt.Sprintf("sha256:%x", sha256.Sum256(b.Bytes()))
}

// Legal reports whether the phase table has a step.
func Legal(from, to v1alpha1.Phase) bool { return slices.Contains(steps[from], to) }
