package market_test

import (
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/market"
)

// An agent in the US says that it stands in the EU and costs next to nothing:
// what was reviewed holds, and the contradiction is named.
func TestReviewedWinsOverReported(t *testing.T) {
	prices := func(gpu string) v1alpha1.UnitPrices { return v1alpha1.UnitPrices{"gpu": dec(gpu)} }
	us := v1alpha1.Location{Region: "us-east-1", Country: "US"}
	lie := v1alpha1.Location{Region: "eu-west-3", Zone: "eu-west-3a", Country: "DE", City: "Berlin"}
	cheap := &v1alpha1.Price{PerHour: prices("0.0001"), Spot: prices("0.00005")}
	table := &v1alpha1.PriceTable{Metadata: v1alpha1.Metadata{Name: "t"}, Spec: v1alpha1.PriceTableSpec{Currency: "EUR", Prices: []v1alpha1.TablePrice{
		{Provider: "paris", Model: "H100", PerHour: prices("2.50")},
	}}}
	with := func(change func(*v1alpha1.ClusterSpec)) *v1alpha1.Cluster {
		c := cluster("paris", "provider")
		c.Spec.Location = us
		change(&c.Spec)
		return c
	}
	cases := map[string]struct {
		cluster              *v1alpha1.Cluster
		tables               []*v1alpha1.PriceTable
		said                 *v1alpha1.Price
		at                   v1alpha1.Location
		onDemand, spot       string
		sources              v1alpha1.Sources
		place, priceConflict string
	}{
		"a table states the price": {
			cluster: with(func(*v1alpha1.ClusterSpec) {}), tables: []*v1alpha1.PriceTable{table}, said: cheap, at: us, onDemand: "2.5", spot: "0.00005",
			place: "country DE, stated US", priceConflict: "on-demand gpu 0.0001, stated gpu 2.5",
		},
		"the cluster states the price of both classes": {
			cluster: with(func(s *v1alpha1.ClusterSpec) { s.Price = &v1alpha1.Price{PerHour: prices("3"), Spot: prices("1")} }),
			said:    cheap, at: us, onDemand: "3", spot: "1", place: "region eu-west-3, stated us-east-1", priceConflict: "spot gpu 0.00005, stated gpu 1",
		},
		"a table goes before the cluster, class by class": {
			cluster: with(func(s *v1alpha1.ClusterSpec) { s.Price = &v1alpha1.Price{PerHour: prices("3"), Spot: prices("1")} }),
			tables:  []*v1alpha1.PriceTable{table}, said: cheap, at: us, onDemand: "2.5", spot: "1", place: "country", priceConflict: "on-demand",
		},
		"a default price states nothing": {
			cluster: with(func(s *v1alpha1.ClusterSpec) { s.DefaultPrice = &v1alpha1.Price{PerHour: prices("9")} }),
			said:    cheap, at: us, onDemand: "0.0001", spot: "0.00005", sources: v1alpha1.Sources{Price: v1alpha1.SourceReported}, place: "country",
		},
		"a default price where nobody says": {
			cluster: with(func(s *v1alpha1.ClusterSpec) { s.DefaultPrice = &v1alpha1.Price{PerHour: prices("9")} }),
			at:      us, onDemand: "9", sources: v1alpha1.Sources{Price: v1alpha1.SourceDefault}, place: "country",
		},
		"one key states the whole place": {
			cluster: with(func(s *v1alpha1.ClusterSpec) { s.Location = v1alpha1.Location{Country: "US"} }),
			said:    cheap, at: v1alpha1.Location{Country: "US"}, onDemand: "0.0001", spot: "0.00005", sources: v1alpha1.Sources{Price: v1alpha1.SourceReported}, place: "country DE, stated US",
		},
		"nothing stated is reported": {
			cluster: with(func(s *v1alpha1.ClusterSpec) { s.Location = v1alpha1.Location{} }),
			said:    cheap, at: lie, onDemand: "0.0001", spot: "0.00005", sources: v1alpha1.Sources{Price: v1alpha1.SourceReported, Location: v1alpha1.SourceReported},
		},
		"a trusted agent has the last word": {
			cluster: with(func(s *v1alpha1.ClusterSpec) { s.TrustAgent = []string{"price", "location"} }),
			tables:  []*v1alpha1.PriceTable{table}, said: cheap, at: lie, onDemand: "0.0001", spot: "0.00005",
			sources: v1alpha1.Sources{Price: v1alpha1.SourceReported, Location: v1alpha1.SourceReported},
		},
		"other currencies are not joined": {
			cluster: with(func(*v1alpha1.ClusterSpec) {}), tables: []*v1alpha1.PriceTable{table}, said: &v1alpha1.Price{Currency: "USD", Spot: prices("0.1")},
			at: us, onDemand: "2.5", place: "country", priceConflict: "prices in USD, stated in EUR",
		},
		"windows belong to the stated class": {
			cluster: with(func(*v1alpha1.ClusterSpec) {}), tables: []*v1alpha1.PriceTable{table},
			said: &v1alpha1.Price{PerHour: prices("2.50"), Windows: []v1alpha1.PriceWindow{{Window: v1alpha1.Window{From: "00:00", To: "24:00"}, PerHour: prices("0.0001")}}},
			at:   us, onDemand: "2.5", place: "country", priceConflict: "price windows",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := market.New(market.Options{Now: newClock().Now})
			m.SetInputs(market.Inputs{Fleet: &v1alpha1.FleetSpec{Currency: "EUR"}, Clusters: map[string]*v1alpha1.Cluster{"paris": tc.cluster}, Prices: tc.tables})
			f := gpus("paris", "h100", 8)
			f.Spec.Location, f.Spec.Price = lie, tc.said
			report(t, m, "paris", gen(1, 1), f)
			o := m.Snapshot().Offer("paris", "h100")
			if o.Location != tc.at {
				t.Errorf("it stands at %+v, want %+v", o.Location, tc.at)
			}
			if got := o.Price.PerHour["gpu"].String(); got != tc.onDemand {
				t.Errorf("on demand it costs %s, want %s", got, tc.onDemand)
			}
			spot := ""
			if d, sold := o.Price.Spot["gpu"]; sold {
				spot = d.String()
			}
			if spot != tc.spot {
				t.Errorf("spot costs %q, want %q", spot, tc.spot)
			}
			if len(o.Price.Windows) > 0 {
				t.Errorf("windows of the agent hold: %+v", o.Price.Windows)
			}
			want := tc.sources
			if want.Location == "" {
				want.Location = v1alpha1.SourceStated
			}
			if want.Price == "" {
				want.Price = v1alpha1.SourceStated
			}
			if o.Sources.Location != want.Location || o.Sources.Price != want.Price {
				t.Errorf("sources %+v, want %+v", o.Sources, want)
			}
			if !strings.Contains(o.Sources.LocationConflict, tc.place) || (tc.place == "") != (o.Sources.LocationConflict == "") {
				t.Errorf("contradicted place %q, want %q", o.Sources.LocationConflict, tc.place)
			}
			if !strings.Contains(o.Sources.PriceConflict, tc.priceConflict) || (tc.priceConflict == "") != (o.Sources.PriceConflict == "") {
				t.Errorf("contradicted price %q, want %q", o.Sources.PriceConflict, tc.priceConflict)
			}
		})
	}
}

// A flavor's file was reviewed like its Cluster file, and says it more precisely;
// the same flavor in a market that is read again is what an agent said.
func TestFlavorFilesAreReviewed(t *testing.T) {
	c := cluster("paris", "provider")
	c.Spec.Location = v1alpha1.Location{Region: "eu-west-3", Country: "FR"}
	f := gpus("paris", "h100", 8)
	f.Spec.Location = v1alpha1.Location{Zone: "eu-west-3a"}
	for reported, want := range map[bool]v1alpha1.Location{
		false: {Region: "eu-west-3", Zone: "eu-west-3a", Country: "FR"},
		true:  {Region: "eu-west-3", Country: "FR"},
	} {
		m := market.New(market.Options{Now: newClock().Now})
		m.SetInputs(market.Inputs{Fleet: &v1alpha1.FleetSpec{}, Clusters: map[string]*v1alpha1.Cluster{"paris": c}, Flavors: []*v1alpha1.Flavor{&f}, Reported: map[string]bool{"paris/h100": reported}})
		if got := m.Snapshot().Offer("paris", "h100").Location; got != want {
			t.Errorf("reported %t: %+v, want %+v", reported, got, want)
		}
	}
}
