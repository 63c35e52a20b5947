package market_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/market"
)

// TestFacts_GoOverReports: what files state of a flavor that an agent reports holds, the
// flavor's file before its cluster's, while the agent reports it; nothing else changes.
func TestFacts_GoOverReports(t *testing.T) {
	number := func(n int64) *int64 { return &n }
	ratio := dec("0.99")
	paris := cluster("paris", "provider")
	paris.Spec.Properties = v1alpha1.FlavorProperties{Carbon: number(300), Reliability: &ratio, SecurityStandards: []string{"ISO27001"}}
	facts := &v1alpha1.Flavor{Metadata: v1alpha1.Metadata{Name: "a", Namespace: "paris"}, Spec: v1alpha1.FlavorSpec{
		Properties: v1alpha1.FlavorProperties{Carbon: number(56)}, Labels: map[string]string{"tier": "gold"},
		Partition: &v1alpha1.Partition{Min: v1alpha1.Resources{"gpu": v1alpha1.AmountOf(2)}},
		Price:     &v1alpha1.Price{Windows: []v1alpha1.PriceWindow{{Window: v1alpha1.Window{From: "00:00", To: "06:00"}, PerHour: v1alpha1.UnitPrices{"gpu": dec("1")}}}},
	}}
	inputs := func(key string, flavors ...*v1alpha1.Flavor) market.Inputs {
		return market.Inputs{Key: key, Fleet: &v1alpha1.FleetSpec{}, Clusters: map[string]*v1alpha1.Cluster{"paris": paris}, Flavors: flavors}
	}
	m := market.New(market.Options{Now: newClock().Now})
	m.SetInputs(inputs("1", facts))
	if got := m.Snapshot().Offers(); len(got) != 0 {
		t.Fatalf("facts alone offer %v", got)
	}
	a, b := gpus("paris", "a", 8), gpus("paris", "b", 8)
	a.Spec.Labels, a.Spec.Properties = map[string]string{"tier": "silver", "rack": "7"}, v1alpha1.FlavorProperties{Carbon: number(1), LatencyMs: number(5)}
	a.Spec.Price = &v1alpha1.Price{PerHour: v1alpha1.UnitPrices{"gpu": dec("2")}}
	report(t, m, "paris", gen(1, 1), a, b)
	o := m.Snapshot().Offer("paris", "a")
	s := &o.Flavor.Spec
	if *s.Properties.Carbon != 56 || *s.Properties.LatencyMs != 5 || s.Properties.Reliability.String() != "0.99" || !reflect.DeepEqual(s.Properties.SecurityStandards, []string{"ISO27001"}) {
		t.Errorf("properties %+v", s.Properties)
	}
	if !reflect.DeepEqual(s.Labels, map[string]string{"tier": "gold", "rack": "7"}) || s.Partition.Min["gpu"] != v1alpha1.AmountOf(2) || s.Capacity["gpu"] != v1alpha1.AmountOf(8) || s.Cordon {
		t.Errorf("labels %v, partition %v, capacity %v", s.Labels, s.Partition, s.Capacity)
	}
	if len(o.Price.Windows) != 1 || o.Price.PerHour["gpu"].String() != "2" {
		t.Errorf("price %+v", o.Price)
	}
	if other := m.Snapshot().Offer("paris", "b"); *other.Flavor.Spec.Properties.Carbon != 300 || other.Flavor.Spec.Partition != nil {
		t.Errorf("the cluster's for all: %+v", other.Flavor.Spec)
	}
	// The same report again is no news; facts that change are.
	before := m.Snapshot()
	report(t, m, "paris", gen(1, 2), a, b)
	if now := m.Snapshot(); now.Offer("paris", "a") != o || now.Generation() != before.Generation() {
		t.Error("an equal report made a new offer")
	}
	m.SetInputs(inputs("2"))
	if got := m.Snapshot().Offer("paris", "a").Flavor.Spec; *got.Properties.Carbon != 300 || got.Partition != nil || got.Labels["tier"] != "silver" {
		t.Errorf("after the file is gone: %+v", got)
	}
	m.SetInputs(inputs("3", facts))
	report(t, m, "paris", gen(1, 3), b)
	if got := m.Snapshot().Offer("paris", "a"); got.State.String() != "Withdrawn" {
		t.Errorf("facts kept a flavor that is not reported: %v", got.State)
	}
}

