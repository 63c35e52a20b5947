package forecast_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/ledger/forecast"
)

var monday = time.Date(2026, 11, 16, 0, 0, 0, 0, time.UTC)

// hours is a series of so many, as f says.
func hours(n int, f func(i int) float64) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = f(i)
	}
	return out
}

// office is a day with nine busy hours.
func office(i int) float64 {
	if h := i % 24; h >= 8 && h < 17 {
		return 16
	}
	return 2
}

func TestFlatIsForecastExactly(t *testing.T) {
	f := forecast.Of(hours(7*24, func(int) float64 { return 4 }), monday, 6)
	for _, y := range f.Next {
		if math.Abs(y-4) > 1e-9 {
			t.Fatal(f)
		}
	}
	if f.MAE > 1e-9 || f.MASE != 0 || f.Tested == 0 {
		t.Fatal(f)
	}
}

// A week of office hours: the forecast made at six in the morning knows that
// people come at eight, whatever hour the series begins with.
func TestDailySeasonIsFound(t *testing.T) {
	for _, begins := range []int{0, 5, 13} {
		n := 7*24 + 6 - begins
		f := forecast.Of(hours(n, func(i int) float64 { return office(i + begins) }), monday.Add(time.Duration(begins)*time.Hour), 6)
		for h, y := range f.Next {
			if real := office(6 + h); math.Abs(y-real) > 3 {
				t.Errorf("from %d h: at %d h %.1f, want %.0f", begins, 6+h, y, real)
			}
		}
	}
	// Noise keeps the day before from being right by itself.
	rng := rand.New(rand.NewPCG(3, 1))
	f := forecast.Of(hours(14*24, func(i int) float64 { return office(i) + 6*rng.Float64() }), monday, 3)
	if f.MASE >= 1 || f.MASE <= 0 {
		t.Fatalf("no better than the day before: %+v", f)
	}
}

// Demand that grows by a GPU every four hours is followed from above and below
// within an hour or two of growth, and far better than by yesterday's figure.
func TestGrowthIsFollowed(t *testing.T) {
	f := forecast.Of(hours(7*24, func(i int) float64 { return float64(i) / 4 }), monday, 3)
	for h, y := range f.Next {
		if real := float64(7*24+h) / 4; math.Abs(y-real) > 1.5 {
			t.Errorf("%d h ahead %.2f, want %.2f", h+1, y, real)
		}
	}
	if f.MASE > 0.3 {
		t.Fatalf("%+v", f)
	}
}

// What is said of the error is what happens: over many random series the
// reported error is that of forecasts of what nobody had seen.
func TestErrorIsHonest(t *testing.T) {
	kinds := map[string]func(rng *rand.Rand, i int, last float64) float64{
		"noise":  func(rng *rand.Rand, _ int, _ float64) float64 { return 20 * rng.Float64() },
		"season": func(rng *rand.Rand, i int, _ float64) float64 { return office(i) + 8*rng.Float64() },
		"walk": func(rng *rand.Rand, _ int, last float64) float64 {
			return max(0, last+2*(rng.Float64()-0.5))
		},
	}
	for name, next := range kinds {
		said, made := 0.0, 0.0
		for seed := range uint64(150) {
			rng := rand.New(rand.NewPCG(seed, 7))
			last := 50.0
			series := hours(10*24+3, func(i int) float64 { last = next(rng, i, last); return last })
			known := len(series) - 3
			f := forecast.Of(series[:known], monday, 3)
			said += f.MAE
			for h, y := range f.Next {
				made += math.Abs(series[known+h]-y) / 3
			}
		}
		if ratio := made / said; ratio < 0.75 || ratio > 1.3 {
			t.Errorf("%s: errors were %.2f times what was said", name, ratio)
		}
	}
	// Noise cannot be forecast: nobody does better than its mean, and the error
	// does not say otherwise. The mean distance from the mean is a quarter of the range.
	rng := rand.New(rand.NewPCG(1, 1))
	if f := forecast.Of(hours(28*24, func(int) float64 { return 20 * rng.Float64() }), monday, 3); f.MAE < 4.9 {
		t.Fatalf("an error of %.2f is better than can be", f.MAE)
	}
}

func TestShortHistoriesSayNothingOfTheirError(t *testing.T) {
	for _, n := range []int{0, 1, 23, 24} {
		f := forecast.Of(hours(n, func(int) float64 { return 3 }), monday, 2)
		if len(f.Next) != 2 || f.Tested != 0 || f.MAE != 0 {
			t.Fatalf("%d hours: %+v", n, f)
		}
	}
}
