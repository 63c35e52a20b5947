package bench

import (
	"sync/atomic"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/test/bench/gen"
)

// small is a fleet on which the work is counted instead of timed.
var small = gen.Options{Tenants: 4, Intents: 100, Held: 10, Waiting: 10, Providers: 5, Flavors: 2, Consumers: 2, Delivery: "none", Now: made}

// A daemon finds a generated fleet at rest, and rounds without news plan
// nothing, read nothing and push nothing.
func TestRoundsWithoutNewsDoNothing(t *testing.T) {
	p := serve(t, small)
	d := start(t, p)
	if n := d.settle(t); n > 0 {
		t.Fatalf("%d commits on a fleet at rest", n)
	}
	before := p.git.Stats()
	for range 10 {
		d.Reread()
		if out := d.round(t); out.Plan != nil || out.Took.Plan > 0 || out.Took.Commit > 0 {
			t.Errorf("a round without news worked: %+v", out)
		}
	}
	after := p.git.Stats()
	if after.Pushes != before.Pushes || after.Fetches != before.Fetches {
		t.Errorf("rounds without news moved packs: %+v, then %+v", before, after)
	}
	if asked := after.Requests - before.Requests; asked > 20 {
		t.Errorf("ten polls cost %d requests", asked)
	}
}

// Reading again after a commit of one file opens the directories on its way
// and the file, however large the fleet is.
func TestRereadVisitsWhatChanged(t *testing.T) {
	p := serve(t, small)
	remote, err := gitrepo.Dial(p.git.URL(repo), gitrepo.Auth{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := gitrepo.Open(t.Context(), remote, gitrepo.Options{Inputs: gen.InputsBranch, Ledger: gen.LedgerBranch})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	reader := fleet.NewReader()
	var last *fleet.Fleet
	var led *ledger.Ledger
	read := func() (objects int) {
		heads, err := r.Fetch(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		counted := &counting{}
		if last, err = reader.Read(t.Context(), counted.of(heads.Inputs.Tree), last); err != nil {
			t.Fatal(err)
		}
		if led, _, err = ledger.Read(t.Context(), counted.of(heads.Ledger.Tree), led); err != nil {
			t.Fatal(err)
		}
		return int(counted.calls.Load())
	}
	if n := read(); n < small.Tenants*small.Intents {
		t.Fatalf("the first read opened only %d objects", n)
	}
	path, content := gen.NewIntent(1, 1)
	p.put(t, map[string][]byte{path: content})
	// The root, intents/, the tenant's directory and the file; the root of the
	// ledger.
	if n := read(); n > 8 {
		t.Errorf("reading a commit of one file opened %d objects", n)
	}
}

// counting counts the objects that are read from a store.
type counting struct {
	tree.Store
	calls atomic.Int64 // readers use all cores
}

func (c *counting) of(t tree.Tree) tree.Tree {
	c.Store = t.Store
	return tree.Tree{Store: c, Root: t.Root}
}

// Dir implements tree.Store.
func (c *counting) Dir(h tree.Hash) ([]tree.Entry, error) {
	c.calls.Add(1)
	return c.Store.Dir(h)
}

// File implements tree.Store.
func (c *counting) File(h tree.Hash, limit int64) ([]byte, error) {
	c.calls.Add(1)
	return c.Store.File(h, limit)
}
