package ahead_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// yields makes an intent give back what others have booked.
var yields = plantest.With(func(s *v1alpha1.IntentSpec) { s.Preemption = &v1alpha1.Preemption{Yields: "booked"} })

// quotaOf gives a tenant the right to book, and a quota of cards.
func quotaOf(cards int64) func(*v1alpha1.TenantSpec) {
	return func(s *v1alpha1.TenantSpec) { s.Quota = &v1alpha1.TenantQuota{GPU: &cards, Book: true} }
}

// settled fails unless planning again at the same instant changes nothing.
func settled(t *testing.T, b *plantest.Builder) {
	t.Helper()
	b.Round()
	if p := b.Plan(); len(p.Contracts)+len(p.States) > 0 {
		t.Errorf("planned again it changes %v", changesOf(p))
	}
}

// TestBooking_PlannedAgainAlike: what is decided beside a booking is decided at once: planned
// again at the same instant, nothing changes.
func TestBooking_PlannedAgainAlike(t *testing.T) {
	t.Parallel()
	// What is past its end, and could not be changed before it came, counts as staying.
	b := bookable().Intent("speech/job", plantest.Wants(8), plantest.For(24*time.Hour))
	atRest(t, b)
	b.Intent("speech/job", plantest.Wants(9), plantest.For(100*time.Hour))
	atRest(t, b)
	b.Tick(25*time.Hour).Intent("vision/train", plantest.Wants(4), books(48*time.Hour, time.Hour))
	settled(t, b)
	if n := len(contractsOf(b, "vision/train")); n != 0 {
		t.Errorf("%d bookings of what stays", n)
	}

	// A replica that did not begin with the first follows as it was booked, or not at all.
	b = bookable().Intent("vision/train", plantest.Wants(4), plantest.Times(2), books(24*time.Hour, 48*time.Hour))
	atRest(t, b)
	b.Offer("paris/h100", plantest.Spec(func(s *v1alpha1.FlavorSpec) { s.Used = plantest.Amounts("gpu=4") }))
	b.W.Now = v1alpha1.TimeOf(plantest.Start.Add(24 * time.Hour)) // what changed before its start waits for that
	b.Intent("vision/train", plantest.Wants(3))
	settled(t, b)
	only(t, b, "vision/train", v1alpha1.PhaseReserved)
}

// TestBooking_LeadTakesNothingOfOthers: the time before its start is not booked: what is
// delivered early takes nothing of a booking that ends as it begins, whatever the ranks.
func TestBooking_LeadTakesNothingOfOthers(t *testing.T) {
	t.Parallel()
	b := bookable().Intent("vision/before", plantest.Wants(8), books(24*time.Hour-5*time.Minute, 5*time.Minute)).
		Intent("speech/train", plantest.Wants(8), plantest.Priority(50), books(24*time.Hour, 24*time.Hour))
	atRest(t, b)
	b.Tick(24*time.Hour - 10*time.Minute) // both are within their lead
	atRest(t, b)
	only(t, b, "vision/before", v1alpha1.PhaseActive)
	name := only(t, b, "speech/train", v1alpha1.PhaseBooked).Metadata.Name
	b.W.Now = v1alpha1.TimeOf(plantest.Start.Add(24 * time.Hour))
	atRest(t, b)
	if c := only(t, b, "speech/train", v1alpha1.PhaseActive); c.Metadata.Name != name {
		t.Error("another contract began")
	}
}

