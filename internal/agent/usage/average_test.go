package usage

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

var start = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func cpu(milli int64) v1alpha1.Resources {
	return v1alpha1.Resources{v1alpha1.CPU: v1alpha1.AmountOf(milli)}
}

func told(a Average) int64 { return a.Told()[v1alpha1.CPU].Int64() }

// What a contract of ten cores is told to take, as its life goes on.
func TestAverage(t *testing.T) {
	a, now := Average{}, start
	for _, step := range []struct {
		why         string
		after       time.Duration
		held, takes int64
		want        int64
	}{
		{"a new contract takes all", 0, 10000, 0, 10000},
		{"an idle minute is no sign yet", time.Minute, 10000, 0, 10000},
		{"an idle hour leaves a third", 59 * time.Minute, 10000, 0, 4000},
		{"three and nearly nothing is told", 2 * time.Hour, 10000, 0, 500},
		{"what it grew by is taken at first", 0, 20000, 0, 11000},
		{"and idle in turn", 5 * time.Hour, 20000, 5000, 1000},
		{"an hour of five cores", time.Hour, 20000, 5000, 4000},
		{"a day of five cores is five", 24 * time.Hour, 20000, 5000, 5000},
		{"shrunk below what it takes", 0, 4000, 5000, 4000},
		{"more than it holds cannot be taken of it", 24 * time.Hour, 4000, 9000, 4000},
		{"the clock goes back", -48 * time.Hour, 4000, 0, 4000},
	} {
		now = now.Add(step.after)
		a = a.Next(now, cpu(step.held), cpu(step.takes))
		if got := told(a); got != step.want {
			t.Errorf("%s: %d is told, want %d (mean %.0f)", step.why, got, step.want, a.mean[v1alpha1.CPU])
		}
	}
	if a = a.Next(now, v1alpha1.Resources{}, cpu(1)); len(a.Told()) != 0 {
		t.Errorf("of nothing %v is told", a.Told())
	}
}

// Whatever happens, no less is told than the mean and no more than is held; at
// rest the figure comes to rest close to what is taken.
func TestWhatIsToldIsEnough(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, now := Average{}, start
		held, takes := int64(0), int64(0)
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(-5, 90).Draw(t, "minutes")) * time.Minute)
			held = rapid.Int64Range(0, 100).Draw(t, "held")
			takes = rapid.Int64Range(0, 150).Draw(t, "takes")
			a = a.Next(now, cpu(held), cpu(takes))
			if got := told(a); float64(got) < a.mean[v1alpha1.CPU] || got > held {
				t.Fatalf("%d is told of %d held, of which %.2f are taken on average", got, held, a.mean[v1alpha1.CPU])
			}
		}
		for range 60 {
			now = now.Add(time.Hour)
			a = a.Next(now, cpu(held), cpu(takes))
		}
		rest, step := told(a), max(held/steps, 1)
		if a = a.Next(now.Add(time.Hour), cpu(held), cpu(takes)); told(a) != rest {
			t.Fatalf("at rest %d becomes %d", rest, told(a))
		}
		if want := min(takes, held); rest < want || rest > want+2*step {
			t.Fatalf("%d is told, %d of %d are taken", rest, want, held)
		}
	})
}
