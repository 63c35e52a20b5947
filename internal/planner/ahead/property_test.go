package ahead_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/audit/axis"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// story is a fleet over some days in which teams book, place, change their minds and
// providers come and go.
type story struct {
	*plantest.Builder
	t *rapid.T
	// session plans round after round, from what it remembers.
	session planner.Session
	// shrinks: flavors may get smaller, and bookings that they cannot keep move.
	shrinks bool
	// cut: the cards of milan/l4 are sold as instances of MIG, two of a card; shared: as shares,
	// of which a half is the smallest.
	cut   string
	n     int
	names []string
	// slow: what is released is not seen gone for now.
	slow bool
	// quota is how many cards speech may hold and book at any instant, 0 for any number.
	quota int64
	// terms are the bookings that nobody has changed since they were made.
	terms map[string]v1alpha1.Term
}

func newStory(t *rapid.T, shrinks bool) *story {
	b := plantest.New().Consumer("rome").Provider("paris", "milan").
		Tenant("vision", "rome", mayBook).Tenant("speech", "rome", mayBook).
		Offer("paris/h100", plantest.Cards("nvidia-h100", 8, "80Gi"), plantest.Costs("2.5")).
		Offer("milan/h100", plantest.Cards("nvidia-h100", 6, "80Gi"), plantest.Costs("3")).
		Offer("milan/l4", plantest.Cards("nvidia-l4", 4, "24Gi"), plantest.Costs("1")).
		// The night from the 28th to the 29th of March 2026 has no hour from 2 to 3 in Rome.
		Fleet(func(f *v1alpha1.FleetSpec) { f.Timezone = "Europe/Rome" })
	for _, ref := range []string{"milan/h100", "milan/l4"} {
		b.Offer(ref, plantest.Spec(func(s *v1alpha1.FlavorSpec) { s.Pool = "nodes" }), plantest.Capacity("cpu=80"))
	}
	b.W.Now = plantest.Time("2026-03-28T12:00:00Z")
	cut := rapid.SampledFrom([]string{"", "mig", "time-slicing"}).Draw(t, "cut")
	if cut != "" {
		b.Offer("milan/l4", parts(cut, 4, 2))
	}
	s := &story{Builder: b, t: t, shrinks: shrinks, cut: cut, terms: map[string]v1alpha1.Term{}}
	s.rules()
	return s
}

// rules are those of a fleet: how early bookings are delivered, which may be longer than
// their terms, and until when they may be cancelled at no cost; what a tenant may hold and
// spend; and whether an autoscaler could add cards.
func (s *story) rules() {
	lead, free := s.hours("lead", 0, 3), s.hours("free until", 0, 20)
	s.Fleet(func(f *v1alpha1.FleetSpec) {
		f.Bookings.Lead, f.Bookings.FreeUntil = v1alpha1.Duration{Duration: lead}, v1alpha1.Duration{Duration: free}
	})
	if s.quota = int64(rapid.SampledFrom([]int{0, 0, 6, 9}).Draw(s.t, "quota")); s.quota > 0 {
		s.Tenant("speech", "rome", quotaOf(s.quota))
	}
	if hourly := rapid.SampledFrom([]string{"", "", "12", "30"}).Draw(s.t, "hourly budget"); hourly != "" {
		s.Tenant("vision", "rome", mayBook, func(t *v1alpha1.TenantSpec) { t.Budget = &v1alpha1.TenantBudget{Hourly: plantest.Money(hourly)} })
	}
	if rapid.Bool().Draw(s.t, "grows") {
		s.Offer("paris/h100", plantest.Spec(func(f *v1alpha1.FlavorSpec) { f.ScalableTo = plantest.Amounts("gpu=12") }))
	}
}

func (s *story) hours(label string, least, most int) time.Duration {
	return time.Duration(rapid.IntRange(least, most).Draw(s.t, label)) * time.Hour
}

