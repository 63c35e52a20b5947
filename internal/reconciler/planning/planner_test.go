package planning

import (
	"bytes"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/logs/logtest"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// counted counts what it is told.
type counted struct {
	faults  int
	checked map[Result]int
	bytes   uint64
	steps   []planner.Step
	took    [planner.Steps]time.Duration
}

func (c *counted) Forgot() { c.faults++ }
func (c *counted) Stepped(step planner.Step, took time.Duration) {
	c.steps, c.took[step] = append(c.steps, step), took
}
func (c *counted) Checked(one Check) {
	c.checked[one.Result]++
	c.bytes = one.Bytes
}

type fixture struct {
	*Planner
	seen counted
	log  bytes.Buffer
	now  time.Time
}

func newFixture(opts Options) *fixture {
	f := &fixture{now: plantest.Start.Time}
	f.seen.checked = map[Result]int{}
	opts.Now, opts.Observer, opts.Log = func() time.Time { return f.now }, &f.seen, slog.New(slog.NewTextHandler(&f.log, nil))
	f.Planner = New(opts)
	return f
}

// fleet is a world with one tenant, one consumer and two offers.
func fleet() *plantest.Builder {
	return plantest.New().Consumer("rome").Provider("paris").Tenant("vision", "rome").Offer("paris/h100", plantest.Cards("nvidia-h100", 16, "80Gi"), plantest.Costs("2")).
		Offer("paris/a100", plantest.Cards("nvidia-a100", 16, "80Gi"), plantest.Costs("1"))
}

// stale is the flavor of which nothing is booked.
func stale(b *plantest.Builder) *v1alpha1.Flavor {
	for _, o := range b.W.Offers {
		if o.Flavor.Metadata.Name == "a100" {
			return o.Flavor
		}
	}
	return nil
}

// Every fault of the session is counted, and one a minute logged.
func TestFaultsAreCountedAndLoggedOnceAMinute(t *testing.T) {
	f := newFixture(Options{})
	for range 4 {
		f.session.Fault("index out of range in offersChanged")
		f.now = f.now.Add(25 * time.Second)
	}
	logtest.Wants(t, f.log.String(), "FB1116")
	if lines := strings.Count(f.log.String(), "offersChanged"); lines != 2 || f.seen.faults != 4 {
		t.Errorf("4 faults in 75 s: counted %d, logged %d, want 4 and 2\n%s", f.seen.faults, lines, &f.log)
	}
}

// A plan that does not agree with what it records is counted by that name, and logged with
// the providers.
func TestDisputesAreCountedAndLogged(t *testing.T) {
	f := newFixture(Options{})
	f.session.Disputed([]string{"lyon", "paris"})
	if text := f.log.String(); !strings.Contains(text, "lyon") || !strings.Contains(text, "paris") || f.seen.checked[Disputed] != 1 {
		t.Errorf("counted %v, logged %s", f.seen.checked, text)
	}
}

// A value that is changed in place is seen by the check of that round: the plan
// from nothing is returned, the difference counted and logged, and the session
// begins anew.
func TestCheck_FindsAStaleValue(t *testing.T) {
	b := fleet()
	f := newFixture(Options{Every: 3})
	b.Apply(f.Decide(b.W)) // the first is made from nothing
	b.Intent("vision/one", plantest.Wants(2, "H100"))
	b.Apply(f.Decide(b.W))

	// What no room may do: an offer is full all at once, at the same address.
	stale(b).Spec.Used = plantest.Amounts("gpu=14")
	b.Intent("vision/two", plantest.Wants(8, "A100"))
	got, want := f.Decide(b.W), planner.Decide(b.W)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the plan is not the one from nothing")
	}
	if f.seen.checked[Different] != 1 || f.seen.checked[Equal] != 0 || f.seen.bytes == 0 {
		t.Errorf("checked %v with %d bytes, want one difference", f.seen.checked, f.seen.bytes)
	}
	logtest.Wants(t, f.log.String(), "FB1114")
	if text := f.log.String(); !strings.Contains(text, "decided differently") || !strings.Contains(text, "plan.") {
		t.Errorf("the log does not say what differs: %s", text)
	}
	scratch := f.Scratch()
	if f.Decide(b.W); f.Scratch() != scratch+1 {
		t.Errorf("the next plan is not made from nothing")
	}
}

