package planner_test

import (
	"errors"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

type predicate func(*v1alpha1.ResourceIntent, *v1alpha1.Flavor, *v1alpha1.Cluster) (bool, error)

func (p predicate) Eval(in *v1alpha1.ResourceIntent, f *v1alpha1.Flavor, c *v1alpha1.Cluster) (bool, error) {
	return p(in, f, c)
}

func flavorGPU(change func(*v1alpha1.FlavorGPU)) func(*model.Offer) {
	return Spec(func(s *v1alpha1.FlavorSpec) { change(s.GPU) })
}

// TestRequirements changes one thing about an offer or an intent that fit, and
// names the requirement that then fails.
func TestRequirements(t *testing.T) {
	halfOf40 := GPU(func(g *v1alpha1.GPURequest) {
		g.Count, g.Share = 0, Money("0.5")
		g.Memory, _ = v1alpha1.ParseMemoryRange("40GB")
	})
	quarters := func(sharing string) func(*model.Offer) {
		return flavorGPU(func(g *v1alpha1.FlavorGPU) {
			g.Sharing, g.UnitsPerGPU = sharing, 4
			g.Memory.Amount = v1alpha1.AmountOf(20 << 30)
		})
	}
	type change struct {
		offer  func(*model.Offer)
		intent func(*model.Intent)
		world  func(*Builder)
	}
	place := func(f func(*v1alpha1.Placement)) func(*model.Intent) {
		return With(func(s *v1alpha1.IntentSpec) { f(&s.Placement) })
	}
	named := func(name, amount string) func(*model.Intent) {
		return With(func(s *v1alpha1.IntentSpec) {
			s.Resources.Named = s.Resources.Named.Add(Amounts(name + "=" + amount))
		})
	}
	budget := func(f func(*v1alpha1.IntentBudget)) func(*model.Intent) {
		return With(func(s *v1alpha1.IntentSpec) {
			b := v1alpha1.IntentBudget{}
			if s.Budget != nil {
				b = *s.Budget
			}
			f(&b)
			s.Budget = &b
		})
	}
	for name, c := range map[string]struct {
		change
		want string // "" fits
	}{
		"as it is": {},
		"self": {change{world: func(b *Builder) {
			b.Consumer("paris").Tenant("vision", "rome", func(t *v1alpha1.TenantSpec) { t.Consumers = []string{"paris"} })
		}}, "self"},
		"unknown cluster":      {change{world: func(b *Builder) { delete(b.W.Clusters, "paris") }}, "role"},
		"not a provider":       {change{world: func(b *Builder) { b.W.Clusters["paris"].Spec.Roles = nil }}, "role"},
		"silent":               {change{offer: Heard(model.Silent)}, "provider.silent"},
		"lost":                 {change{offer: Heard(model.Lost)}, "provider.lost"},
		"withdrawn":            {change{offer: Heard(model.Withdrawn)}, "withdrawn"},
		"flavor cordoned":      {change{offer: Spec(func(s *v1alpha1.FlavorSpec) { s.Cordon = true })}, "cordon"},
		"cluster cordoned":     {change{world: func(b *Builder) { b.W.Clusters["paris"].Spec.Cordon = true }}, "cordon"},
		"flavor drained":       {change{offer: Spec(func(s *v1alpha1.FlavorSpec) { s.Drain = Start })}, "drain"},
		"cluster drained":      {change{world: func(b *Builder) { b.W.Clusters["paris"].Spec.Drain = Start }}, "drain"},
		"another type":         {change{offer: Spec(func(s *v1alpha1.FlavorSpec) { s.Type = "VM" })}, "flavorType"},
		"tenant denies":        {change{world: func(b *Builder) { b.W.Tenants["vision"].Spec.Providers.Deny = []string{"paris"} }}, "tenant.providers"},
		"tenant allows others": {change{world: func(b *Builder) { b.W.Tenants["vision"].Spec.Providers.Allow = []string{"oslo"} }}, "tenant.providers"},
		"denied":               {change{intent: place(func(p *v1alpha1.Placement) { p.Providers.Deny = []string{"paris"} })}, "placement.providers"},
		"denied beats allowed": {change{intent: place(func(p *v1alpha1.Placement) {
			p.Providers = v1alpha1.ClusterLists{Allow: []string{"paris"}, Deny: []string{"paris"}}
		})}, "placement.providers"},
		"allowed":                  {change{intent: place(func(p *v1alpha1.Placement) { p.Providers.Allow = []string{"paris"} })}, ""},
		"no cards":                 {change{offer: Spec(func(s *v1alpha1.FlavorSpec) { s.GPU = nil })}, "gpu"},
		"no cards left in it":      {change{offer: Capacity("gpu=0")}, "gpu"},
		"vendor":                   {change{intent: GPU(func(g *v1alpha1.GPURequest) { g.Vendor = "amd" })}, "gpu.vendor"},
		"vendor in other case":     {change{intent: GPU(func(g *v1alpha1.GPURequest) { g.Vendor = "NVIDIA" })}, ""},
		"model":                    {change{intent: GPU(func(g *v1alpha1.GPURequest) { g.Models = []string{"A100"} })}, "gpu.model"},
		"any model":                {change{intent: GPU(func(g *v1alpha1.GPURequest) { g.Models = []string{"A100", "any"} })}, ""},
		"one of the models":        {change{intent: GPU(func(g *v1alpha1.GPURequest) { g.Models = []string{"A100", "NVIDIA-H100"} })}, ""},
		"a model's other name":     {change{intent: GPU(func(g *v1alpha1.GPURequest) { g.Models = []string{"NVIDIA-H100-80GB-HBM3"} })}, ""},
		"a size in its name":       {change{intent: GPU(func(g *v1alpha1.GPURequest) { g.Models = []string{"A100-40GB"} }), offer: Cards("nvidia-a100", 8, "80Gi")}, "gpu.model"},
		"memory":                   {change{intent: GPU(func(g *v1alpha1.GPURequest) { g.Memory, _ = v1alpha1.ParseMemoryRange("94GB") })}, "gpu.memory"},
		"too much memory":          {change{intent: GPU(func(g *v1alpha1.GPURequest) { g.Memory, _ = v1alpha1.ParseMemoryRange("24GB..48GB") })}, "gpu.memory"},
		"memory of several parts":  {change{intent: halfOf40, offer: quarters("time-slicing")}, ""},
		"memory of several MIGs":   {change{intent: halfOf40, offer: quarters("mig")}, "gpu.memory"},
		"memory, GB is Gi":         {change{intent: GPU(func(g *v1alpha1.GPURequest) { g.Memory, _ = v1alpha1.ParseMemoryRange("80GB") })}, ""},
		"tier":                     {change{intent: GPU(func(g *v1alpha1.GPURequest) { g.Tier = "premium" })}, "gpu.tier"},
		"architecture of cards":    {change{intent: GPU(func(g *v1alpha1.GPURequest) { g.Architecture = "ampere" }), offer: flavorGPU(func(g *v1alpha1.FlavorGPU) { g.Architecture = "hopper" })}, "gpu.architecture"},
		"interconnect":             {change{intent: GPU(func(g *v1alpha1.GPURequest) { g.Interconnect = "nvlink" })}, "gpu.interconnect"},
		"capability":               {change{intent: GPU(func(g *v1alpha1.GPURequest) { g.ComputeCapability = "9.0" }), offer: flavorGPU(func(g *v1alpha1.FlavorGPU) { g.ComputeCapability = "8.9" })}, "gpu.computeCapability"},
		"capability of two digits": {change{intent: GPU(func(g *v1alpha1.GPURequest) { g.ComputeCapability = "9.0" }), offer: flavorGPU(func(g *v1alpha1.FlavorGPU) { g.ComputeCapability = "12.0" })}, ""},
		"profile":                  {change{intent: GPU(func(g *v1alpha1.GPURequest) { g.Profile = "1g.10gb" })}, "gpu.profile"},
		"shared cards":             {change{offer: flavorGPU(func(g *v1alpha1.FlavorGPU) { g.Sharing = "time-slicing"; g.UnitsPerGPU = 4 })}, "gpu.sharing"},
		"wanted shared":            {change{intent: GPU(func(g *v1alpha1.GPURequest) { g.Sharing = "mps" })}, "gpu.sharing"},
		"share of shared cards":    {change{intent: GPU(func(g *v1alpha1.GPURequest) { g.Count, g.Share = 0, Money("0.5") }), offer: flavorGPU(func(g *v1alpha1.FlavorGPU) { g.Sharing = "time-slicing"; g.UnitsPerGPU = 4 })}, ""},
		"extended resource":        {change{intent: named("rdma/hca", "2")}, "resource.rdma/hca"},
		"extended, offered":        {change{intent: named("rdma/hca", "2"), offer: Capacity("rdma/hca=2")}, ""},
		"extended, too few":        {change{intent: named("rdma/hca", "3"), offer: Capacity("rdma/hca=2")}, "capacity.rdma/hca"},
		"region":                   {change{intent: place(func(p *v1alpha1.Placement) { p.Regions = []string{"eu-west-1"} })}, "placement.regions"},
		"right region":             {change{intent: place(func(p *v1alpha1.Placement) { p.Regions = []string{"eu-west-1"} }), offer: In("eu-west-1", "a")}, ""},
		"zone":                     {change{intent: place(func(p *v1alpha1.Placement) { p.Zones = []string{"b"} }), offer: In("eu-west-1", "a")}, "placement.zones"},
		"architecture":             {change{intent: place(func(p *v1alpha1.Placement) { p.Architectures = []string{"arm64"} })}, "placement.architectures"},
		"label":                    {change{intent: place(func(p *v1alpha1.Placement) { p.Labels = map[string]string{"compliance": "gdpr"} })}, "placement.labels"},
		"label of the cluster":     {change{intent: place(func(p *v1alpha1.Placement) { p.Labels = map[string]string{"compliance": "gdpr"} }), world: func(b *Builder) { b.W.Clusters["paris"].Spec.Labels = map[string]string{"compliance": "gdpr"} }}, ""},
		"unknown latency":          {change{intent: place(func(p *v1alpha1.Placement) { p.MaxLatency.Duration = 20 * time.Millisecond })}, "placement.maxLatency"},
		"latency":                  {change{intent: place(func(p *v1alpha1.Placement) { p.MaxLatency.Duration = 20 * time.Millisecond }), offer: Spec(func(s *v1alpha1.FlavorSpec) { s.Properties.LatencyMs = Ptr(int64(21)) })}, "placement.maxLatency"},
		"the fleet's latency is what counts": {change{intent: place(func(p *v1alpha1.Placement) { p.MaxLatency.Duration = 20 * time.Millisecond }),
			offer: Spec(func(s *v1alpha1.FlavorSpec) { s.Properties.LatencyMs = Ptr(int64(10)) }),
			world: func(b *Builder) { b.W.Fleet.Latency = []v1alpha1.LatencyEntry{{From: "rome", To: "paris", Ms: 21}} }}, "placement.maxLatency"},
		"the fleet's latency goes first": {change{intent: place(func(p *v1alpha1.Placement) { p.MaxLatency.Duration = 20 * time.Millisecond }),
			offer: Spec(func(s *v1alpha1.FlavorSpec) { s.Properties.LatencyMs = Ptr(int64(21)) }),
			world: func(b *Builder) { b.W.Fleet.Latency = []v1alpha1.LatencyEntry{{From: "paris", To: "rome", Ms: 12}} }}, ""},
		"enforcement, as Liqo does": {change{offer: func(o *model.Offer) {
			o.Flavor.Spec.Class = "fleetbroker"
			o.Flavor.Spec.Labels = map[string]string{v1alpha1.LabelEnforcement: "Soft"}
		}, intent: With(func(s *v1alpha1.IntentSpec) { s.Enforcement = v1alpha1.EnforceHard })}, "enforcement"},
		"enforcement": {change{intent: With(func(s *v1alpha1.IntentSpec) { s.Enforcement = v1alpha1.EnforceHard })}, "enforcement"},
		"where": {change{intent: func(in *model.Intent) {
			in.Where = predicate(func(_ *v1alpha1.ResourceIntent, f *v1alpha1.Flavor, _ *v1alpha1.Cluster) (bool, error) {
				return f.Spec.Price == nil, nil
			})
		}}, "placement.where"},
		"where fails": {change{intent: func(in *model.Intent) {
			in.Where = predicate(func(*v1alpha1.ResourceIntent, *v1alpha1.Flavor, *v1alpha1.Cluster) (bool, error) {
				return true, errors.New("no such key")
			})
		}}, "placement.where"},
		"policy": {change{world: func(b *Builder) {
			b.W.Policies = []model.Policy{{Policy: v1alpha1.Policy{Name: "eu-only", Match: v1alpha1.PolicyMatch{Tenants: []string{"vision"}}}, Predicate: predicate(func(*v1alpha1.ResourceIntent, *v1alpha1.Flavor, *v1alpha1.Cluster) (bool, error) { return false, nil })}}
		}}, "policy.eu-only"},
		"policy for others": {change{world: func(b *Builder) {
			b.W.Policies = []model.Policy{{Policy: v1alpha1.Policy{Name: "eu-only", Match: v1alpha1.PolicyMatch{Tenants: []string{"nlp"}}}, Predicate: predicate(func(*v1alpha1.ResourceIntent, *v1alpha1.Flavor, *v1alpha1.Cluster) (bool, error) { return false, nil })}}
		}}, ""},
		"next legal size": {change{offer: Spec(func(s *v1alpha1.FlavorSpec) {
			s.Partition = &v1alpha1.Partition{Step: Amounts("gpu=16"), Min: Amounts("gpu=1")}
		})}, "partition"},
		"too few cards":            {change{intent: Wants(9, "H100")}, "capacity.gpu"},
		"too few, some used":       {change{intent: Wants(5, "H100"), offer: Spec(func(s *v1alpha1.FlavorSpec) { s.Used = Amounts("gpu=4") })}, "capacity.gpu"},
		"too few, some still held": {change{intent: Wants(5, "H100"), offer: Spec(func(s *v1alpha1.FlavorSpec) { s.Held = map[string]v1alpha1.Resources{"long-gone": Amounts("gpu=4")} })}, "capacity.gpu"},
		"too few cores":            {change{intent: named("cpu", "256")}, "capacity.cpu"},
		"cores with overcommit":    {change{intent: named("cpu", "256"), offer: Spec(func(s *v1alpha1.FlavorSpec) { s.Overcommit = v1alpha1.Overcommit{"cpu": v1alpha1.MustDecimal("1.5")} })}, ""},
		"too little memory":        {change{intent: named("memory", "2Ti")}, "capacity.memory"},
		"too few pods":             {change{offer: Capacity("pods=19")}, "capacity.pods"},
		"too little storage":       {change{offer: Capacity("ephemeral-storage=49Gi")}, "capacity.ephemeral-storage"},
		"unpriced with a budget":   {change{offer: func(o *model.Offer) { o.Price = nil }, intent: AtMost("100")}, "price"},
		"unpriced without":         {change{offer: func(o *model.Offer) { o.Price = nil }}, ""},
		"no rate":                  {change{offer: func(o *model.Offer) { Costs("2.85")(o); o.Price.Currency = "CHF" }}, "price"},
		"spot is not sold":         {change{intent: With(func(s *v1alpha1.IntentSpec) { s.Purchase = []v1alpha1.PriceClass{v1alpha1.Spot} })}, "purchase"},
		"dearer than its budget":   {change{intent: AtMost("11.75")}, "budget.maxHourly"},
		"just its budget":          {change{intent: AtMost("11.752")}, ""},
		"in another currency":      {change{intent: budget(func(b *v1alpha1.IntentBudget) { b.MaxHourly, b.Currency = Money("12.77"), "USD" })}, "budget.maxHourly"},
		"dearer by GPU":            {change{intent: budget(func(b *v1alpha1.IntentBudget) { b.MaxHourlyPerGPU = Money("2.93") })}, "budget.maxHourlyPerGPU"},
		"just by GPU":              {change{intent: budget(func(b *v1alpha1.IntentBudget) { b.MaxHourlyPerGPU = Money("2.938") })}, ""},
		"dearer in all": {change{intent: func(in *model.Intent) {
			For(10 * time.Hour)(in)
			budget(func(b *v1alpha1.IntentBudget) { b.MaxTotal = Money("117.51") })(in)
		}}, "budget.maxTotal"},
	} {
		t.Run(name, func(t *testing.T) {
			b := paris().Intent("vision/train", Wants(4, "H100"))
			if c.offer != nil {
				b.Offer("paris/h100", c.offer)
			}
			if c.intent != nil {
				b.Intent("vision/train", c.intent)
			}
			if c.world != nil {
				c.world(b)
			}
			p := b.Plan()
			d := Of(p, "vision/train")
			if c.want == "" {
				if d.Action != planner.Place {
					t.Fatalf("not placed:\n%s", describe(p))
				}
				return
			}
			if d.Action != planner.Queued || len(d.Rejected) != 1 || d.Rejected[c.want] != 1 {
				t.Fatalf("want %s, got %v:\n%s", c.want, d.Rejected, describe(p))
			}
			e, err := planner.Explain(b.W, "vision", "train")
			if err != nil {
				t.Fatal(err)
			}
			if len(e.Offers) != 1 || e.Offers[0].Fits || e.Offers[0].Requirement != c.want || e.Offers[0].Detail == "" {
				t.Fatalf("explained as %+v", e.Offers)
			}
		})
	}
}

// shown is a predicate that shows its source, as compiled ones do.
type shown struct {
	predicate
	source string
}

func (s shown) Source() string { return s.source }

// Intents that ask for the same share their candidates, unless a condition
// looks at the intent itself.
func TestConditionsOnTheIntent(t *testing.T) {
	calls := 0
	byName := predicate(func(in *v1alpha1.ResourceIntent, _ *v1alpha1.Flavor, _ *v1alpha1.Cluster) (bool, error) {
		calls++
		return in.Metadata.Name == "b", nil
	})
	world := func(p model.Predicate) *Builder {
		b := paris().Intent("vision/a", Wants(1)).Intent("vision/b", Wants(1))
		b.W.Policies = []model.Policy{{Policy: v1alpha1.Policy{Name: "p"}, Predicate: p}}
		return b
	}
	if got := served(world(byName)); len(got) != 1 || got[0] != "b" || calls < 2 {
		t.Fatalf("served %v after %d calls", got, calls)
	}
	calls = 0
	flavors := predicate(func(*v1alpha1.ResourceIntent, *v1alpha1.Flavor, *v1alpha1.Cluster) (bool, error) {
		calls++
		return true, nil
	})
	if got := served(world(shown{flavors, "flavor.gpu.model != ''"})); len(got) != 2 || calls != 1 {
		t.Fatalf("served %v after %d calls", got, calls)
	}
}
