package proposing

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/forge"
	"github.com/fleetbroker/fleetbroker/internal/forge/forges"
	"github.com/fleetbroker/fleetbroker/internal/forge/forgetest"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/memremote"
)

// What changes is proposed once. A newer proposal takes the place of an older one of the
// same account; other people's pull requests stand, and so does a no.
func TestPropose(t *testing.T) {
	remote, now := memremote.New(), time.Unix(1_800_000_000, 0)
	ada := gitobj.Person{Name: "Ada", Email: "ada@example.org", When: now}
	inputs := func(content string) {
		t.Helper()
		if _, err := remote.Commit("main", ada, "Prices", gitobj.Change{Puts: map[string][]byte{"fleet.yaml": []byte("kind: Fleet\n"), "prices/aws.yaml": []byte(content)}}); err != nil {
			t.Fatal(err)
		}
	}
	inputs("one")
	fake := forgetest.GitHub(t)
	theirs := fake.Add(forgetest.Pull{Title: "Prices, by hand", Author: "ada", Branch: "prices/aws-mine", Base: "main", Head: "h"})
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte(forgetest.Token), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := forges.Open(forge.Config{Kind: forge.GitHub, URL: fake.URL, Repo: "acme/fleet", TokenFile: token}, "")
	if err != nil {
		t.Fatal(err)
	}
	propose := func(content string, f forge.Forge) Outcome {
		t.Helper()
		out, err := Propose(t.Context(), remote, f, "main", gitrepo.Identity{Name: "fleetbroker", Email: "fleetbroker@example.org"}, now, Change{
			Path: "prices/aws.yaml", Content: []byte(content), Prefix: "prices/aws", Title: "Prices of aws", Body: "2 prices",
		})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	opened := func() (numbers []int64) {
		t.Helper()
		list, err := f.Open(t.Context(), "main")
		if err != nil {
			t.Fatal(err)
		}
		for _, pr := range list {
			numbers = append(numbers, pr.Number)
		}
		return numbers
	}

	if out := propose("one", f); !out.Same || len(opened()) != 1 {
		t.Errorf("what is there: got %+v, open are %v", out, opened())
	}
	first := propose("two", f)
	if !first.Made || first.Number == 0 || !strings.HasPrefix(first.Branch, "prices/aws-") || len(first.Closed) > 0 {
		t.Fatalf("got %+v", first)
	}
	if again := propose("two", f); again.Made || again.Number != first.Number || len(opened()) != 2 {
		t.Errorf("the same again: got %+v, open are %v", again, opened())
	}
	mine := opened()[1]
	next := propose("three", f)
	if !next.Made || next.Branch == first.Branch || !slices.Equal(next.Closed, []int64{mine}) || !slices.Contains(opened(), theirs) || len(opened()) != 2 {
		t.Errorf("a newer one: got %+v, open are %v, want #%d closed and #%d open", next, opened(), mine, theirs)
	}
	if err := f.Close(t.Context(), opened()[1]); err != nil { // somebody says no
		t.Fatal(err)
	}
	if out := propose("three", f); out.Made || out.Number != 0 || len(opened()) != 1 || !strings.Contains(out.Text("prices/aws.yaml"), "already") {
		t.Errorf("what was closed: got %+v, open are %v", out, opened())
	}
	// Merged, changed, and changed back: the same content is another change.
	inputs("four")
	if out := propose("two", f); !out.Made || out.Branch == first.Branch {
		t.Errorf("a change back: got %+v", out)
	}
	// Without a forge the branch is made, and has the file over what main has.
	bare := propose("five", nil)
	refs, err := remote.Refs(t.Context())
	if err != nil || !bare.Made || refs["refs/heads/"+bare.Branch].IsZero() || !strings.Contains(bare.Text("prices/aws.yaml"), "open a pull request") {
		t.Errorf("without a forge: got %+v, %v, refs %v", bare, err, refs)
	}
}
