package planner_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// gang writes gang: true.
var gang = With(func(s *v1alpha1.IntentSpec) { s.Gang = Ptr(true) })

// within keeps replicas in one domain.
func within(by, label string, policy v1alpha1.WithinPolicy) func(*model.Intent) {
	return With(func(s *v1alpha1.IntentSpec) {
		s.Placement.Within = &v1alpha1.Within{By: by, Label: label, Policy: policy}
	})
}

// network names an offer's network.
func network(name string) func(*model.Offer) {
	return func(o *model.Offer) { o.Location.Network = name }
}

// labelled gives a flavor a label.
func labelled(key, value string) func(*model.Offer) {
	return Spec(func(f *v1alpha1.FlavorSpec) { f.Labels = map[string]string{key: value} })
}

// domains are those of an intent's charged contracts, in order, each with how many.
func domains(b *Builder, ref string, of func(*v1alpha1.Contract) string) string {
	count := map[string]int{}
	for _, c := range b.Contracts(ref) {
		if c.Status.Phase.Charged() {
			count[of(c)]++
		}
	}
	var out []string
	for d, n := range count {
		out = append(out, fmt.Sprintf("%s:%d", d, n))
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func byProvider(c *v1alpha1.Contract) string { return c.Spec.Provider }
func byFlavor(c *v1alpha1.Contract) string   { return c.Spec.Provider + "/" + c.Spec.Flavor }

const nodes8 = "cpu=2000 memory=8Ti pods=2000 ephemeral-storage=10Ti"

// twoCountries has a provider with the better offer for eight times 8 GPUs, and one with
// room for sixteen.
func twoCountries() *Builder {
	return New().Consumer("rome").Tenant("vision", "rome").Provider("paris", "oslo").
		Offer("paris/h100", Cards("nvidia-h100", 64, "80Gi"), Costs("2"), Capacity(nodes8), In("eu-west", "w1")).
		Offer("oslo/h100", Cards("nvidia-h100", 128, "80Gi"), Costs("3"), Capacity(nodes8), In("eu-north", "n1"))
}

// Twelve replicas of 8 H100 go to the one provider that has room for sixteen.
func TestWithin_AGangStaysTogether(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*model.Intent)
		want   string
	}{
		"gang written":           {gang, "oslo:12"},
		"gang by default":        {func(*model.Intent) {}, "oslo:12"},
		"required by provider":   {within("provider", "", ""), "oslo:12"},
		"no gang":                {With(func(s *v1alpha1.IntentSpec) { s.Gang = Ptr(false) }), "oslo:4 paris:8"},
		"policy None":            {within("", "", v1alpha1.WithinNone), "oslo:4 paris:8"},
		"no gang, but required":  {func(in *model.Intent) { within("provider", "", "")(in); in.Spec.Gang = Ptr(false) }, "oslo:12"},
		"no gang, and preferred": {func(in *model.Intent) { within("provider", "", "Preferred")(in); in.Spec.Gang = Ptr(false) }, "oslo:12"},
	} {
		t.Run(name, func(t *testing.T) {
			b := twoCountries().Intent("vision/train", Wants(8, "H100"), Times(12), cheap, c.change)
			p := b.Round()
			if got := domains(b, "vision/train", byProvider); got != c.want {
				t.Fatalf("%s, want %s\n%s", got, c.want, describe(p))
			}
			wantOnlyKeeps(t, b)
		})
	}
}

// What the fleet's default is holds for gangs that are written, and is only preferred for
// others.
func TestWithin_FleetDefault(t *testing.T) {
	for name, c := range map[string]struct {
		fleet *v1alpha1.Within
		in    func(*model.Intent)
		want  string // of 20 replicas, which fit no provider
	}{
		"none stated, gang written":     {nil, gang, ""},
		"none stated, gang by default":  {nil, func(*model.Intent) {}, "oslo:12 paris:8"},
		"none stated, with a split":     {nil, func(in *model.Intent) { gang(in); splits(2, 1)(in) }, "oslo:12 paris:8"},
		"none stated, spread":           {nil, func(in *model.Intent) { gang(in); spreads("region", 12, 0)(in) }, "oslo:12 paris:8"},
		"None":                          {&v1alpha1.Within{Policy: "None"}, gang, "oslo:12 paris:8"},
		"Preferred":                     {&v1alpha1.Within{By: "provider", Policy: "Preferred"}, gang, "oslo:12 paris:8"},
		"Required":                      {&v1alpha1.Within{By: "provider"}, gang, ""},
		"Required, the intent says not": {&v1alpha1.Within{By: "provider"}, func(in *model.Intent) { gang(in); within("provider", "", "Preferred")(in) }, "oslo:12 paris:8"},
		"by region":                     {&v1alpha1.Within{By: "region"}, gang, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := twoCountries().Offer("oslo/h100", Capacity("gpu=96")).Fleet(func(f *v1alpha1.FleetSpec) { f.Defaults.Within = c.fleet })
			b.Intent("vision/train", Wants(8, "H100"), Times(20), cheap, c.in)
			p := b.Round()
			if got := domains(b, "vision/train", byProvider); got != c.want {
				t.Fatalf("%q, want %q\n%s", got, c.want, describe(p))
			}
			wantOnlyKeeps(t, b)
		})
	}
}

