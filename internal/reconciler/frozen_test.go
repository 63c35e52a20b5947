package reconciler

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
)

// granting is a Delivery by which everything that was told works at once.
type granting struct{ clusters }

func (g *granting) Observe() (v1alpha1.ConsumerObservations, uint64) {
	all, number := g.clusters.Observe()
	for name, d := range g.desired {
		for _, c := range d.Contracts {
			o := all[name][c.Metadata.Name]
			if o.Slice != v1alpha1.Present {
				continue
			}
			o.Granted, o.Allocatable = c.Spec.Resources, c.Spec.Resources
			if !c.Status.Phase.Charged() {
				all[name][c.Metadata.Name] = o // its Node is drained and gone
				continue
			}
			o.VirtualNode, o.Node, o.NodeReady, o.Offloading = v1alpha1.Present, v1alpha1.Present, true, true
			all[name][c.Metadata.Name] = o
		}
	}
	return all, number
}

// working is a story whose clusters grant what they are told, with a second
// tenant, and an intent of vision that holds all there is at a low priority.
func working(t *testing.T, spec string) *story {
	t.Helper()
	s := newStory(t, "ledger")
	g := &granting{}
	s.clusters = &g.clusters
	s.r.opts.Delivery = g
	s.push(map[string]string{
		"tenants/nlp.yaml":        strings.Replace(ground, "vision", "nlp", 1),
		"tenants/vision.yaml":     strings.Replace(ground, "{consumers: [rome]}", "{consumers: [rome], budget: {monthly: \"60\", atLimit: warn}}", 1),
		"intents/vision/big.yaml": bigIntent(spec),
	})
	s.rest()
	if c := s.only("big"); c.Status.Phase != v1alpha1.PhaseActive {
		t.Fatalf("the contract is %s: %s", c.Status.Phase, c.Status.Reason)
	}
	return s
}

func bigIntent(spec string) string {
	return strings.Replace(intentOf("big", "8"), "spec:\n", "spec:\n  priority: 1\n"+spec, 1)
}

// breaks puts a field that is none into the intent's file: its author's mistake,
// or a way to keep what it holds.
func (s *story) breaks(spec string) {
	s.t.Helper()
	s.push(map[string]string{"intents/vision/big.yaml": bigIntent(spec) + "  keep: forever\n"})
	s.rest()
	if f := s.r.View().Contracts.State("vision", "big").Status.Frozen; f == nil || !strings.Contains(f.Reason, "keep") {
		s.t.Fatalf("the intent is not frozen: %+v", f)
	}
}

// only is the one contract of an intent of vision.
func (s *story) only(intent string) *v1alpha1.Contract {
	s.t.Helper()
	list := s.r.View().Contracts.ByIntent("vision", intent)
	if len(list) != 1 {
		s.t.Fatalf("vision/%s has %d contracts", intent, len(list))
	}
	return list[0]
}

// A tenant that makes its file unreadable keeps its capacity to the end of its
// term, and no longer.
func TestFrozen_EndsWithItsTerm(t *testing.T) {
	const term = "  schedule: {duration: 1h}\n"
	s := working(t, term)
	end := s.only("big").Spec.Term.End
	s.breaks(term)
	for s.at.Before(end.Add(-2 * time.Minute)) {
		s.rest()
		if c := s.only("big"); c.Status.Phase != v1alpha1.PhaseActive {
			t.Fatalf("before its term ends it is %s: %s", c.Status.Phase, c.Status.Reason)
		}
	}
	s.at = end.Time
	s.rest()
	c := s.only("big")
	if c.Status.Phase.Charged() || !strings.Contains(fmt.Sprint(c.Status.History), "its term ended") {
		t.Fatalf("after its term it is %s: %+v", c.Status.Phase, c.Status.History)
	}
	// Its GPUs are another's.
	s.push(map[string]string{"intents/nlp/next.yaml": strings.Replace(intentOf("next", "8"), "vision", "nlp", 1)})
	s.rest()
	if n := len(s.r.View().Contracts.ByIntent("nlp", "next")); n != 1 {
		t.Errorf("nlp has %d contracts where vision's is %s: %+v", n, s.only("big").Status.Phase, s.r.View().Plan.Intents[0])
	}
}

