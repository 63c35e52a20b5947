package planner_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// threePlaces is running with a third, most expensive place.
func threePlaces(t *testing.T) *Builder {
	t.Helper()
	b := paris().Provider("lyon", "oslo").
		Offer("lyon/h100", Cards("nvidia-h100", 8, "80Gi"), Costs("4")).
		Offer("oslo/h100", Cards("nvidia-h100", 8, "80Gi"), Costs("9")).
		Intent("vision/train", Wants(4, "H100"), cheap)
	b.Round()
	b.Tick(10 * time.Second).Deliver().Round()
	if got := on(b); got != "paris/h100 Active" {
		t.Fatal(got)
	}
	b.Tick(10 * time.Second)
	return b
}

// on lists where vision/train's contracts are.
func on(b *Builder) string {
	var out []string
	for _, c := range b.Contracts("vision/train") {
		out = append(out, c.Spec.Provider+"/"+c.Spec.Flavor+" "+string(c.Status.Phase))
	}
	return strings.Join(out, ", ")
}

func deny(b *Builder, words string) {
	c := b.Contracts("vision/train")[len(b.Contracts("vision/train"))-1]
	o := Ready(c)
	o.Consumer.Granted, o.Consumer.SliceDenied = nil, words
	b.Observe(c.Metadata.Name, o)
}

func TestFailoverTakesRunnersUpFirst(t *testing.T) {
	const fresh = "paris/h100 Releasing, "
	for name, c := range map[string]struct {
		change func(*Builder)
		want   string
	}{
		"in their order": {func(*Builder) {}, "lyon/h100 Reserved"},
		"though another is better by now": {func(b *Builder) {
			b.Provider("rennes").Offer("rennes/h100", Cards("nvidia-h100", 8, "80Gi"), Costs("1"))
		}, "lyon/h100 Reserved"},
		"the next when the first is full":    {func(b *Builder) { b.Offer("lyon/h100", Capacity("gpu=2")) }, "oslo/h100 Reserved"},
		"the next when the first sells none": {func(b *Builder) { b.Offer("lyon/h100", Spec(func(f *v1alpha1.FlavorSpec) { f.Cordon = true })) }, "oslo/h100 Reserved"},
		"then anybody": {func(b *Builder) {
			b.Drop("lyon/h100").Drop("oslo/h100").Provider("rennes").Offer("rennes/h100", Cards("nvidia-h100", 8, "80Gi"), Costs("20"))
		}, "rennes/h100 Reserved"},
	} {
		t.Run(name, func(t *testing.T) {
			b := threePlaces(t)
			c.change(b)
			b.Offer("paris/h100", Heard(model.Lost))
			p := want(t, b, planner.Move, lifecycle.CodeProviderLost)
			if got := on(b); got != fresh+c.want {
				t.Fatalf("%s\n%s", got, describe(p))
			}
			if old := b.Contracts("vision/train")[0]; old.Status.Target != v1alpha1.PhaseFailed {
				t.Fatalf("%+v", old.Status)
			}
		})
	}
}

// A provider of which only a list is known that a store kept is not lost: what it holds
// stays as it is, and nothing new is bought there. Once its grace is over, it is.
func TestKnownByAStoreIsNotLost(t *testing.T) {
	b := threePlaces(t)
	before := on(b)
	b.Tick(time.Minute).Offer("paris/h100", Heard(model.Elsewhere))
	p := want(t, b, planner.Keep, "")
	if on(b) != before || len(p.Silent) != 1 {
		t.Fatalf("%s, was %s\n%s", on(b), before, describe(p))
	}
	b.Intent("vision/more", Wants(1, "H100"), With(func(s *v1alpha1.IntentSpec) { s.Placement.Providers.Allow = []string{"paris"} }))
	if d := Of(b.Round(), "vision/more"); d.Action != planner.Queued || !strings.Contains(d.Reason, "not heard") {
		t.Fatalf("%s: %s", d.Action, d.Reason)
	}
	b.Offer("paris/h100", Heard(model.Lost))
	want(t, b, planner.Move, lifecycle.CodeProviderLost)
}