// Each kind of domain takes all, though the best offers are elsewhere.
func TestWithin_KindsOfDomains(t *testing.T) {
	h100 := Cards("nvidia-h100", 16, "80Gi")
	for name, c := range map[string]struct {
		in   func(*model.Intent)
		want string
	}{
		"region":  {within("region", "", ""), "b/f:2 c/f:2"},
		"zone":    {within("zone", "", ""), "d/f:2 e/f:2"},
		"network": {within("network", "", ""), "c/f:2 e/f:2"},
		"label":   {within("label", "topology.kubernetes.io/rack", ""), "f/r1:4"},
		"cluster": {within("label", "site", ""), "a/f:2 b/f:2"},
	} {
		t.Run(name, func(t *testing.T) {
			b := New().Consumer("rome").Tenant("vision", "rome").Provider("a", "b", "c", "d", "e", "f").
				Offer("a/f", h100, Costs("1"), In("w", "w1")).
				Offer("b/f", h100, Costs("2"), In("n", "n1")).
				Offer("c/f", h100, Costs("3"), In("n", "n2"), network("ib")).
				Offer("d/f", h100, Costs("8"), In("s", "s1")).
				Offer("e/f", h100, Costs("8"), In("s", "s1"), network("ib")).
				Offer("f/r1", Cards("nvidia-h100", 32, "80Gi"), Costs("9"), labelled("topology.kubernetes.io/rack", "r1"), In("o", "o1")).
				Offer("f/r2", h100, Costs("9"), labelled("topology.kubernetes.io/rack", "r2"), In("p", "p1"))
			for _, name := range []string{"a", "b"} { // a value of a Cluster file is the same for all
				b.Cluster(name, func(cl *v1alpha1.Cluster) { cl.Spec.Labels = map[string]string{"site": "campus"} })
			}
			b.Cluster("c", func(cl *v1alpha1.Cluster) { cl.Spec.Labels = map[string]string{"site": "harbour"} })
			p := b.Intent("vision/train", Wants(8, "H100"), Times(4), cheap, c.in).Round()
			if got := domains(b, "vision/train", byFlavor); got != c.want {
				t.Fatalf("%s, want %s\n%s", got, c.want, describe(p))
			}
			wantOnlyKeeps(t, b)
		})
	}
}

// A rack of one provider is not the rack of that name of another.
func TestWithin_LabelsOfFlavorsAreOfTheirProvider(t *testing.T) {
	h100 := Cards("nvidia-h100", 8, "80Gi")
	b := New().Consumer("rome").Tenant("vision", "rome").Provider("a", "b").
		Offer("a/f", h100, Costs("1"), labelled("rack", "r1")).Offer("b/f", h100, Costs("1"), labelled("rack", "r1"))
	d := Of(b.Intent("vision/train", Wants(8, "H100"), Times(2), within("label", "rack", "")).Round(), "vision/train")
	if d.Action != planner.Queued || d.Code != lifecycle.CodeWithin {
		t.Fatalf("%+v", d)
	}
}

// Domains are compared by what all replicas come to: the domain of the best single offer
// is left for one that is better in total.
func TestWithin_TheWholeGangDecides(t *testing.T) {
	b := New().Consumer("rome").Tenant("vision", "rome").Provider("a", "b").
		Offer("a/cheap", Cards("nvidia-h100", 8, "80Gi"), Costs("1")).
		Offer("a/dear", Cards("nvidia-h100", 64, "80Gi"), Costs("9")).
		Offer("b/fair", Cards("nvidia-h100", 64, "80Gi"), Costs("3"))
	p := b.Intent("vision/train", Wants(8, "H100"), Times(4), gang, cheap).Round()
	if got := domains(b, "vision/train", byFlavor); got != "b/fair:4" {
		t.Fatalf("%s\n%s", got, describe(p))
	}
	if d := Of(p, "vision/train"); !strings.Contains(d.Reason, "all in provider b, chosen of 2 with room for all") {
		t.Fatal(d.Reason)
	}
	// One replica takes the best offer.
	b.Intent("vision/one", Wants(8, "H100"), gang, cheap).Round()
	if got := domains(b, "vision/one", byFlavor); got != "a/cheap:1" {
		t.Fatal(got)
	}
}

