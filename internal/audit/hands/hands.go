package hands

import (
	"fmt"
	"slices"
	"strings"
	"time"

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

// Signed reports whether a key of a list signed a commit's bytes, made at an instant.
func Signed(raw []byte, made time.Time, list []gitrepo.Key) bool {
	keys, err := gitrepo.NewKeys(Merged(nil, list))
	if err != nil {
		return false
	}
	_, err = keys.SignerOf(raw, made)
	return err == nil
}

// Asked names the list of keys that is asked for; rooted: by a trust root.
func Asked(rooted bool) string {
	if rooted {
		return "the trust root's keys"
	}
	return "writeBack.signers"
}

// Claimed is what is said of a commit that bears the daemon's name and that no key of those
// asked for speaks for. why is what is wrong with its signature.
func Claimed(name, asked, why string) string {
	who := "a name is anybody's to write, so that whoever may push to the ledger can have made it, and the daemon only if it signs with none of these keys"
	if strings.HasPrefix(why, "the key of ") { // a good signature, by a key that is revoked
		who = "whoever has that key can have made it, the daemon too if it still signs with it"
	}
	return fmt.Sprintf("bears the daemon's name (%s) without a signature by any of %s: %s; %s", name, asked, why, who)
}
