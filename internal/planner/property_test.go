package planner_test

import (
	"fmt"
	"maps"
	"math/rand"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// story is a fleet that lives through random events, one round after each.
type story struct {
	*Builder
	t *rapid.T
	n int
	// crowded: everybody wants the same few cards.
	crowded bool
	// shares: intents state which domain their replicas share. The golden worlds are from
	// before that.
	shares bool
	// books: intents book ahead, or yield to those that do. Nor have the golden worlds that.
	books bool
}

func newStory(t *rapid.T) *story {
	s := &story{Builder: New().Consumer("rome", "turin"), t: t}
	s.crowded = rapid.Bool().Draw(t, "crowded")
	s.Fleet(func(f *v1alpha1.FleetSpec) {
		f.Transfer = []v1alpha1.TransferPrice{{From: "north", To: "south", PerGi: v1alpha1.MustDecimal("0.031")}}
	})
	for i := range rapid.IntRange(1, 4).Draw(t, "providers") {
		s.Provider(fmt.Sprintf("p%d", i))
		for k := range rapid.IntRange(1, 3).Draw(t, "flavors") {
			s.Offer(fmt.Sprintf("p%d/f%d", i, k), s.anyOffer())
		}
	}
	for _, name := range []string{"ada", "bob"} {
		s.Tenant(name, "rome", func(spec *v1alpha1.TenantSpec) {
			spec.Consumers = []string{"rome", "turin"}
			spec.Weight = int32(rapid.IntRange(0, 3).Draw(t, "weight"))
			if rapid.Bool().Draw(t, "quota") {
				spec.Quota = &v1alpha1.TenantQuota{GPU: Ptr(int64(rapid.IntRange(1, 12).Draw(t, "quota.gpu"))), CPU: Ptr(v1alpha1.Quantity("64"))}
				if rapid.Bool().Draw(t, "borrows") {
					spec.Quota.MaxBorrow = Amounts("gpu=3 cpu=16")
				}
			}
			if rapid.Bool().Draw(t, "budget") {
				spec.Budget = &v1alpha1.TenantBudget{Hourly: Money("20"), Monthly: Money("4000"), AtLimit: rapid.SampledFrom([]string{"", "warn", "end"}).Draw(t, "atLimit")}
			}
		})
	}
	if mode := rapid.SampledFrom([]string{"", "", "propose", "apply"}).Draw(t, "consolidation"); mode != "" {
		s.Fleet(consolidating(mode, "0.1", time.Minute))
	}
	if rapid.Bool().Draw(t, "warm pool") {
		s.anyPool()
	}
	return s
}

// anyPool sets the fleet's warm pool, of any size.
func (s *story) anyPool() {
	p := v1alpha1.WarmPool{
		Name: "warm", Consumer: "rome", Count: int32(rapid.IntRange(0, 3).Draw(s.t, "pool.count")),
		Resources: v1alpha1.ResourceRequest{
			GPU:   &v1alpha1.GPURequest{Count: int32(rapid.IntRange(1, 2).Draw(s.t, "pool.gpus"))},
			Named: Amounts(fmt.Sprintf("cpu=%d memory=%dGi", rapid.IntRange(1, 16).Draw(s.t, "pool.cpu"), rapid.IntRange(1, 64).Draw(s.t, "pool.memory"))),
		},
	}
	if rapid.Bool().Draw(s.t, "pool.forecast") {
		p.Max, p.Forecast = p.Count+int32(rapid.IntRange(1, 3).Draw(s.t, "pool.more")), &v1alpha1.PoolForecast{}
		p.Forecast.Ahead.Duration = time.Duration(rapid.IntRange(0, 3).Draw(s.t, "pool.ahead")) * time.Hour
	}
	s.Fleet(func(f *v1alpha1.FleetSpec) { f.WarmPools = []v1alpha1.WarmPool{p} })
}

func (s *story) anyOffer() func(*model.Offer) {
	t := s.t
	return func(o *model.Offer) {
		o.Flavor.Spec.Capacity = Amounts(fmt.Sprintf("cpu=%d memory=%dGi", rapid.IntRange(4, 64).Draw(t, "cpu"), rapid.IntRange(16, 512).Draw(t, "memory")))
		if rapid.Bool().Draw(t, "limits pods") {
			Capacity("pods=150")(o)
		}
		o.Flavor.Spec.GPU = nil
		if n := rapid.IntRange(0, 8).Draw(t, "cards"); n > 0 {
			Cards(rapid.SampledFrom([]string{"nvidia-h100", "nvidia-a100", "nvidia-t4"}).Draw(t, "model"), n, "80Gi")(o)
			if rapid.IntRange(0, 4).Draw(t, "mig") == 0 {
				o.Flavor.Spec.Capacity[v1alpha1.GPU] = v1alpha1.AmountOf(int64(n) * 7)
				o.Flavor.Spec.GPU.Sharing, o.Flavor.Spec.GPU.UnitsPerGPU, o.Flavor.Spec.GPU.Profile = "mig", 7, "1g.10gb"
			}
		}
		o.Flavor.Spec.ScalableTo = nil
		if rapid.IntRange(0, 4).Draw(t, "scales") == 0 {
			o.Flavor.Spec.ScalableTo = Amounts(fmt.Sprintf("gpu=%d cpu=%d memory=600Gi", rapid.IntRange(0, 12).Draw(t, "scales to cards"), rapid.IntRange(4, 128).Draw(t, "scales to cpu")))
			if g := o.Flavor.Spec.GPU; g == nil || g.UnitsPerGPU > 1 {
				delete(o.Flavor.Spec.ScalableTo, v1alpha1.GPU)
			}
		}
		if rapid.Bool().Draw(t, "pooled") {
			o.Flavor.Spec.Pool = "nodes"
		}
		if rapid.IntRange(0, 3).Draw(t, "partitioned") == 0 {
			o.Flavor.Spec.Partition = &v1alpha1.Partition{Min: Amounts("cpu=2 memory=4Gi"), Step: Amounts("cpu=2 memory=4Gi")}
		}
		if rapid.IntRange(0, 3).Draw(t, "unpriced") > 0 {
			Costs(fmt.Sprintf("%d.50", rapid.IntRange(0, 9).Draw(t, "price")), "cpu=0.1 memoryGi=0.01")(o)
		}
		if o.Price != nil && rapid.IntRange(0, 2).Draw(t, "spot") == 0 {
			p := *o.Price
			p.Spot = v1alpha1.UnitPrices{"gpu": v1alpha1.MustDecimal("0.25")}
			o.Price = &p
		}
		if s.crowded {
			Capacity("cpu=64 memory=512Gi")(o)
			Cards("nvidia-h100", 3, "80Gi")(o)
			o.Flavor.Spec.Pool, o.Flavor.Spec.Partition = "", nil
			Costs("1")(o)
		}
		o.Location.Region = rapid.SampledFrom([]string{"north", "south"}).Draw(t, "region")
		if s.shares {
			anyDomains(t, o)
		}
	}
}

func (s *story) anyIntent(in *model.Intent) {
	t := s.t
	in.Spec = v1alpha1.IntentSpec{}
	Wants(int32(rapid.IntRange(0, 4).Draw(t, "gpus")), rapid.SampledFrom([][]string{nil, {"H100"}, {"h100", "a100"}}).Draw(t, "models")...)(in)
	in.Spec.Resources.Named = Amounts(fmt.Sprintf("cpu=%d memory=%dGi", rapid.IntRange(1, 16).Draw(t, "cpu"), rapid.IntRange(1, 64).Draw(t, "memory")))
	Times(int32(rapid.IntRange(1, 3).Draw(t, "replicas")))(in)
	if rapid.IntRange(0, 3).Draw(t, "follows") == 0 {
		least := in.Spec.Replicas.Min
		Follows(least, least+int32(rapid.IntRange(0, 3).Draw(t, "more")))(in)
	}
	in.Spec.Priority = int32(rapid.SampledFrom([]int{0, 0, 10, 500}).Draw(t, "priority"))
	if rapid.Bool().Draw(t, "not a gang") {
		in.Spec.Gang, in.Spec.MinReplicas = Ptr(false), 1
	}
	if rapid.Bool().Draw(t, "bounded") {
		AtMost(fmt.Sprint(rapid.IntRange(1, 40).Draw(t, "maxHourly")))(in)
		if rapid.Bool().Draw(t, "total") {
			in.Spec.Budget.MaxTotal = Money("500")
		}
	}
	if rapid.Bool().Draw(t, "has a term") {
		For(time.Duration(rapid.IntRange(1, 48).Draw(t, "hours")) * time.Hour)(in)
	}
	if rapid.IntRange(0, 3).Draw(t, "windows") == 0 {
		in.Spec.Schedule.Windows = []v1alpha1.Window{{From: "20:00", To: "06:00", Timezone: "Europe/Rome"}}
	}
	if rapid.IntRange(0, 3).Draw(t, "alternatives") == 0 {
		in.Spec.Alternatives = []v1alpha1.ResourceRequest{{GPU: &v1alpha1.GPURequest{Count: 1}}}
	}
	if rapid.IntRange(0, 3).Draw(t, "share") == 0 {
		in.Spec.Resources.GPU = &v1alpha1.GPURequest{Share: Money("0.4")}
	}
	if rapid.IntRange(0, 3).Draw(t, "somewhere") == 0 {
		in.Spec.Placement.Regions = []string{"north"}
	}
	anyPreemption(t, in)
	anyLanguage(t, in)
	if rapid.Bool().Draw(t, "on spot") {
		in.Spec.Purchase = []v1alpha1.PriceClass{v1alpha1.Spot, v1alpha1.OnDemand}
	}
	in.Spec.Queue.Policy = rapid.SampledFrom([]string{"", "wait", "fail"}).Draw(t, "queue")
	if rapid.IntRange(0, 3).Draw(t, "impatient") == 0 {
		in.Spec.Queue.Timeout = v1alpha1.Duration{Duration: 10 * time.Minute}
	}
	in.Spec.Stage = rapid.SampledFrom([]v1alpha1.Stage{"", "", "", v1alpha1.StageReserve, v1alpha1.StageFind}).Draw(t, "stage")
	in.Spec.Objective = rapid.SampledFrom([]v1alpha1.Objective{"", v1alpha1.Cost}).Draw(t, "objective")
	in.Spec.Suspend = rapid.IntRange(0, 9).Draw(t, "suspend") == 0
	in.Spec.Consumer = rapid.SampledFrom([]string{"", "", "turin"}).Draw(t, "consumer")
	if s.shares {
		anyWithin(t, in)
	}
	if s.books {
		s.anyBooking(in)
	}
}

// crowd makes an intent ask for what all others ask for.
func (s *story) crowd(in *model.Intent) {
	if !s.crowded {
		return
	}
	Wants(int32(rapid.IntRange(1, 3).Draw(s.t, "cards")))(in)
	in.Spec.Resources.Named = Amounts("cpu=1 memory=1Gi")
	in.Spec.Alternatives, in.Spec.Budget, in.Spec.Schedule.Windows, in.Spec.Suspend = nil, nil, nil, false
	in.Spec.Placement, in.Spec.Stage = v1alpha1.Placement{Within: in.Spec.Placement.Within}, ""
}

// denies has a provider deny all that it holds, and report again.
func (s *story) denies(provider string) {
	for c := range s.W.Ledger.Contracts() {
		if c.Spec.Provider == provider && c.Status.Phase.Charged() {
			o := Ready(c)
			o.Consumer.Granted, o.Consumer.SliceDenied = nil, "no"
			s.Observe(c.Metadata.Name, o)
		}
	}
}

func (s *story) name() string {
	return rapid.SampledFrom([]string{"ada", "bob"}).Draw(s.t, "tenant") + fmt.Sprintf("/i%d", rapid.IntRange(0, 5).Draw(s.t, "intent"))
}

// event changes the world in one way.
func (s *story) event() string {
	t := s.t
	offer := s.W.Offers[rapid.IntRange(0, len(s.W.Offers)-1).Draw(t, "offer")]
	switch kind := rapid.IntRange(0, 19).Draw(t, "event"); kind {
	case 0, 1, 2, 3:
		ref := s.name()
		s.Intent(ref, s.anyIntent, s.crowd)
		return "intent " + ref
	case 4:
		ref := s.name()
		s.Remove(ref)
		return "remove " + ref
	case 5, 6, 7:
		s.Deliver()
		return "deliver"
	case 8:
		provider := offer.Flavor.Metadata.Namespace
		state := rapid.SampledFrom([]model.Freshness{model.Fresh, model.Fresh, model.Silent, model.Lost, model.Withdrawn}).Draw(t, "heard")
		s.W.Offers = slices.Clone(s.W.Offers)
		for i := range s.W.Offers {
			if s.W.Offers[i].Flavor.Metadata.Namespace == provider {
				o := *s.W.Offers[i]
				Heard(state)(&o)
				s.W.Offers[i] = &o
			}
		}
		return fmt.Sprintf("provider %s heard %d", provider, state)
	case 9:
		ref := offer.Flavor.Ref()
		s.Offer(ref, s.anyOffer())
		return "report " + ref
	case 10:
		ref := offer.Flavor.Ref()
		drain := v1alpha1.Time{}
		if rapid.Bool().Draw(t, "drain") {
			drain = v1alpha1.TimeOf(s.W.Now.Add(time.Hour))
		}
		cordon := rapid.Bool().Draw(t, "cordon")
		s.Offer(ref, Spec(func(f *v1alpha1.FlavorSpec) { f.Cordon, f.Drain = cordon, drain }))
		return "cordon or drain " + ref
	case 13:
		// The agent reports what it granted, and something that lingers.
		ref := offer.Flavor.Ref()
		held := map[string]v1alpha1.Resources{}
		for _, c := range s.W.Ledger.HeldOn(offer.Flavor.Metadata.Namespace, offer.Flavor.Metadata.Name) {
			held[c.Spec.Slice] = ledger.AsOffered(c, offer.Flavor)
		}
		if rapid.Bool().Draw(t, "lingers") {
			held["long-gone"] = Amounts("cpu=1 memory=1Gi")
		}
		s.Offer(ref, Spec(func(f *v1alpha1.FlavorSpec) { f.Held = held }))
		return "granted " + ref
	case 18:
		name := rapid.SampledFrom([]string{offer.Flavor.Metadata.Namespace, "rome", "turin"}).Draw(t, "cluster")
		s.Cluster(name, func(c *v1alpha1.Cluster) {
			c.Spec.Cordon = rapid.IntRange(0, 3).Draw(t, "cordon") == 0
			c.Spec.Location.Region = rapid.SampledFrom([]string{"", "north", "south"}).Draw(t, "region")
			c.Spec.Labels = map[string]string{"disk": rapid.SampledFrom([]string{"ssd", "hdd"}).Draw(t, "disk")}
			if c.Spec.Drain = (v1alpha1.Time{}); rapid.IntRange(0, 3).Draw(t, "drain") == 0 {
				c.Spec.Drain = v1alpha1.TimeOf(s.W.Now.Add(time.Hour))
			}
		})
		return "cluster " + name
	case 17:
		s.anyPods()
		return "pods"
	case 16:
		s.anyPool()
		return "warm pool"
	case 14:
		name := rapid.SampledFrom([]string{"ada", "bob"}).Draw(t, "tenant")
		changed := *s.W.Tenants[name]
		switch rapid.IntRange(0, 4).Draw(t, "of the tenant") {
		case 0:
			changed.Spec.Consumers = rapid.SampledFrom([][]string{{"rome", "turin"}, {"turin", "rome"}, {"turin"}}).Draw(t, "consumers")
		case 1:
			changed.Spec.Providers.Deny = rapid.SliceOfDistinct(rapid.SampledFrom([]string{"p0", "p1"}), rapid.ID).Draw(t, "denied")
		case 2:
			changed.Spec.Weight, changed.Spec.MaxPriority = int32(rapid.IntRange(0, 3).Draw(t, "weight")), Ptr(int32(rapid.IntRange(0, 20).Draw(t, "ceiling")))
		}
		changed.Spec.Quota = &v1alpha1.TenantQuota{GPU: Ptr(int64(rapid.IntRange(0, 12).Draw(t, "quota.gpu"))), CPU: Ptr(v1alpha1.Quantity("16")), Book: s.books}
		s.W.Tenants = maps.Clone(s.W.Tenants)
		s.W.Tenants[name] = &changed
		return "tenant " + name
	case 19:
		s.denies(offer.Flavor.Metadata.Namespace)
		return "denied by " + offer.Flavor.Metadata.Namespace
	case 15:
		s.W.AllowEnds = rapid.Bool().Draw(t, "allow ends")
		s.W.ForceRelease = map[string]bool{}
		for c := range s.W.Ledger.Contracts() {
			if rapid.IntRange(0, 3).Draw(t, "force") == 0 {
				s.W.ForceRelease[c.Metadata.Name] = true
			}
		}
		return "an operator"
	case 11:
		s.W.Deaf = rapid.Bool().Draw(t, "deaf")
		for range s.W.Clusters { // drawn for nothing: without it the golden worlds would be others
			_, _ = rapid.Bool().Draw(t, "heard elsewhere"), rapid.Bool().Draw(t, "reached elsewhere")
		}
		return "deaf"
	default:
		s.W.Frozen = nil
		if rapid.Bool().Draw(t, "freeze") {
			s.W.Frozen = []model.Freeze{{Path: "intents/" + s.name() + ".yaml", Why: "line 1: bad"}}
		}
		return "freeze"
	}
}

// anyPods lets pods wait for an intent, or come to its nodes and leave them.
func (s *story) anyPods() {
	t := s.t
	consumer := rapid.SampledFrom([]string{"rome", "turin"}).Draw(t, "cluster")
	s.Waits(consumer, s.name(), rapid.Int64Range(0, 9).Draw(t, "pods"), rapid.SampledFrom([]string{"cpu=1 memory=1Gi", "nvidia.com/gpu=1 pods=1"}).Draw(t, "requests"))
	for c := range s.W.Ledger.Contracts() {
		if c.Status.Phase.Charged() {
			s.Uses(c, rapid.Int64Range(0, 1).Draw(t, "on it"))
		}
	}
}

func TestStories(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newStory(t)
		seed := rapid.Int64().Draw(t, "shuffle")
		for range rapid.IntRange(1, 12).Draw(t, "length") {
			s.n++
			said := s.event()
			s.Tick(time.Duration(rapid.SampledFrom([]int{0, 1, 60, 3600, 6 * 3600, 200 * 3600}).Draw(t, "seconds")) * time.Second)
			before := s.W
			p := s.Plan()
			fail := func(format string, args ...any) {
				t.Helper()
				t.Fatalf("after %q: %s\n%s", said, fmt.Sprintf(format, args...), describe(p))
			}
			if other := planner.Decide(shuffled(before, seed)); !reflect.DeepEqual(p, other) {
				fail("another order gives another plan:\n%s", describe(other))
			}
			s.Apply(p)
			checkPlan(before, p, s.W.Ledger, fail)
			again := s.planAgain(p)
			if again.Changes() {
				fail("planning again changes:\n%s", describe(again))
			}
		}
	})
}

