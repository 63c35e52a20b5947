package world

import (
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/market"
	"github.com/fleetbroker/fleetbroker/internal/planner"
)

// life is a small fleet to which things happen.
type life struct {
	t       *rapid.T
	now     time.Time
	market  *market.Market
	reader  *fleet.Reader
	files   map[string][]byte
	in      Input
	reports uint64
	names   map[string]bool // of all contracts that ever were
	by      map[string]string
}

func newLife(t *rapid.T) *life {
	l := &life{t: t, now: noon, reader: fleet.NewReader(), names: map[string]bool{}, by: map[string]string{}}
	l.market = market.New(market.Options{Now: func() time.Time { return l.now }})
	l.files = map[string][]byte{
		"fleet.yaml":          []byte("apiVersion: fleetbroker.io/v1alpha1\nkind: Fleet\nmetadata: {name: acme}\nspec: {safety: {maxEnds: 100}}\n"),
		"clusters/rome.yaml":  []byte("apiVersion: fleetbroker.io/v1alpha1\nkind: Cluster\nmetadata: {name: rome}\nspec: {roles: [consumer]}\n"),
		"tenants/vision.yaml": []byte("apiVersion: fleetbroker.io/v1alpha1\nkind: Tenant\nmetadata: {name: vision}\nspec: {consumers: [rome]}\n"),
	}
	for _, name := range []string{"paris", "milan", "oslo"} {
		l.cluster(name, "r1")
	}
	l.in.Ledger = ledger.Empty()
	l.read()
	l.asked()
	return l
}

func (l *life) cluster(name, region string) {
	l.files["clusters/"+name+".yaml"] = fmt.Appendf(nil, "apiVersion: fleetbroker.io/v1alpha1\nkind: Cluster\nmetadata: {name: %s}\nspec: {roles: [provider], location: {region: %s}}\n", name, region)
}

// read takes over the inputs, as a daemon does after a commit.
func (l *life) read() {
	f, err := l.reader.Read(l.t.Context(), tree.NewMemory().Build(l.files), l.in.Fleet)
	if err != nil {
		l.t.Fatal(err)
	}
	l.in.Fleet = f
	l.market.SetInputs(market.Inputs{Fleet: f.Policy, Clusters: f.Clusters, Flavors: f.Flavors})
}

// asked finds authors anew, some intents to have another.
func (l *life) asked() {
	by := maps.Clone(l.by)
	l.in.Authors, l.in.Asked = l.in.Authors+1, nil
	for i := range 5 {
		if name := fmt.Sprintf("job%d", i); rapid.IntRange(0, 2).Draw(l.t, "asked") == 0 {
			by[name] = fmt.Sprint(rapid.IntRange(0, 2).Draw(l.t, "author"))
			l.in.Asked = append(l.in.Asked, [2]string{"vision", name})
		}
	}
	l.by, l.in.Author = by, func(it *model.Intent) (string, string) { return it.Metadata.Name, by[it.Metadata.Name] }
}

// held names a contract for an agent to report, perhaps one that is no more.
func (l *life) held() map[string]v1alpha1.Resources {
	out := map[string]v1alpha1.Resources{}
	for name := range l.names {
		if rapid.IntRange(0, 2).Draw(l.t, "reported") == 0 {
			out[name] = v1alpha1.Resources{v1alpha1.CPU: v1alpha1.AmountOf(rapid.Int64Range(0, 3).Draw(l.t, "under it"))}
		}
	}
	return out
}

func (l *life) provider() string {
	return rapid.SampledFrom([]string{"paris", "milan", "oslo"}).Draw(l.t, "provider")
}

