package planner_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// variety is a world in which the cheapest offer is the plainest: whoever asks
// for more gets another.
func variety() *Builder {
	gpu := func(change func(*v1alpha1.FlavorGPU)) func(*model.Offer) {
		return Spec(func(s *v1alpha1.FlavorSpec) { change(s.GPU) })
	}
	return New().Consumer("rome").Provider("paris", "lyon", "oslo", "bonn").Tenant("vision", "rome").
		Offer("paris/plain", Cards("nvidia-t4", 8, "16Gi"), Costs("1"), In("eu-1", "a"), Capacity("cpu=32 memory=128Gi pods=40 ephemeral-storage=100Gi"), gpu(func(g *v1alpha1.FlavorGPU) {
			g.Architecture, g.Tier, g.Interconnect, g.ComputeCapability = "turing", "budget", "pcie", "7.5"
		})).
		Offer("lyon/fine", Cards("amd-mi300x", 8, "192Gi"), Costs("2"), In("eu-1", "b"), Spec(func(s *v1alpha1.FlavorSpec) { s.Architecture = "arm64" }), gpu(func(g *v1alpha1.FlavorGPU) {
			g.Architecture, g.Tier, g.Interconnect, g.ComputeCapability = "cdna3", "premium", "infinity", "9.4"
		})).
		Offer("oslo/slices", Cards("nvidia-a100", 14, "10Gi"), Costs("3"), In("eu-2", "c"), gpu(func(g *v1alpha1.FlavorGPU) {
			g.Sharing, g.Profile, g.UnitsPerGPU = "mig", "1g.10gb", 7
		})).
		Offer("bonn/shared", Cards("nvidia-l4", 16, "24Gi"), Costs("4"), In("eu-2", "d"), gpu(func(g *v1alpha1.FlavorGPU) {
			g.Sharing, g.UnitsPerGPU = "time-slicing", 4
		}))
}

// placedOn is the offer that vision/train is placed on and how many units of it,
// or what became of it.
func placedOn(t *testing.T, b *Builder) string {
	t.Helper()
	d := Of(b.Round(), "vision/train")
	if d.Action != planner.Place {
		return string(d.Action) + ": " + d.Reason
	}
	c := b.Contracts("vision/train")[0]
	return fmt.Sprintf("%s/%s %d", c.Spec.Provider, c.Spec.Flavor, c.Spec.GPUs.Count)
}

func defaults(cpu, memory, pods, storage v1alpha1.Quantity) v1alpha1.FleetDefaults {
	return v1alpha1.FleetDefaults{CPU: &cpu, Memory: &memory, Pods: &pods, EphemeralStorage: &storage}
}