// TestFacts_Price: a price that the flavor's file states goes before tables, its cluster
// and an agent that is not trusted with prices, class by class; windows alone add to what holds else.
func TestFacts_Price(t *testing.T) {
	unit := func(price string) v1alpha1.UnitPrices { return v1alpha1.UnitPrices{"gpu": dec(price)} }
	windows := []v1alpha1.PriceWindow{{Window: v1alpha1.Window{From: "00:00", To: "06:00"}, PerHour: unit("1")}}
	table := []*v1alpha1.PriceTable{{Spec: v1alpha1.PriceTableSpec{Currency: "EUR", Prices: []v1alpha1.TablePrice{{Provider: "paris", Model: "nvidia-h100", PerHour: unit("4"), Spot: unit("2")}}}}}
	for name, c := range map[string]struct {
		file, cluster, agent *v1alpha1.Price
		table                []*v1alpha1.PriceTable
		trust                bool
		perHour, spot        string
		windows              int
		source               string
	}{
		"the file alone":         {file: &v1alpha1.Price{PerHour: unit("3")}, perHour: "3", source: v1alpha1.SourceStated},
		"before the agent":       {file: &v1alpha1.Price{PerHour: unit("3")}, agent: &v1alpha1.Price{PerHour: unit("9"), Windows: windows}, perHour: "3", source: v1alpha1.SourceStated},
		"not before a trusted":   {file: &v1alpha1.Price{PerHour: unit("3")}, agent: &v1alpha1.Price{PerHour: unit("9")}, trust: true, perHour: "9", source: v1alpha1.SourceReported},
		"before a table":         {file: &v1alpha1.Price{PerHour: unit("3")}, table: table, perHour: "3", spot: "2", source: v1alpha1.SourceStated},
		"before the cluster":     {file: &v1alpha1.Price{PerHour: unit("3")}, cluster: &v1alpha1.Price{PerHour: unit("5"), Spot: unit("1.5")}, perHour: "3", spot: "1.5", source: v1alpha1.SourceStated},
		"spot alone":             {file: &v1alpha1.Price{Spot: unit("0.7")}, table: table, perHour: "4", spot: "0.7", source: v1alpha1.SourceStated},
		"with windows":           {file: &v1alpha1.Price{PerHour: unit("3"), Windows: windows}, table: table, perHour: "3", spot: "2", windows: 1, source: v1alpha1.SourceStated},
		"windows alone":          {file: &v1alpha1.Price{Windows: windows}, table: table, perHour: "4", spot: "2", windows: 1, source: v1alpha1.SourceStated},
		"spot, and the agent's":  {file: &v1alpha1.Price{Spot: unit("0.7")}, agent: &v1alpha1.Price{PerHour: unit("9"), Windows: windows}, perHour: "9", spot: "0.7", windows: 1, source: v1alpha1.SourceReported},
		"nothing but a property": {agent: &v1alpha1.Price{PerHour: unit("9"), Windows: windows}, perHour: "9", windows: 1, source: v1alpha1.SourceReported},
	} {
		paris := cluster("paris", "provider")
		paris.Spec.Price = c.cluster
		if c.trust {
			paris.Spec.TrustAgent = []string{v1alpha1.TrustPrice}
		}
		facts := &v1alpha1.Flavor{Metadata: v1alpha1.Metadata{Name: "a", Namespace: "paris"}, Spec: v1alpha1.FlavorSpec{Price: c.file, Labels: map[string]string{"x": "y"}}}
		m := market.New(market.Options{Now: newClock().Now})
		m.SetInputs(market.Inputs{Key: "1", Fleet: &v1alpha1.FleetSpec{Currency: "EUR"}, Clusters: map[string]*v1alpha1.Cluster{"paris": paris}, Flavors: []*v1alpha1.Flavor{facts}, Prices: c.table})
		a := gpus("paris", "a", 8)
		a.Spec.GPU = &v1alpha1.FlavorGPU{Model: "nvidia-h100", Vendor: "nvidia"}
		if a.Spec.Price = c.agent; c.agent != nil {
			a.Spec.Price.Currency = "EUR"
		}
		report(t, m, "paris", gen(1, 1), a)
		o := m.Snapshot().Offer("paris", "a")
		spot := ""
		if d, ok := o.Price.Spot["gpu"]; ok {
			spot = d.String()
		}
		if o.Price.PerHour["gpu"].String() != c.perHour || spot != c.spot || len(o.Price.Windows) != c.windows || o.Sources.Price != c.source || o.Price.Currency != "EUR" {
			t.Errorf("%s: %+v from %s", name, o.Price, o.Sources.Price)
		}
	}
}