// A lost provider's contract stays when nothing else fits: it may come back,
// and until then it is not sold, charged or forgotten.
func TestFailoverWaitsWhenNothingElseFits(t *testing.T) {
	for _, policy := range []string{"", "fail"} {
		b := paris().Intent("vision/train", Wants(4, "H100"), With(func(s *v1alpha1.IntentSpec) {
			s.Queue.Policy, s.Queue.Timeout = policy, v1alpha1.Duration{Duration: time.Minute}
		}))
		b.Round()
		b.Tick(10 * time.Second).Deliver().Round()
		b.Tick(time.Minute).Offer("paris/h100", Heard(model.Lost))
		p := want(t, b, planner.Keep, lifecycle.CodeProviderLost)
		if d := Of(p, "vision/train"); on(b) != "paris/h100 Degraded" || !strings.Contains(d.Reason, "paris is not heard since") || !strings.Contains(d.Reason, "nothing else fits; the only offer does not fit: it is on a provider that is lost") {
			t.Fatalf("%s\n%s", on(b), describe(p))
		}
		b.Tick(time.Hour)
		want(t, b, planner.Keep, lifecycle.CodeProviderLost)
		b.Tick(time.Hour).Offer("paris/h100", Heard(model.Fresh))
		want(t, b, planner.Keep, "")
		if on(b) != "paris/h100 Active" {
			t.Fatal(on(b))
		}
		b.Offer("paris/h100", Heard(model.Lost))
		want(t, b, planner.Keep, lifecycle.CodeProviderLost)
		b.Tick(time.Hour).Provider("lyon").Offer("lyon/h100", Cards("nvidia-h100", 8, "80Gi"))
		want(t, b, planner.Move, lifecycle.CodeProviderLost)
		if on(b) != "paris/h100 Releasing, lyon/h100 Reserved" {
			t.Fatal(on(b))
		}
	}
}

func TestFailoverOfExcess(t *testing.T) {
	b := threePlaces(t)
	b.Offer("paris/h100", Capacity("gpu=3"))
	p := want(t, b, planner.Keep, "")
	if on(b) != "paris/h100 Degraded" || p.Due != v1alpha1.TimeOf(b.W.Now.Add(5*time.Minute)) {
		t.Fatalf("%s, due %v", on(b), p.Due)
	}
	b.Tick(4 * time.Minute)
	want(t, b, planner.Keep, "")
	b.Tick(time.Minute)
	p = want(t, b, planner.Move, lifecycle.CodeShrunk)
	if on(b) != "paris/h100 Releasing, lyon/h100 Reserved" || !strings.Contains(Of(p, "vision/train").Reason, "runner-up lyon/h100") {
		t.Fatalf("%s\n%s", on(b), describe(p))
	}

	// It grows back in time: nothing moves.
	b = threePlaces(t)
	b.Offer("paris/h100", Capacity("gpu=3")).Round()
	b.Tick(4*time.Minute).Offer("paris/h100", Capacity("gpu=4"))
	want(t, b, planner.Keep, "")
	b.Tick(time.Hour)
	want(t, b, planner.Keep, "")
	if on(b) != "paris/h100 Active" {
		t.Fatal(on(b))
	}
}

// A flavor that denies the slice is left, and kept away from for a while, twice
// as long after each denial.
func TestFailoverOfDenied(t *testing.T) {
	b := threePlaces(t)
	b.Drop("oslo/h100")
	deny(b, "no such class")
	want(t, b, planner.Keep, "")
	b.Tick(29 * time.Second)
	want(t, b, planner.Keep, "")
	b.Tick(time.Second)
	p := want(t, b, planner.Move, lifecycle.CodeSliceDenied)
	if on(b) != "paris/h100 Releasing, lyon/h100 Reserved" || !strings.Contains(Of(p, "vision/train").Reason, "paris/h100 denies the slice: no such class") {
		t.Fatalf("%s\n%s", on(b), describe(p))
	}
	b.Tick(time.Second).Deliver().Round()
	b.Tick(time.Second).Round()
	b.Tick(time.Second).Round()
	if on(b) != "lyon/h100 Active" {
		t.Fatal(on(b))
	}
	// lyon is lost: paris would do, and has denied it not long ago.
	b.Offer("lyon/h100", Heard(model.Lost))
	p = want(t, b, planner.Keep, lifecycle.CodeProviderLost)
	if !strings.Contains(Of(p, "vision/train").Reason, "1 has denied it a slice") {
		t.Fatal(describe(p))
	}
	b.Tick(p.Due.Sub(b.W.Now.Time))
	want(t, b, planner.Move, lifecycle.CodeProviderLost)
	if on(b) != "lyon/h100 Releasing, paris/h100 Reserved" {
		t.Fatal(on(b))
	}
	b.Offer("lyon/h100", Heard(model.Fresh)).Deliver().Round()
	for range 3 {
		b.Tick(time.Second).Deliver().Round()
	}
	// A second denial counts double.
	deny(b, "no such class")
	b.Round()
	b.Tick(30 * time.Second)
	want(t, b, planner.Move, lifecycle.CodeSliceDenied)
	last := b.W.Now
	b.Tick(time.Second).Deliver().Round()
	b.Tick(time.Second).Offer("lyon/h100", Heard(model.Lost))
	p = want(t, b, planner.Keep, lifecycle.CodeProviderLost)
	if got := p.Due.Sub(last.Time); got != 20*time.Minute {
		t.Fatalf("keeps away for %s", got)
	}
	if n := b.Contracts("vision/train")[0].Status.Reason; n == "" {
		t.Fatal("no reason is kept")
	}
}