// ask adds an intent of any kind.
func (s *story) ask() {
	ref := fmt.Sprintf("%s/i%d", rapid.SampledFrom([]string{"vision", "speech"}).Draw(s.t, "tenant"), s.n)
	s.n++
	s.names = append(s.names, ref)
	models := rapid.SampledFrom([][]string{nil, {"H100"}, {"L4"}}).Draw(s.t, "models")
	cut := func(g *v1alpha1.GPURequest) {
		switch {
		case s.cut == "" || len(models) == 0 || models[0] != "L4":
		case s.cut == "mig":
			g.Profile = "1g.10gb"
		default:
			g.Count, g.Share = 0, plantest.Money(rapid.SampledFrom([]string{"0.5", "0.5", "1"}).Draw(s.t, "share"))
		}
	}
	s.Intent(ref, plantest.Wants(int32(rapid.IntRange(1, 6).Draw(s.t, "cards")), models...), plantest.GPU(cut), plantest.Times(int32(rapid.IntRange(1, 2).Draw(s.t, "replicas"))), //nolint:gosec // small
		plantest.Priority(int32(rapid.SampledFrom([]int{0, 0, 50}).Draw(s.t, "priority"))), s.schedule()) //nolint:gosec // small
}

// schedule is open, for some hours, booked, or one that yields.
func (s *story) schedule() func(*model.Intent) {
	kind := rapid.SampledFrom([]string{"open", "for", "book", "book", "yields"}).Draw(s.t, "kind")
	start, length := s.hours("start", 1, 60), s.hours("length", 1, 40)
	now := s.W.Now
	return plantest.With(func(in *v1alpha1.IntentSpec) {
		in.Schedule, in.Preemption = v1alpha1.Schedule{}, nil
		switch kind {
		case "for":
			in.Schedule.Duration = v1alpha1.Duration{Duration: length}
		case "book":
			in.Schedule = v1alpha1.Schedule{NotBefore: v1alpha1.TimeOf(now.Add(start)), Duration: v1alpha1.Duration{Duration: length}, Book: true}
		case "yields":
			in.Preemption = &v1alpha1.Preemption{Yields: "booked"}
		}
	})
}

// step changes something.
func (s *story) step() {
	switch what := rapid.SampledFrom([]string{"ask", "ask", "ask", "change", "remove", "tick", "tick", "tick", "jump", "slow", "capacity", "provider"}).Draw(s.t, "step"); what {
	case "ask":
		for range rapid.IntRange(1, 3).Draw(s.t, "at once") {
			s.ask()
		}
	case "change", "remove":
		if len(s.names) == 0 {
			return
		}
		ref := rapid.SampledFrom(s.names).Draw(s.t, "which")
		for name := range s.terms { // nobody is promised what was asked for otherwise
			if strings.HasPrefix(name, strings.ReplaceAll(ref, "/", "-")+"-") {
				delete(s.terms, name)
			}
		}
		if what == "remove" {
			s.Remove(ref)
			s.names = slices.DeleteFunc(s.names, func(name string) bool { return name == ref })
			return
		}
		s.Intent(ref, plantest.GPU(func(g *v1alpha1.GPURequest) { g.Count = int32(rapid.IntRange(1, 6).Draw(s.t, "cards")) }), s.schedule()) //nolint:gosec // small
	case "tick":
		s.Tick(time.Duration(rapid.IntRange(1, 9*60).Draw(s.t, "minutes")) * time.Minute)
	case "jump": // a clock that was wrong, or a daemon that was away
		s.Tick(s.hours("jump", 10, 50))
	case "slow": // pods that do not drain, for some rounds
		s.slow = !s.slow
	case "provider":
		if s.shrinks {
			state := rapid.SampledFrom([]model.Freshness{model.Fresh, model.Fresh, model.Silent, model.Lost}).Draw(s.t, "state")
			leave := rapid.SampledFrom([]time.Duration{0, 0, time.Hour, 20 * time.Hour}).Draw(s.t, "drained in")
			for _, ref := range []string{"milan/h100", "milan/l4"} {
				s.Offer(ref, plantest.Heard(state), plantest.Spec(func(f *v1alpha1.FlavorSpec) {
					if f.Drain = (v1alpha1.Time{}); leave > 0 {
						f.Drain = v1alpha1.TimeOf(s.W.Now.Add(leave))
					}
				}))
			}
		}
	case "capacity":
		if !s.shrinks {
			return
		}
		cards := rapid.SampledFrom([]string{"gpu=2", "gpu=5", "gpu=8"}).Draw(s.t, "capacity")
		s.Offer(rapid.SampledFrom([]string{"paris/h100", "milan/h100"}).Draw(s.t, "flavor"), plantest.Capacity(cards))
	}
}

