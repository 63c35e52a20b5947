package story

import (
	"context"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/forge"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
)

// pulls is a forge with room for one pull request, which people merge by hand.
type pulls struct{ open []forge.PullRequest }

func (p *pulls) Open(context.Context, string) ([]forge.PullRequest, error) { return p.open, nil }

func (p *pulls) Save(_ context.Context, d forge.Draft) (forge.PullRequest, error) {
	one := forge.PullRequest{Number: 1, Title: d.Title, HeadBranch: d.Head, Base: d.Base}
	p.open = []forge.PullRequest{one}
	return one, nil
}

func (p *pulls) Close(context.Context, int64) error {
	p.open = nil
	return nil
}

func (p *pulls) Merge(context.Context, int64, forge.Merge) error { return forge.ErrNotReady }

// Merge merges what the daemon offers into the ledger as people do: "merge",
// "squash", or "rebase", and returns the offer. Zero: nothing is offered.
func (s *Story) Merge(way string) tree.Hash {
	s.t.Helper()
	head := s.Remote.Head(gitrepo.OfferBranch)
	if head.IsZero() {
		return head
	}
	was, err := s.Remote.Tree(s.Remote.Head(s.Ledger))
	if err != nil {
		s.t.Fatal(err)
	}
	is, err := s.Remote.Tree(head)
	if err != nil {
		s.t.Fatal(err)
	}
	ch := gitobj.Change{Puts: map[string][]byte{}}
	err = tree.Diff(was, is, func(path string, _, to tree.Entry) (err error) {
		if to.Hash.IsZero() {
			ch.Deletes = append(ch.Deletes, path)
			return nil
		}
		ch.Puts[path], err = is.Store.File(to.Hash, 0)
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	message := "Squash"
	if way == "rebase" {
		raw, err := s.Remote.Objects().Commit(head)
		if err != nil {
			s.t.Fatal(err)
		}
		c, err := gitobj.ParseCommit(raw)
		if err != nil {
			s.t.Fatal(err)
		}
		message = c.Message
	}
	s.pulls.open = nil
	if way == "merge" {
		_, err = s.Remote.Merge(s.Ledger, s.Ada(), "Merge", ch, nil, head)
	} else {
		_, err = s.Remote.Commit(s.Ledger, s.Ada(), message, ch)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return head
}

// Sign commits to the inputs as Ada, with a key; "-" deletes a file.
func (s *Story) Sign(by gitrepo.Signer, files map[string]string) {
	s.t.Helper()
	ch := gitobj.Change{Puts: map[string][]byte{}}
	for name, content := range files {
		if content == "-" {
			ch.Deletes = append(ch.Deletes, name)
			continue
		}
		ch.Puts[name] = []byte(content)
	}
	if _, err := s.Remote.Merge("main", s.Ada(), "Ask", ch, by); err != nil {
		s.t.Fatal(err)
	}
}

// Intent is the text of an intent for so many H100.
func Intent(name string, gpus int) string { return intentText(name, gpus, "") }