// event makes something happen, and says what.
func (l *life) event(plan *planner.Plan) string {
	switch what := rapid.IntRange(0, 11).Draw(l.t, "what"); what {
	case 0, 1, 2:
		l.reports++
		p := l.provider()
		var list []v1alpha1.Flavor
		for _, name := range []string{"a", "b", "c"} {
			if rapid.IntRange(0, 9).Draw(l.t, "offered") > 0 {
				list = append(list, flavor(p, name, l.held()))
				list[len(list)-1].Spec.Used = v1alpha1.Resources{v1alpha1.CPU: v1alpha1.AmountOf(rapid.Int64Range(0, 2).Draw(l.t, "used"))}
			}
		}
		if err := l.market.Report(p, wire.Generation{Epoch: 1, N: l.reports}, list, true); err != nil {
			l.t.Fatal(err)
		}
		return "report"
	case 3:
		l.now = l.now.Add(time.Duration(rapid.SampledFrom([]int{1, 40, 100, 400, 90_000}).Draw(l.t, "seconds")) * time.Second)
		return "silence"
	case 4:
		name := fmt.Sprintf("job%d", rapid.IntRange(0, 4).Draw(l.t, "intent"))
		path := "intents/vision/" + name + ".yaml"
		if l.files[path] != nil && rapid.Bool().Draw(l.t, "deleted") {
			delete(l.files, path)
		} else {
			l.files[path] = fmt.Appendf(nil, "apiVersion: fleetbroker.io/v1alpha1\nkind: ResourceIntent\nmetadata: {name: %s, namespace: vision}\nspec: {resources: {cpu: %d}}\n", name, rapid.IntRange(1, 3).Draw(l.t, "cpu"))
		}
		l.read()
		return "intent"
	case 5:
		switch rapid.IntRange(0, 5).Draw(l.t, "input") {
		case 0, 4, 5:
			l.asked()
			if rapid.IntRange(0, 3).Draw(l.t, "again") == 0 {
				l.asked() // of what was asked before no world tells
			}
			return "authors"
		case 1:
			l.files["clusters/"+l.provider()+".yaml"] = []byte("no cluster\n")
		default:
			l.cluster(l.provider(), rapid.SampledFrom([]string{"r1", "r2"}).Draw(l.t, "region"))
		}
		l.read()
		return "inputs"
	case 6:
		name := rapid.StringMatching(`stray-[ab]`).Draw(l.t, "stray")
		c := contract(name, l.provider(), rapid.SampledFrom([]string{"a", "a-b", "gone", "gone-2"}).Draw(l.t, "flavor"), rapid.SampledFrom([]string{"rome", "turin"}).Draw(l.t, "for"))
		c.Spec.Term.Start = v1alpha1.TimeOf(noon)
		c.Spec.Slice = rapid.SampledFrom([]string{"", "slice"}).Draw(l.t, "slice")
		l.names[name] = true
		l.in.Ledger = l.in.Ledger.With(ledger.Changes{Contracts: []model.Change{{Before: l.in.Ledger.Contract(name), After: c}}})
		return "stray contract"
	case 7:
		for c := range l.in.Ledger.Contracts() {
			after := *c
			after.Status.Phase = rapid.SampledFrom([]v1alpha1.Phase{v1alpha1.PhaseActive, v1alpha1.PhaseReleasing, v1alpha1.PhaseReleased}).Draw(l.t, "phase")
			ch := model.Change{Before: c, After: &after}
			if rapid.IntRange(0, 3).Draw(l.t, "retired") == 0 {
				ch.After = nil
			}
			l.in.Ledger = l.in.Ledger.With(ledger.Changes{Contracts: []model.Change{ch}})
			break
		}
		return "phase"
	case 8, 9:
		at := rapid.SampledFrom([]string{"rome", "turin"}).Draw(l.t, "consumer")
		all := maps.Clone(l.in.Observed)
		if all == nil {
			all = v1alpha1.ConsumerObservations{}
		}
		next := maps.Clone(all[at])
		if next == nil {
			next = map[string]v1alpha1.ConsumerObservation{}
		}
		for name := range l.names {
			switch rapid.IntRange(0, 4).Draw(l.t, "seen") {
			case 0:
				delete(next, name)
			case 1:
				next[name] = v1alpha1.ConsumerObservation{Reachable: true, Slice: v1alpha1.Present, NodeReady: rapid.Bool().Draw(l.t, "ready"), Granted: v1alpha1.Resources{}}
			}
		}
		if all[at] = next; len(next) == 0 {
			delete(all, at)
		}
		l.in.Observed = all
		return "observation"
	case 10:
		l.in.Unheard = map[string]bool{}
		for name := range l.names {
			if rapid.Bool().Draw(l.t, "unheard") {
				l.in.Unheard[name] = true
			}
		}
		return "unheard"
	}
	var ch ledger.Changes
	for _, c := range plan.Contracts {
		ch.Contracts = append(ch.Contracts, model.Change{Before: c.Before, After: c.After})
		if c.After != nil {
			l.names[c.After.Metadata.Name] = true
		}
	}
	for _, s := range plan.States {
		ch.States = append(ch.States, model.StateChange{Before: s.Before, After: s.After})
	}
	l.in.Ledger = l.in.Ledger.With(ch)
	return "commit"
}

// same holds a folded world against one made from nothing.
func (l *life) same(said string, got, want planner.World) {
	l.t.Helper()
	for name := range l.names {
		if a, b := got.Observed.Of(name), want.Observed.Of(name); !planner.SameObservation(a, b) {
			l.t.Fatalf("after %q, of %s: %+v, want %+v", said, name, a, b)
		}
	}
	got.Observed, want.Observed = planner.Observations{}, planner.Observations{}
	if !reflect.DeepEqual(got, want) {
		l.t.Fatalf("after %q:\n%+v\nwant\n%+v", said, got, want)
	}
}

