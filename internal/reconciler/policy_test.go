package reconciler_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/memremote"
	"github.com/fleetbroker/fleetbroker/internal/market"
	"github.com/fleetbroker/fleetbroker/internal/reconciler"
)

const goodFleet = "apiVersion: fleetbroker.io/v1alpha1\nkind: Fleet\nmetadata: {name: acme}\nspec: {writeBack: {author: {name: b, email: b@example.org}}}\n"

// A daemon that starts with a broken fleet.yaml finds the last good version
// behind any number of commits of the ledger on the same branch, and without
// any it writes nothing.
func TestStartWithBrokenFleet(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	who := gitobj.Person{Name: "Ada", Email: "ada@example.org", When: now}
	for _, good := range []bool{true, false} {
		t.Run(fmt.Sprintf("good version in history %v", good), func(t *testing.T) {
			remote := memremote.New()
			put := func(path, text string) {
				if _, err := remote.Commit("main", who, "edit "+path+"\n", gitobj.Change{Puts: map[string][]byte{path: []byte(text)}}); err != nil {
					t.Fatal(err)
				}
			}
			if good {
				put("fleet.yaml", goodFleet)
			}
			put("fleet.yaml", "kind: [nonsense\n")
			for i := range 150 {
				put("contracts/notes.txt", fmt.Sprint(i))
			}
			clock := func() time.Time { return now }
			repo, err := gitrepo.Open(t.Context(), remote, gitrepo.Options{
				Inputs: "main", Ledger: "main", Now: clock,
				Sleep: func(context.Context, time.Duration) error { return nil },
			})
			if err != nil {
				t.Fatal(err)
			}
			loop := reconciler.New(reconciler.Options{Repo: repo, Market: market.New(market.Options{Now: clock}), Now: clock})
			_, err = loop.Round(t.Context())
			if good {
				if err != nil || loop.View().Fleet.Policy.WriteBack.Author.Email != "b@example.org" {
					t.Fatalf("round: %v; want the policy of the last good fleet.yaml", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), "fleet.yaml") {
				t.Fatalf("round: %v; want it to stop for want of a policy", err)
			}
		})
	}
}
