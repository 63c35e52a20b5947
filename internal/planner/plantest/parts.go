package plantest

import (
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Cards gives an offer cards of a model.
func Cards(card string, count int, memory string) func(*model.Offer) {
	return func(o *model.Offer) {
		m, err := v1alpha1.ParseGPUMemory(memory)
		if err != nil {
			panic(err)
		}
		vendor, _, _ := strings.Cut(card, "-")
		o.Flavor.Spec.Capacity[v1alpha1.GPU] = v1alpha1.AmountOf(int64(count))
		o.Flavor.Spec.GPU = &v1alpha1.FlavorGPU{Vendor: vendor, Model: card, Memory: v1alpha1.MemorySize{Amount: m}, ResourceName: vendor + ".com/gpu"}
	}
}

// Capacity replaces amounts of an offer's capacity.
func Capacity(s string) func(*model.Offer) {
	return func(o *model.Offer) {
		for name, a := range Amounts(s) {
			o.Flavor.Spec.Capacity[name] = a
		}
	}
}

// Spec changes an offer's flavor.
func Spec(change func(*v1alpha1.FlavorSpec)) func(*model.Offer) {
	return func(o *model.Offer) { change(&o.Flavor.Spec) }
}

// Costs gives an offer a price in EUR per GPU and hour; further prices as
// "cpu=0.02 memoryGi=0.003".
func Costs(gpu string, more ...string) func(*model.Offer) {
	return func(o *model.Offer) {
		p := &v1alpha1.Price{Currency: "EUR", PerHour: v1alpha1.UnitPrices{"gpu": v1alpha1.MustDecimal(gpu)}}
		for _, s := range more {
			for _, part := range strings.Fields(s) {
				name, text, _ := strings.Cut(part, "=")
				p.PerHour[name] = v1alpha1.MustDecimal(text)
			}
		}
		o.Price = p
	}
}

// In places an offer.
func In(region, zone string) func(*model.Offer) {
	return func(o *model.Offer) { o.Location = v1alpha1.Location{Region: region, Zone: zone} }
}

// Heard sets how an offer's provider reports.
func Heard(state model.Freshness) func(*model.Offer) {
	return func(o *model.Offer) {
		o.State = state
		if state == model.Silent || state == model.Lost {
			o.Since, o.GraceEnds = Start, v1alpha1.TimeOf(Start.Add(5*time.Minute))
		}
	}
}

// Static makes an offer one of a file, without an agent.
func Static(o *model.Offer) { o.Static = true }

// Wants asks for so many GPUs of any of the models, with 8 cores and 64Gi. Who asks for
// none may be placed next to GPUs: most worlds have no other offers.
func Wants(count int32, models ...string) func(*model.Intent) {
	return func(in *model.Intent) {
		in.Spec.Resources = v1alpha1.ResourceRequest{Named: Amounts("cpu=8 memory=64Gi pods=20 ephemeral-storage=50Gi")}
		in.Spec.Placement.AllowAccelerators = count == 0
		if count > 0 {
			in.Spec.Resources.GPU = &v1alpha1.GPURequest{Count: count, Models: models}
		}
	}
}

// With changes an intent's specification.
func With(change func(*v1alpha1.IntentSpec)) func(*model.Intent) {
	return func(in *model.Intent) { change(&in.Spec) }
}

// GPU changes the GPU request of an intent that has one.
func GPU(change func(*v1alpha1.GPURequest)) func(*model.Intent) {
	return func(in *model.Intent) {
		g := *in.Spec.Resources.GPU
		change(&g)
		in.Spec.Resources.GPU = &g
	}
}

// Times asks for several replicas.
func Times(n int32) func(*model.Intent) {
	return func(in *model.Intent) { in.Spec.Replicas = v1alpha1.Replicas{Min: n, Max: n} }
}

// Follows asks for replicas that follow demand.
func Follows(least, most int32) func(*model.Intent) {
	return func(in *model.Intent) { in.Spec.Replicas = v1alpha1.Replicas{Min: least, Max: most, Range: true} }
}

// Priority of an intent.
func Priority(p int32) func(*model.Intent) {
	return func(in *model.Intent) { in.Spec.Priority = p }
}

// AtMost bounds an intent's hourly cost in EUR.
func AtMost(hourly string) func(*model.Intent) {
	return func(in *model.Intent) { in.Spec.Budget = &v1alpha1.IntentBudget{MaxHourly: Money(hourly)} }
}

// For bounds an intent's duration.
func For(d time.Duration) func(*model.Intent) {
	return func(in *model.Intent) { in.Spec.Schedule.Duration = v1alpha1.Duration{Duration: d} }
}