// TestBooking_WaitsForWhatDrains: who had the capacity until a booking's start, and drains
// for longer than a grace period, does not displace it, nor does who comes then.
func TestBooking_WaitsForWhatDrains(t *testing.T) {
	t.Parallel()
	b := bookable().Intent("speech/gap", plantest.Wants(8), plantest.For(24*time.Hour))
	atRest(t, b)
	b.Intent("vision/train", plantest.Wants(8), books(24*time.Hour+time.Minute, 24*time.Hour), plantest.With(func(s *v1alpha1.IntentSpec) {
		s.SLA = &v1alpha1.SLA{MaxTimeToActive: v1alpha1.Duration{Duration: 5 * time.Minute}} // of its delivery, once it is Reserved
	}))
	atRest(t, b)
	name := only(t, b, "vision/train", v1alpha1.PhaseBooked).Metadata.Name
	b.Tick(24 * time.Hour)
	b.Round() // it is being released, and nobody sees it gone
	b.Intent("speech/later", plantest.Wants(8), plantest.Priority(50))
	for range 3 {
		b.Tick(20 * time.Minute)
		b.Round()
		if c := only(t, b, "vision/train", v1alpha1.PhaseBooked); c.Metadata.Name != name {
			t.Fatal("it is another one")
		}
	}
	b.Deliver().Round()
	b.Tick(time.Second).Round() // its consumer reports, and has nothing of it yet
	if c := only(t, b, "vision/train", v1alpha1.PhaseReserved); c.Status.AccruedAt != c.Status.Since || !c.Status.AccruedAt.After(c.Spec.Term.Start.Time) {
		t.Errorf("it began at %v and is charged from %v", c.Status.Since, c.Status.AccruedAt)
	}
	if n := len(contractsOf(b, "speech/later")); n != 0 {
		t.Errorf("%d contracts of who came later", n)
	}
	b.Remove("speech/later").Provider("milan").Offer("milan/h100", plantest.Cards("nvidia-h100", 8, "80Gi"), plantest.Costs("9"))
	b.Observe(name, v1alpha1.Observation{ProviderSeen: true, Consumer: v1alpha1.ConsumerObservation{Reachable: true, Slice: v1alpha1.Absent, VirtualNode: v1alpha1.Absent, Node: v1alpha1.Absent}}).Tick(time.Minute)
	b.Round()
	if c := b.W.Ledger.Contract(name); c.Status.Phase != v1alpha1.PhaseReserved {
		t.Errorf("as it began it was late: %s", c.Status.Why())
	}
	b.Deliver()
	atRest(t, b)
	if c := only(t, b, "vision/train", v1alpha1.PhaseActive); c.Metadata.Name != name {
		t.Error("another contract began")
	}
}

// TestBooking_IsKeptOfWhatExists: what an autoscaler would have to add is nobody's while it
// is not there: others get none of what is booked in exchange for it.
func TestBooking_IsKeptOfWhatExists(t *testing.T) {
	t.Parallel()
	b := bookable().Offer("paris/h100", plantest.Spec(func(s *v1alpha1.FlavorSpec) { s.ScalableTo = plantest.Amounts("gpu=16") })).
		Intent("vision/train", plantest.Wants(8), books(24*time.Hour, 24*time.Hour))
	atRest(t, b)
	b.Intent("speech/open", plantest.Wants(4))
	p := atRest(t, b)
	if d := plantest.Of(p, "speech/open"); d.Code != "Booked" || len(contractsOf(b, "speech/open")) != 0 {
		t.Errorf("speech/open: %s %s %s", d.Action, d.Code, d.Reason)
	}
	if c := only(t, b, "vision/train", v1alpha1.PhaseBooked); c.Status.Reason != "" {
		t.Errorf("the booking: %s", c.Status.Why())
	}
	// Until then it may grow for others.
	b.Intent("speech/short", plantest.Wants(12), plantest.For(20*time.Hour))
	atRest(t, b)
	only(t, b, "speech/short", v1alpha1.PhaseActive)
}

// TestBooking_ComesFirstInItsTenantsQuota: a longer term, or a larger size, is not given to a
// contract whose tenant would then exceed its quota or hourly budget with what it has booked.
func TestBooking_ComesFirstInItsTenantsQuota(t *testing.T) {
	t.Parallel()
	hourly := func(s *v1alpha1.TenantSpec) {
		mayBook(s)
		s.Budget = &v1alpha1.TenantBudget{Hourly: plantest.Money("20")}
	}
	for name, limit := range map[string]func(*v1alpha1.TenantSpec){"quota": quotaOf(8), "hourly budget": hourly} {
		world := func() *plantest.Builder {
			return bookable().Tenant("vision", "rome", limit).Offer("paris/h100", plantest.Capacity("gpu=32"))
		}
		b := world().Intent("vision/job", plantest.Wants(4), plantest.For(24*time.Hour)).
			Intent("vision/train", plantest.Wants(8), books(24*time.Hour, 24*time.Hour))
		atRest(t, b)
		only(t, b, "vision/train", v1alpha1.PhaseBooked)
		b.Intent("vision/job", plantest.For(36*time.Hour))
		atRest(t, b)
		if c := only(t, b, "vision/job", v1alpha1.PhaseActive); c.Spec.Term.End != plantest.Time("2026-11-21T12:00:00Z") {
			t.Errorf("%s: extended until %v", name, c.Spec.Term.End)
		}
		b = world().Intent("vision/job", plantest.Wants(2))
		atRest(t, b)
		b.Intent("vision/train", plantest.Wants(6), books(24*time.Hour, 24*time.Hour))
		atRest(t, b)
		only(t, b, "vision/train", v1alpha1.PhaseBooked)
		b.Intent("vision/job", plantest.Wants(3))
		atRest(t, b)
		if c := only(t, b, "vision/job", v1alpha1.PhaseActive); c.Spec.GPUs.Count != 2 {
			t.Errorf("%s: enlarged to %d cards", name, c.Spec.GPUs.Count)
		}
		b.Intent("vision/job", plantest.Wants(1)) // less is always given
		atRest(t, b)
		if c := only(t, b, "vision/job", v1alpha1.PhaseActive); c.Spec.GPUs.Count != 1 {
			t.Errorf("%s: it has %d cards, want 1", name, c.Spec.GPUs.Count)
		}
	}
}

