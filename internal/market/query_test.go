package market_test

import (
	"slices"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/market"
)

// inRegion is a flavor of a model in a region.
func inRegion(provider, name, gpu, region string) v1alpha1.Flavor {
	f := gpus(provider, name, 8)
	f.Spec.GPU.Model, f.Spec.Location.Region = gpu, region
	if gpu == "" {
		f.Spec.GPU = nil
	}
	return f
}

// A query finds what it asks for by provider, class and region, and all of it.
func TestSelect(t *testing.T) {
	m := market.New(market.Options{Now: newClock().Now})
	report(t, m, "lyon", gen(1, 1), inRegion("lyon", "a", "nvidia-h100", "fr"), inRegion("lyon", "b", "nvidia-a100", "fr"))
	report(t, m, "paris", gen(1, 1), inRegion("paris", "a", "nvidia-h100", "fr"), inRegion("paris", "cpu", "", "fr"))
	report(t, m, "rome", gen(1, 1), inRegion("rome", "a", "nvidia-h100", "it"), inRegion("rome", "b", "nvidia-h100", "fr"))
	for name, c := range map[string]struct {
		q    market.Query
		want []string
	}{
		"all":               {market.Query{}, []string{"lyon/a", "lyon/b", "paris/a", "paris/cpu", "rome/a", "rome/b"}},
		"a provider":        {market.Query{Provider: "paris"}, []string{"paris/a", "paris/cpu"}},
		"a class":           {market.Query{Class: "nvidia-h100"}, []string{"lyon/a", "paris/a", "rome/a", "rome/b"}},
		"no GPU":            {market.Query{Class: market.ClassCPU}, []string{"paris/cpu"}},
		"a region":          {market.Query{Region: "it"}, []string{"rome/a"}},
		"class and region":  {market.Query{Class: "nvidia-h100", Region: "fr"}, []string{"lyon/a", "paris/a", "rome/b"}},
		"all three":         {market.Query{Provider: "rome", Class: "nvidia-h100", Region: "fr"}, []string{"rome/b"}},
		"a prefix of one":   {market.Query{Class: "nvidia-h"}, nil},
		"nobody's provider": {market.Query{Provider: "oslo"}, nil},
	} {
		offers, _ := m.Snapshot().Select(c.q)
		var got []string
		for _, o := range offers {
			got = append(got, o.Flavor.Ref())
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// Who asks for a part of the market hears of its changes: of what comes, what
// goes, and who falls silent, and of nothing else.
func TestSelect_ChannelClosesWithWhatItChose(t *testing.T) {
	type fleet struct {
		*market.Market
		clock *clock
		say   func(provider string, flavors ...v1alpha1.Flavor)
	}
	lyon, rome := inRegion("lyon", "a", "nvidia-a100", "fr"), inRegion("rome", "a", "nvidia-h100", "it")
	for name, tc := range map[string]struct {
		q    market.Query
		do   func(f fleet)
		want bool
	}{
		"another's report":     {market.Query{Class: "nvidia-a100"}, func(f fleet) { f.say("rome", rome, inRegion("rome", "b", "nvidia-h100", "it")) }, false},
		"the same once more":   {market.Query{Provider: "rome"}, func(f fleet) { f.say("rome", rome) }, false},
		"another provider":     {market.Query{Provider: "rome"}, func(f fleet) { f.say("lyon") }, false},
		"one of a class comes": {market.Query{Class: "nvidia-b200"}, func(f fleet) { f.say("oslo", inRegion("oslo", "a", "nvidia-b200", "no")) }, true},
		"one of a region goes": {market.Query{Region: "fr"}, func(f fleet) { f.say("lyon") }, true},
		"a provider changes":   {market.Query{Provider: "lyon"}, func(f fleet) { f.say("lyon", inRegion("lyon", "b", "nvidia-a100", "fr")) }, true},
		"a provider comes":     {market.Query{Provider: "oslo"}, func(f fleet) { f.say("oslo", inRegion("oslo", "a", "nvidia-b200", "no")) }, true},
		"time passes":          {market.Query{Class: "nvidia-a100"}, func(f fleet) { f.clock.pass(90 * time.Second); f.Snapshot() }, true},
		"any of all":           {market.Query{}, func(f fleet) { f.say("bern", inRegion("bern", "a", "nvidia-h100", "ch")) }, true},
	} {
		f, n := fleet{clock: newClock()}, uint64(0)
		f.Market = market.New(market.Options{Now: f.clock.Now, Silence: time.Minute})
		f.say = func(provider string, flavors ...v1alpha1.Flavor) {
			n++
			report(t, f.Market, provider, gen(1, n), flavors...)
		}
		f.say("lyon", lyon)
		f.say("rome", rome)
		_, changed := f.Snapshot().Select(tc.q)
		tc.do(f)
		closed := false
		select {
		case <-changed:
			closed = true
		default:
		}
		if closed != tc.want {
			t.Errorf("%s: closed %v, want %v", name, closed, tc.want)
		}
	}
}

// A snapshot's own selection stays as it was.
func TestSelect_OfAnOldSnapshot(t *testing.T) {
	m := market.New(market.Options{Now: newClock().Now})
	report(t, m, "lyon", gen(1, 1), inRegion("lyon", "a", "nvidia-a100", "fr"))
	old := m.Snapshot()
	report(t, m, "lyon", gen(1, 2))
	offers, _ := old.Select(market.Query{Region: "fr"})
	if len(offers) != 1 || offers[0].State != model.Fresh {
		t.Errorf("an old snapshot shows %v", offers)
	}
}

func BenchmarkSelectClass(b *testing.B) {
	m := full(b)
	b.ReportAllocs()
	for b.Loop() {
		if offers, _ := m.Snapshot().Select(market.Query{Class: "nvidia-x7"}); len(offers) != 500 {
			b.Fatal(len(offers))
		}
	}
}
