package hands

import (
	"fmt"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/pubkey"
)

// Merged are the keys of two lists, each once.
func Merged(a, b []gitrepo.Key) []gitrepo.Key {
	out := slices.Clone(a)
	for _, k := range b {
		id, err := pubkey.ID(k.Text)
		if !slices.ContainsFunc(out, func(o gitrepo.Key) bool {
			of, bad := pubkey.ID(o.Text)
			return err == nil && bad == nil && of == id
		}) {
			out = append(out, k)
		}
	}
	return out
}

// Twice is why a message is nobody's word, "" for one that has a single reading.
func Twice(message string) string {
	if key := gitobj.Repeated(message); key != "" {
		return fmt.Sprintf("it says %s twice, so that it can be read in two ways and is taken for another account's: the daemon says it once", key)
	}
	return ""
}
