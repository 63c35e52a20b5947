package ui

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/ui/view"
)

// offers explains intents. That makes a whole plan, so that it is done one at a time,
// and kept until the next round.
type offers struct {
	turn chan struct{}

	mu   sync.Mutex
	of   *view.Snapshot
	kept map[[2]string]*planner.Explanation
}

const (
	// patience is how long a request waits for its turn.
	patience = 15 * time.Second
	// keptOffers is how many explanations are kept.
	keptOffers = 64
)

func newOffers() *offers {
	return &offers{turn: make(chan struct{}, 1)}
}

// explain is every offer towards an intent.
func (o *offers) explain(ctx context.Context, s *view.Snapshot, tenant, name string) (*planner.Explanation, error) {
	key := [2]string{tenant, name}
	if e := o.get(s, key); e != nil {
		return e, nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case o.turn <- struct{}{}:
		defer func() { <-o.turn }()
	case <-ctx.Done():
		return nil, &problem{http.StatusServiceUnavailable, wire.ReasonUnavailable, "Others are asking for offers; each costs a plan of the whole fleet. Try again in a moment."}
	}
	if e := o.get(s, key); e != nil {
		return e, nil
	}
	e, err := planner.Explain(*s.World, tenant, name)
	if err != nil {
		return nil, notFound("There is no such intent in the inputs: offers are looked at for what is asked for.")
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.of != s || len(o.kept) >= keptOffers {
		o.of, o.kept = s, map[[2]string]*planner.Explanation{}
	}
	o.kept[key] = e
	return e, nil
}

func (o *offers) get(s *view.Snapshot, key [2]string) *planner.Explanation {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.of != s {
		return nil
	}
	return o.kept[key]
}

// OffersAnswer is every offer towards an intent, once: those that fit by score, then the
// others by requirement.
type OffersAnswer struct {
	Tenant string `json:"tenant"`
	Name   string `json:"name"`
	// Wants is what was understood, in a line.
	Wants    string         `json:"wants"`
	Decision *view.Decision `json:"decision"`
	Offers   []OfferRow     `json:"offers"`
	Fitting  int            `json:"fitting"`
	// Failing are the others, by the first requirement they fail.
	Failing []view.Count `json:"failing"`
	// Total offers of which a page shows Offers, from First on.
	Total    int    `json:"total"`
	Page     int    `json:"page"`
	Pages    int    `json:"pages"`
	Currency string `json:"currency"`
}

// OfferRow is one offer towards an intent.
type OfferRow struct {
	Provider string `json:"provider"`
	Flavor   string `json:"flavor"`
	Model    string `json:"model,omitempty"`
	Region   string `json:"region,omitempty"`
	Fits     bool   `json:"fits"`
	Chosen   bool   `json:"chosen,omitempty"`
	// Requirement is the first that it fails, Detail has the numbers.
	Requirement string `json:"requirement,omitempty"`
	Detail      string `json:"detail,omitempty"`
	// Hourly price of what is asked for; absent where the offer has none.
	Hourly    *v1alpha1.Decimal  `json:"hourly,omitempty"`
	Transfer  *v1alpha1.Decimal  `json:"transfer,omitempty"`
	LatencyMs *int64             `json:"latencyMs,omitempty"`
	Score     *float64           `json:"score,omitempty"`
	Scores    map[string]float64 `json:"scores,omitempty"`
	FreeGPUs  *int64             `json:"freeGPUs,omitempty"`
}

func offersPage(c *call) (any, error) {
	tenant, name := c.PathValue("tenant"), c.PathValue("name")
	if !c.sight.Of(tenant) {
		return found[OffersAnswer](nil, "intent")
	}
	e, err := c.ui.offers.explain(c.Context(), c.model.Snapshot(), tenant, name)
	if err != nil {
		return nil, err
	}
	out := &OffersAnswer{Tenant: tenant, Name: name, Wants: e.Wants, Decision: view.DecisionOf(&e.Decision), Currency: c.model.Currency(), Offers: []OfferRow{}}
	failing := map[string]int{}
	var rows []OfferRow
	all := c.query.State == "" || c.query.State == "all"
	for i := range e.Offers {
		l := &e.Offers[i]
		if l.Fits {
			out.Fitting++
		} else {
			failing[l.Requirement]++
		}
		if all || c.query.State == l.Requirement || c.query.State == "fits" && l.Fits {
			rows = append(rows, offerRow(l))
		}
	}
	out.Failing = view.Counts(failing)
	if s := c.query.State; !all && s != "fits" && failing[s] == 0 && planner.Shortfall(s) == "" {
		names := []string{"all", "fits"}
		for _, f := range out.Failing {
			names = append(names, f.Name)
		}
		return nil, badQuery(fmt.Errorf("state: %.40q is no requirement that an offer can fail; use one of %s", s, strings.Join(names, ", ")))
	}
	l := view.Rows(rows, c.query)
	out.Offers, out.Total, out.Page, out.Pages = l.Items, l.Total, l.Page, l.Pages
	return out, nil
}

func offerRow(l *planner.OfferLine) OfferRow {
	f := l.Flavor
	r := OfferRow{
		Provider: f.Metadata.Namespace, Flavor: f.Metadata.Name, Region: f.Spec.Location.Region, Fits: l.Fits, Chosen: l.Chosen,
		Requirement: l.Requirement, Detail: l.Detail,
	}
	if g := f.Spec.GPU; g != nil {
		r.Model = g.Model
		free := max(l.Free[v1alpha1.GPU].Int64(), 0)
		r.FreeGPUs = &free
	}
	if l.Priced {
		r.Hourly = &l.Hourly
	}
	if !l.Transfer.IsZero() {
		r.Transfer = &l.Transfer
	}
	if l.LatencyKnown {
		r.LatencyMs = &l.LatencyMs
	}
	if l.Fits {
		r.Score, r.Scores = &l.Score, l.Scores
	}
	return r
}
