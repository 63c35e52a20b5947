package forgetest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/forge"
)

// Repo is what Conform needs of a repository: branches that can be proposed.
type Repo struct {
	// Base is a branch, and Branches are others with a change over it each.
	Base     string
	Branches []string
	// Path is a file that each of them has changed in line 1 and not beyond
	// line 5.
	Path string
	// Say writes a comment as somebody else, Comments reads those that are not on
	// lines.
	Say      func(number int64, body string)
	Comments func(number int64) []string
	// Push puts another commit on a branch and returns its hash.
	Push func(branch string) string
}

// Conform is what every forge does.
func Conform(t *testing.T, f forge.Forge, repo Repo) {
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var prs []forge.PullRequest
	for _, branch := range repo.Branches {
		pr, err := f.Save(ctx, forge.Draft{Head: branch, Base: repo.Base, Title: "Add " + branch, Body: "text"})
		must(err)
		prs = append(prs, pr)
	}
	again, err := f.Save(ctx, forge.Draft{Head: repo.Branches[0], Base: repo.Base, Title: "Another title", Body: "text"})
	must(err)
	if again.Number != prs[0].Number || again.Title != "Another title" {
		t.Errorf("saving a draft again makes %+v, want number %d with the new title", again, prs[0].Number)
	}
	open, err := f.Open(ctx, repo.Base)
	must(err)
	if len(open) != len(prs) {
		t.Fatalf("%d pull requests are open, want %d: pages are read to the end", len(open), len(prs))
	}
	if none, err := f.Open(ctx, "another-branch"); err != nil || len(none) > 0 {
		t.Errorf("into another branch: %v, %v", none, err)
	}
	pr := open[0]
	if pr.Number != prs[0].Number || pr.State != forge.Opened || pr.Fork || pr.HeadBranch != repo.Branches[0] || pr.Base != repo.Base || pr.Head == "" || pr.Author == "" || !strings.HasPrefix(pr.Ref, "refs/") {
		t.Errorf("the first is %+v", pr)
	}
	if _, err := f.Get(ctx, 4242); !errors.Is(err, forge.ErrNotFound) {
		t.Errorf("one that is not there: %v, want ErrNotFound", err)
	}
	t.Run("comment", func(t *testing.T) { conformComment(t, f, pr, repo) })
	t.Run("lines", func(t *testing.T) { conformLines(t, f, pr, repo) })
	t.Run("status", func(t *testing.T) {
		for _, s := range []forge.Status{{State: forge.Pending}, {State: forge.Pending}, {State: forge.Failed}, {State: forge.Broken}, {State: forge.Success, Description: strings.Repeat("é", 200)}} {
			s.Context = "fleetbroker/plan"
			if err := f.SetStatus(ctx, pr.Head, s); err != nil {
				t.Errorf("%s: %v", s.State, err)
			}
		}
	})
	t.Run("merge", func(t *testing.T) { conformMerge(t, f, pr, repo) })
	must(f.Close(ctx, prs[1].Number))
	if got, err := f.Get(ctx, prs[1].Number); err != nil || got.State != forge.Closed {
		t.Errorf("a closed one is %+v, %v", got, err)
	}
}

func conformComment(t *testing.T, f forge.Forge, pr forge.PullRequest, repo Repo) {
	const marker = "<!-- mark -->"
	for range 3 { // more than a page
		repo.Say(pr.Number, marker+"\nsomebody else's, with our marker")
	}
	write := func(body string, want bool) {
		t.Helper()
		changed, err := f.Comment(t.Context(), pr.Number, marker, marker+"\n"+body)
		if err != nil || changed != want {
			t.Fatalf("comment %q: changed %v, %v", body, changed, err)
		}
	}
	write("one", true)
	write("one", false)
	write("two\n", true)
	write("two", false)
	got := strings.Join(repo.Comments(pr.Number), "|")
	if strings.Count(got, "somebody else's") != 3 || strings.Count(got, "two") != 1 || strings.Contains(got, "one") {
		t.Errorf("the comments are %q", got)
	}
}

func conformLines(t *testing.T, f forge.Forge, pr forge.PullRequest, repo Repo) {
	at := func(line int, body string) forge.LineComment {
		return forge.LineComment{Path: repo.Path, Line: line, Body: body}
	}
	for _, want := range [][]forge.LineComment{
		{at(1, "a"), at(1, "b"), at(2, "c")}, {at(1, "a"), at(1, "b"), at(2, "c")}, {at(2, "c")}, {}, {at(1, "d"), at(4000, "far")},
	} {
		if _, err := f.Annotate(t.Context(), pr, want); err != nil {
			t.Fatalf("%v: %v", want, err)
		}
	}
}

func conformMerge(t *testing.T, f forge.Forge, pr forge.PullRequest, repo Repo) {
	ctx := t.Context()
	head := repo.Push(pr.HeadBranch)
	if err := f.Merge(ctx, pr.Number, forge.Merge{Head: pr.Head}); !errors.Is(err, forge.ErrMoved) {
		t.Errorf("merge of an older head: %v, want ErrMoved", err)
	}
	// A real forge looks first whether it can be merged after a push.
	err := f.Merge(ctx, pr.Number, forge.Merge{Head: head, Title: "Merge it"})
	for try := 0; errors.Is(err, forge.ErrNotReady) && try < 100; try++ {
		<-time.After(200 * time.Millisecond)
		err = f.Merge(ctx, pr.Number, forge.Merge{Head: head, Title: "Merge it"})
	}
	if err != nil {
		t.Fatal(err)
	}
	got, err := f.Get(ctx, pr.Number)
	if err != nil || got.State != forge.Merged || got.MergeCommit == "" || got.MergedAt.IsZero() {
		t.Fatalf("merged: %+v, %v", got, err)
	}
	of, err := f.WithCommit(ctx, got.MergeCommit)
	if err != nil || len(of) != 1 || of[0].Number != pr.Number {
		t.Errorf("of commit %s: %+v, %v", got.MergeCommit, of, err)
	}
	if none, err := f.WithCommit(ctx, strings.Repeat("1", 40)); err != nil || len(none) > 0 {
		t.Errorf("of an unknown commit: %+v, %v", none, err)
	}
}
