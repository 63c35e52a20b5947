package report

import (
	"io"

	"github.com/fleetbroker/fleetbroker/internal/api/escape"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
)

// explanation is `explain -o json`.
type explanation struct {
	intent
	Commit string  `json:"commit,omitempty"`
	Author string  `json:"author,omitempty"`
	Wants  string  `json:"wants"`
	Offers []offer `json:"offers"`
	// Troubled contracts of the intent, with the reason of their phase.
	Troubled []troubledContract `json:"troubled,omitempty"`
}

type troubledContract struct {
	Name    string         `json:"name"`
	Phase   v1alpha1.Phase `json:"phase"`
	Since   v1alpha1.Time  `json:"since"`
	Reason  string         `json:"reason"`
	Message string         `json:"message,omitempty"`
}

type offer struct {
	Flavor      string             `json:"flavor"`
	Fits        bool               `json:"fits"`
	Chosen      bool               `json:"chosen,omitempty"`
	Requirement string             `json:"requirement,omitempty"`
	Detail      string             `json:"detail,omitempty"`
	Free        v1alpha1.Resources `json:"free"`
	Scaled      v1alpha1.Resources `json:"scaled,omitempty"`
	Hourly      *v1alpha1.Decimal  `json:"hourly,omitempty"`
	Transfer    *v1alpha1.Decimal  `json:"transfer,omitempty"`
	LatencyMs   *int64             `json:"latencyMs,omitempty"`
	Score       float64            `json:"score"`
	Scores      map[string]float64 `json:"scores,omitempty"`
	// PriceFrom and LocationFrom are stated, reported or default.
	PriceFrom    string `json:"priceFrom,omitempty"`
	LocationFrom string `json:"locationFrom,omitempty"`
}

// ExplainJSON writes an explanation for programs, every offer.
func ExplainJSON(w io.Writer, e *planner.Explanation) error {
	return escape.WriteJSON(w, encodeExplanation(e))
}

// ExplainYAML writes what ExplainJSON writes, as YAML.
func ExplainYAML(w io.Writer, e *planner.Explanation) error {
	return writeYAML(w, encodeExplanation(e))
}

func encodeExplanation(e *planner.Explanation) explanation {
	out := explanation{
		intent: encodeIntent(newView(&planner.Plan{}), &e.Decision),
		Commit: e.Intent.Commit, Author: e.Intent.Author, Wants: e.Wants, Offers: []offer{},
	}
	for i := range e.Offers {
		l := &e.Offers[i]
		o := offer{
			Flavor: l.Flavor.Ref(), Fits: l.Fits, Chosen: l.Chosen, Requirement: l.Requirement, Detail: l.Detail,
			Free: l.Free, Scaled: l.Scaled, Score: l.Score, Scores: l.Scores,
			PriceFrom: l.Sources.Price, LocationFrom: l.Sources.Location,
		}
		if l.Priced {
			o.Hourly = &l.Hourly
			if !l.Transfer.IsZero() {
				o.Transfer = &l.Transfer
			}
		}
		if l.LatencyKnown {
			o.LatencyMs = &l.LatencyMs
		}
		out.Offers = append(out.Offers, o)
	}
	for _, c := range e.Troubled {
		out.Troubled = append(out.Troubled, troubledContract{c.Metadata.Name, c.Status.Phase, c.Status.Since, c.Status.Reason, c.Status.Message})
	}
	return out
}
