package cli

import (
	"context"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/memremote"
)

// A daemon that starts while fleet.yaml is broken or gone goes on with the
// ledger that it had.
func TestLedgerBranch(t *testing.T) {
	const head = "apiVersion: fleetbroker.io/v1alpha1\nkind: Fleet\nmetadata: {name: acme}\nspec:\n"
	named := func(branch string) []byte {
		return []byte(head + "  writeBack: {inputs: main, branch: " + branch + "}\n")
	}
	for name, tc := range map[string]struct {
		versions [][]byte // nil: the file is gone
		want     string
	}{
		"never there": {[][]byte{nil}, "main"},
		"good":        {[][]byte{named("ledger")}, "ledger"},
		"changed":     {[][]byte{named("ledger"), named("books")}, "books"},
		"broken":      {[][]byte{named("old"), named("ledger"), []byte("kind: ["), []byte("{")}, "ledger"},
		"gone":        {[][]byte{named("old"), named("ledger"), nil}, "ledger"},
		"mended":      {[][]byte{named("ledger"), []byte("kind: ["), named("books")}, "books"},
		"never good":  {[][]byte{[]byte("kind: [")}, "main"},
	} {
		t.Run(name, func(t *testing.T) {
			remote := memremote.New()
			who := gitobj.Person{Name: "Ada", Email: "ada@example.org", When: time.Unix(1_800_000_000, 0)}
			for _, text := range tc.versions {
				change := gitobj.Change{Puts: map[string][]byte{"README.md": append([]byte("x"), text...)}}
				if text == nil {
					change.Deletes = []string{fleetFile}
				} else {
					change.Puts[fleetFile] = text
				}
				if _, err := remote.Commit("main", who, "Change", change); err != nil {
					t.Fatal(err)
				}
			}
			got, err := ledgerBranch(context.Background(), remote, gitrepo.Options{Inputs: "main"})
			if err != nil || got != tc.want {
				t.Errorf("got %q, %v; want %q", got, err, tc.want)
			}
		})
	}
}
