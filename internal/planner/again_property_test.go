package planner_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// A world of few cards that most intents can use, so that nearly every change of one touches
// others: what a plan does to one must count in it for all others as it will in the next one.

// busy is such a fleet, over some hours.
type busy struct {
	*story
	// nodes are those of flavors that tell them: how many cards own pods leave of 8.
	nodes map[string][]int64
}

var busyTenants = []string{"ada", "bob", "eve"}

func newBusy(t *rapid.T) *busy {
	s := &busy{&story{Builder: New().Consumer("rome", "turin"), t: t}, map[string][]int64{}}
	providers := rapid.IntRange(2, 4).Draw(t, "providers")
	for i := range providers {
		p := fmt.Sprintf("p%d", i)
		s.Provider(p)
		for k := range rapid.IntRange(1, 2).Draw(t, "flavors") {
			s.flavor(fmt.Sprintf("%s/f%d", p, k))
		}
	}
	for _, name := range busyTenants {
		s.Tenant(name, "rome", func(spec *v1alpha1.TenantSpec) {
			spec.Consumers = []string{"rome", "turin"}
			s.limits(spec)
		})
	}
	s.Fleet(consolidating(
		rapid.SampledFrom([]string{"off", "propose", "apply", "apply"}).Draw(t, "consolidation"),
		rapid.SampledFrom([]string{"0.05", "0.3", "0.5"}).Draw(t, "threshold"),
		time.Duration(rapid.SampledFrom([]int{1, 30}).Draw(t, "hold"))*time.Minute))
	// What ends by an edit of its intent counts for safety.maxEnds all the same, and no more in
	// the next plan.
	s.Fleet(func(f *v1alpha1.FleetSpec) { f.Safety.MaxEnds = Ptr(int32(1000)) })
	if rapid.IntRange(0, 2).Draw(t, "gangs move whole") == 0 {
		s.Fleet(func(f *v1alpha1.FleetSpec) { f.Defaults.MoveAfter = v1alpha1.Duration{Duration: time.Hour} })
	}
	if rapid.IntRange(0, 4).Draw(t, "warm pool") == 0 {
		s.Fleet(func(f *v1alpha1.FleetSpec) {
			f.WarmPools = []v1alpha1.WarmPool{{Name: "warm", Consumer: "rome", Count: 1, Resources: v1alpha1.ResourceRequest{
				GPU: &v1alpha1.GPURequest{Count: 2}, Named: Amounts("cpu=8 memory=64Gi"),
			}}}
		})
	}
	return s
}

// limits are a tenant's quota and budget, tight as a rule.
func (s *busy) limits(spec *v1alpha1.TenantSpec) {
	spec.Quota, spec.Budget = &v1alpha1.TenantQuota{Book: true}, nil
	if rapid.IntRange(0, 2).Draw(s.t, "quota") == 0 {
		spec.Quota.GPU = Ptr(rapid.Int64Range(2, 14).Draw(s.t, "quota.gpu")) // what is borrowed in a plan may be asked back in the next
	}
	if rapid.IntRange(0, 3).Draw(s.t, "budget") == 0 {
		spec.Budget = &v1alpha1.TenantBudget{
			Hourly: Money(fmt.Sprint(rapid.IntRange(3, 20).Draw(s.t, "hourly"))), AtLimit: rapid.SampledFrom([]string{"", "warn", "end"}).Draw(s.t, "atLimit"),
		}
	}
}