// What is frozen goes on costing, its tenant's budget sees it, and nothing of it
// ends because it is frozen, over restarts and for a week.
func TestFrozen_GoesOnAccruing(t *testing.T) {
	s := working(t, "")
	s.breaks("")
	hourly := s.only("big").Spec.Price.Hourly
	since := s.r.View().Contracts.State("vision", "big").Status.Frozen.Since
	told := map[v1alpha1.Time]bool{}
	before, at := s.accrued(), s.at
	for day := range 7 {
		for range 4 {
			s.at = s.at.Add(6 * time.Hour)
			s.rest()
			f := s.r.View().Contracts.State("vision", "big").Status.Frozen
			if f == nil || !f.Since.Equal(since.Time) {
				t.Fatalf("day %d: frozen %+v, want since %s", day, f, since)
			}
			told[f.Told] = true
		}
		if day == 3 {
			d := s.r.opts.Delivery
			s.start()
			s.r.opts.Delivery = d
		}
	}
	if c := s.only("big"); c.Status.Phase != v1alpha1.PhaseActive {
		t.Fatalf("it is %s: %s", c.Status.Phase, c.Status.Reason)
	}
	hours := int64(s.at.Sub(at) / time.Hour)
	if got, want := s.accrued().Sub(before), hourly.MulInt(hours); got.Cmp(want) < 0 {
		t.Errorf("%s accrued in %d hours, want at least %s", got.Text(), hours, want.Text())
	}
	if len(told) < 7 || len(told) > 8 {
		t.Errorf("the ledger has the tenant told at %d instants of a week", len(told))
	}
}

// accrued is what vision's contracts have cost, as the ledger's books say now.
func (s *story) accrued() v1alpha1.Decimal {
	s.t.Helper()
	v := s.r.View()
	books, err := ledger.BooksOf(v.Fleet.Policy)
	if err != nil {
		s.t.Fatal(err)
	}
	sum, err := books.MonthSpend(v.Contracts, "vision", v1alpha1.TimeOf(s.at))
	if err != nil {
		s.t.Fatal(err)
	}
	for _, b := range v.Plan.Budgets {
		if b.Tenant == "vision" && b.Accrued.Cmp(v1alpha1.MustDecimal("0")) <= 0 {
			s.t.Errorf("the plan's budget line says that %s accrued", b.Accrued.Text())
		}
	}
	return sum
}

// A higher priority displaces it at once by the priority that the contract
// records, and a budget at its limit ends it.
func TestFrozen_MeetsPolicy(t *testing.T) {
	for name, c := range map[string]struct {
		change map[string]string
		after  time.Duration
		why    string
	}{
		"preemption": {map[string]string{"intents/nlp/urgent.yaml": strings.Replace(strings.Replace(intentOf("urgent", "8"), "vision", "nlp", 1), "spec:\n", "spec:\n  priority: 900\n  preemption: {preempts: lower}\n", 1)}, time.Minute, "nlp/urgent"},
		"budget":     {map[string]string{"tenants/vision.yaml": strings.Replace(ground, "{consumers: [rome]}", "{consumers: [rome], budget: {monthly: \"60\", atLimit: end}}", 1)}, 5 * time.Hour, "budget"},
	} {
		t.Run(name, func(t *testing.T) {
			s := working(t, "")
			s.breaks("")
			s.push(c.change)
			s.at = s.at.Add(c.after)
			s.rest()
			if got := s.only("big"); got.Status.Phase.Charged() || !strings.Contains(fmt.Sprint(got.Status.History, got.Status.Displaced), c.why) {
				t.Fatalf("it is %s: %+v", got.Status.Phase, got.Status.History)
			}
		})
	}
}

