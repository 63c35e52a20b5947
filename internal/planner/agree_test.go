package planner_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/planner"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// denied is a world in which a provider is seen to deny two tenants what it advertised.
func denied(t *testing.T) *Builder {
	b := renames(t, "vision", "nlp")
	b.Offer("evil/f0", Cards("nvidia-h100", 16, "80Gi"), Costs("0.0001"))
	b.Round()
	b.Deliver().Round()
	for _, tenant := range []string{"vision", "nlp"} {
		for _, c := range b.Contracts(tenant + "/train") {
			o := Ready(c)
			o.Consumer.Granted, o.Consumer.SliceDenied = nil, "no"
			b.Observe(c.Metadata.Name, o)
		}
	}
	b.Tick(time.Minute)
	return b
}

// Where the tries of a plan never agree with what they leave, the last is taken, which is
// as right as any, and whoever asked is told by which providers they differ: once, however
// the round was begun; what Explain asked is answered of that last one.
func TestAgree_TellsWhatItCannotSettle(t *testing.T) {
	b := denied(t)
	p, rounds, disputed, lines := planner.Stubborn(b.W, "vision", "train")
	if rounds != 4 || len(disputed) != 1 || !slices.Contains(disputed[0], "nowhere") {
		t.Fatalf("%d rounds, disputed %q; want the first and three more, and once by nowhere", rounds, disputed)
	}
	if len(lines) != 2 {
		t.Errorf("%d offers are explained, want each once", len(lines))
	}
	if Of(p, "vision/train").Action == "" || len(p.Contracts) == 0 {
		t.Errorf("the plan decides nothing\n%s", describe(p))
	}
}

// Tries that agree dispute nothing, and who listens changes no plan.
func TestAgree_ListenersChangeNoPlan(t *testing.T) {
	b := denied(t)
	disputed, steps := 0, 0
	s := planner.Session{Disputed: func([]string) { disputed++ }, Step: func(planner.Step) { steps++ }}
	for range 3 {
		want, got := b.Plan(), s.Decide(b.W)
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("with listeners:\n%s\nwithout:\n%s", describe(got), describe(want))
		}
		b.Apply(got)
		b.Tick(time.Second).Deliver()
	}
	if disputed != 0 || steps == 0 {
		t.Errorf("%d disputes in %d steps, want none in some", disputed, steps)
	}
}