// planAgain plans with what the market shows once a plan is committed: what it made smaller,
// or of a node, is held as before until its provider gives its word again (market.StillHeld).
// The next event of a story is such a word.
func (s *story) planAgain(p *planner.Plan) *planner.Plan {
	heard := s.W.Offers
	defer func() { s.W.Offers = heard }()
	s.W.Offers = slices.Clone(heard)
	for _, change := range p.Contracts {
		before, after := change.Before, change.After
		if before == nil || after == nil || !before.Status.Phase.Held() || !after.Status.Phase.Held() || !ledger.Smaller(before, after) {
			continue
		}
		for i, o := range s.W.Offers {
			if o.Static || o.Flavor.Metadata.Namespace != after.Spec.Provider || o.Flavor.Metadata.Name != after.Spec.Flavor {
				continue
			}
			again := *o
			again.Flavor = ledger.HadBy(before, o.Flavor).Shown(o.Flavor, after.Spec.Slice)
			s.W.Offers[i] = &again
		}
	}
	return s.Plan()
}

func shuffled(w planner.World, seed int64) planner.World {
	rnd := rand.New(rand.NewSource(seed))
	w.Offers, w.Intents = slices.Clone(w.Offers), slices.Clone(w.Intents)
	rnd.Shuffle(len(w.Offers), func(i, j int) { w.Offers[i], w.Offers[j] = w.Offers[j], w.Offers[i] })
	rnd.Shuffle(len(w.Intents), func(i, j int) { w.Intents[i], w.Intents[j] = w.Intents[j], w.Intents[i] })
	return w
}

