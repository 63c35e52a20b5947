package gen

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/test/env"
)

// What is generated is what git holds, the same each time, and has a contract
// for each held intent.
func TestMake(t *testing.T) {
	o := Options{
		Tenants: 3, Intents: 20, Held: 5, Waiting: 3, Providers: 5, Flavors: 4, Consumers: 2, Delivery: "none",
		Now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC),
	}
	var heads []string
	for _, name := range []string{"one", "two"} {
		dir := filepath.Join(t.TempDir(), name)
		f, err := Make(t.Context(), dir, o)
		if err != nil {
			t.Fatal(err)
		}
		heads = append(heads, f.Inputs+f.Ledger)
		out, err := env.Git(t.Context(), dir, "ls-tree", "-r", "--name-only", LedgerBranch)
		if err != nil {
			t.Fatal(err)
		}
		paths := strings.Split(out, "\n")
		if again, err := Open(t.Context(), dir, o); err != nil || again.Inputs != f.Inputs || again.Ledger != f.Ledger {
			t.Errorf("opened again: %v, want what was made", err)
		}
		if n, want := count(paths, "contracts/", "_intent.yaml"), o.Tenants*o.Intents; n != want {
			t.Errorf("%d states, want %d", n, want)
		}
		if n, want := count(paths, "manifests/", "-slice.yaml"), o.Tenants*o.Held; n != want {
			t.Errorf("%d slices, want %d", n, want)
		}
	}
	if heads[0] != heads[1] {
		t.Errorf("equal options gave %v", heads)
	}
}

func count(paths []string, prefix, suffix string) (n int) {
	for _, p := range paths {
		if strings.HasPrefix(p, prefix) && strings.HasSuffix(p, suffix) {
			n++
		}
	}
	return n
}
