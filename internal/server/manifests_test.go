package server

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/market/store"
)

// handed stands for delivery to a cluster by its own agent.
type handed struct {
	heard []wire.Observed
	err   error
}

func (h *handed) Manifests(string) (wire.Manifests, <-chan struct{}, error) {
	return wire.Manifests{}, nil, nil
}
func (h *handed) Root(context.Context, string) (string, error) { return "", nil }
func (h *handed) Observed(_ context.Context, _ string, report wire.Observed) error {
	h.heard = append(h.heard, report)
	return h.err
}

// delivering is the agents' port of a fleet whose agents apply manifests.
func delivering() (*inside, *handed) {
	in, h := newInside(), &handed{}
	in.handler = newAgents(Agents{Reports: &store.Memory{Market: in.market}, Market: in.market, Delivery: h, Metrics: in.metrics, Log: slog.New(slog.DiscardHandler)}).routes()
	return in, h
}

// What an agent sees ends up in contracts and commits: it is taken only as an
// honest agent would say it, and an honest agent always can.
func TestObservationsAreChecked(t *testing.T) {
	in, h := delivering()
	put := func(o wire.Observed) (int, string) {
		body, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		answer := in.send(http.MethodPut, wire.ObservationsPath("paris"), body)
		return answer.Code, answer.Body.String()
	}
	of := func(c v1alpha1.ConsumerObservation) wire.Observed {
		return wire.Observed{Root: strings.Repeat("a", 40), Contracts: map[string]v1alpha1.ConsumerObservation{"vision-train-0-aaaa": c}}
	}
	long := strings.Repeat("x", 5<<10)
	for name, bad := range map[string]wire.Observed{
		"no hash":                 {Root: "../../refs"},
		"less than nothing waits": {Pending: -1},
		"a terminal's escapes":    {Problem: "\x1b[2J"},
		"too much trouble":        {Troubles: make([]string, 1001)},
		"a long trouble":          {Troubles: []string{long}},
		"a reason of two lines":   of(v1alpha1.ConsumerObservation{Message: "no\n\nContract: vision-train-0-aaaa Active -> Released"}),
		"a long denial":           of(v1alpha1.ConsumerObservation{SliceDenied: long}),
		"many blockers":           of(v1alpha1.ConsumerObservation{Blockers: make([]string, 1001)}),
		"a blocker of two lines":  of(v1alpha1.ConsumerObservation{Blockers: []string{"pod a\nb"}}),
		"an unknown presence":     of(v1alpha1.ConsumerObservation{Node: v1alpha1.Present + 1}),
	} {
		if code, text := put(bad); code != http.StatusBadRequest || !strings.Contains(text, "BadReport") || len(text) > 1000 {
			t.Errorf("%s: %d %s", name, code, text)
		}
		if len(h.heard) > 0 {
			t.Fatalf("%s was believed", name)
		}
		if name == "no hash" || name == "less than nothing waits" || name == "an unknown presence" {
			continue
		}
		bad.Fit()
		if code, text := put(bad); code != http.StatusNoContent {
			t.Errorf("%s, made fit: %d %s", name, code, text)
		}
		h.heard = nil
	}
	// What a newer agent has more to say is nothing against the rest.
	newer := in.send(http.MethodPut, wire.ObservationsPath("paris"), []byte(`{"root":"","applied":true,"contracts":{},"leading":true,"mood":"good"}`))
	if newer.Code != http.StatusNoContent || len(h.heard) != 1 {
		t.Errorf("a newer agent: %d %s", newer.Code, newer.Body)
	}
}

// A word that is older than the known one is answered with that one's generation.
func TestObservations_Stale(t *testing.T) {
	in, h := delivering()
	h.err = &wire.StaleEpochError{Last: wire.Generation{Epoch: 9, N: 4}}
	answer := in.send(http.MethodPut, wire.ObservationsPath("paris"), []byte(`{"root":"","applied":true,"contracts":{},"generation":"7.1"}`))
	var e wire.Error
	if err := json.Unmarshal(answer.Body.Bytes(), &e); err != nil {
		t.Fatal(err)
	}
	if answer.Code != http.StatusConflict || e.Reason != wire.ReasonStaleEpoch || e.Last != "9.4" {
		t.Errorf("answered %d %+v, want 409 %s 9.4", answer.Code, e, wire.ReasonStaleEpoch)
	}
}