// legal are the phase changes that one commit may make.
var legal = map[v1alpha1.Phase]string{
	"": "Reserved", v1alpha1.PhaseReserved: "Peering Active Degraded Releasing", v1alpha1.PhasePeering: "Active Degraded Releasing",
	v1alpha1.PhaseActive: "Degraded Releasing", v1alpha1.PhaseDegraded: "Active Peering Reserved Releasing Degraded",
	v1alpha1.PhaseReleasing: "Released Expired Preempted Failed",
}

// checkPlan asks whether a plan kept what the package promises, by sums of its
// own.
func checkPlan(w planner.World, p *planner.Plan, after *ledger.Ledger, fail func(string, ...any)) {
	for i := range p.Contracts {
		c := &p.Contracts[i]
		if c.After == nil {
			if !ledger.Ended(c.Before.Status.Phase) {
				fail("%s leaves the tree as %s", c.Before.Metadata.Name, c.Before.Status.Phase)
			}
			continue
		}
		from := v1alpha1.Phase("")
		if c.Before != nil {
			from = c.Before.Status.Phase
			if c.Before.Spec.Provider != c.After.Spec.Provider || c.Before.Spec.Flavor != c.After.Spec.Flavor || c.Before.Spec.Consumer != c.After.Spec.Consumer {
				fail("%s changes its place", c.After.Metadata.Name)
			}
			if reflect.DeepEqual(c.Before, c.After) {
				fail("%s does not change", c.After.Metadata.Name)
			}
		} else if w.Ledger.Contract(c.After.Metadata.Name) != nil {
			fail("%s is new and old", c.After.Metadata.Name)
		}
		if to := c.After.Status.Phase; from != to && !strings.Contains(legal[from], string(to)) && !isClaimed(p, c) {
			fail("%s goes from %q to %s", c.After.Metadata.Name, from, to)
		}
		if w.Deaf && c.Before == nil {
			fail("a deaf round places %s", c.After.Metadata.Name)
		}
		if grown(c) {
			checkSold(w, c.After, after, fail)
			checkLimits(w, c.After, after, fail)
		}
	}
	checkIntents(w, p, after, fail)
	checkDisplaced(w, p, after, fail)
	checkRules(w, p, after, fail)
	checkWithin(w, p, after, fail)
}