// round plans, looks at what was decided, and delivers it.
func (s *story) round() {
	p := s.Plan()
	s.rememberedPlansAlike(p)
	s.Apply(p)
	s.nobodyOversells(p)
	s.noCardIsOverfull()
	s.quotaHolds(p)
	s.auditAgrees(p)
	for i := range p.Intents {
		if p.Intents[i].Code == "InvariantViolated" {
			s.t.Fatalf("%s/%s: %s", p.Intents[i].Tenant, p.Intents[i].Name, p.Intents[i].Reason)
		}
	}
	if !s.shrinks {
		s.nobodyIsDisplaced()
	}
	smaller := slices.ContainsFunc(p.Contracts, func(c model.Change) bool { // what is taken off is sold in the next round alone
		return c.Before != nil && c.After != nil && !c.After.Spec.Resources.Equal(c.Before.Spec.Resources)
	})
	// What is held back (safety.maxEnds) goes on when others are done.
	if again := s.Plan(); !smaller && p.HeldBack == "" && len(again.Contracts)+len(again.States) > 0 {
		s.t.Fatalf("planned again it changes %d contracts and %d states: %v", len(again.Contracts), len(again.States), changesOf(again))
	}
	if !s.slow {
		s.Deliver()
	}
}

func changesOf(p *planner.Plan) (out []string) {
	for i := range p.Contracts {
		c := p.Contracts[i].Last()
		out = append(out, c.Metadata.Name+" "+string(c.Status.Phase)+" "+c.Status.Why())
	}
	for i := range p.States {
		if st := p.States[i].After; st != nil {
			out = append(out, st.Metadata.Name+" "+string(st.Status.State)+" "+st.Status.Reason+" "+st.Status.Message)
		}
	}
	return out
}

// takes reports whether a contract takes cards at an instant, told from its file alone.
func takes(c *v1alpha1.Contract, at v1alpha1.Time) bool {
	end := c.Spec.Term.End
	switch c.Status.Phase {
	case v1alpha1.PhaseBooked:
		return !at.Before(c.Spec.Term.Start.Time) && at.Before(end.Time)
	case v1alpha1.PhaseReserved, v1alpha1.PhasePeering, v1alpha1.PhaseActive, v1alpha1.PhaseDegraded:
		return end.IsZero() || at.Before(end.Time)
	}
	return false
}