// Whatever happens, a folded world is the one that is made from nothing and
// gives the same plan, from the planner's memory too; and it stays as it is
// when the next is folded.
func TestFoldIsBuild(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newLife(t)
		folder, memory := &Folder{}, &planner.Session{}
		var plan *planner.Plan
		var before, pure planner.World
		for i := range rapid.IntRange(1, 15).Draw(t, "length") {
			said := "start"
			if i > 0 {
				said = l.event(plan)
			}
			l.in.Market, l.in.Now = l.market.Snapshot(), v1alpha1.TimeOf(l.now)
			got, want := folder.Fold(l.in), Build(l.in)
			l.same(said, got, want)
			if i > 0 {
				l.same("the world before "+said, before, pure)
			}
			plan = planner.Decide(want)
			if folded := memory.Decide(got); !reflect.DeepEqual(folded, plan) {
				t.Fatalf("after %q another plan:\n%+v\nwant\n%+v", said, folded, plan)
			}
			before, pure = got, want
		}
	})
}

// What has not changed keeps its address.
func TestFoldKeepsWhatItKnows(t *testing.T) {
	now := noon
	m := marketOf(t, &now)
	l := ledgerOf(contract("run", "paris", "a", "rome"), contract("gone", "oslo", "x", "rome"))
	in := Input{Now: v1alpha1.TimeOf(noon), Fleet: &fleet.Fleet{Policy: &v1alpha1.FleetSpec{}, Intents: []*model.Intent{{}}}, Authors: 1, Ledger: l, Market: m.Snapshot()}
	f := &Folder{}
	one := f.Fold(in)
	now = now.Add(time.Second)
	in.Market = m.Snapshot()
	two := f.Fold(in)
	if &one.Offers[0] != &two.Offers[0] || &one.Intents[0] != &two.Intents[0] {
		t.Error("nothing has happened, and the lists are others")
	}
	if err := m.Report("paris", wire.Generation{Epoch: 1, N: 2}, []v1alpha1.Flavor{flavor("paris", "a", nil), flavor("paris", "b", nil)}, true); err != nil {
		t.Fatal(err)
	}
	in.Market = m.Snapshot()
	three := f.Fold(in)
	changed := 0
	for i := range two.Offers {
		if two.Offers[i] != three.Offers[i] {
			changed++
		}
	}
	if changed != 2 {
		t.Errorf("a report of two flavors changes %d of %d offers", changed, len(two.Offers))
	}
}

// Who wrote an intent is asked of those that are named, and of all where more
// than one search lies between.
func TestFoldAsksForAuthors(t *testing.T) {
	now := noon
	list := func(names ...string) (out []*model.Intent) {
		for _, name := range names {
			out = append(out, &model.Intent{ResourceIntent: &v1alpha1.ResourceIntent{Metadata: v1alpha1.Metadata{Namespace: "vision", Name: name}}})
		}
		return out
	}
	first := list("a", "b", "c")
	in := Input{Now: v1alpha1.TimeOf(noon), Fleet: &fleet.Fleet{Policy: &v1alpha1.FleetSpec{}, Intents: first}, Authors: 1, Ledger: ledgerOf(), Market: marketOf(t, &now).Snapshot()}
	f := &Folder{}
	last := f.Fold(in).Intents
	for _, step := range []struct {
		name    string
		intents []*model.Intent
		authors uint64
		asked   []string
		// by is what is known of all from now on.
		by, want string
		same     []bool // of those there, whether they keep their address
	}{
		{"one is named", first, 2, []string{"b"}, "Ada", " Ada ", []bool{true, false, true}},
		{"one comes before it, which is not named", []*model.Intent{first[0], list("aa")[0], first[1], first[2]}, 3, nil, "Bo", " Bo Ada ", []bool{true, false, true, true}},
		{"a search lies between", first, 5, nil, "Bo", "Bo Bo Bo", []bool{false, false, false}},
		{"one goes, another is named", first[1:], 6, []string{"c"}, "Cy", "Bo Cy", []bool{true, false}},
	} {
		was := map[string]*model.Intent{}
		for _, one := range last {
			was[one.Metadata.Name] = one
		}
		in.Fleet, in.Authors, in.Asked = &fleet.Fleet{Policy: in.Fleet.Policy, Intents: step.intents}, step.authors, nil
		for _, name := range step.asked {
			in.Asked = append(in.Asked, [2]string{"vision", name})
		}
		in.Author = func(*model.Intent) (string, string) { return "", step.by }
		last = f.Fold(in).Intents
		var said []string
		for i, one := range last {
			said = append(said, one.Author)
			if (was[one.Metadata.Name] == one) != step.same[i] {
				t.Errorf("%s: whether %s keeps its address: not %v", step.name, one.Metadata.Name, step.same[i])
			}
		}
		if got := strings.Join(said, " "); got != step.want {
			t.Errorf("%s: by %q, want %q", step.name, got, step.want)
		}
	}
}