// Where no domain has room it waits, and shows which came closest and what would help.
func TestWithin_RequiredWaits(t *testing.T) {
	b := twoCountries().Offer("oslo/h100", Capacity("gpu=80"))
	p := b.Intent("vision/train", Wants(8, "H100"), Times(12), gang, cheap).Round()
	d := Of(p, "vision/train")
	if d.Action != planner.Queued || d.Code != lifecycle.CodeWithin || !strings.HasPrefix(d.Reason, "no provider has room for all 12 replicas; provider oslo has room for 10 of 12 replicas, 2 missing") {
		t.Fatalf("%s %s: %s", d.Action, d.Code, d.Reason)
	}
	if len(d.Near) == 0 || d.Near[0] != "provider oslo has room for 10 of 12 replicas, 2 missing" {
		t.Fatalf("near: %q", d.Near)
	}
	for _, want := range []string{"placement.within: {by: provider, policy: Preferred}  # 224.00 EUR/h", "replicas: 10  # 240.00 EUR/h"} {
		if !slices.Contains(d.Try, want) {
			t.Errorf("try: %q, want %s", d.Try, want)
		}
	}
	// Also where a limit of the tenant, and not room, is what is said.
	limited := twoCountries().Offer("oslo/h100", Capacity("gpu=80")).Offer("paris/h100", Costs("9")).Tenant("vision", "rome", func(s *v1alpha1.TenantSpec) {
		s.Budget = &v1alpha1.TenantBudget{Hourly: Money("400")}
	}).Intent("vision/train", Wants(8, "H100"), Times(12), gang, cheap)
	if poor := Of(limited.Round(), "vision/train"); poor.Action != planner.Queued || len(poor.Near) == 0 || poor.Near[0] != "provider oslo has room for 10 of 12 replicas, 2 missing" {
		t.Errorf("over its limit, near: %q, %s", poor.Near, poor.Reason)
	}
	// And where what is asked for first is nowhere, and an alternative waits for a domain.
	other := twoCountries().Offer("oslo/h100", Capacity("gpu=80")).Intent("vision/train", Wants(8, "B200"), Times(12), gang, cheap, With(func(s *v1alpha1.IntentSpec) {
		s.Alternatives = []v1alpha1.ResourceRequest{{GPU: &v1alpha1.GPURequest{Count: 8, Models: []string{"H100"}}}}
	}))
	if d := Of(other.Round(), "vision/train"); len(d.Near) == 0 || d.Near[0] != "alternative 1: provider oslo has room for 10 of 12 replicas, 2 missing" {
		t.Errorf("by the alternative, near: %q, %s", d.Near, d.Reason)
	}
	sum := 0
	for _, n := range d.Rejected {
		sum += n
	}
	if sum != d.Considered {
		t.Errorf("%d of %d offers are counted: %v", sum, d.Considered, d.Rejected)
	}
	wantOnlyKeeps(t, b)
	// The suggestion does what it promises.
	b.Intent("vision/train", within("provider", "", "Preferred")).Round()
	if got := domains(b, "vision/train", byProvider); got != "oslo:4 paris:8" {
		t.Fatal(got)
	}
}

// inOslo is the gang of four in oslo, at work.
func inOslo(t *testing.T, changes ...func(*model.Intent)) *Builder {
	t.Helper()
	b := twoCountries().Offer("oslo/h100", Capacity("gpu=32"), Costs("1")).Offer("oslo/more", Cards("nvidia-h100", 8, "80Gi"), Costs("5"), Capacity(nodes8), In("eu-north", "n1"))
	b.Intent("vision/train", append([]func(*model.Intent){Wants(8, "H100"), Times(4), gang, cheap}, changes...)...).Round()
	b.Tick(time.Minute).Deliver().Round()
	if got := domains(b, "vision/train", byFlavor); got != "oslo/h100:4" {
		t.Fatal(got)
	}
	return b
}

