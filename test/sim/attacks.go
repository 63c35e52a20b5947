package sim

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/audit"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/memremote"
)

// attack is a commit of Mallory's on the ledger of a signed fleet.
type attack struct {
	kind   string
	commit tree.Hash
}

// attackLedger is Mallory, who may push to the ledger and has none of its keys.
func (s *sim) attackLedger() {
	p := s.people
	if s.rooted == nil || s.stopped != nil || len(s.unsettled) > 0 || p.inputs == p.ledger {
		return
	}
	log, err := s.remote.Log(p.ledger)
	if err != nil {
		s.fail("sim", "%v", err)
		return
	}
	log = slices.DeleteFunc(log, func(c memremote.Logged) bool { return !s.ours(c) })
	if len(log) < 3 {
		return
	}
	s.followLedger()
	older := log[1+s.evil.IntN(len(log)-1)]
	switch s.evil.IntN(8) {
	case 0:
		s.plant("rollback by merge", "Merge branch 'fix'\n", older.Tree, nil, older.Hash)
	case 1:
		s.plant("replayed trailers", log[0].Message, s.without(log[0]), nil)
	case 2:
		s.plant("replayed signature", log[0].Message, s.without(log[0]), replayed(log[0].Signature))
	case 3:
		s.plant("cherry-picked commit", older.Message, older.Tree, replayed(older.Signature))
	case 4:
		s.plant("foreign key", log[0].Message, s.without(log[0]), s.rooted.mallory)
	case 5:
		s.plant("key of the policy", log[0].Message, s.without(log[0]), s.rooted.grace)
	case 6:
		s.setBackUnseen(log)
	default:
		s.moveNote(older)
	}
}

// replayed is a signature that was made over something else.
type replayed string

// Sign implements gitrepo.Signer.
func (r replayed) Sign([]byte) (string, error) { return string(r), nil }

// plant puts a commit of Mallory's on the ledger.
func (s *sim) plant(kind, message string, root tree.Hash, signer gitrepo.Signer, others ...tree.Hash) {
	head, err := s.remote.Tree(s.remote.Head(s.people.ledger))
	if err != nil || root.IsZero() || head.Root == root {
		return // it would change nothing
	}
	who := s.people.person("Mallory")
	if signer != nil || strings.Contains(message, "Plan: ") {
		who.Name, who.Email = brokerName, brokerEmail
	}
	h, err := s.remote.CommitTree(s.people.ledger, who, message, gitobj.Set{}, root, signer, others...)
	if err != nil {
		s.fail("sim", "%v", err)
		return
	}
	s.log("attack %s: %s on the ledger", kind, h.Short())
	s.attacks = append(s.attacks, attack{kind, h})
}

// without is the tree of a commit without some contract; zero: it has none.
func (s *sim) without(c memremote.Logged) tree.Hash {
	t, err := s.remote.Tree(c.Hash)
	var paths []string
	if err == nil {
		err = t.Walk(func(path string, _ tree.Entry) error {
			if isContract(path) {
				paths = append(paths, path)
			}
			return nil
		})
	}
	if err != nil {
		s.fail("sim", "%v", err)
	}
	if len(paths) == 0 {
		return tree.Hash{}
	}
	root, err := s.remote.Edited(t, gitobj.Change{Deletes: []string{paths[s.evil.IntN(len(paths))]}})
	if err != nil {
		s.fail("sim", "%v", err)
	}
	return root
}

// setBackUnseen sets the ledger back and deletes every note of it in the
// repository: only a witness sees that, and the operator puts it right.
func (s *sim) setBackUnseen(log []memremote.Logged) {
	p := s.people
	head := s.remote.Head(p.ledger)
	w, err := s.witness(log[0].Hash)
	if err != nil {
		s.fail("sim", "%v", err)
		return
	}
	notes := map[string]tree.Hash{}
	for ref, h := range s.remote.AllRefs() {
		if strings.HasPrefix(ref, "refs/fleetbroker/accepted/") {
			notes[ref] = h
			s.remote.SetRef(ref, tree.Hash{})
		}
	}
	s.remote.SetRef(gitrepo.Branch(p.ledger), log[1].Hash)
	rep, err := audit.Verify(context.Background(), s.remote.Objects(), audit.Options{
		Ledger: log[1].Hash, Inputs: s.remote.Head(p.inputs), Root: s.rooted.root, Branch: p.ledger, Witness: w, All: true,
	})
	if err != nil {
		s.fail("audit", "%v", err)
	}
	if !slices.ContainsFunc(rep.Violations, func(v audit.Violation) bool { return v.Rule == "sequence" }) {
		s.fail("audit", "the ledger was set back from %s to %s without a trace, and a witness of the former does not show it", log[0].Hash.Short(), log[1].Hash.Short())
	}
	s.remote.SetRef(gitrepo.Branch(p.ledger), head)
	for ref, h := range notes {
		s.remote.SetRef(ref, h)
	}
	s.tried("set back without a note", true)
}

