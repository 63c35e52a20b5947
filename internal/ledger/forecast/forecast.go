package forecast

import (
	"math"
	"time"
)

// The constants of the method: usual values for hourly counts (level and trend
// follow in hours, not in days), and nothing is fitted.
const (
	alpha = 0.2
	beta  = 0.05
	phi   = 0.9
)

// Forecast is what is expected of a series, and how wrong that was before.
type Forecast struct {
	// Next are the hours ahead; the first is the one that runs.
	Next []float64
	// MAE is the mean absolute error of such forecasts in the past, in the series' unit.
	MAE float64
	// MASE is MAE divided by that of repeating the day before; 0 when that was never wrong, or nothing was tested.
	MASE float64
	// Tested is how many forecasts MAE is the mean of; 0 says nothing is known of the error.
	Tested int
}

// Of forecasts a series of full hours, the first of which begins at from (in
// UTC), for so many hours ahead.
func Of(series []float64, from time.Time, ahead int) Forecast {
	f, errs := test(series, from, ahead)
	f.Tested = len(errs)
	if f.Tested == 0 {
		return f
	}
	for _, e := range errs {
		f.MAE += math.Abs(e)
	}
	f.MAE /= float64(f.Tested)
	if naive := naiveError(series); naive > 0 {
		f.MASE = f.MAE / naive
	}
	return f
}

// test forecasts the series' end, and before it each hour of the series from
// what came before it, after the first day or two: errs are what came less what was
// forecast.
func test(series []float64, from time.Time, ahead int) (f Forecast, errs []float64) {
	begin := day
	if len(series) >= 3*day {
		begin = 2 * day // from then on it knows seasons, as it does now
	}
	m := newModel(from.UTC().Hour())
	for i, y := range series {
		if i >= begin {
			for h := 1; h <= ahead && i+h <= len(series); h++ {
				errs = append(errs, series[i+h-1]-m.ahead(h))
			}
		}
		m.see(y)
	}
	f.Next = make([]float64, ahead)
	for h := range f.Next {
		f.Next[h] = m.ahead(h + 1)
	}
	return f, errs
}

// naiveError is the mean error of repeating the same hour of the day before;
// of repeating the last hour, where there are fewer than two days.
func naiveError(series []float64) float64 {
	lag := day
	if len(series) < 2*day {
		lag = 1
	}
	sum := 0.0
	for i := lag; i < len(series); i++ {
		sum += math.Abs(series[i] - series[i-lag])
	}
	return sum / float64(max(1, len(series)-lag))
}

// model is the state after the hours seen so far.
type model struct {
	first        int // hour of the day of the first
	seen         []float64
	level, trend float64
	// distances from the centred mean, summed by hour of the day, and how many.
	off  [day]float64
	days [day]int
	sum  float64 // of the last 24 seen
}

func newModel(first int) *model { return &model{first: first} }

// see takes in the next hour.
func (m *model) see(y float64) {
	n := len(m.seen)
	rest := y - m.season(n)
	if n == 0 {
		m.level = rest
	} else {
		before := m.level
		m.level = alpha*rest + (1-alpha)*(m.level+phi*m.trend)
		m.trend = beta*(m.level-before) + (1-beta)*phi*m.trend
	}
	m.seen = append(m.seen, y)
	m.sum += y
	if n < day {
		return
	}
	// Of the 25 hours up to this one the middle one has its mean now: the outer
	// two count half, so that each hour of the day counts once.
	mean := (m.sum - y/2 - m.seen[n-day]/2) / day
	m.sum -= m.seen[n-day]
	mid := n - day/2
	at := (m.first + mid) % day
	m.off[at] += m.seen[mid] - mean
	m.days[at]++
}

// season is what the hour of the day adds, at the i-th hour of the series.
func (m *model) season(i int) float64 {
	if len(m.seen) < 2*day {
		return 0
	}
	at := (m.first + i) % day
	k := float64(m.days[at])
	return m.off[at] / (k + 1)
}

// ahead forecasts the h-th hour after those seen.
func (m *model) ahead(h int) float64 {
	damp, sum := 1.0, 0.0
	for range h {
		damp *= phi
		sum += damp
	}
	return max(0, m.level+sum*m.trend+m.season(len(m.seen)+h-1))
}