// isClaimed reports whether a warm contract ended because this plan makes
// another on its slice.
func isClaimed(p *planner.Plan, c *model.Change) bool {
	if c.Before.Metadata.Namespace != v1alpha1.FleetTenant || !c.Before.Status.Phase.Charged() || c.After.Status.Phase != v1alpha1.PhaseReleased {
		return false
	}
	for i := range p.Contracts {
		x := p.Contracts[i]
		if x.Before == nil && x.After.Spec.Slice == c.Before.Spec.Slice && x.After.Spec.Resources.Equal(c.Before.Spec.Resources) {
			return true
		}
	}
	return false
}

func grown(c *model.Change) bool {
	if !c.After.Status.Phase.Charged() {
		return false
	}
	if c.Before == nil {
		return true
	}
	for name, n := range c.After.Spec.Resources {
		if c.Before.Spec.Resources[name].Less(n) {
			return true
		}
	}
	return false
}

func checkLimits(w planner.World, c *v1alpha1.Contract, after *ledger.Ledger, fail func(string, ...any)) {
	t := w.Tenants[c.Metadata.Namespace]
	if t == nil {
		return // the fleet's own warm slices have no limits
	}
	sum := after.Totals(c.Metadata.Namespace)
	if q := t.Spec.Quota; q != nil {
		more := q.MaxBorrow
		if c.Spec.GPUs != nil && sum.MilliCards().Int64() > (*q.GPU+more[v1alpha1.GPU].Int64())*1000 {
			fail("tenant %s holds %d thousandths of %d cards", t.Metadata.Name, sum.MilliCards().Int64(), *q.GPU)
		}
		if q.CPU.Amount(v1alpha1.CPU).Add(more[v1alpha1.CPU]).Less(sum.CPU) {
			fail("tenant %s holds %s of %s CPU", t.Metadata.Name, sum.CPU.Canonical(v1alpha1.CPU), *q.CPU)
		}
	}
	checkBorrowed(w, c, after, fail)
	if b := t.Spec.Budget; b != nil && b.AtLimit != "warn" && sum.Hourly["EUR"].Cmp(*b.Hourly) > 0 {
		fail("tenant %s spends %s of %s an hour", t.Metadata.Name, sum.Hourly["EUR"], *b.Hourly)
	}
}