// A replica that is lost is replaced in its domain, or waits there.
func TestWithin_ALostReplicaIsReplacedInItsDomain(t *testing.T) {
	for room, want := range map[bool]string{true: "oslo/h100:3 oslo/more:1", false: "oslo/h100:3"} {
		b := inOslo(t)
		if !room {
			b.Drop("oslo/more")
		}
		lost := b.Contracts("vision/train")[2].Metadata.Name
		b.W.ForceRelease = map[string]bool{lost: true}
		b.Offer("oslo/h100", Capacity("gpu=24")).Tick(time.Minute)
		b.Round()
		b.W.ForceRelease = nil
		b.Tick(time.Minute).Deliver().Round()
		p := b.Tick(time.Minute).Deliver().Round()
		if got := domains(b, "vision/train", byFlavor); got != want {
			t.Fatalf("room %t: %s, want %s\n%s", room, got, want, describe(p))
		}
		if !room {
			if d := Of(p, "vision/train"); d.Code != lifecycle.CodeWithin || len(d.Near) == 0 || d.Near[0] != "provider oslo, which its replicas share, has no room for one more" {
				t.Fatalf("%s: %s\n%q", d.Code, d.Reason, d.Near)
			}
		}
		wantOnlyKeeps(t, b)
	}
}

// The whole gang moves when its domain is drained or lost, and only as a whole.
func TestWithin_TheWholeGangMoves(t *testing.T) {
	leave := Start.Add(24 * time.Hour)
	for name, c := range map[string]struct {
		happens func(*Builder)
		want    string
	}{
		"the provider is drained": {func(b *Builder) {
			for _, name := range []string{"oslo/h100", "oslo/more"} {
				b.Offer(name, Spec(func(f *v1alpha1.FlavorSpec) { f.Drain = v1alpha1.TimeOf(leave) }))
			}
		}, "paris/h100:4"},
		"the provider is lost": {func(b *Builder) {
			b.Offer("oslo/h100", Heard(model.Lost)).Offer("oslo/more", Heard(model.Lost))
		}, "paris/h100:4"},
		"the flavor is drained, and the rest of the provider is too small": {func(b *Builder) {
			b.Offer("oslo/h100", Spec(func(f *v1alpha1.FlavorSpec) { f.Drain = v1alpha1.TimeOf(leave) }))
		}, "paris/h100:4"},
		"no other has room for all": {func(b *Builder) {
			b.Offer("paris/h100", Capacity("gpu=24")).Offer("oslo/h100", Heard(model.Lost)).Offer("oslo/more", Heard(model.Lost))
		}, "oslo/h100:4"},
	} {
		t.Run(name, func(t *testing.T) {
			b := inOslo(t)
			c.happens(b)
			p := b.Tick(10 * time.Minute).Round()
			if got := domains(b, "vision/train", byFlavor); got != c.want {
				t.Fatalf("%s, want %s\n%s", got, c.want, describe(p))
			}
			wantOnlyKeeps(t, b)
		})
	}
}

// A change that the domain no longer holds moves all, or changes nothing.
func TestWithin_AChangeMovesAll(t *testing.T) {
	b := inOslo(t)
	b.Offer("paris/h100", Capacity("gpu=128"))
	b.Intent("vision/train", Wants(16, "H100")).Round()
	if got := domains(b, "vision/train", byFlavor); got != "paris/h100:4" {
		t.Fatal(got)
	}
	b = inOslo(t)
	b.Intent("vision/train", Wants(32, "H100")).Round() // paris has room for two
	if got := domains(b, "vision/train", byFlavor); got != "oslo/h100:4" {
		t.Fatal(got)
	}
}

