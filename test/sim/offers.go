package sim

import (
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/memremote"
)

// replayOffer is Mallory, who finds an old offer of the daemon's, signed by it and
// never merged, and brings it onto the ledger: what it promises was promised on
// another ground. The offer is a commit as the daemon makes it, on what the ledger
// was then: without a number, on the branch of offers.
func (s *sim) replayOffer() {
	p := s.people
	if s.rooted == nil || s.stopped != nil || len(s.unsettled) > 0 || p.inputs == p.ledger {
		return
	}
	s.followLedger()
	log, err := s.remote.Log(p.ledger)
	if err != nil {
		s.fail("sim", "%v", err)
		return
	}
	placed := slices.DeleteFunc(log, func(c memremote.Logged) bool {
		return !s.ours(c) || len(c.Parents) != 1 || !strings.HasPrefix(c.Message, "place ")
	})
	if len(placed) == 0 {
		return
	}
	like := placed[s.liar.IntN(len(placed))]
	ground, err := s.remote.Tree(like.Parents[0])
	if err != nil {
		s.fail("sim", "%v", err)
		return
	}
	root, adds := s.offerTree(like, ground)
	if len(adds) == 0 {
		return
	}
	c := gitobj.CommitData{Tree: root, Parents: like.Parents, Author: like.Author, Committer: like.Committer, Message: unnumbered(like.Message)}
	offer, signature, err := s.remote.Signed(c, s.rooted.daemon)
	if err != nil {
		s.fail("sim", "%v", err)
		return
	}
	for _, ref := range []string{gitrepo.Branch(gitrepo.OfferBranch), "refs/fleetbroker/offered"} {
		s.remote.SetRef(ref, offer)
	}
	head, err := s.remote.Tree(s.remote.Head(p.ledger))
	if err == nil {
		root, err = s.remote.Edited(head, gitobj.Change{Puts: adds})
	}
	if err != nil {
		s.fail("sim", "%v", err)
		return
	}
	if s.liar.IntN(2) == 0 {
		s.mergeOffer(like.Parents[0], offer, c.Tree, root)
	} else {
		s.plant("cherry-picked offer", c.Message, root, replayed(signature))
	}
}

// mergeOffer brings an offer onto the ledger by one of the ways that merges go, with what
// it was made on and its tree. The offer's name says by which, so that no draw is needed.
func (s *sim) mergeOffer(ground, offer, made, root tree.Hash) {
	message, parents := "Merge branch '"+gitrepo.OfferBranch+"'\n", []tree.Hash(nil)
	switch offer[0] % 3 {
	case 1: // into what it was made on, and that into the ledger
		parents = []tree.Hash{ground, offer}
	case 2: // squashed there
		parents = []tree.Hash{ground}
	}
	if len(parents) > 0 {
		var err error
		if offer, err = s.remote.Side(s.people.person("Mallory"), message, made, parents...); err != nil {
			s.fail("sim", "%v", err)
			return
		}
	}
	s.plant("merged offer", message, root, nil, offer)
}

// offerTree is the ground of a commit with contracts such as it placed, under
// names that never were, and these files.
func (s *sim) offerTree(like memremote.Logged, ground tree.Tree) (tree.Hash, map[string][]byte) {
	adds := map[string][]byte{}
	after, err := s.remote.Tree(like.Hash)
	if err == nil {
		err = tree.Diff(ground, after, func(path string, was, is tree.Entry) error {
			if !isContract(path) || !was.Hash.IsZero() || is.Hash.IsZero() {
				return nil
			}
			raw, err := after.Store.File(is.Hash, 0)
			if err != nil {
				return err
			}
			name := strings.TrimSuffix(path[strings.LastIndexByte(path, '/')+1:], ".yaml")
			other := name[:len(name)-1] + map[bool]string{true: "b", false: "a"}[strings.HasSuffix(name, "a")]
			adds[strings.TrimSuffix(path, name+".yaml")+other+".yaml"] = []byte(strings.ReplaceAll(string(raw), name, other))
			return nil
		})
	}
	root := tree.Hash{}
	if err == nil {
		root, err = s.remote.Edited(ground, gitobj.Change{Puts: adds})
	}
	if err != nil {
		s.fail("sim", "%v", err)
	}
	return root, adds
}

// unnumbered is a message as offers have it.
func unnumbered(message string) string {
	lines := strings.Split(message, "\n")
	return strings.Join(slices.DeleteFunc(lines, func(l string) bool { return strings.HasPrefix(l, gitrepo.LedgerTrailer+": ") }), "\n")
}