// flavor adds one, or makes it another: of cards, of nodes with racks, or of instances.
func (s *busy) flavor(ref string) {
	t := s.t
	card := rapid.SampledFrom([]string{"nvidia-h100", "nvidia-h100", "nvidia-a100", "nvidia-t4"}).Draw(t, "model")
	price := Costs(fmt.Sprintf("%d.%d", rapid.IntRange(0, 2).Draw(t, "price"), rapid.SampledFrom([]int{1, 5}).Draw(t, "cents")))
	in := In(rapid.SampledFrom([]string{"north", "south"}).Draw(t, "region"), "")
	delete(s.nodes, ref)
	switch rapid.IntRange(0, 4).Draw(t, "kind") {
	case 0, 1:
		s.Offer(ref, Cards(card, rapid.IntRange(1, 8).Draw(t, "cards"), "80Gi"), Capacity("cpu=96 memory=1Ti"), price, in, func(o *model.Offer) { o.Flavor.Spec.Nodes = nil })
	case 2, 3:
		s.nodes[ref] = rapid.SliceOfN(rapid.SampledFrom([]int64{0, 2, 4, 8, 8}), 1, 3).Draw(t, "nodes")
		racks := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "-"}), 3, 3).Draw(t, "racks")
		s.Offer(ref, onNodes(s.nodes[ref]...), func(o *model.Offer) {
			g := *o.Flavor.Spec.GPU
			g.Model = card
			o.Flavor.Spec.GPU = &g
			for i := range s.nodes[ref] {
				if racks[i] != "-" {
					o.Flavor.Spec.Nodes.Groups[i].Labels = map[string]string{rackKey: racks[i]}
				}
			}
		}, price, in)
	default:
		per := rapid.Int64Range(2, 7).Draw(t, "units of a card")
		s.Offer(ref, partsOnNodes(rapid.SampledFrom([]string{"mig", "mps"}).Draw(t, "sharing"), per, rapid.SliceOfN(rapid.Int64Range(per, 2*per), 1, 2).Draw(t, "free")...), price, in)
	}
}

func (s *busy) ref() string {
	return rapid.SampledFrom(busyTenants).Draw(s.t, "tenant") + fmt.Sprintf("/i%d", rapid.IntRange(0, 3).Draw(s.t, "intent"))
}

// ask makes an intent anything.
func (s *busy) ask(in *model.Intent) {
	t := s.t
	in.Spec = v1alpha1.IntentSpec{}
	Wants(rapid.SampledFrom([]int32{1, 1, 2, 2, 4, 8}).Draw(t, "gpus"), rapid.SampledFrom([][]string{nil, nil, {"H100"}, {"A100"}, {"H100", "T4"}}).Draw(t, "models")...)(in)
	if rapid.IntRange(0, 5).Draw(t, "share") == 0 {
		in.Spec.Resources.GPU = &v1alpha1.GPURequest{Share: Money("0.4")}
	}
	in.Spec.Objective = rapid.SampledFrom([]v1alpha1.Objective{"", v1alpha1.Cost, v1alpha1.Cost}).Draw(t, "objective")
	for range rapid.IntRange(0, 3).Draw(t, "more of it") {
		s.edit(in)
	}
}

