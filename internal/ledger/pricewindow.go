package ledger

import (
	"fmt"
	"slices"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/zones"
)

// cost is what a price comes to from one instant to another, by calendar month
// of the fleet's timezone. Each month's exact sum of hourly price × seconds is
// divided by 3600 once.
func (b Books) cost(p v1alpha1.ContractPrice, from, to v1alpha1.Time) map[string]v1alpha1.MonthCost {
	if !from.Before(to.Time) {
		return nil
	}
	out := map[string]v1alpha1.MonthCost{}
	for at := from; at.Before(to.Time); {
		_, end := b.MonthBounds(at)
		if to.Before(end.Time) {
			end = to
		}
		seconds := int64(end.Sub(at.Time) / time.Second)
		amount := p.Hourly.MulInt(seconds)
		if len(p.Windows) > 0 {
			amount = b.windowed(p, at.Time, end.Time)
		}
		out[b.Month(at)] = v1alpha1.MonthCost{
			Amount: amount.DivInt(3600, places),
			List:   p.List.MulInt(seconds).DivInt(3600, places),
		}
		at = end
	}
	return out
}

// windowed is the sum of hourly price × seconds over an interval in which
// windows change the price. Where windows overlap, the first in the list holds.
func (b Books) windowed(p v1alpha1.ContractPrice, from, to time.Time) v1alpha1.Decimal {
	cuts := []time.Time{from, to}
	open := make([][]interval, len(p.Windows))
	for i := range p.Windows {
		open[i] = b.openings(p.Windows[i].Window, from, to)
		for _, iv := range open[i] {
			cuts = append(cuts, iv.from, iv.to)
		}
	}
	slices.SortFunc(cuts, time.Time.Compare)
	sum := v1alpha1.Zero
	next := make([]int, len(open))
	for i := 1; i < len(cuts); i++ {
		seconds := int64(cuts[i].Sub(cuts[i-1]) / time.Second)
		if seconds == 0 {
			continue
		}
		hourly := p.Hourly
		for w := range open {
			for next[w] < len(open[w]) && !open[w][next[w]].to.After(cuts[i-1]) {
				next[w]++
			}
			if next[w] < len(open[w]) && !open[w][next[w]].from.After(cuts[i-1]) {
				hourly = p.Windows[w].Hourly
				break
			}
		}
		sum = sum.Add(hourly.MulInt(seconds))
	}
	return sum
}

type interval struct{ from, to time.Time }

// openings are the parts of [from, to) in which a window is open, in order.
func (b Books) openings(w v1alpha1.Window, from, to time.Time) []interval {
	zone := b.zone()
	if w.Timezone != "" {
		if z, err := zones.Load(w.Timezone); err == nil {
			zone = z
		}
	}
	start, err1 := clock(w.From)
	end, err2 := clock(w.To)
	if err1 != nil || err2 != nil {
		return nil
	}
	if end <= start {
		end += 24 * 60
	}
	var out []interval
	// The day before may reach into the interval.
	for day := midnight(from.In(zone)).AddDate(0, 0, -1); day.Before(to); day = day.AddDate(0, 0, 1) {
		if len(w.Days) > 0 && !slices.Contains(w.Days, day.Weekday().String()[:3]) {
			continue
		}
		iv := interval{timeOfDay(day, start), timeOfDay(day, end)}
		if iv.from.Before(from) {
			iv.from = from
		}
		if iv.to.After(to) {
			iv.to = to
		}
		if n := len(out); n > 0 && iv.from.Before(out[n-1].to) {
			iv.from = out[n-1].to
		}
		if iv.from.Before(iv.to) {
			out = append(out, iv)
		}
	}
	return out
}

// InWindow reports whether a window is open at an instant, and when that next
// changes.
func (b Books) InWindow(w v1alpha1.Window, at v1alpha1.Time) (open bool, until v1alpha1.Time) {
	// A window recurs within a week; a daylight-saving change moves it by hours.
	horizon := at.AddDate(0, 0, 9)
	list := b.openings(w, at.Time, horizon)
	if len(list) == 0 {
		return false, v1alpha1.Time{}
	}
	if list[0].from.After(at.Time) {
		return false, v1alpha1.TimeOf(list[0].from)
	}
	end := list[0].to
	for _, iv := range list[1:] {
		if iv.from.After(end) {
			break
		}
		end = iv.to
	}
	if !end.Before(horizon) {
		return true, v1alpha1.Time{}
	}
	return true, v1alpha1.TimeOf(end)
}

// HourlyAt is the hourly price that holds at an instant.
func (b Books) HourlyAt(p v1alpha1.ContractPrice, at v1alpha1.Time) v1alpha1.Decimal {
	for i := range p.Windows {
		if open, _ := b.InWindow(p.Windows[i].Window, at); open {
			return p.Windows[i].Hourly
		}
	}
	return p.Hourly
}

func midnight(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, t.Location())
}

// timeOfDay is so many minutes after midnight by the wall clock, which is not
// so many minutes of time on the days when daylight saving begins or ends.
func timeOfDay(day time.Time, minutes int) time.Time {
	return time.Date(day.Year(), day.Month(), day.Day(), 0, minutes, 0, 0, day.Location())
}

// clock reads "20:00" or "24:00" as minutes after midnight.
func clock(s string) (int, error) {
	var h, m int
	if n, err := fmt.Sscanf(s, "%2d:%2d", &h, &m); n != 2 || err != nil {
		return 0, fmt.Errorf("%q is not a time of day: write hours and minutes, such as 20:00", s)
	}
	if h < 0 || m < 0 || m > 59 || h*60+m > 24*60 {
		return 0, fmt.Errorf("%q is not a time of day: from 00:00 to 24:00", s)
	}
	return h*60 + m, nil
}