// nobodyOversells: whatever was placed, booked, enlarged or extended fits its flavor's
// cards at every instant of its term, and the cores that it shares.
func (s *story) nobodyOversells(p *planner.Plan) {
	for i := range p.Contracts {
		was, c := p.Contracts[i].Before, p.Contracts[i].After
		if c == nil || was != nil && was.Spec.Term.End == c.Spec.Term.End && was.Spec.Resources.Equal(c.Spec.Resources) {
			continue
		}
		var instants []v1alpha1.Time
		for other := range s.W.Ledger.Contracts() {
			if at := other.Spec.Term.Start; other.Status.Phase == v1alpha1.PhaseBooked && takes(c, at) {
				instants = append(instants, at)
			}
		}
		if takes(c, s.W.Now) && len(instants) > 0 {
			instants = append(instants, s.W.Now)
		}
		for _, at := range instants {
			cards, cores, offered, all := int64(0), int64(0), int64(0), int64(0)
			for _, o := range s.W.Offers {
				if o.Flavor.Metadata.Namespace == c.Spec.Provider && o.Flavor.Metadata.Name == c.Spec.Flavor {
					offered, all = max(o.Flavor.Spec.Capacity[v1alpha1.GPU].Int64(), o.Flavor.Spec.ScalableTo[v1alpha1.GPU].Int64()), o.Flavor.Spec.Capacity[v1alpha1.CPU].Int64()
				}
			}
			for other := range s.W.Ledger.Contracts() {
				if other.Spec.Provider != c.Spec.Provider || !takes(other, at) {
					continue
				}
				cores += other.Spec.Resources[v1alpha1.CPU].Int64()
				if other.Spec.Flavor == c.Spec.Flavor && other.Spec.GPUs != nil {
					cards += other.Spec.GPUs.Count
				}
			}
			if c.Spec.GPUs != nil && cards > offered || cores > all {
				s.t.Fatalf("%s (%s, %v) at %s: %d of %d cards, %d of %d cores of %s", c.Metadata.Name, c.Status.Phase, c.Spec.Term, at.Format(time.RFC3339), cards, offered, cores, all, c.Spec.Provider)
			}
		}
	}
}

// noCardIsOverfull: what is held of each card whose instances are sold is no more than it
// makes, and every instance that is held lies on one.
func (s *story) noCardIsOverfull() {
	units := map[int32]int64{}
	for c := range s.W.Ledger.Contracts() {
		g, sum := c.Spec.GPUs, int64(0)
		if s.cut == "" || c.Spec.Flavor != "l4" || g == nil {
			continue
		}
		for _, u := range g.Cards {
			if sum += u.Units; c.Status.Phase.Held() {
				units[u.Card] += u.Units
			}
		}
		if c.Status.Phase.Held() && sum != g.Count || c.Status.Phase == v1alpha1.PhaseBooked && sum > 0 {
			s.t.Fatalf("%s (%s) has %d instances, and %d on cards", c.Metadata.Name, c.Status.Phase, g.Count, sum)
		}
	}
	for card, n := range units {
		if n > 2 || card > 1 {
			s.t.Fatalf("card %d has %d instances\n%s", card, n, s.books())
		}
	}
}

// quotaHolds: at no start of its bookings to come does a tenant hold and have booked more
// than its quota, where a plan placed, booked, enlarged or extended something of it.
func (s *story) quotaHolds(p *planner.Plan) {
	for i := range p.Contracts {
		was, c := p.Contracts[i].Before, p.Contracts[i].After
		if s.quota == 0 || c == nil || c.Metadata.Namespace != "speech" || was != nil && was.Spec.Term.End == c.Spec.Term.End && was.Spec.Resources.Equal(c.Spec.Resources) {
			continue
		}
		for b := range s.W.Ledger.Contracts() {
			at, halves := b.Spec.Term.Start, int64(0)
			if b.Status.Phase != v1alpha1.PhaseBooked || b.Metadata.Namespace != "speech" || !at.After(s.W.Now.Time) || !takes(c, at) {
				continue
			}
			for other := range s.W.Ledger.Contracts() {
				if other.Metadata.Namespace == "speech" && other.Spec.GPUs != nil && takes(other, at) {
					halves += other.Spec.GPUs.Count * 2 / int64(max(other.Spec.GPUs.UnitsPerGPU, 1))
				}
			}
			if halves > 2*s.quota {
				s.t.Fatalf("%s (%s, %v): its tenant has %d halves of %d cards at %s\n%s", c.Metadata.Name, c.Status.Phase, c.Spec.Term, halves, s.quota, at.Format(time.RFC3339), s.books())
			}
		}
	}
}

