package poison

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
)

// Pieces are pieces of the inputs by path, with the hash of their content.
type Pieces map[string]string

// sorted are the paths of pieces, policy before what tenants write.
func (p Pieces) sorted() []string {
	return slices.SortedFunc(maps.Keys(p), func(a, b string) int {
		if x, y := tenantsOwn(a), tenantsOwn(b); x != y {
			if x {
				return 1
			}
			return -1
		}
		return strings.Compare(a, b)
	})
}

// PiecesOf are the pieces of a tree of inputs: the policy's files and directories,
// and each tenant's directory.
func PiecesOf(inputs tree.Tree) (Pieces, error) {
	entries, err := inputs.Entries()
	if err != nil {
		return nil, fmt.Errorf("list the inputs: %w", err)
	}
	out := Pieces{}
	for _, e := range entries {
		switch e.Name {
		case "fleet.yaml":
			out[e.Name] = e.Hash.String()
		case "clusters", "tenants", "flavors", "prices":
			out[e.Name+"/"] = e.Hash.String()
		case "intents":
			if e.Kind != tree.Dir {
				continue
			}
			tenants, err := inputs.Store.Dir(e.Hash)
			if err != nil {
				return nil, fmt.Errorf("list the intents: %w", err)
			}
			for _, d := range tenants {
				if d.Kind == tree.Dir {
					out["intents/"+d.Name+"/"] = d.Hash.String()
				}
			}
		}
	}
	return out, nil
}

func tenantsOwn(name string) bool { return strings.HasPrefix(name, "intents/") }

// hashOf is the hash of a path, "" where it is not.
func hashOf(t tree.Tree, name string) (string, error) {
	e, err := t.Find(strings.TrimSuffix(name, "/"))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("look for %s: %w", name, err)
	}
	return e.Hash.String(), nil
}

func mustHash(t tree.Tree, name string) string {
	hash, err := hashOf(t, name)
	if err != nil { // it was found a moment ago
		return ""
	}
	return hash
}