// Each field of a request decides, in resources and in an alternative alike:
// without it the plain offer is taken.
func TestEachFieldOfARequest(t *testing.T) {
	gpu := func(change func(*v1alpha1.GPURequest)) func(*v1alpha1.ResourceRequest) {
		return func(q *v1alpha1.ResourceRequest) { change(q.GPU) }
	}
	named := func(s string) func(*v1alpha1.ResourceRequest) {
		return func(q *v1alpha1.ResourceRequest) { q.Named = Amounts(s) }
	}
	for name, c := range map[string]struct {
		change func(*v1alpha1.ResourceRequest)
		want   string
	}{
		"none":              {func(*v1alpha1.ResourceRequest) {}, "paris/plain 1"},
		"count":             {gpu(func(g *v1alpha1.GPURequest) { g.Count = 2 }), "paris/plain 2"},
		"models":            {gpu(func(g *v1alpha1.GPURequest) { g.Models = []string{"MI300X"} }), "lyon/fine 1"},
		"memory":            {gpu(func(g *v1alpha1.GPURequest) { g.Memory, _ = v1alpha1.ParseMemoryRange("80Gi") }), "lyon/fine 1"},
		"vendor":            {gpu(func(g *v1alpha1.GPURequest) { g.Vendor = "amd" }), "lyon/fine 1"},
		"architecture":      {gpu(func(g *v1alpha1.GPURequest) { g.Architecture = "CDNA3" }), "lyon/fine 1"},
		"tier":              {gpu(func(g *v1alpha1.GPURequest) { g.Tier = "premium" }), "lyon/fine 1"},
		"interconnect":      {gpu(func(g *v1alpha1.GPURequest) { g.Interconnect = "infinity" }), "lyon/fine 1"},
		"computeCapability": {gpu(func(g *v1alpha1.GPURequest) { g.ComputeCapability = "8.0" }), "lyon/fine 1"},
		"profile":           {gpu(func(g *v1alpha1.GPURequest) { g.Profile = "1g.10gb" }), "oslo/slices 1"},
		"sharing":           {gpu(func(g *v1alpha1.GPURequest) { g.Sharing = "time-slicing" }), "bonn/shared 1"},
		"share":             {gpu(func(g *v1alpha1.GPURequest) { g.Share, g.Models = Money("0.3"), []string{"L4"} }), "bonn/shared 2"},
		"cpu":               {named("cpu=33"), "lyon/fine 1"},
		"memory of nodes":   {named("memory=129Gi"), "lyon/fine 1"},
		"pods":              {named("pods=41"), "lyon/fine 1"},
		"ephemeral-storage": {named("ephemeral-storage=101Gi"), "lyon/fine 1"},
	} {
		for _, alternative := range []bool{false, true} {
			q := v1alpha1.ResourceRequest{Named: v1alpha1.Resources{}, GPU: &v1alpha1.GPURequest{}}
			c.change(&q)
			b := variety().Fleet(func(f *v1alpha1.FleetSpec) {
				f.Defaults = defaults("1", "1Gi", "1", "1Gi")
			}).Intent("vision/train", cheap, With(func(s *v1alpha1.IntentSpec) {
				if s.Resources = q; alternative {
					s.Resources = v1alpha1.ResourceRequest{Named: v1alpha1.Resources{}, GPU: &v1alpha1.GPURequest{Models: []string{"B200"}}}
					s.Alternatives = []v1alpha1.ResourceRequest{q}
				}
			}))
			if got := placedOn(t, b); got != c.want {
				t.Errorf("%s, alternative %v: %s, want %s", name, alternative, got, c.want)
			}
		}
	}
}