func checkIntents(w planner.World, p *planner.Plan, after *ledger.Ledger, fail func(string, ...any)) {
	for _, d := range p.Intents {
		if !slices.Contains(p.Unsettled, d) && d.Action != planner.Done && d.Action != planner.Suspend && (d.Action != planner.Keep || len(d.Rejected) > 0) {
			fail("%s/%s is settled, and its action is %s", d.Tenant, d.Name, d.Action)
		}
	}
	for _, in := range w.Intents {
		ref := in.Metadata.Namespace + "/" + in.Metadata.Name
		var live, had []*v1alpha1.Contract
		spent := v1alpha1.Zero
		fresh := false
		for _, c := range after.ByIntent(in.Metadata.Namespace, in.Metadata.Name) {
			if c.Status.Phase.Charged() {
				live = append(live, c)
				spent = spent.Add(c.Spec.Price.Hourly)
				if c.Decision.Transfer != nil {
					spent = spent.Add(c.Decision.Transfer.Hourly)
				}
				fresh = fresh || w.Ledger.Contract(c.Metadata.Name) == nil
			}
		}
		for _, c := range w.Ledger.ByIntent(in.Metadata.Namespace, in.Metadata.Name) {
			if c.Status.Phase.Charged() {
				had = append(had, c)
			}
		}
		d := Of(p, ref)
		if d.Code == lifecycle.CodeInvariant {
			fail("%s: the planner caught itself: %s", ref, d.Reason)
		}
		sum := d.Fitting
		for _, n := range d.Rejected {
			sum += n
		}
		if len(d.Rejected) > 0 && sum != d.Considered {
			fail("%s: %d offers of %d are counted", ref, sum, d.Considered)
		}
		gang := in.Spec.Gang == nil || *in.Spec.Gang
		whole := map[int32]bool{}
		for _, c := range live {
			whole[c.Spec.Intent.Replica] = true
		}
		if gang && len(had) == 0 && len(live) != 0 && len(whole) != int(in.Spec.Replicas.Min) {
			fail("%s: %d of a gang of %d", ref, len(whole), in.Spec.Replicas.Min)
		}
		if b := in.Spec.Budget; b != nil && fresh && spent.Cmp(*b.MaxHourly) > 0 {
			fail("%s costs %s of %s", ref, spent, b.MaxHourly)
		}
		checkParts(in, ref, live, fail)
		if len(w.Frozen) > 0 && w.Frozen[0].Path == in.Path {
			for _, c := range had {
				now := after.Contract(c.Metadata.Name)
				if !now.Status.Phase.Charged() && !endedByTerms(now.Status.Reason) || !reflect.DeepEqual(now.Spec, c.Spec) {
					fail("%s is frozen and %s changed", ref, c.Metadata.Name)
				}
			}
		}
	}
}