// TestBooking_LossesAreGuarded: bookings of a lost provider count as what would end at once
// (safety.maxEnds): too many are held back, and keep their place.
func TestBooking_LossesAreGuarded(t *testing.T) {
	t.Parallel()
	for n, held := range map[int]bool{2: false, 6: true} {
		b := bookable().Provider("milan").Offer("milan/h100", plantest.Cards("nvidia-h100", 8, "80Gi"), plantest.Costs("1"))
		for i := range n {
			b.Intent(fmt.Sprintf("vision/n%d", i), plantest.Wants(1), books(24*time.Hour, time.Hour))
		}
		atRest(t, b)
		b.Offer("milan/h100", plantest.Heard(model.Lost))
		p := b.Round()
		if is := strings.Contains(p.HeldBack, "because providers are lost, of provider milan"); is != held {
			t.Errorf("%d bookings: held back %q", n, p.HeldBack)
		}
		for i := range n {
			c := only(t, b, fmt.Sprintf("vision/n%d", i), v1alpha1.PhaseBooked)
			if kept := c.Spec.Provider == "milan" && c.Status.Reason == ""; kept != held {
				t.Errorf("%d bookings, one on %s: %s", n, c.Spec.Provider, c.Status.Why())
			}
		}
	}
}

// TestBooking_CancelledInItsLead: within its lead a booking is delivered already, and
// cancelling it costs what it cost before.
func TestBooking_CancelledInItsLead(t *testing.T) {
	t.Parallel()
	for free, cost := range map[time.Duration]string{0: "", time.Minute: "", 12 * time.Hour: "480.00"} {
		b := bookable().Fleet(func(f *v1alpha1.FleetSpec) { f.Bookings.FreeUntil = v1alpha1.Duration{Duration: free} }).
			Intent("vision/train", plantest.Wants(8), books(24*time.Hour, 24*time.Hour))
		atRest(t, b)
		b.Tick(24*time.Hour - 9*time.Minute)
		atRest(t, b)
		name := only(t, b, "vision/train", v1alpha1.PhaseActive).Metadata.Name
		b.Remove("vision/train")
		atRest(t, b)
		c, got := b.W.Ledger.Contract(name), ""
		if c.Status.Accrued != nil && !c.Status.Accrued.IsZero() {
			got = c.Status.Accrued.Text()
		}
		if c.Status.Phase != v1alpha1.PhaseReleased || got != cost {
			t.Errorf("free until %v: %s %s, cost %q, want %q", free, c.Status.Phase, c.Status.Why(), got, cost)
		}
	}
}