// nobodyIsDisplaced: where nothing shrinks, a booking that was made stays as it is until
// its start, and has begun within the grace period; nothing that came later changes that.
func (s *story) nobodyIsDisplaced() {
	for c := range s.W.Ledger.Contracts() {
		if _, known := s.terms[c.Metadata.Name]; c.Status.Phase == v1alpha1.PhaseBooked && !known && c.Status.Since == s.W.Now {
			s.terms[c.Metadata.Name] = c.Spec.Term
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.terms)) { // in one order: the first fault is the same in each run
		c, term := s.W.Ledger.Contract(name), s.terms[name]
		switch {
		case c == nil || c.Status.Phase == v1alpha1.PhaseFailed || c.Status.Phase == v1alpha1.PhaseReleased:
			s.t.Fatalf("the booking %s for %v is gone\n%s", name, term, s.books())
		case c.Spec.Term != term:
			s.t.Fatalf("the booking %s was for %v and is for %v", name, term, c.Spec.Term)
		case c.Status.Phase == v1alpha1.PhaseBooked && c.Status.Reason != "":
			s.t.Fatalf("the booking %s cannot be kept: %s\n%s", name, c.Status.Why(), s.books())
		case !term.End.After(s.W.Now.Time):
			delete(s.terms, name)
		}
	}
}

// TestBookings_HoldInEveryStory: whatever teams ask for, change and remove, in any order,
// over a change to daylight saving and jumps of the clock: no instant is oversold, and no
// booking is displaced by what came later.
func TestBookings_HoldInEveryStory(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) { tell(newStory(t, false)) })
}

// TestBookings_NeverOversellWhatShrinks: the same where flavors get smaller: what they
// cannot keep moves or is reported, and nothing is sold twice.
func TestBookings_NeverOversellWhatShrinks(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) { tell(newStory(t, true)) })
}

func tell(s *story) {
	for range rapid.IntRange(3, 14).Draw(s.t, "steps") {
		s.step()
		s.round()
		s.Tick(time.Second)
		s.round()
	}
}

// books are the contracts, one a line.
func (s *story) books() string {
	var b strings.Builder
	fmt.Fprintf(&b, "now %s\n", s.W.Now.Format(time.RFC3339))
	for c := range s.W.Ledger.Contracts() {
		cards := int64(0)
		if c.Spec.GPUs != nil {
			cards = c.Spec.GPUs.Count
		}
		fmt.Fprintf(&b, "%s %s/%s %d cards, priority %d, %v since %s: %s %s\n", c.Metadata.Name, c.Spec.Provider, c.Spec.Flavor, cards, c.Spec.Priority, c.Spec.Term, c.Status.Since.Format(time.RFC3339), c.Status.Phase, c.Status.Why())
	}
	return b.String()
}

// auditAgrees: what a plan decides stands in history as `audit verify` judges it.
func (s *story) auditAgrees(p *planner.Plan) {
	for i := range p.Contracts {
		c := p.Contracts[i].After
		if c == nil {
			continue
		}
		held, booked := map[string]*v1alpha1.Contract{}, map[string]*v1alpha1.Contract{}
		for _, other := range s.W.Ledger.HeldOn(c.Spec.Provider, c.Spec.Flavor) {
			held[other.Metadata.Name] = other
		}
		for _, other := range s.W.Ledger.BookedOn(c.Spec.Provider, c.Spec.Flavor) {
			booked[other.Metadata.Name] = other
		}
		if faults := axis.Faults(s.W.Now, p.Contracts[i].Before, c, held, booked); len(faults) > 0 {
			s.t.Fatalf("%s (%s): the audit says %v\n%s", c.Metadata.Name, c.Status.Phase, faults, s.books())
		}
	}
}

// rememberedPlansAlike: a session that remembers its last round plans the same.
func (s *story) rememberedPlansAlike(p *planner.Plan) {
	remembered := s.session.Decide(s.W)
	want, err := json.Marshal(p)
	if err != nil {
		s.t.Fatal(err)
	}
	got, err := json.Marshal(remembered)
	if err != nil {
		s.t.Fatal(err)
	}
	if string(got) != string(want) {
		s.t.Fatalf("from memory:\n%s\nfrom nothing:\n%s", got, want)
	}
}