// What is wanted of the place and of a card's price, positively: an offer that
// has it is taken though it is more expensive.
func TestEachFieldOfAPlacement(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*v1alpha1.IntentSpec)
		want   string
	}{
		"zones":         {func(s *v1alpha1.IntentSpec) { s.Placement.Zones = []string{"b"} }, "lyon/fine 1"},
		"regions":       {func(s *v1alpha1.IntentSpec) { s.Placement.Regions = []string{"eu-2"}; s.Resources.GPU.Sharing = "mig" }, "oslo/slices 1"},
		"architectures": {func(s *v1alpha1.IntentSpec) { s.Placement.Architectures = []string{"arm64"} }, "lyon/fine 1"},
		"deny":          {func(s *v1alpha1.IntentSpec) { s.Placement.Providers.Deny = []string{"paris"} }, "lyon/fine 1"},
		"allow":         {func(s *v1alpha1.IntentSpec) { s.Placement.Providers.Allow = []string{"lyon"} }, "lyon/fine 1"},
	} {
		if got := placedOn(t, variety().Intent("vision/train", Wants(1), cheap, With(c.change))); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// Replicas that are spread by zone: nothing else keeps the second from the
// cheapest offer.
func TestSpreadByZone(t *testing.T) {
	b := variety().Intent("vision/train", Wants(1), cheap, Times(2), With(func(s *v1alpha1.IntentSpec) {
		s.Placement.Spread = v1alpha1.SpreadList{{By: "zone"}}
	}))
	b.Round()
	var zones []string
	for _, c := range b.Contracts("vision/train") {
		zones = append(zones, c.Spec.Provider)
	}
	if got := strings.Join(zones, " "); got != "paris lyon" && got != "lyon paris" {
		t.Fatalf("%s, want zones a and b", got)
	}
}

// Each resource that the provider's own pods use is not sold.
func TestEachResourceThatIsUsed(t *testing.T) {
	for _, name := range []string{"cpu", "memory", "pods", "ephemeral-storage", "gpu"} {
		b := New().Consumer("rome").Provider("paris").Tenant("vision", "rome").
			Offer("paris/h100", Cards("nvidia-h100", 1, "80Gi"), Capacity("cpu=8 memory=64Gi pods=20 ephemeral-storage=50Gi")).
			Intent("vision/train", Wants(1))
		if d := Of(b.Plan(), "vision/train"); d.Action != planner.Place {
			t.Fatalf("%s: %s", d.Action, d.Reason)
		}
		b.Offer("paris/h100", Spec(func(s *v1alpha1.FlavorSpec) { s.Used = Amounts(name + "=1") }))
		if d := Of(b.Plan(), "vision/train"); d.Action != planner.Queued || d.Rejected["capacity."+name] != 1 {
			t.Errorf("%s used: %s %v", name, d.Action, d.Rejected)
		}
	}
}

// Legal sizes: the minimum, then steps, of each resource.
func TestEachResourceOfAPartition(t *testing.T) {
	for name, want := range map[string][2]string{ // what Wants(3) becomes with a minimum, and with steps
		"cpu=9":                  {"9", "9"},
		"cpu=5":                  {"8", "10"},
		"memory=100Gi":           {"100Gi", "100Gi"},
		"memory=48Gi":            {"64Gi", "96Gi"},
		"pods=30":                {"30", "30"},
		"pods=15":                {"20", "30"},
		"ephemeral-storage=60Gi": {"60Gi", "60Gi"},
		"ephemeral-storage=40Gi": {"50Gi", "80Gi"},
		"gpu=4":                  {"4", "4"},
		"gpu=2":                  {"3", "4"},
	} {
		key, _, _ := strings.Cut(name, "=")
		for i, p := range []v1alpha1.Partition{{Min: Amounts(name)}, {Step: Amounts(name)}} {
			b := paris().Offer("paris/h100", Spec(func(s *v1alpha1.FlavorSpec) { s.Partition = &p })).Intent("vision/train", Wants(3))
			b.Round()
			list := b.Contracts("vision/train")
			if len(list) != 1 {
				t.Fatalf("%s: %d contracts", name, len(list))
			}
			in := key
			if key == "gpu" {
				in = "nvidia.com/gpu"
			}
			if got := list[0].Spec.Resources[in].Canonical(key); got != want[i] {
				t.Errorf("%s of %v: got %s, want %s", key, p, got, want[i])
			}
		}
	}
}

// Each unit price counts, in each class and in a window of the week. An intent
// of Wants(2) has 2 GPUs, 8 cores, 64 GiB and 50 GiB of storage.
func TestEachUnitPrice(t *testing.T) {
	friday := v1alpha1.Window{Days: []string{"Fri"}, From: "10:00", To: "14:00", Timezone: "UTC"}
	changed := func(change func(*v1alpha1.Window)) v1alpha1.Window { w := friday; change(&w); return w }
	unit := func(name, price string) v1alpha1.UnitPrices {
		return v1alpha1.UnitPrices{name: v1alpha1.MustDecimal(price)}
	}
	window := func(w v1alpha1.Window, name, price string) func(*v1alpha1.Price) {
		return func(p *v1alpha1.Price) {
			p.Windows = []v1alpha1.PriceWindow{{Window: w, PerHour: unit(name, price)}}
		}
	}
	reserved := func(name string) func(*v1alpha1.Price) {
		return func(p *v1alpha1.Price) { p.Reserved = &v1alpha1.ReservedPrice{UnitPrices: unit(name, "0.5")} }
	}
	spot := func(name string) func(*v1alpha1.Price) {
		return func(p *v1alpha1.Price) { p.Spot = unit(name, "0.5") }
	}
	for name, c := range map[string]struct {
		class  v1alpha1.PriceClass
		change func(*v1alpha1.Price)
		want   string // on-demand, everything at 1: 2 + 8 + 64 + 50 = 124
	}{
		"all":                   {v1alpha1.OnDemand, func(*v1alpha1.Price) {}, "124"},
		"gpu":                   {v1alpha1.OnDemand, func(p *v1alpha1.Price) { p.PerHour["gpu"] = v1alpha1.MustDecimal("0.5") }, "123"},
		"cpu":                   {v1alpha1.OnDemand, func(p *v1alpha1.Price) { p.PerHour["cpu"] = v1alpha1.MustDecimal("0.5") }, "120"},
		"memoryGi":              {v1alpha1.OnDemand, func(p *v1alpha1.Price) { p.PerHour["memoryGi"] = v1alpha1.MustDecimal("0.5") }, "92"},
		"storageGi":             {v1alpha1.OnDemand, func(p *v1alpha1.Price) { p.PerHour["storageGi"] = v1alpha1.MustDecimal("0.5") }, "99"},
		"spot gpu":              {v1alpha1.Spot, spot("gpu"), "123"},
		"spot cpu":              {v1alpha1.Spot, spot("cpu"), "120"},
		"spot memoryGi":         {v1alpha1.Spot, spot("memoryGi"), "92"},
		"spot storageGi":        {v1alpha1.Spot, spot("storageGi"), "99"},
		"reserved gpu":          {v1alpha1.Reserved, reserved("gpu"), "123"},
		"reserved cpu":          {v1alpha1.Reserved, reserved("cpu"), "120"},
		"reserved memoryGi":     {v1alpha1.Reserved, reserved("memoryGi"), "92"},
		"reserved storageGi":    {v1alpha1.Reserved, reserved("storageGi"), "99"},
		"window gpu":            {v1alpha1.OnDemand, window(friday, "gpu", "0.5"), "123"},
		"window cpu":            {v1alpha1.OnDemand, window(friday, "cpu", "0.5"), "120"},
		"window memoryGi":       {v1alpha1.OnDemand, window(friday, "memoryGi", "0.5"), "92"},
		"window storageGi":      {v1alpha1.OnDemand, window(friday, "storageGi", "0.5"), "99"},
		"window on another day": {v1alpha1.OnDemand, window(changed(func(w *v1alpha1.Window) { w.Days = []string{"Mon"} }), "cpu", "0.5"), "124"},
		"window later":          {v1alpha1.OnDemand, window(changed(func(w *v1alpha1.Window) { w.From = "13:00" }), "cpu", "0.5"), "124"},
		"window that is over":   {v1alpha1.OnDemand, window(changed(func(w *v1alpha1.Window) { w.To = "12:00" }), "cpu", "0.5"), "124"},
		"window elsewhere":      {v1alpha1.OnDemand, window(changed(func(w *v1alpha1.Window) { w.Timezone = "America/New_York" }), "cpu", "0.5"), "124"},
		"flat":                  {v1alpha1.OnDemand, func(p *v1alpha1.Price) { p.PerHour, p.Flat = nil, Money("40") }, "10"},
		"currency":              {v1alpha1.OnDemand, func(p *v1alpha1.Price) { p.Currency = "USD" }, "114.08"},
	} {
		p := &v1alpha1.Price{Currency: "EUR", PerHour: v1alpha1.UnitPrices{}}
		for _, k := range []string{"gpu", "cpu", "memoryGi", "storageGi"} {
			p.PerHour[k] = v1alpha1.MustDecimal("1")
		}
		c.change(p)
		b := paris().Offer("paris/h100", func(o *model.Offer) { o.Price = p }).
			Intent("vision/train", Wants(2), For(24*time.Hour), With(func(s *v1alpha1.IntentSpec) { s.Purchase = []v1alpha1.PriceClass{c.class} }))
		d := Of(b.Round(), "vision/train")
		list := b.Contracts("vision/train")
		if len(list) != 1 {
			t.Errorf("%s: %s", name, d.Reason)
			continue
		}
		books, err := ledger.BooksOf(b.W.Fleet)
		if err != nil {
			t.Fatal(err)
		}
		if got := books.Accrued(list[0], v1alpha1.TimeOf(Start.Add(time.Hour))).String(); got != c.want {
			t.Errorf("%s: the first hour costs %s, want %s", name, got, c.want)
		}
	}
}

// maxHourlySpot bounds what is bought at spot price alone, and maxHourly bounds
// it where it is absent.
func TestMaxHourlySpot(t *testing.T) {
	both := []v1alpha1.PriceClass{v1alpha1.OnDemand, v1alpha1.Spot}
	for name, c := range map[string]struct {
		budget   v1alpha1.IntentBudget
		purchase []v1alpha1.PriceClass
		want     string // price class, or the requirement that fails
	}{
		"no limit":            {v1alpha1.IntentBudget{}, both, "spot"},
		"spot too dear":       {v1alpha1.IntentBudget{MaxHourlySpot: Money("1")}, both, "on-demand"},
		"spot alone":          {v1alpha1.IntentBudget{MaxHourlySpot: Money("1")}, both[1:], "budget.maxHourlySpot"},
		"its own is higher":   {v1alpha1.IntentBudget{MaxHourly: Money("1"), MaxHourlySpot: Money("2")}, both, "spot"},
		"the other's instead": {v1alpha1.IntentBudget{MaxHourly: Money("1")}, both[1:], "budget.maxHourly"},
	} {
		b := paris().Offer("paris/h100", Costs("3"), func(o *model.Offer) {
			o.Price.Spot = v1alpha1.UnitPrices{"gpu": v1alpha1.MustDecimal("1.5")}
		}).Intent("vision/train", Wants(1), cheap, With(func(s *v1alpha1.IntentSpec) { s.Budget, s.Purchase = &c.budget, c.purchase }))
		d := Of(b.Round(), "vision/train")
		got := ""
		for req := range d.Rejected {
			got = req
		}
		for _, k := range b.Contracts("vision/train") {
			got = string(k.Spec.Price.Class)
		}
		if got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

// Each weight, the intent's own or the fleet's, decides by its term alone.
func TestEachWeight(t *testing.T) {
	reliable := func(s string) func(*model.Offer) {
		return Spec(func(f *v1alpha1.FlavorSpec) { f.Properties.Reliability = Money(s) })
	}
	for term, c := range map[string]struct {
		weights v1alpha1.Weights
		want    string
	}{
		"resources":   {v1alpha1.Weights{Resources: 1}, "large"},
		"cost":        {v1alpha1.Weights{Cost: 0.9, Latency: 0.1}, "t4"},
		"latency":     {v1alpha1.Weights{Latency: 1}, "a100"},
		"reliability": {v1alpha1.Weights{Reliability: 1}, "sure"},
		"performance": {v1alpha1.Weights{Performance: 1}, "h100"},
		"energy":      {v1alpha1.Weights{Energy: 1}, "l4"},
	} {
		for _, whose := range []string{"intent", "fleet"} {
			b := New().Consumer("rome").Tenant("vision", "rome").Provider("p").
				Offer("p/t4", Cards("nvidia-t4", 7, "16Gi"), Costs("0.50"), emits(300), away(60), reliable("0.9")).
				Offer("p/a100", Cards("nvidia-a100", 7, "80Gi"), Costs("3.00"), emits(300), away(2), reliable("0.9")).
				Offer("p/h100", Cards("nvidia-h100", 7, "80Gi"), Costs("3.20"), emits(400), away(60), reliable("0.9")).
				Offer("p/l4", Cards("nvidia-l4", 7, "24Gi"), Costs("0.70"), emits(20), away(60), reliable("0.9")).
				Offer("p/sure", Cards("nvidia-a10", 7, "24Gi"), Costs("2.00"), emits(300), away(60), reliable("0.9999")).
				Offer("p/large", Cards("nvidia-a10", 70, "24Gi"), Costs("2.00"), emits(300), away(60), reliable("0.9")).
				Intent("vision/train", Wants(2), With(func(s *v1alpha1.IntentSpec) {
					if whose == "intent" {
						s.Weights = &c.weights
					}
				}))
			if whose == "fleet" {
				b.Fleet(func(f *v1alpha1.FleetSpec) { f.Weights = &c.weights })
			}
			if got := placedOn(t, b); got != "p/"+c.want+" 2" {
				t.Errorf("%s of the %s: %s, want %s", term, whose, got, c.want)
			}
		}
	}
}

// Quota of each resource is borrowed up to maxBorrow, and no further.
func TestEachResourceThatIsBorrowed(t *testing.T) {
	for name, c := range map[string]struct{ quota v1alpha1.TenantQuota }{
		"gpu":    {v1alpha1.TenantQuota{GPU: Ptr(int64(1))}},
		"cpu":    {v1alpha1.TenantQuota{CPU: Ptr(v1alpha1.Quantity("8"))}},
		"memory": {v1alpha1.TenantQuota{Memory: Ptr(v1alpha1.Quantity("64Gi"))}},
	} {
		borrow := map[string]string{"gpu": "gpu=1", "cpu": "cpu=8", "memory": "memory=64Gi"}[name]
		for _, may := range []bool{false, true} {
			own := c.quota
			if may {
				own.MaxBorrow = Amounts(borrow)
			}
			lent := c.quota
			b := paris().Tenant("ada", "rome", func(s *v1alpha1.TenantSpec) { s.Quota = &own }).
				Tenant("zoe", "rome", func(s *v1alpha1.TenantSpec) { s.Quota = &lent }).Intent("ada/a", Wants(1)).Intent("ada/b", Wants(1)).Intent("ada/c", Wants(1))
			b.Round()
			placed := len(b.Contracts("ada/a")) + len(b.Contracts("ada/b")) + len(b.Contracts("ada/c"))
			if want := map[bool]int{false: 1, true: 2}[may]; placed != want {
				t.Errorf("%s, may borrow %v: %d placed, want %d", name, may, placed, want)
			}
		}
	}
}

// What an autoscaler could add is sold of each resource that it names.
func TestEachResourceThatScales(t *testing.T) {
	for name, all := range map[string]string{"cpu": "8", "memory": "64Gi", "pods": "20", "ephemeral-storage": "50Gi", "gpu": "1"} {
		b := New().Consumer("rome").Provider("paris").Tenant("vision", "rome").
			Offer("paris/h100", Cards("nvidia-h100", 1, "80Gi"), Capacity("cpu=8 memory=64Gi pods=20 ephemeral-storage=50Gi"), Capacity(name+"=0")).
			Intent("vision/train", Wants(1))
		if d := Of(b.Plan(), "vision/train"); d.Action != planner.Queued {
			t.Fatalf("without %s: %s", name, d.Action)
		}
		b.Offer("paris/h100", scalesTo(name+"="+all))
		if d := Of(b.Plan(), "vision/train"); d.Action != planner.Place || d.Contracts[0].Scaled[name].Canonical(name) != all {
			t.Errorf("%s: %s %s", name, d.Action, d.Reason)
		}
	}
}

// The threshold and the hold time of consolidation are the fleet's.
func TestConsolidationAsTheFleetSays(t *testing.T) {
	// Half the price, one contract of one: the savings fraction is 0.525.
	for threshold, moves := range map[string]bool{"0.6": false, "0.5": true} {
		b := beforeLyon(t, "apply", "1.90").Fleet(consolidating("apply", threshold, time.Hour))
		b.Round()
		if b.Tick(24 * time.Hour).Round(); len(b.Contracts("vision/train")) > 1 != moves {
			t.Errorf("threshold %s: %d contracts", threshold, len(b.Contracts("vision/train")))
		}
	}
	b := beforeLyon(t, "apply", "1.90").Fleet(consolidating("apply", "0.5", 2*time.Hour))
	b.Round()
	for hours, want := range []int{1, 1, 2} { // contracts: the old one, and from 2 hours on the new one next to it
		b.Tick(time.Hour)
		if hours == 0 {
			b.Tick(-time.Hour + time.Minute)
		}
		if b.Round(); len(b.Contracts("vision/train")) != want {
			t.Errorf("%v: %d contracts, want %d", b.W.Now, len(b.Contracts("vision/train")), want)
		}
	}
}

// What a contract takes from its flavor, its cluster and its intent for those
// who act on it.
func TestContractCarries(t *testing.T) {
	node := &v1alpha1.VirtualNodeSpec{Labels: map[string]string{"tier": "gold"}}
	offload := &v1alpha1.Offload{Namespaces: []v1alpha1.OffloadNamespace{{Name: "vision", Create: true, Quota: true}}}
	b := paris().Intent("vision/train", Wants(1), With(func(s *v1alpha1.IntentSpec) { s.VirtualNode, s.Offload = node, offload }))
	b.Cluster("paris", func(c *v1alpha1.Cluster) { c.Spec.Endpoint = "https://cluster.example.org:6443" })
	b.Round()
	c := b.Contracts("vision/train")[0].Spec
	if c.VirtualNode != node || c.Offload != offload || c.Class != "default" || c.Endpoint != "https://cluster.example.org:6443" {
		t.Fatalf("%+v", c)
	}
	b = paris().Offer("paris/h100", Spec(func(s *v1alpha1.FlavorSpec) {
		s.Class, s.Endpoint = "fleetbroker", "https://flavor.example.org:6443"
	})).Intent("vision/train", Wants(1))
	b.Round()
	if c := b.Contracts("vision/train")[0].Spec; c.Class != "fleetbroker" || c.Endpoint != "https://flavor.example.org:6443" {
		t.Fatalf("%+v", c)
	}
}

// The fleet counts in its own currency.
func TestCurrencyOfTheFleet(t *testing.T) {
	b := paris().Fleet(func(f *v1alpha1.FleetSpec) {
		f.Currency = "USD"
		f.Rates = []v1alpha1.Rate{{From: "EUR", To: "USD", Rate: v1alpha1.MustDecimal("2"), Date: v1alpha1.Date{Time: Start.AddDate(0, 0, -1)}}}
	}).Offer("paris/h100", Costs("1")).Intent("vision/train", Wants(1))
	p := b.Round()
	if c := b.Contracts("vision/train")[0].Spec.Price; p.Currency != "USD" || c.Currency != "USD" || c.Hourly.String() != "2" {
		t.Fatalf("%s %+v", p.Currency, c)
	}
}

// When an intent starts is shown with its windows in mind, and one that cannot
// start before it is too late is refused at once instead of at that time.
func TestFirstStart(t *testing.T) {
	saturday := []v1alpha1.Window{{Days: []string{"Sat"}, From: "20:00", To: "06:00", Timezone: "UTC"}}
	for name, c := range map[string]struct {
		schedule v1alpha1.Schedule
		action   planner.Action
		says     string
	}{
		"in no window": {v1alpha1.Schedule{NotBefore: Time("2026-12-01T08:00:00Z"), Windows: saturday}, planner.Queued, "it may start from 2026-12-05T20:00:00Z"},
		"in a window":  {v1alpha1.Schedule{NotBefore: Time("2026-12-05T21:00:00Z"), Windows: saturday}, planner.Queued, "it may start from 2026-12-05T21:00:00Z"},
		"no windows":   {v1alpha1.Schedule{NotBefore: Time("2026-12-01T08:00:00Z")}, planner.Queued, "it may start from 2026-12-01T08:00:00Z"},
		"window too late": {v1alpha1.Schedule{NotBefore: Time("2026-12-01T08:00:00Z"), Windows: saturday, Deadline: Time("2026-12-05T00:00:00Z")},
			planner.Refuse, "it cannot start before 2026-12-05T20:00:00Z (notBefore, windows), and its deadline is 2026-12-05T00:00:00Z"},
		"duration does not fit": {v1alpha1.Schedule{Windows: saturday, Duration: v1alpha1.Duration{Duration: 24 * time.Hour}, Deadline: Time("2026-11-22T00:00:00Z")},
			planner.Refuse, "it cannot start before 2026-11-21T20:00:00Z (notBefore, windows), and its duration of 24h no longer fits before the deadline"},
		"it fits": {v1alpha1.Schedule{Windows: saturday, Duration: v1alpha1.Duration{Duration: 24 * time.Hour}, Deadline: Time("2026-11-22T20:00:00Z")},
			planner.Queued, "its window opens 2026-11-21T20:00:00Z"},
	} {
		b := paris().Intent("vision/train", Wants(1), With(func(s *v1alpha1.IntentSpec) { s.Schedule = c.schedule }))
		if d := Of(b.Round(), "vision/train"); d.Action != c.action || !strings.HasPrefix(d.Reason, c.says) {
			t.Errorf("%s: %s %s, want %s %s", name, d.Action, d.Reason, c.action, c.says)
		}
		wantOnlyKeeps(t, b)
	}
}