// The notes of what was accepted.
const (
	acceptedInputs = "refs/fleetbroker/accepted/inputs"
	acceptedLedger = "refs/fleetbroker/accepted/ledger"
)

// moveNote lets the note of what was accepted name a commit that no daemon wrote.
func (s *sim) moveNote(older memremote.Logged) {
	if s.stopped != nil && s.stopped.ref == gitrepo.Branch(s.people.ledger) {
		return // see rewriteHistory
	}
	ref := acceptedLedger
	at := s.remote.AllRefs()[ref]
	h, err := s.remote.Side(s.people.person("Mallory"), "nothing\n", older.Tree, older.Hash)
	if err != nil || at.IsZero() {
		return
	}
	s.remote.SetRef(ref, h)
	s.log("attack moved note: %s names %s", ref, h.Short())
	s.moved = append(s.moved, h)
}

// tried counts an attack, and whether it was caught.
func (s *sim) tried(kind string, caught bool) {
	n := s.counts.Attacks[kind]
	n.Tried++
	if caught {
		n.Caught++
	}
	s.counts.Attacks[kind] = n
}

// judgeAttacks holds that each attack that is still in the history was undone by
// a commit of ours, and that moved notes were put right.
func (s *sim) judgeAttacks() {
	log, err := s.remote.Log(s.people.ledger)
	if err != nil {
		s.fail("sim", "%v", err)
		return
	}
	for _, a := range s.attacks {
		i := slices.IndexFunc(log, func(c memremote.Logged) bool { return c.Hash == a.commit })
		if i < 0 {
			continue // an operator took it out with a rewrite
		}
		undone := slices.ContainsFunc(log[:i], s.ours)
		s.tried(a.kind, undone)
		if !undone {
			s.fail("attack", "%s: %s stands on the ledger and nothing undid it", a.kind, a.commit.Short())
		}
	}
	note := s.remote.AllRefs()["refs/fleetbroker/accepted/ledger"]
	for _, h := range s.moved {
		s.tried("moved note", note != h)
		if note == h {
			s.fail("attack", "the accepted ref still names %s", h.Short())
		}
	}
}

// checkUndone holds a commit that undoes foreign edits to what we had before.
func (s *sim) checkUndone(c memremote.Logged, changes []change) {
	if strings.HasPrefix(c.Message, "undo ") && len(changes) > 0 {
		s.fail("attack", "commit %s undoes foreign edits, and contract %s is not what our commit before had", c.Hash.Short(), changes[0].one().Metadata.Name)
	}
}

// checkClock is rule S10c: a daemon whose clock is wrong writes nothing, and no
// commit bears a time that is far from the truth.
func (s *sim) checkClock(c memremote.Logged) {
	if d := s.committer; d != nil && d.skew.Abs() > wrongClock {
		s.fail("clock", "commit %s by %s, whose clock is %s off", c.Hash.Short(), d.name, d.skew)
	}
	for _, text := range gitobj.Trailers(c.Message, "Now") {
		now, err := time.Parse(time.RFC3339, text)
		if ahead := now.Sub(s.wall()); err != nil || ahead > wrongClock+time.Second {
			s.fail("clock", "commit %s has Now %s, %s ahead of the truth: %v", c.Hash.Short(), text, ahead, err)
		}
	}
}

// wrongClock is how far a daemon's clock may be off.
const wrongClock = 31 * time.Second

// Tries are attacks of a kind and how many of them were seen to be caught.
type Tries struct{ Tried, Caught int }

// String is both.
func (t Tries) String() string { return fmt.Sprintf("%d of %d caught", t.Caught, t.Tried) }

// attacked reports whether a commit is one of Mallory's.
func (s *sim) attacked(commit string) bool {
	return slices.ContainsFunc(s.attacks, func(a attack) bool { return a.commit.String() == commit })
}

// inLedger reports whether a commit is in the ledger's history by first parents.
func (s *sim) inLedger(h tree.Hash) bool {
	log, err := s.remote.Log(s.people.ledger)
	return err == nil && slices.ContainsFunc(log, func(c memremote.Logged) bool { return c.Hash == h })
}