// Contracts that stand beyond a limit which came later are named and kept to
// their end; nothing new is placed.
func TestLimits_ThatCameLaterNameAndKeep(t *testing.T) {
	s := working(t, "")
	s.push(map[string]string{
		"intents/vision/big.yaml": strings.Replace(intentOf("big", "1"), "spec:\n", "spec:\n  schedule: {duration: 2h}\n", 1),
		"intents/vision/two.yaml": strings.Replace(intentOf("two", "1"), "spec:\n", "spec:\n  schedule: {duration: 2h}\n", 1),
	})
	s.rest()
	held := func() (n int) {
		for c := range s.r.View().Contracts.Contracts() {
			if c.Status.Phase.Charged() {
				n++
			}
		}
		return n
	}
	if held() != 2 {
		t.Fatalf("%d contracts are held", held())
	}
	policy := func(limits string) string {
		return "apiVersion: fleetbroker.io/v1alpha1\nkind: Fleet\nmetadata: {name: acme}\nspec:\n  limits: " + limits + "\n  writeBack: {inputs: main, branch: ledger, author: {name: fleetbroker, email: broker@example.org}}\n"
	}
	s.push(map[string]string{"fleet.yaml": policy("{contracts: 1}"), "intents/vision/three.yaml": intentOf("three", "1")})
	s.rest()
	if notes := fmt.Sprint(s.r.View().Plan.Notes); held() != 2 || !strings.Contains(notes, "tenant vision holds 2 contracts, and may hold 1 (spec.limits.contracts in fleet.yaml)") {
		t.Fatalf("%d are held, and the plan notes %s", held(), notes)
	}
	if n := len(s.r.View().Contracts.ByIntent("vision", "three")); n != 0 {
		t.Errorf("%d contracts were placed beyond the limit", n)
	}
	// What is not read any more because of a limit is frozen by name, and kept.
	s.push(map[string]string{"fleet.yaml": policy("{intents: 1}")})
	s.rest()
	if why := fmt.Sprint(s.r.View().Fleet.Frozen); held() != 2 || !strings.Contains(why, "limits.intents") {
		t.Fatalf("%d are held, frozen: %s", held(), why)
	}
	s.at = s.at.Add(3 * time.Hour)
	s.rest()
	if held() != 0 {
		t.Errorf("%d contracts outlive their terms", held())
	}
	s.lines.Wants(t, "FB1193")
}

// Of what people should look at of a provider its own agent hears, once a day.
func TestConditions_GoToTheProvidersAgent(t *testing.T) {
	s := newStory(t, "ledger")
	s.push(map[string]string{"clusters/paris.yaml": "apiVersion: fleetbroker.io/v1alpha1\nkind: Cluster\nmetadata: {name: paris}\nspec: {roles: [provider], location: {country: US}}\n"})
	s.rest()
	f := *s.r.View().Fleet.Flavors[0]
	f.Spec.Location.Country = "DE"
	if err := s.r.opts.Market.Report("paris", wire.Generation{Epoch: 1, N: 1}, []v1alpha1.Flavor{f}, true); err != nil {
		t.Fatal(err)
	}
	heard := func() map[string]int {
		out := map[string]int{}
		in, _ := s.r.Instructions("paris")
		for _, n := range in.News {
			if n.Tenant != "" || !n.Warning {
				t.Errorf("%+v", n)
			}
			out[n.Reason]++
		}
		return out
	}
	s.at = s.at.Add(time.Minute)
	s.r.Reread()
	if _, err := s.r.Round(context.Background()); err != nil {
		t.Fatal(err)
	}
	if got := heard(); got["LocationContradicted"] != 1 || got["FlavorFileShadowed"] != 1 {
		t.Fatalf("paris hears %v, the plan says %+v", got, s.r.View().Plan.Conditions)
	}
	in, _ := s.r.Instructions("paris")
	s.r.warn(s.r.View().Plan.Conditions[0], v1alpha1.TimeOf(s.at))
	if again, _ := s.r.Instructions("paris"); len(again.News) != len(in.News) {
		t.Errorf("it is told twice: %+v", again.News)
	}
	if rome, _ := s.r.Instructions("rome"); len(rome.News) != 0 {
		t.Errorf("rome hears %+v", rome.News)
	}
	s.lines.Wants(t, "FB1144")
}
