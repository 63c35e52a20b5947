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
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// renames is a provider that offers next to nothing for its cards, denies every
// contract, and has another name for them in each report; honest is another.
func renames(t *testing.T, tenants ...string) *Builder {
	t.Helper()
	b := paris().Provider("evil").Offer("evil/f0", Cards("nvidia-h100", 8, "80Gi"), Costs("0.0001"))
	for _, name := range tenants {
		b.Tenant(name, "rome").Intent(name+"/train", Wants(4, "H100"), cheap)
	}
	return b
}

// denies has the provider deny what is placed there, and give its cards the next
// name.
func denies(b *Builder, n int, tenants ...string) (placed int) {
	for _, name := range tenants {
		for _, c := range b.Contracts(name + "/train") {
			if c.Spec.Provider == "evil" && c.Status.Phase.Charged() {
				placed++
				o := Ready(c)
				o.Consumer.Granted, o.Consumer.SliceDenied = nil, "no"
				b.Observe(c.Metadata.Name, o)
			}
		}
	}
	b.Drop(fmt.Sprintf("evil/f%d", n)).Offer(fmt.Sprintf("evil/f%d", n+1), Cards("nvidia-h100", 8, "80Gi"), Costs("0.0001"))
	return placed
}

// A provider that renames its flavors with each report and refuses every contract
// wins an intent once, not each round.
func TestRenamedFlavorsDoNotWinAgain(t *testing.T) {
	b := renames(t, "vision").Offer("paris/h100", Capacity("gpu=2"))
	b.Round()
	if got := on(b); got != "evil/f0 Reserved" {
		t.Fatal(got)
	}
	wins := 0
	for n := range 20 { // within seven minutes
		refused := map[string]string{}
		for _, c := range b.Contracts("vision/train") {
			if c.Spec.Provider == "evil" && c.Status.Phase.Charged() {
				wins++
				refused[c.Metadata.Name] = "no"
			}
		}
		b.Offer(fmt.Sprintf("evil/f%d", n), Spec(func(f *v1alpha1.FlavorSpec) { f.Refused = refused }))
		b.Tick(10 * time.Second).Round()
		b.Drop(fmt.Sprintf("evil/f%d", n)).Offer(fmt.Sprintf("evil/f%d", n+1), Cards("nvidia-h100", 8, "80Gi"), Costs("0.0001"))
		b.Tick(10 * time.Second).Round()
	}
	if wins != 1 {
		t.Fatalf("it won %d times; the intent stands on %s", wins, on(b))
	}
	b.Offer("paris/h100", Cards("nvidia-h100", 8, "80Gi"))
	b.Tick(10 * time.Second).Round()
	if got := on(b); !strings.Contains(got, "paris/h100") {
		t.Fatalf("an honest provider has room: %s", got)
	}
}

// What one tenant was denied within an hour counts once: nobody puts a provider
// out of the market alone. A second tenant's denial does, for a time that grows
// up to an hour, and then it is asked again.
func TestProviderThatDeniesLeavesTheMarket(t *testing.T) {
	b := renames(t, "vision", "nlp")
	b.Offer("evil/f0", Cards("nvidia-h100", 16, "80Gi"), Costs("0.0001"))
	b.Round()
	denied := denies(b, 0, "vision")
	b.Tick(10 * time.Second).Round()
	b.Tick(31 * time.Second).Round()
	if got := planner.Conditions(&b.W); denied != 1 || len(got) != 0 {
		t.Fatalf("after %d denials of one tenant: %+v", denied, got)
	}
	if denies(b, 1, "nlp") != 1 {
		t.Fatal("nlp does not stand there")
	}
	b.Tick(10 * time.Second).Round()
	b.Tick(31 * time.Second).Round()
	b.Tenant("third", "rome").Intent("third/train", Wants(1, "H100"), With(func(s *v1alpha1.IntentSpec) { s.Placement.Providers.Allow = []string{"evil"} }))
	d := Of(b.Round(), "third/train")
	if d.Action != planner.Queued || d.Rejected[match.ReqRefuses] != 1 || !strings.Contains(d.Reason, "denied what it advertised") {
		t.Fatalf("%s %v: %s", d.Action, d.Rejected, d.Reason)
	}
	got := planner.Conditions(&b.W)
	if len(got) != 1 || got[0].Provider != "evil" || got[0].Type != planner.ConditionRefuses || !strings.Contains(got[0].Message, "2 times") || !strings.Contains(got[0].Message, "sells nothing new until") {
		t.Fatalf("%+v", got)
	}
	b.Tick(time.Hour)
	if d := Of(b.Round(), "third/train"); d.Action != planner.Place {
		t.Fatalf("an hour later: %s: %s", d.Action, d.Reason)
	}
}

