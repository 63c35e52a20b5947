package cli_test

import (
	"context"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/cli"
	"github.com/fleetbroker/fleetbroker/test/env/envtest"
	"github.com/fleetbroker/fleetbroker/test/story"
)

// publish puts all of a story's refs into a repository.
func publish(t *testing.T, s *story.Story, repo *git.Repository) {
	t.Helper()
	refs := s.Remote.AllRefs()
	var heads []tree.Hash
	for _, h := range refs {
		heads = append(heads, h)
	}
	everything := func(map[string]tree.Hash) (want, have []tree.Hash) { return heads, nil }
	if err := s.Remote.Fetch(t.Context(), everything, func(pack io.Reader) error { return packfile.UpdateObjectStorage(repo.Storer, pack) }); err != nil {
		t.Fatal(err)
	}
	for name, h := range refs {
		if err := repo.Storer.SetReference(plumbing.NewHashReference(plumbing.ReferenceName(name), plumbing.Hash(h))); err != nil {
			t.Fatal(err)
		}
	}
}

// In a clone of one branch, and a shallow one, --watch fetches the ledger, says how old
// it is, and writes into a pipe only the rows that have changed.
func TestWatchFetches(t *testing.T) {
	s := story.Lived(t, "ledger", nil, "")
	origin := filepath.Join(t.TempDir(), "origin.git")
	repo, err := git.PlainInit(origin, true)
	if err != nil {
		t.Fatal(err)
	}
	publish(t, s, repo)
	clone := filepath.Join(t.TempDir(), "clone")
	if out, err := exec.CommandContext(t.Context(), "git", "clone", "-q", "--depth", "1", "--branch", "main", "file://"+origin, clone).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	now := noon.Add(48 * time.Hour)
	var out, errs screen
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() {
		streams := cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs, Now: func() time.Time { return now }}
		ended <- cli.Run(ctx, streams, []string{"get", "contracts", "-C", clone, "--watch", "--watch-interval", "100ms"})
	}()
	sees := func(what string, fn func() bool) {
		t.Helper()
		envtest.Eventually(t, what, func(context.Context) bool { return fn() })
	}
	sees("the ledger, fetched", func() bool { return strings.Contains(out.String(), "vision\ttrain") })
	sees("its age", func() bool {
		return strings.Contains(errs.String(), "fleetbroker: ledger ") && strings.Contains(errs.String(), " ago\n")
	})
	first := out.String()
	if strings.Count(first, "NAME\t") != 1 {
		t.Errorf("the first picture is\n%s", first)
	}

	s.Ask("later", 1, "")
	s.Rest()
	publish(t, s, repo)
	sees("what was placed since", func() bool { return strings.Contains(out.String(), "vision\tlater") })
	rest := strings.TrimPrefix(out.String(), first)
	if strings.Contains(rest, "NAME\t") {
		t.Errorf("the header is written again:\n%s", rest)
	}
	for line := range strings.Lines(rest) {
		if strings.Contains(first, line) {
			t.Errorf("an unchanged row is written again: %s", line)
		}
	}

	// A remote that cannot be reached is said once, and the age goes on to be known.
	if err := exec.CommandContext(t.Context(), "git", "-C", clone, "remote", "set-url", "origin", "file://"+origin+".gone").Run(); err != nil {
		t.Fatal(err)
	}
	sees("that it cannot be fetched", func() bool { return strings.Contains(errs.String(), "fetch branch ledger: git: ") })
	stop()
	if code := <-ended; code != 0 {
		t.Errorf("it ends with %d: %s", code, errs.String())
	}
	for _, once := range []string{"fetch branch ledger", "unverified: "} {
		if n := strings.Count(errs.String(), once); n != 1 {
			t.Errorf("%q is said %d times:\n%s", once, n, errs.String())
		}
	}
}