// TestBooking_OutlastsAChangeOfOtherThings: a change that alters nothing of what is booked is
// written into the booking: it is neither cancelled nor charged, and costs what it did.
func TestBooking_OutlastsAChangeOfOtherThings(t *testing.T) {
	t.Parallel()
	b := bookable().Fleet(func(f *v1alpha1.FleetSpec) { f.Bookings.FreeUntil = v1alpha1.Duration{Duration: 48 * time.Hour} }).
		Intent("vision/train", plantest.Wants(4), books(24*time.Hour, 24*time.Hour))
	atRest(t, b)
	was := only(t, b, "vision/train", v1alpha1.PhaseBooked)
	b.Offer("paris/h100", plantest.Costs("9"))
	b.Intent("vision/train", plantest.Priority(7))
	atRest(t, b)
	now := only(t, b, "vision/train", v1alpha1.PhaseBooked)
	if now.Metadata.Name != was.Metadata.Name || now.Spec.Priority != 7 || now.Spec.Intent.Digest == was.Spec.Intent.Digest || now.Spec.Price.Hourly.Cmp(was.Spec.Price.Hourly) != 0 {
		t.Errorf("%s at priority %d for %s an hour", now.Metadata.Name, now.Spec.Priority, now.Spec.Price.Hourly.Text())
	}
	// One replica more leaves the first as it is.
	b.Intent("vision/train", plantest.Times(2))
	atRest(t, b)
	list := contractsOf(b, "vision/train")
	if len(list) != 2 || list[0].Metadata.Name != was.Metadata.Name {
		t.Errorf("%d bookings", len(list))
	}
	for c := range b.W.Ledger.Contracts() {
		if c.Status.Accrued != nil {
			t.Errorf("%s cost %s", c.Metadata.Name, c.Status.Accrued.Text())
		}
	}
}

// TestBooking_BudgetEndsNothingForWhatHasNotBegun: what is delivered before its term begins
// costs nothing then, and is no reason for a budget to end anything.
func TestBooking_BudgetEndsNothingForWhatHasNotBegun(t *testing.T) {
	t.Parallel()
	b := bookable().Offer("paris/h100", plantest.Capacity("gpu=16")).
		Tenant("vision", "rome", mayBook, func(s *v1alpha1.TenantSpec) {
			s.Budget = &v1alpha1.TenantBudget{Hourly: plantest.Money("20"), AtLimit: "end"}
		}).
		Intent("vision/first", plantest.Wants(8), plantest.For(24*time.Hour))
	atRest(t, b)
	b.Intent("vision/second", plantest.Wants(8), books(24*time.Hour, 24*time.Hour))
	atRest(t, b)
	b.Tick(24*time.Hour - 9*time.Minute)
	atRest(t, b)
	only(t, b, "vision/first", v1alpha1.PhaseActive)
	name := only(t, b, "vision/second", v1alpha1.PhaseActive).Metadata.Name
	b.W.Now = v1alpha1.TimeOf(plantest.Start.Add(24 * time.Hour))
	atRest(t, b)
	if c := only(t, b, "vision/second", v1alpha1.PhaseActive); c.Metadata.Name != name {
		t.Error("it was ended and placed again")
	}
}

// TestBooking_CountsInItsIntentsBudget: an intent's budget is for all its bookings together.
func TestBooking_CountsInItsIntentsBudget(t *testing.T) {
	t.Parallel()
	b := bookable().Intent("vision/train", plantest.Wants(4), plantest.AtMost("15"), books(24*time.Hour, 24*time.Hour))
	atRest(t, b)
	only(t, b, "vision/train", v1alpha1.PhaseBooked)
	b.Intent("vision/train", plantest.Times(2))
	p := atRest(t, b)
	if d := plantest.Of(p, "vision/train"); len(contractsOf(b, "vision/train")) != 1 || !strings.Contains(d.Reason, "maxHourly") {
		t.Errorf("%d bookings: %s %s", len(contractsOf(b, "vision/train")), d.Code, d.Reason)
	}
}

// TestBooking_MarkFollows: what is written into a booking that cannot be kept is what is
// missing now, and goes when nothing is.
func TestBooking_MarkFollows(t *testing.T) {
	t.Parallel()
	b := bookable().Intent("vision/train", plantest.Wants(8), books(24*time.Hour, 24*time.Hour))
	atRest(t, b)
	for _, step := range []struct{ capacity, want string }{{"gpu=6", "has 6 of 8 gpu"}, {"gpu=5", "has 5 of 8 gpu"}, {"gpu=8", ""}} {
		b.Offer("paris/h100", plantest.Capacity(step.capacity)).Tick(time.Minute)
		atRest(t, b)
		c := only(t, b, "vision/train", v1alpha1.PhaseBooked)
		if st := b.W.Ledger.State("vision", "train").Status; !strings.Contains(c.Status.Message, step.want) || (c.Status.Reason == "") != (step.want == "") || (st.Reason == "") != (step.want == "") {
			t.Errorf("%s: the booking %q, the intent %s", step.capacity, c.Status.Why(), st.Reason)
		}
	}
}