// edit changes one thing of an intent.
func (s *busy) edit(in *model.Intent) {
	t, spec := s.t, &in.Spec
	switch rapid.IntRange(0, 18).Draw(t, "edit") {
	case 0, 1:
		n := rapid.Int32Range(1, 3).Draw(t, "replicas")
		spec.Replicas = v1alpha1.Replicas{Min: n, Max: n}
	case 2, 3:
		if g := spec.Resources.GPU; g != nil && g.Count > 0 {
			own := *g
			own.Count = rapid.SampledFrom([]int32{1, 2, 3, 4, 8}).Draw(t, "gpus")
			spec.Resources.GPU = &own
		}
	case 4:
		spec.Gang, spec.MinReplicas = Ptr(true), 0
	case 5:
		spec.Gang, spec.MinReplicas = Ptr(false), rapid.Int32Range(1, max(1, spec.Replicas.Min)).Draw(t, "minReplicas")
	case 6:
		spec.Placement.Spread = nil
		spec.Placement.Within = &v1alpha1.Within{
			By: rapid.SampledFrom([]string{"provider", "label", "region"}).Draw(t, "within.by"), Policy: rapid.SampledFrom([]v1alpha1.WithinPolicy{"", v1alpha1.WithinRequired, v1alpha1.WithinPreferred}).Draw(t, "policy"),
		}
		if spec.Placement.Within.By == "label" {
			spec.Placement.Within.Label = rackKey
		}
	case 7:
		spec.Placement.Within, spec.Placement.Spread = nil, nil
		spreads(rapid.SampledFrom([]string{"provider", "region"}).Draw(t, "by"), rapid.Int32Range(0, 2).Draw(t, "maxSkew"), rapid.Int32Range(0, 2).Draw(t, "minDomains"))(in)
	case 8:
		spec.Split = nil
		splits(rapid.Int32Range(2, 3).Draw(t, "maxParts"), rapid.Int32Range(0, 2).Draw(t, "minGPU"))(in)
	case 9:
		updates(rapid.Int32Range(0, 2).Draw(t, "maxUnavailable"))(in)
	case 10:
		AtMost(fmt.Sprint(rapid.IntRange(1, 9).Draw(t, "maxHourly")))(in)
	case 11:
		spec.Schedule = v1alpha1.Schedule{Duration: v1alpha1.Duration{Duration: time.Duration(rapid.IntRange(1, 5).Draw(t, "hours")) * time.Hour}}
		if rapid.IntRange(0, 2).Draw(t, "books") == 0 {
			spec.Schedule.NotBefore, spec.Schedule.Book = v1alpha1.TimeOf(s.W.Now.Add(time.Duration(rapid.IntRange(0, 4).Draw(t, "later"))*time.Hour)), true
		}
	case 12:
		spec.Schedule = v1alpha1.Schedule{Windows: []v1alpha1.Window{{From: rapid.SampledFrom([]string{"08:00", "13:00"}).Draw(t, "from"), To: "15:00", Timezone: "UTC"}}}
	case 13:
		spec.Priority = rapid.SampledFrom([]int32{0, 10, 50}).Draw(t, "priority")
		spec.Preemption = &v1alpha1.Preemption{Preempts: rapid.SampledFrom([]string{"", "lower"}).Draw(t, "preempts")}
		spec.Preemption.Grace.Duration = time.Duration(rapid.SampledFrom([]int{0, 60, 3600}).Draw(t, "grace")) * time.Second
	case 14:
		spec.Queue.Policy = rapid.SampledFrom([]string{"wait", "fail"}).Draw(t, "queue")
	case 15:
		other := []string{fmt.Sprintf("i%d", rapid.IntRange(0, 3).Draw(t, "other"))}
		if rapid.Bool().Draw(t, "apart") {
			spec.Placement.Apart, spec.Placement.Together = other, nil
		} else {
			spec.Placement.Apart, spec.Placement.Together = nil, other
		}
	case 16:
		spec.Alternatives = []v1alpha1.ResourceRequest{{GPU: &v1alpha1.GPURequest{Count: rapid.Int32Range(1, 4).Draw(t, "alternative")}}}
	case 17:
		spec.Placement.Providers.Deny = []string{fmt.Sprintf("p%d", rapid.IntRange(0, 3).Draw(t, "deny"))}
	default:
		perPod(1, "")(in)
	}
}