// A denial counts in the round that sees it, and one that is over no more in the round
// that sees that: planning again changes nothing (invariant 3). What the next round must
// know of it does not wait for the status interval.
func TestDenialsCountInTheRoundThatSeesThem(t *testing.T) {
	b := renames(t, "vision", "nlp")
	b.Offer("evil/f0", Cards("nvidia-h100", 16, "80Gi"), Costs("0.0001"))
	b.Round()
	b.Deliver().Round()
	said := map[string]v1alpha1.Observation{}
	for _, tenant := range []string{"vision", "nlp"} {
		for _, c := range b.Contracts(tenant + "/train") {
			said[c.Metadata.Name] = Ready(c)
			denied := Ready(c)
			denied.Consumer.Granted, denied.Consumer.SliceDenied = nil, "no"
			b.Observe(c.Metadata.Name, denied)
		}
	}
	b.Tenant("third", "rome").Intent("third/train", Wants(1, "H100"), With(func(s *v1alpha1.IntentSpec) { s.Placement.Providers.Allow = []string{"evil"} }))
	again := func(p *planner.Plan) {
		t.Helper()
		for _, c := range p.Contracts {
			if c.StatusOnly {
				t.Errorf("%s waits for the status interval", c.After.Metadata.Name)
			}
		}
		if next := b.Plan(); next.Changes() {
			t.Errorf("planning again changes:\n%s", describe(next))
		}
	}
	b.Tick(10 * time.Second)
	p := b.Round()
	if d := Of(p, "third/train"); d.Action != planner.Queued || d.Rejected[match.ReqRefuses] != 1 {
		t.Fatalf("both denied: third is %s %v: %s", d.Action, d.Rejected, d.Reason)
	}
	if len(p.Conditions) != 1 || p.Conditions[0].Type != planner.ConditionRefuses {
		t.Fatalf("both denied: %+v", p.Conditions)
	}
	again(p)
	for name, o := range said {
		b.Observe(name, o)
	}
	b.Tick(10 * time.Second)
	p = b.Round()
	if d := Of(p, "third/train"); d.Action != planner.Place || len(p.Conditions) != 0 {
		t.Fatalf("both are granted again: third is %s: %s; %+v", d.Action, d.Reason, p.Conditions)
	}
	again(p)
}

// By the rules before 14 a denial counted from the next round on, and what they decided
// is decided again so.
func TestDenialsOfOlderRulesCountFromTheNextRound(t *testing.T) {
	b := renames(t, "vision", "nlp")
	b.Offer("evil/f0", Cards("nvidia-h100", 16, "80Gi"), Costs("0.0001"))
	b.Round()
	b.W.Rules = draft.RulesDenialsSeen - 1
	denies(b, 0, "vision", "nlp")
	b.Tenant("third", "rome").Intent("third/train", Wants(1, "H100"), With(func(s *v1alpha1.IntentSpec) { s.Placement.Providers.Allow = []string{"evil"} }))
	if d := Of(b.Tick(10*time.Second).Round(), "third/train"); d.Action != planner.Place {
		t.Fatalf("third is %s: %s", d.Action, d.Reason)
	}
}