// What was placed by older rules is kept where it is; what comes later joins the most of
// it, and status names it.
func TestWithin_WhatExistsIsKept(t *testing.T) {
	b := twoCountries().Offer("oslo/h100", Capacity("gpu=96")).Intent("vision/train", Wants(8, "H100"), Times(12), gang, cheap)
	b.W.Rules = draft.RulesWithin - 1
	b.Round()
	if got := domains(b, "vision/train", byProvider); got != "oslo:4 paris:8" {
		t.Fatal(got)
	}
	b.W.Rules = 0
	b.Tick(time.Minute).Deliver().Round()
	if got := domains(b, "vision/train", byProvider); got != "oslo:4 paris:8" {
		t.Fatal(got)
	}
	beyond := strings.Join(planner.BeyondLimits(&b.W), "\n")
	for _, want := range []string{"12 contracts were placed under older rules", "vision/train is in 2 domains by provider, and its replicas share one"} {
		if !strings.Contains(beyond, want) {
			t.Errorf("%s\nwant %s", beyond, want)
		}
	}
	// An edit that asks for no domain moves nothing; one more goes where most of it is, or waits.
	b.Intent("vision/train", Times(13)).Round()
	if got := domains(b, "vision/train", byProvider); got != "oslo:4 paris:8" {
		t.Fatal(got)
	}
	b.Offer("paris/h100", Capacity("gpu=72")).Round()
	if got := domains(b, "vision/train", byProvider); got != "oslo:4 paris:9" {
		t.Fatal(got)
	}
	// One that names the domain gathers all where one has room.
	b.Offer("paris/h100", Capacity("gpu=128")).Intent("vision/train", within("provider", "", "")).Round()
	if got := domains(b, "vision/train", byProvider); got != "paris:13" {
		t.Fatal(got)
	}
}

// Who preempts for a gang chooses the domain with the least disturbance in which all fit,
// and takes gangs whole.
func TestWithin_Preemption(t *testing.T) {
	b := New().Consumer("rome").Tenant("vision", "rome").Tenant("speech", "rome").Provider("a", "b", "c").
		Offer("a/f", Cards("nvidia-h100", 32, "80Gi"), Capacity(nodes8), Costs("1")).
		Offer("b/f", Cards("nvidia-h100", 16, "80Gi"), Capacity(nodes8), Costs("1")).
		Offer("c/f", Cards("nvidia-h100", 16, "80Gi"), Capacity(nodes8), Costs("1"))
	only := func(provider string) func(*model.Intent) {
		return With(func(s *v1alpha1.IntentSpec) { s.Placement.Providers.Allow = []string{provider} })
	}
	b.Intent("speech/whole", Wants(8, "H100"), Times(4), gang, only("a"))
	b.Intent("speech/b", Wants(16, "H100"), only("b")).Intent("speech/c", Wants(16, "H100"), only("c"))
	b.Round()
	b.Tick(time.Minute).Deliver().Round()
	b.Intent("vision/train", Wants(8, "H100"), Times(3), gang, preempts(100))
	b.Tick(time.Minute).Round()
	if got := domains(b, "speech/whole", byProvider); got != "" {
		t.Fatalf("whole: %s", got)
	}
	if got := domains(b, "speech/b", byProvider) + domains(b, "speech/c", byProvider); got != "b:1c:1" {
		t.Fatalf("others: %s", got)
	}
	b.Tick(time.Minute).Deliver().Round()
	b.Tick(time.Minute).Deliver().Round()
	if got := domains(b, "vision/train", byProvider); got != "a:3" {
		t.Fatal(got)
	}
}

// Intents that are together share the domain.
func TestWithin_Together(t *testing.T) {
	h100 := Cards("nvidia-h100", 16, "80Gi")
	b := New().Consumer("rome").Tenant("vision", "rome").Provider("a").
		Offer("a/r1", h100, Costs("1"), labelled("rack", "r1")).
		Offer("a/r2", Cards("nvidia-h100", 32, "80Gi"), Costs("2"), labelled("rack", "r2"))
	b.Intent("vision/data", Wants(8, "H100"), cheap, With(func(s *v1alpha1.IntentSpec) { s.Placement.Together = []string{"train"} })).
		Intent("vision/train", Wants(8, "H100"), Times(2), cheap, within("label", "rack", ""))
	p := b.Round()
	if got := domains(b, "vision/data", byFlavor) + " " + domains(b, "vision/train", byFlavor); got != "a/r2:1 a/r2:2" {
		t.Fatalf("%s\n%s", got, describe(p))
	}
	// Who comes later joins them.
	b.Tick(time.Minute).Deliver().Intent("vision/late", Wants(8, "H100"), cheap, With(func(s *v1alpha1.IntentSpec) { s.Placement.Together = []string{"train"} })).Round()
	if got := domains(b, "vision/late", byFlavor); got != "a/r2:1" {
		t.Fatal(got)
	}
	wantOnlyKeeps(t, b)
}