// happens changes the world in one way.
func (s *busy) happens() string {
	t := s.t
	offer := s.W.Offers[rapid.IntRange(0, len(s.W.Offers)-1).Draw(t, "offer")].Flavor.Ref()
	switch rapid.SampledFrom([]string{"ask", "ask", "batch", "edit", "edit", "edit", "remove", "deliver", "deliver", "drain", "price", "tenant", "own pods", "flavor", "heard", "denied"}).Draw(t, "event") {
	case "ask":
		ref := s.ref()
		s.Intent(ref, s.ask)
		return "ask " + ref
	case "batch":
		for range rapid.IntRange(2, 4).Draw(t, "intents") {
			s.Intent(s.ref(), s.ask)
		}
		return "batch"
	case "edit":
		if len(s.W.Intents) == 0 {
			return "nothing"
		}
		in := s.W.Intents[rapid.IntRange(0, len(s.W.Intents)-1).Draw(t, "of")]
		s.Intent(in.Metadata.Namespace+"/"+in.Metadata.Name, s.edit)
		return "edit " + in.Metadata.Name
	case "remove":
		ref := s.ref()
		s.Remove(ref)
		return "remove " + ref
	case "deliver":
		s.Deliver()
		return "deliver"
	case "drain":
		leave := v1alpha1.Time{}
		if rapid.Bool().Draw(t, "drained") {
			leave = v1alpha1.TimeOf(s.W.Now.Add(time.Hour))
		}
		s.Offer(offer, Spec(func(f *v1alpha1.FlavorSpec) { f.Drain = leave }))
		return "drain " + offer
	case "price":
		s.Offer(offer, Costs(fmt.Sprintf("%d.%d", rapid.IntRange(0, 2).Draw(t, "price"), rapid.SampledFrom([]int{1, 5}).Draw(t, "cents"))))
		return "price " + offer
	case "tenant":
		name := rapid.SampledFrom(busyTenants).Draw(t, "tenant")
		s.Tenant(name, "rome", s.limits)
		return "tenant " + name
	case "own pods":
		if n := s.nodes[offer]; len(n) > 0 {
			i := rapid.IntRange(0, len(n)-1).Draw(t, "node")
			left := rapid.SampledFrom([]int64{0, 2, 4, 8}).Draw(t, "free")
			s.Offer(offer, func(o *model.Offer) {
				f := &o.Flavor.Spec
				groups := slices.Clone(f.Nodes.Groups)
				groups[i].Free = groups[i].Free.Clone()
				groups[i].Free[v1alpha1.GPU] = v1alpha1.AmountOf(left)
				f.Used = f.Used.Clone()
				f.Used[v1alpha1.GPU] = f.Used[v1alpha1.GPU].Sub(v1alpha1.AmountOf(left - n[i]))
				f.Nodes = &v1alpha1.FlavorNodes{Groups: groups}
			})
			n = slices.Clone(n)
			n[i], s.nodes[offer] = left, n
			s.nodes[offer][i] = left
		}
		return "own pods " + offer
	case "flavor":
		s.flavor(offer)
		return "flavor " + offer
	case "heard":
		provider, _, _ := strings.Cut(offer, "/")
		state := rapid.SampledFrom([]model.Freshness{model.Fresh, model.Fresh, model.Silent, model.Lost}).Draw(t, "state")
		for _, o := range s.W.Offers {
			if o.Flavor.Metadata.Namespace == provider {
				s.Offer(o.Flavor.Ref(), Heard(state))
			}
		}
		return "heard " + provider
	default:
		provider, _, _ := strings.Cut(offer, "/")
		s.denies(provider)
		return "denied by " + provider
	}
}

// After a plan of a busy fleet was committed nothing is left to do at the same instant: whatever
// happened before it, and whether clusters have meanwhile done what it asked of them or not.
func TestAgain_InAnyStory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newBusy(t)
		for range rapid.IntRange(1, 8).Draw(t, "length") {
			var said []string
			for range rapid.IntRange(1, 3).Draw(t, "events") {
				said = append(said, s.happens())
			}
			s.Tick(time.Duration(rapid.SampledFrom([]int{0, 1, 60, 600, 3600}).Draw(t, "seconds")) * time.Second)
			p := s.Round()
			s.nothingLeft(said, p)
			if rapid.Bool().Draw(t, "delivered at once") {
				s.Deliver()
				p = s.Round()
				s.nothingLeft(append(said, "deliver at once"), p)
			}
		}
	})
}

// nothingLeft fails where planning again changes something.
func (s *busy) nothingLeft(said []string, p *planner.Plan) {
	s.t.Helper()
	if again := s.planAgain(p); again.Changes() {
		s.t.Fatalf("after %q planning again changes:\n%s\n%s\n%s", said, describe(again), describe(p), s.books())
	}
}

// books is what is sold, of what, and for whom.
func (s *busy) books() string {
	var b strings.Builder
	fmt.Fprintf(&b, "now %s\n", s.W.Now)
	for _, o := range s.W.Offers {
		f := &o.Flavor.Spec
		fmt.Fprintf(&b, "%s %v of %s, drain %v, heard %v, price %v\n", o.Flavor.Ref(), f.Capacity.Canonical(), f.GPU.Model, f.Drain, o.State, o.Price.PerHour)
		for _, n := range ledger.NodesOf(o.Flavor) {
			fmt.Fprintf(&b, "    %s %v %v\n", n.Name, n.Sellable.Canonical(), n.Labels)
		}
	}
	for _, in := range s.W.Intents {
		fmt.Fprintf(&b, "%s/%s %+v\n", in.Metadata.Namespace, in.Metadata.Name, in.Spec)
	}
	for c := range s.W.Ledger.Contracts() {
		fmt.Fprintf(&b, "%s %v on %s/%s %v: %s\n", c.Metadata.Name, c.Status.Phase, c.Spec.Provider, c.Spec.Flavor, c.Spec.Nodes, c.Status.Why())
	}
	return b.String()
}