// Without the check that stale value is acted on: the test above can fail.
func TestWithoutCheckAStaleValueIsActedOn(t *testing.T) {
	b := fleet()
	f := newFixture(Options{})
	b.Apply(f.Decide(b.W))
	b.Intent("vision/one", plantest.Wants(2, "H100"))
	b.Apply(f.Decide(b.W))
	stale(b).Spec.Used = plantest.Amounts("gpu=14")
	b.Intent("vision/two", plantest.Wants(8, "A100"))
	if got, want := f.Decide(b.W), planner.Decide(b.W); reflect.DeepEqual(got, want) {
		t.Errorf("a value that was changed in place makes no difference: there is nothing to check")
	}
}

// Plans are checked by their number, and not those that were made from nothing.
func TestCheck_GoesByNumber(t *testing.T) {
	for every, want := range map[uint64]int{0: 0, 1: 9, 2: 5, 4: 2, 11: 0} {
		b, f := fleet(), newFixture(Options{Every: every})
		for i := range 10 {
			b.Intent(fmt.Sprintf("vision/n%d", i), plantest.Wants(1))
			b.Apply(f.Decide(b.W))
		}
		if got := f.seen.checked[Equal]; got != want || len(f.seen.checked) > 1 {
			t.Errorf("of 10 plans, one in %d checked: %v, want %d equal", every, f.seen.checked, want)
		}
	}
}

// A check that would need more memory than it may is left out and counted.
func TestCheck_KeepsToItsBudget(t *testing.T) {
	b, f := fleet(), newFixture(Options{Every: 1, Budget: 1})
	for i := range 3 {
		b.Intent(fmt.Sprintf("vision/n%d", i), plantest.Wants(1))
		b.Apply(f.Decide(b.W))
	}
	if got := f.seen.checked; got[OverBudget] != 2 || len(got) != 1 {
		t.Errorf("with a budget of one byte: checked %v, want 2 over budget", got)
	}
	n := needed{bytes: 1000, size: 10}
	for size, want := range map[uint64]uint64{5: 1000, 10: 1000, 25: 2500} {
		if got := n.by(size); got != want {
			t.Errorf("1,000 bytes were needed for 10: for %d %d are expected, want %d", size, got, want)
		}
	}
}

// Each plan reports all eight steps, in order, with what each took in sum.
func TestStepsAreTimed(t *testing.T) {
	b, f := fleet().Intent("vision/one", plantest.Wants(2)), newFixture(Options{})
	f.Planner.opts.Now = func() time.Time { f.now = f.now.Add(time.Second); return f.now }
	f.steps.now = f.Planner.opts.Now
	f.Decide(b.W)
	want := []planner.Step{planner.StepObserve, planner.StepGuard, planner.StepSettle, planner.StepServe, planner.StepBatch, planner.StepConsolidate, planner.StepConclude, planner.StepCheck}
	if !reflect.DeepEqual(f.seen.steps, want) {
		t.Errorf("steps %v, want %v", f.seen.steps, want)
	}
	for _, step := range want {
		if f.seen.took[step] < time.Second {
			t.Errorf("%s took %s, want a second or more by a clock that goes on by one with each look", step, f.seen.took[step])
		}
	}
}

// A plan that changes its world in place is told.
func TestSeal_IsAskedAfterwards(t *testing.T) {
	b := fleet()
	broken := ""
	f := newFixture(Options{Seal: func(planner.World) func() string { return func() string { return broken } }})
	f.Decide(b.W)
	if f.seen.checked[Unsealed] != 0 {
		t.Errorf("told of an unsealed world though nothing changed")
	}
	broken = "Offers[0].Flavor"
	if f.Decide(b.W); f.seen.checked[Unsealed] != 1 || !strings.Contains(f.log.String(), broken) {
		t.Errorf("told %v, log %s", f.seen.checked, &f.log)
	}
}
