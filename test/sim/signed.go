package sim

import (
	"fmt"
	"os"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/audit"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/memremote"
	"github.com/fleetbroker/fleetbroker/internal/trust"
)

// fleetID is the id of a signed fleet.
const fleetID = "f3k9q2abu7"

// rooted is what a signed fleet has outside of its repository: the trust root and
// the private keys. A nil one is an unsigned fleet.
type rooted struct {
	root *trust.Root
	// daemon signs the ledger, grace what gives rights, and nobody lists mallory.
	daemon, grace, mallory gitrepo.Signer
	ledger                 gitrepo.Keys
}

// newRooted makes the keys of a signed fleet, the private ones below dir.
func newRooted(dir string) (*rooted, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	r := &rooted{}
	public := map[string]string{}
	for letter, to := range map[string]*gitrepo.Signer{"d": &r.daemon, "p": &r.grace, "m": &r.mallory} {
		var err error
		if *to, public[letter], err = memremote.Pair(dir, letter); err != nil {
			return nil, err
		}
	}
	var err error
	r.root, err = trust.Parse("root.yaml", []byte("apiVersion: fleetbroker.io/v1alpha1\nkind: TrustRoot\nmetadata: {name: acme}\nspec:\n  fleetID: "+fleetID+"\n"+
		"  policy:\n  - {principal: grace, publicKey: "+public["p"]+"}\n  ledger:\n  - {principal: fleetbroker, publicKey: "+public["d"]+"}\n"))
	if err != nil {
		return nil, err
	}
	r.ledger, err = gitrepo.NewKeys([]gitrepo.Key{{Principal: "fleetbroker", Text: public["d"]}})
	return r, err
}

// signs is who signs a push of people: what gives rights is signed by the list
// policy, intents need no signature.
func (r *rooted) signs(paths []string) gitrepo.Signer {
	if r == nil {
		return nil
	}
	for _, path := range paths {
		if !under(path, "intents") {
			return r.grace
		}
	}
	return nil
}

// ours reports whether a commit is a daemon's.
func (s *sim) ours(c memremote.Logged) bool {
	return len(gitobj.Trailers(c.Message, "Plan")) > 0 && s.signed(c.Hash)
}

// signed reports whether a commit bears the daemons' signature, where one is
// asked for.
func (s *sim) signed(h tree.Hash) bool {
	if s.rooted == nil {
		return true
	}
	raw, err := s.remote.Objects().Commit(h)
	if err != nil {
		return false
	}
	ok, err := s.rooted.ledger.Signed(raw)
	return err == nil && ok
}

// witness is a head of the ledger as somebody outside keeps it.
func (s *sim) witness(h tree.Hash) (*audit.Witness, error) {
	raw, err := s.remote.Objects().Commit(h)
	if err != nil {
		return nil, err
	}
	c, err := gitobj.ParseCommit(raw)
	if err != nil {
		return nil, err
	}
	w := &audit.Witness{FleetID: fleetID, Branch: s.people.ledger, Commit: h.String(), Object: raw}
	if l := gitobj.Trailers(c.Message, "Ledger"); len(l) == 1 {
		if _, err := fmt.Sscanf(l[0], s.people.ledger+" %d", &w.Seq); err != nil {
			return nil, fmt.Errorf("trailer Ledger %q: %w", l[0], err)
		}
	}
	if in := gitobj.Trailers(c.Message, "Inputs"); len(in) == 1 {
		w.Inputs = in[0]
	}
	return w, nil
}
