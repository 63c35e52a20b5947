package story

import (
	"context"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/trust"
)

// Rooted is Lived in a fleet whose daemon is held to a trust root: signer is the
// daemon's, people signs what Ada pushes.
func Rooted(t T, branch string, root *trust.Root, signer, people gitrepo.Signer) *Story {
	t.Helper()
	return live(found(&Story{t: t, Ledger: branch, root: root, signer: signer, people: people}, ""))
}

// Unsigned lets somebody push to the inputs without a signature.
func (s *Story) Unsigned(push func()) {
	was := s.people
	s.people = nil
	push()
	s.people = was
}

// Round makes one round of the daemon's, and returns what it says of it.
func (s *Story) Round() error {
	s.r.Reread()
	_, err := s.r.Round(context.Background())
	return err
}

// AcceptRewrite is what an operator does with a rewritten branch's present head.
func (s *Story) AcceptRewrite(head tree.Hash) {
	s.t.Helper()
	if err := s.repo.AcceptRewrite(context.Background(), head); err != nil {
		s.t.Fatal(err)
	}
}

// EditFleet replaces text of fleet.yaml, once.
func (s *Story) EditFleet(subject, old, new string) {
	s.t.Helper()
	inputs, err := s.Remote.Tree(s.Remote.Head("main"))
	if err != nil {
		s.t.Fatal(err)
	}
	text, err := inputs.ReadFile("fleet.yaml", 1<<20)
	if err != nil {
		s.t.Fatal(err)
	}
	if !strings.Contains(string(text), old) {
		s.t.Fatalf("fleet.yaml has no %q:\n%s", old, text)
	}
	s.Push(subject, map[string]string{"fleet.yaml": strings.Replace(string(text), old, new, 1)})
}
