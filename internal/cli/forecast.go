package cli

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/cli/tables"
	"github.com/fleetbroker/fleetbroker/internal/ledger/forecast"
)

// hoursAhead is how far `status` looks.
const hoursAhead = 6

// demandState is what a tenant is expected to hold of a shape, in GPUs (units
// of the flavor), and how wrong that was before.
type demandState struct {
	Tenant string `json:"tenant"`
	Model  string `json:"model,omitempty"`
	// GPUs of each contract.
	GPUs int64 `json:"gpus"`
	// Hours of history.
	Hours int `json:"hours"`
	// LastHour is the GPUs held on average in the last full hour.
	LastHour float64 `json:"lastHour"`
	// Next are those of the hours ahead, from the one that runs.
	Next []float64 `json:"next"`
	// Error is the mean absolute error in GPUs, over Tested forecasts of the past.
	Error float64 `json:"error"`
	// MASE is Error divided by that of repeating the day before; absent where that was never wrong.
	MASE   float64 `json:"mase,omitempty"`
	Tested int     `json:"tested"`
}

// demand forecasts each shape whose error can be told: there must be more than
// a day of history.
func (g *gathered) demand() []demandState {
	var out []demandState
	for s, h := range forecast.Histories(g.ledger, g.now, g.fleet.Policy.Retention.Ended.Duration, forecast.ShapeOf) {
		f := forecast.Of(h.Held, h.From.Time, hoursAhead)
		if f.Tested == 0 {
			continue
		}
		d := demandState{
			Tenant: s.Tenant, Model: s.Model, GPUs: s.Count, Hours: len(h.Held), LastHour: hundredths(h.Held[len(h.Held)-1]),
			Error: hundredths(f.MAE), MASE: hundredths(f.MASE), Tested: f.Tested,
		}
		for _, y := range f.Next {
			d.Next = append(d.Next, hundredths(y))
		}
		out = append(out, d)
	}
	slices.SortFunc(out, func(a, b demandState) int {
		return cmp.Or(strings.Compare(a.Tenant, b.Tenant), strings.Compare(a.Model, b.Model), cmp.Compare(a.GPUs, b.GPUs))
	})
	return out
}

func hundredths(f float64) float64 { return math.Round(f*100) / 100 }

func demandTable(v tables.View, p *page) *tables.Table {
	t := tables.New(v, "TENANT", "SHAPE", ">LAST HOUR", ">NOW", fmt.Sprintf(">IN %d H", hoursAhead-1), ">ERROR", ">MASE")
	figure := func(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
	for _, d := range p.Demand {
		mase := "-"
		if d.MASE > 0 {
			mase = figure(d.MASE)
		}
		t.Row(d.Tenant, fmt.Sprintf("%dx %s", d.GPUs, tables.Dash(d.Model)), figure(d.LastHour), figure(d.Next[0]), figure(d.Next[hoursAhead-1]), "±"+figure(d.Error), mase)
	}
	return t
}