// TestBooking_YieldsToWhatIsThere: a contract that yields ends for a booking that is there,
// and goes on where that was cancelled.
func TestBooking_YieldsToWhatIsThere(t *testing.T) {
	t.Parallel()
	b := bookable().Intent("vision/train", plantest.Wants(8), books(24*time.Hour, 24*time.Hour))
	atRest(t, b)
	b.Intent("speech/job", plantest.Wants(4), yields)
	atRest(t, b)
	was := only(t, b, "speech/job", v1alpha1.PhaseActive)
	if was.Spec.Term.End != plantest.Time("2026-11-21T12:00:00Z") {
		t.Fatalf("it ends at %v", was.Spec.Term.End)
	}
	b.Remove("vision/train")
	atRest(t, b)
	b.W.Now = was.Spec.Term.End
	atRest(t, b)
	if c := only(t, b, "speech/job", v1alpha1.PhaseActive); c.Metadata.Name != was.Metadata.Name || !c.Spec.Term.End.IsZero() {
		t.Errorf("%s until %v", c.Metadata.Name, c.Spec.Term.End)
	}
}

// TestBooking_RankAfterItsStart: before its start nobody preempts a booking; from then on it
// gives way as any contract does: to a higher priority that preempts, and not where its
// intent says that it is not preemptible.
func TestBooking_RankAfterItsStart(t *testing.T) {
	t.Parallel()
	preempts := plantest.With(func(s *v1alpha1.IntentSpec) { s.Preemption = &v1alpha1.Preemption{Preempts: "lower"} })
	kept := plantest.With(func(s *v1alpha1.IntentSpec) { s.Preemption = &v1alpha1.Preemption{Preemptible: plantest.Ptr(false)} })
	for name, c := range map[string]struct {
		booked   func(*model.Intent)
		priority int32
		gives    bool
	}{
		"equal":           {plantest.Priority(50), 50, false},
		"higher":          {plantest.Priority(50), 51, true},
		"not preemptible": {kept, 51, false},
	} {
		b := bookable().Intent("vision/train", plantest.Wants(8), c.booked, books(24*time.Hour, 48*time.Hour))
		atRest(t, b)
		b.Intent("speech/now", plantest.Wants(8), plantest.Priority(c.priority), preempts)
		p := atRest(t, b)
		if d := plantest.Of(p, "speech/now"); d.Action != planner.Queued {
			t.Errorf("%s: before the start: %s %s", name, d.Action, d.Reason)
		}
		was := only(t, b, "vision/train", v1alpha1.PhaseBooked).Metadata.Name
		b.W.Now = v1alpha1.TimeOf(plantest.Start.Add(24 * time.Hour))
		b.Round()
		if got := b.W.Ledger.Contract(was).Status.Phase; got != v1alpha1.PhaseReserved {
			t.Errorf("%s: %s at its start", name, got)
		}
		b.Deliver()
		for range 6 {
			b.Tick(time.Hour)
			b.Round()
			b.Deliver()
		}
		if gave := !b.W.Ledger.Contract(was).Status.Phase.Charged(); gave != c.gives {
			t.Errorf("%s: it gave way: %v, want %v", name, gave, c.gives)
		}
	}
}

// TestBooking_PlacesWhatCannotBegin: of an intent that has begun in part, what cannot begin
// is placed as any other a grace period after its start.
func TestBooking_PlacesWhatCannotBegin(t *testing.T) {
	t.Parallel()
	b := bookable().Provider("milan", "oslo").Offer("milan/h100", plantest.Cards("nvidia-h100", 8, "80Gi"), plantest.Costs("3")).
		Intent("vision/train", plantest.Wants(8), plantest.Times(2), books(24*time.Hour, 48*time.Hour))
	atRest(t, b)
	b.Offer("milan/h100", plantest.Spec(func(s *v1alpha1.FlavorSpec) { s.Used = plantest.Amounts("gpu=8") }))
	b.Tick(24*time.Hour - 5*time.Minute)
	atRest(t, b)
	b.Offer("oslo/h100", plantest.Cards("nvidia-h100", 8, "80Gi"), plantest.Costs("9"))
	b.Tick(11 * time.Minute)
	atRest(t, b)
	got := map[string]v1alpha1.Phase{}
	for _, c := range contractsOf(b, "vision/train") {
		got[c.Spec.Provider] = c.Status.Phase
	}
	if len(got) != 2 || got["paris"] != v1alpha1.PhaseActive || got["oslo"] != v1alpha1.PhaseActive {
		t.Errorf("it has %v", got)
	}
}