// A better offer takes the whole gang, by what that saves in total, or none of it.
func TestWithin_ConsolidationTakesAll(t *testing.T) {
	for room, want := range map[int]string{16: "lyon:2", 8: "paris:2"} {
		b := New().Consumer("rome").Provider("paris", "lyon").Tenant("vision", "rome").
			Fleet(consolidating("apply", "0.5", 30*time.Minute)).
			Offer("paris/h100", Cards("nvidia-h100", 16, "80Gi"), Costs("4")).
			Intent("vision/train", Wants(8, "H100"), Times(2), gang)
		b.Round()
		b.Tick(time.Minute).Deliver().Round()
		b.Tick(9*time.Minute).Offer("lyon/h100", Cards("nvidia-h100", room, "80Gi"), Costs("1"))
		p := b.Round()
		if n := len(Of(p, "vision/train").Proposals); n != map[int]int{16: 2, 8: 0}[room] {
			t.Fatalf("%d proposals with room for %d\n%s", n, room, describe(p))
		}
		wantOnlyKeeps(t, b)
		p = b.Tick(31 * time.Minute).Round()
		if got := domains(b, "vision/train", byProvider); got != want {
			t.Fatalf("%s, want %s\n%s", got, want, describe(p))
		}
		wantOnlyKeeps(t, b)
	}
}

// A batch that is solved as a whole keeps each gang in one domain.
func TestWithin_Batch(t *testing.T) {
	b := New().Consumer("rome").Tenant("vision", "rome").Provider("a", "b").
		Offer("a/f", Cards("nvidia-h100", 24, "80Gi"), Costs("1"), Capacity(nodes8)).
		Offer("b/f", Cards("nvidia-h100", 32, "80Gi"), Costs("2"), Capacity(nodes8))
	for i := range 3 {
		b.Intent(fmt.Sprintf("vision/g%d", i), Wants(8, "H100"), Times(2), gang, cheap)
	}
	commit := b.W.Intents[0].Commit
	for i := range b.W.Intents {
		b.W.Intents[i].Commit = commit
	}
	p := b.Round()
	for i := range 3 {
		if got := domains(b, fmt.Sprintf("vision/g%d", i), byProvider); got != "a:2" && got != "b:2" {
			t.Fatalf("g%d: %s\n%s", i, got, describe(p))
		}
	}
	wantOnlyKeeps(t, b)
}

// Of a gang of which one replica waits for another place, because its flavor has shrunk, an edit
// does not place the other one in another provider by itself: both go there, or it waits. By rules
// 23 it went, and the plan's check refused it in each round.
func TestWithin_AnEditLeavesNobodyBehind(t *testing.T) {
	for name, tt := range map[string]struct {
		lyon, third int // cards
		change      func(*model.Intent)
		before      string // by rules 23
		want        string
	}{
		"room for one elsewhere":           {4, 0, Times(2), "refuse InvariantViolated, paris:2", "queue WithinUnsatisfied, paris:2"},
		"room for both elsewhere":          {8, 0, Times(2), "move FlavorShrunk, lyon:2", "move FlavorShrunk, lyon:2"},
		"room for it where its gang is":    {4, 4, Times(2), "refuse InvariantViolated, paris:2", "move FlavorShrunk, paris:2"},
		"room for one, and one at a time":  {4, 0, updates(1), "keep FlavorShrunk, paris:2", "keep FlavorShrunk, paris:2"},
		"room for one, and no gap between": {4, 0, updates(0), "refuse InvariantViolated, paris:2", "queue WithinUnsatisfied, paris:2"},
	} {
		for rules, want := range map[int]string{23: tt.before, 0: tt.want} {
			b := New().Consumer("rome").Provider("paris", "lyon").Tenant("vision", "rome").
				Offer("paris/a", Cards("nvidia-h100", 2, "80Gi")).Offer("paris/b", Cards("nvidia-h100", 2, "80Gi")).
				Intent("vision/train", Wants(2), Times(2), gang)
			b = settled(b)
			b.W.Rules = rules
			b.Offer("paris/b", Cards("nvidia-h100", 1, "80Gi")).Round()
			b.Tick(time.Hour).Offer("lyon/h100", Cards("nvidia-h100", tt.lyon, "80Gi"), Costs("1"))
			if tt.third > 0 {
				b.Offer("paris/c", Cards("nvidia-h100", tt.third, "80Gi"), Costs("9"))
			}
			b.Intent("vision/train", Wants(3), Times(2), gang, tt.change)
			p := b.Round()
			d := Of(p, "vision/train")
			if got := fmt.Sprintf("%s %s, %s", d.Action, d.Code, domains(b, "vision/train", byProvider)); got != want {
				t.Errorf("%s, rules %d: %s, want %s\n%s", name, rules, got, want, describe(p))
			}
			if rules == 0 {
				wantOnlyKeeps(t, b)
			}
		}
	}
}