// A denial of what nobody but a file offered shows nothing of the provider.
func TestDenialOfAFilesFlavorDoesNotCount(t *testing.T) {
	b := renames(t, "vision", "nlp")
	b.Offer("evil/f0", Cards("nvidia-h100", 16, "80Gi"), Costs("0.0001"), func(o *model.Offer) { o.Static = true })
	b.Round()
	for _, name := range []string{"vision", "nlp"} {
		c := b.Contracts(name + "/train")[0]
		o := Ready(c)
		o.Consumer.Granted, o.Consumer.SliceDenied = nil, "no"
		b.Observe(c.Metadata.Name, o)
	}
	b.Tick(10 * time.Second).Round()
	b.Tick(31 * time.Second).Round()
	if got := planner.Conditions(&b.W); len(got) != 0 {
		t.Fatalf("%+v", got)
	}
}

// A round that is made from the one before keeps a provider out of the market
// when that provider's offer is described again meanwhile.
func TestMemoryKeepsWhoDeniesOutOfTheMarket(t *testing.T) {
	b := renames(t, "vision", "nlp")
	b.Offer("evil/f0", Cards("nvidia-h100", 16, "80Gi"), Costs("0.0001"))
	b.Round()
	denies(b, 0, "vision", "nlp")
	b.Tick(10 * time.Second).Round()
	b.Tick(31 * time.Second).Round()
	b.Tenant("third", "rome").Intent("third/train", Wants(1, "H100"), With(func(s *v1alpha1.IntentSpec) { s.Placement.Providers.Allow = []string{"evil"} }))
	memory := &planner.Session{}
	evil := slices.IndexFunc(b.W.Offers, func(o *model.Offer) bool { return o.Flavor.Metadata.Namespace == "evil" })
	for n := range 3 {
		world := b.W
		world.Offers = slices.Clone(b.W.Offers)
		o := *world.Offers[evil]
		price := *o.Price
		o.Price, world.Offers[evil] = &price, &o
		if d := Of(memory.Decide(world), "third/train"); d.Rejected[match.ReqRefuses] != 1 {
			t.Fatalf("round %d (%d from nothing): %s %v: %s", n, memory.Scratch(), d.Action, d.Rejected, d.Reason)
		}
	}
}

// A short retention.ended does not make the market forget who denied what: the
// contract that records it stays until the denial counts no more, and then it goes.
func TestProviderThatDenies_IsRememberedWhateverRetentionSays(t *testing.T) {
	for _, rules := range []int{3, planner.Rules} {
		b := renames(t, "vision").Offer("paris/h100", Cards("nvidia-h100", 8, "80Gi"))
		b.W.Rules, b.W.Fleet.Retention.Ended.Duration = rules, time.Minute
		b.Round()
		if denies(b, 0, "vision") != 1 {
			t.Fatal("it does not stand there")
		}
		b.Tick(10 * time.Second).Round()
		b.Tick(31 * time.Second).Round()
		denied := func() (n int) {
			for _, c := range b.W.Ledger.ByIntent("vision", "train") {
				if c.Spec.Provider != "evil" {
					continue
				}
				if n++; !c.Status.Phase.Charged() {
					b.Observe(c.Metadata.Name, Gone())
				}
			}
			return n
		}
		if denied() != 1 {
			t.Fatal(on(b))
		}
		for range 6 { // it is seen gone, ends, and its minute passes
			denied()
			b.Tick(time.Minute).Round()
		}
		if got, want := denied(), map[bool]int{true: 0, false: 1}[rules == 3]; got != want {
			t.Errorf("rules %d: %d contracts record the denial after 6 minutes, want %d", rules, got, want)
		}
		b.Tick(25 * time.Hour).Round()
		b.Tick(time.Minute).Round()
		if n := denied(); n != 0 {
			t.Errorf("rules %d: %d contracts record the denial a day later, want none", rules, n)
		}
	}
}
