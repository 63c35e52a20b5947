package planner_test

import (
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// taking asks for so many pods beside what else is asked for.
func taking(pods int64) func(*planner.Intent) {
	return With(func(s *v1alpha1.IntentSpec) {
		s.Resources.Named = s.Resources.Named.Clone()
		s.Resources.Named[v1alpha1.Pods] = v1alpha1.AmountOf(pods)
	})
}

// keeping is a flavor of eight GPUs with 880 pods, which have no price.
func keeping() *Builder {
	return paris().Tenant("nlp", "rome").Offer("paris/h100", Capacity("cpu=64 memory=512Gi pods=880 ephemeral-storage=1Ti"))
}

// Nobody takes all pods of a flavor, which cost nothing, and with them the use of
// its GPUs: neither at once, nor in many, nor in place, nor with one GPU.
func TestKept_PodsForFreeGPUs(t *testing.T) {
	b := keeping().Intent("vision/greedy", tiny, taking(880))
	d := Of(b.Round(), "vision/greedy")
	if d.Action != planner.Queued || d.Rejected[planner.ReqKept+"pods"] != 1 || !strings.Contains(d.Reason, "beside what is kept for free GPUs") ||
		len(d.Near) != 1 || !strings.Contains(d.Near[0], "has 440 of 880 pods free beside what is kept") || len(d.Try) != 1 || d.Try[0] != `resources.pods: "440"` {
		t.Fatalf("%s %v %q near %q try %q", d.Action, d.Rejected, d.Reason, d.Near, d.Try)
	}
	b = keeping().Intent("vision/many", tiny, taking(40), Times(100), loose)
	b.Round()
	if n := charged(b, "vision/many"); n != 11 {
		t.Fatalf("%d replicas of 40 pods are held, want 11 in 440 of 880", n)
	}
	b = keeping().Intent("vision/grows", tiny, taking(40))
	b.Round()
	b.Intent("vision/grows", tiny, taking(800)).Round()
	if c := b.Contracts("vision/grows"); len(c) != 1 || c[0].Spec.Resources[v1alpha1.Pods] != v1alpha1.AmountOf(40) {
		t.Fatalf("it grew in place: %v", c[0].Spec.Resources)
	}
	b = keeping().Intent("vision/one", Wants(1), taking(600))
	if d := Of(b.Round(), "vision/one"); d.Action != planner.Queued {
		t.Fatalf("one GPU and 600 pods: %s %s", d.Action, d.Reason)
	}
	// Whoever asks for GPUs has pods for them, beside all that others could take.
	b = keeping().Intent("vision/many", tiny, taking(40), Times(100), loose)
	b.Round()
	names := []string{"nlp/a", "nlp/b", "nlp/c", "nlp/d", "nlp/e", "nlp/f", "nlp/g", "nlp/h"}
	for _, name := range names {
		b.Intent(name, Wants(1), taking(55), small)
	}
	p := b.Round()
	for _, name := range names {
		if d := Of(p, name); d.Action != planner.Place {
			t.Fatalf("%s: %s %s", name, d.Action, d.Reason)
		}
	}
}

// small asks for little of what is no pod.
var small = With(func(s *v1alpha1.IntentSpec) {
	for name, a := range Amounts("cpu=1 memory=1Gi ephemeral-storage=1Gi") {
		s.Resources.Named[name] = a
	}
})

// What is not kept: the defaults with a GPU, what has a price, all of it where no
// GPU is left free, there is none or nothing has a price, and by earlier rules.
func TestKept_NoMoreThanThat(t *testing.T) {
	cores := With(func(s *v1alpha1.IntentSpec) { s.Resources.Named[v1alpha1.CPU] = v1alpha1.AmountOf(64_000) })
	noGPUs := func(o *planner.Offer) { delete(o.Flavor.Spec.Capacity, v1alpha1.GPU); o.Flavor.Spec.GPU = nil }
	for name, b := range map[string]*Builder{
		"a default": keeping().Offer("paris/h100", Capacity("pods=110")).Intent("vision/x", Wants(1), taking(110), small),
		"priced":    keeping().Intent("vision/x", tiny, taking(1), cores),
		"all GPUs":  keeping().Intent("vision/x", Wants(8), taking(880), small),
		"no price":  keeping().Offer("paris/h100", func(o *planner.Offer) { o.Price = nil }).Intent("vision/x", tiny, taking(880)),
		"no GPUs":   keeping().Offer("paris/h100", noGPUs).Intent("vision/x", tiny, taking(880)),
	} {
		if d := Of(b.Plan(), "vision/x"); d.Action != planner.Place {
			t.Errorf("%s: %s %s", name, d.Action, d.Reason)
		}
	}
	b := keeping().Intent("vision/x", tiny, taking(880))
	b.W.Rules = 5
	if d := Of(b.Plan(), "vision/x"); d.Action != planner.Place {
		t.Errorf("rules 5: %s %s", d.Action, d.Reason)
	}
}