// TestBooking_GangsShareTheirDomain: a gang that must be in one region is booked in one that
// holds all of it, though no provider does and the cheapest is elsewhere.
func TestBooking_GangsShareTheirDomain(t *testing.T) {
	t.Parallel()
	b := bookable().Offer("paris/h100", plantest.In("west", "w1"), plantest.Costs("1")).Provider("milan", "rimini")
	for _, ref := range []string{"milan/h100", "rimini/h100"} {
		b.Offer(ref, plantest.Cards("nvidia-h100", 8, "80Gi"), plantest.Costs("3"), plantest.In("south", "s1"))
	}
	b.Intent("vision/gang", plantest.Wants(4), plantest.Times(3), books(24*time.Hour, time.Hour), plantest.With(func(s *v1alpha1.IntentSpec) {
		s.Gang = plantest.Ptr(true)
		s.Placement.Within = &v1alpha1.Within{By: "region", Policy: "Required"}
	}))
	p := atRest(t, b)
	list := contractsOf(b, "vision/gang")
	if len(list) != 3 {
		t.Fatalf("%d bookings: %s", len(list), plantest.Of(p, "vision/gang").Reason)
	}
	for _, c := range list {
		if c.Spec.Provider == "paris" {
			t.Error("one is in another region")
		}
	}
}

// TestBooking_WaitsForWhoIsSilent: a provider that is silent at the start of a booking has not
// lost it: it begins when that reports again, and is placed as any other once it is lost.
func TestBooking_WaitsForWhoIsSilent(t *testing.T) {
	t.Parallel()
	for state, want := range map[model.Freshness]string{model.Fresh: "paris", model.Lost: "milan"} {
		b := bookable().Intent("vision/train", plantest.Wants(8), books(24*time.Hour, 48*time.Hour))
		atRest(t, b)
		b.Provider("milan").Offer("milan/h100", plantest.Cards("nvidia-h100", 8, "80Gi"), plantest.Costs("9"))
		b.Offer("paris/h100", plantest.Heard(model.Silent))
		b.Tick(24*time.Hour + 10*time.Minute)
		settled(t, b)
		only(t, b, "vision/train", v1alpha1.PhaseBooked)
		b.Offer("paris/h100", plantest.Heard(state)).Tick(time.Minute)
		atRest(t, b)
		if c := only(t, b, "vision/train", v1alpha1.PhaseActive); c.Spec.Provider != want {
			t.Errorf("%v: it is on %s, want %s", state, c.Spec.Provider, want)
		}
	}
}

// A start is suggested only where the booking would be made: where there is room then, a quota
// may keep it out.
func TestBook_SuggestedStartIsTried(t *testing.T) {
	for name, c := range map[string]struct {
		quota int64
		want  string
	}{
		"within its quota": {8, "schedule.notBefore: 2026-11-20T22:00:00Z"},
		"beyond its quota": {4, ""},
	} {
		b := bookable().Tenant("vision", "rome", func(s *v1alpha1.TenantSpec) {
			s.Quota = &v1alpha1.TenantQuota{Book: true, ByModel: map[string]int64{"nvidia-h100": c.quota}}
		}).Intent("speech/now", plantest.Wants(4), plantest.For(10*time.Hour))
		b.Round()
		b.Tick(time.Minute).Deliver().Intent("vision/later", plantest.Wants(8, "H100"), books(5*time.Hour, 2*time.Hour))
		d := plantest.Of(b.Plan(), "vision/later")
		if d.Action != planner.Queued || !strings.HasPrefix(strings.Join(d.Try, "|"), c.want) || c.want == "" && len(d.Try) > 0 {
			t.Errorf("%s: %s %s, try %q, want %q", name, d.Action, d.Reason, d.Try, c.want)
		}
		if c.want == "" {
			continue
		}
		at := plantest.Time(strings.Fields(d.Try[0])[1])
		b.Intent("vision/later", books(at.Sub(plantest.Start.Time), 2*time.Hour))
		if d := plantest.Of(b.Plan(), "vision/later"); d.Action != planner.Place {
			t.Errorf("%s: %s %s at %v", name, d.Action, d.Reason, at)
		}
	}
}
