package reconciler

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
)

// What is found to be other is what a comparison of each with each finds.
func TestOtherIntents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var last, now fleet.Fleet
		want := map[string]bool{}
		for _, tenant := range []string{"a", "b"} {
			for i := range 6 {
				it := func(path string) *model.Intent {
					return &model.Intent{ResourceIntent: &v1alpha1.ResourceIntent{Metadata: v1alpha1.Metadata{Namespace: tenant, Name: fmt.Sprint(i)}}, Path: path}
				}
				old := it("one")
				switch rapid.SampledFrom([]string{"absent", "same", "new", "gone", "other", "moved", "twice"}).Draw(t, "intent") {
				case "same":
					last.Intents, now.Intents = append(last.Intents, old), append(now.Intents, old)
				case "new":
					now.Intents = append(now.Intents, it("new"))
					want[tenant+fmt.Sprint(i)+"new"] = true
				case "gone":
					last.Intents = append(last.Intents, old)
				case "other":
					last.Intents, now.Intents = append(last.Intents, old), append(now.Intents, it("one"))
					want[tenant+fmt.Sprint(i)+"one"] = true
				case "moved":
					moved := &model.Intent{ResourceIntent: old.ResourceIntent, Path: "two"}
					last.Intents, now.Intents = append(last.Intents, old), append(now.Intents, moved)
					want[tenant+fmt.Sprint(i)+"two"] = true
				case "twice":
					last.Intents, now.Intents = append(last.Intents, old), append(now.Intents, old, it("second"))
					want[tenant+fmt.Sprint(i)+"second"] = true
				}
			}
		}
		got := map[string]bool{}
		for _, it := range otherIntents(&last, &now) {
			got[it.Metadata.Namespace+it.Metadata.Name+it.Path] = true
			if !slices.Contains(intentsCalled(&now, keyOfIntent(it)), it) {
				t.Fatalf("%s %s is not found by its name", it.Metadata.Name, it.Path)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("got %v, want %v", got, want)
		}
		if n := len(otherIntents(nil, &now)); n != len(now.Intents) {
			t.Fatalf("without a fleet before, %d of %d are new", n, len(now.Intents))
		}
	})
}

// Whoever stands in a rewritten history that an operator accepted wrote what
// stands there, not whoever had written it before.
func TestAuthorsOfARewrittenHistory(t *testing.T) {
	s := newStory(t, "ledger")
	whole := func(suspended bool) map[string][]byte {
		return map[string][]byte{"fleet.yaml": []byte(fmt.Sprintf("apiVersion: fleetbroker.io/v1alpha1\nkind: Fleet\nmetadata: {name: acme}\nspec:\n  suspend: %t\n  writeBack: {inputs: main, branch: ledger, author: {name: fleetbroker, email: broker@example.org}}\n", suspended))}
	}
	commit := func(who gitobj.Person, files map[string][]byte) {
		t.Helper()
		if _, err := s.remote.Commit("main", who, "Change", gitobj.Change{Puts: files}); err != nil {
			t.Fatal(err)
		}
	}
	commit(ada, whole(true))
	s.push(map[string]string{"intents/vision/train.yaml": intentOf("train", "4")})
	s.rest()
	files := map[string][]byte{}
	for _, path := range []string{"fleet.yaml", "clusters/rome.yaml", "clusters/paris.yaml", "tenants/vision.yaml", "flavors/paris/h100.yaml", "intents/vision/train.yaml"} {
		b, err := s.tree("main").ReadFile(path, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		files[path] = b
	}
	head, err := s.remote.Rewrite("main", tree.Hash{}, eve, "All in one", gitobj.Change{Puts: files})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.r.opts.Repo.AcceptRewrite(t.Context(), head); err != nil {
		t.Fatal(err)
	}
	s.rest() // not a file changed: the fleet is the one that was read
	if c := s.r.authors.byPath["intents/vision/train.yaml"]; c.Author.Name != "Eve" {
		t.Errorf("of the same files in the new history it takes %s for the author", c.Author)
	}
	commit(ada, whole(false))
	s.rest()
	if by := s.only("train").Spec.Intent.Author; by != "Eve <eve@example.org>" {
		t.Errorf("the contract says that %s asked for it", by)
	}
}
