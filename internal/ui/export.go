package ui

import (
	"encoding/csv"
	"math"
	"net/http"
	"strconv"

	"github.com/fleetbroker/fleetbroker/internal/api/escape"
)

// costCSV exports costs: all rows that are seen, in cells that no spreadsheet takes for
// formulas. What is idle is empty where no agent reports it and in other months than that of
// now: zero is what agents reported.
func (u *UI) costCSV(w http.ResponseWriter, r *http.Request) {
	c, err := u.call(r)
	if err != nil {
		u.refuse(w, r, err)
		return
	}
	c.query.Page, c.query.Size = 1, math.MaxInt32
	p, err := c.model.Cost(c.sight, c.query)
	if err != nil {
		u.refuse(w, r, badQuery(err))
		return
	}
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="cost.csv"`)
	out := csv.NewWriter(w)
	_ = out.Write([]string{p.By, "cost", "list", "saved", "currency", "month", "idle contracts", "idle per hour", "still to come", "without a rate", "without a report"}) // fails where the client is gone
	for _, row := range p.Rows.Items {
		idle, hourly, unreported, ahead := "", "", "", ""
		if row.Ahead != nil {
			ahead = row.Ahead.String()
		}
		if p.Present {
			unreported = strconv.Itoa(row.Unreported)
		}
		if p.Present && (row.Idle > 0 || row.Unreported == 0) {
			idle, hourly = strconv.Itoa(row.Idle), row.IdleHourly.String()
		}
		_ = out.Write([]string{escape.Cell(row.Name), row.Cost.String(), row.List.String(), row.Saved.String(), c.model.Currency(), p.Month, idle, hourly, ahead, strconv.Itoa(row.Missing), unreported})
	}
	out.Flush()
}