// A file with a capacity is an offer of its own: of a flavor that an agent reports too
// nothing new is sold until one of them is renamed.
func TestFacts_NameIsTakenTwice(t *testing.T) {
	file := gpus("paris", "a", 4)
	clock := newClock()
	m := market.New(market.Options{Now: clock.Now})
	in := market.Inputs{Key: "1", Fleet: &v1alpha1.FleetSpec{}, Clusters: map[string]*v1alpha1.Cluster{"paris": cluster("paris", "provider")}, Flavors: []*v1alpha1.Flavor{&file}}
	m.SetInputs(in)
	if o := m.Snapshot().Offer("paris", "a"); o == nil || o.Flavor.Spec.Cordon || !o.Static {
		t.Fatalf("the file alone: %+v", o)
	}
	report(t, m, "paris", gen(1, 1), gpus("paris", "a", 8))
	if o := m.Snapshot().Offer("paris", "a"); !o.Flavor.Spec.Cordon || !o.Sources.Shadows || o.Static || o.Flavor.Spec.Capacity["gpu"] != v1alpha1.AmountOf(8) {
		t.Errorf("both: %+v %+v", o.Sources, o.Flavor.Spec)
	}
	clock.pass(time.Second)
	in.Key, in.Flavors = "2", nil
	m.SetInputs(in)
	if o := m.Snapshot().Offer("paris", "a"); o.Flavor.Spec.Cordon || o.Sources.Shadows {
		t.Errorf("renamed: %+v", o.Flavor.Spec)
	}
}

// TestPrices_OfProfiles: a row with a MIG profile prices units of that profile alone, and
// goes before one without.
func TestPrices_OfProfiles(t *testing.T) {
	card, mig, other := gpus("paris", "card", 8), gpus("paris", "mig", 8), gpus("paris", "other", 8)
	for _, f := range []*v1alpha1.Flavor{&card, &mig, &other} {
		f.Spec.GPU = &v1alpha1.FlavorGPU{Model: "nvidia-h100", Vendor: "nvidia"}
		f.Spec.Price = nil
	}
	mig.Spec.GPU.Profile, mig.Spec.GPU.UnitsPerGPU = "1g.10gb", 7
	other.Spec.GPU.Profile, other.Spec.GPU.UnitsPerGPU = "3g.40gb", 2
	row := func(profile, price string) v1alpha1.TablePrice {
		return v1alpha1.TablePrice{Provider: "paris", Model: "H100", Profile: profile, PerHour: v1alpha1.UnitPrices{"gpu": dec(price)}}
	}
	m := market.New(market.Options{Now: newClock().Now})
	m.SetInputs(market.Inputs{Key: "1", Fleet: &v1alpha1.FleetSpec{}, Clusters: map[string]*v1alpha1.Cluster{"paris": cluster("paris", "provider")},
		Flavors: []*v1alpha1.Flavor{&card, &mig, &other}, Prices: []*v1alpha1.PriceTable{{Spec: v1alpha1.PriceTableSpec{Currency: "EUR", Prices: []v1alpha1.TablePrice{row("1g.10gb", "0.4"), row("", "2.8"), row("7g.80gb", "9")}}}}})
	for name, want := range map[string]string{"card": "2.8", "mig": "0.4", "other": "2.8"} {
		if got := m.Snapshot().Offer("paris", name).Price.PerHour["gpu"].String(); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

// TestUnreported: a file of facts with a name that its provider does not report is found,
// and none of a provider of which nothing is known.
func TestUnreported(t *testing.T) {
	flavor := func(of, name string, capacity v1alpha1.Resources) *v1alpha1.Flavor {
		return &v1alpha1.Flavor{Metadata: v1alpha1.Metadata{Namespace: of, Name: name}, Spec: v1alpha1.FlavorSpec{Capacity: capacity}}
	}
	offer := v1alpha1.Resources{v1alpha1.CPU: v1alpha1.AmountOf(1000)}
	got := market.Unreported([]*v1alpha1.Flavor{
		flavor("oslo", "lvie", nil), flavor("oslo", "live", nil), flavor("oslo", "own", offer), flavor("oslo", "something", nil), flavor("paris", "a", nil),
	}, []*v1alpha1.Flavor{flavor("oslo", "live", offer), flavor("oslo", "cpu", offer)})
	want := []string{
		`flavor oslo/lvie has a file of facts, and cluster oslo reports no such flavor (did you mean "live"?); the facts are not used`,
		`flavor oslo/something has a file of facts, and cluster oslo reports no such flavor (it reports cpu, live); the facts are not used`,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
