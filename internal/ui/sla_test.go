package ui_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/plantest"
	"github.com/fleetbroker/fleetbroker/internal/ui"
	"github.com/fleetbroker/fleetbroker/internal/ui/view"
)

// TestSLABreaches: a contract that is late counts until it is usable, an outage while it
// goes on, and both only beyond what the intent asks for.
func TestSLABreaches(t *testing.T) {
	d, b := newDaemon(t), small()
	b.Intent("vision/strict", plantest.Wants(1, "nvidia-l4"))
	b.Round()
	for _, in := range b.W.Intents { // asked for later: no offer states its reliability
		if in.Metadata.Name == "strict" {
			in.Spec.SLA = &v1alpha1.SLA{Availability: plantest.Money("90"), MaxTimeToActive: v1alpha1.Duration{Duration: 2 * time.Hour}}
		}
	}
	c := b.Contracts("vision/strict")
	if len(c) != 1 {
		t.Fatalf("vision/strict holds %d contracts", len(c))
	}
	name, start := c[0].Metadata.Name, c[0].Spec.Term.Start
	at := func(after time.Duration, phase v1alpha1.Phase, history ...v1alpha1.PhaseChange) {
		t.Helper()
		k := b.Contracts("vision/strict")[0]
		k.Status.Phase, k.Status.Since = phase, start
		k.Status.History = append([]v1alpha1.PhaseChange{{Phase: v1alpha1.PhaseReserved, At: start}}, history...)
		if n := len(history); n > 0 {
			k.Status.Since = history[n-1].At
		}
		d.mu.Lock()
		d.now = start.Add(after)
		d.mu.Unlock()
		d.show(b)
	}
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(ui.Collector(d.ui))
	want := func(when string, late, short int, says string) {
		t.Helper()
		text := scraped(r)
		for _, line := range []string{fmt.Sprintf("fleetbroker_sla_breaches{kind=\"availability\"} %d\n", short), fmt.Sprintf("fleetbroker_sla_breaches{kind=\"late\"} %d\n", late)} {
			if !strings.Contains(text, line) {
				t.Errorf("%s: no %s", when, line)
			}
		}
		p := asked[view.ContractPage](t, d, "/contracts/"+name)
		if (p.Breach == "") != (says == "") || !strings.Contains(p.Breach, says) {
			t.Errorf("%s: the page says %q, want %q", when, p.Breach, says)
		}
		if says != "" && !strings.Contains(d.get(t, "/ui/contracts/"+name).Body.String(), "breaks its intent&#39;s sla") && !strings.Contains(d.get(t, "/ui/contracts/"+name).Body.String(), "breaks its intent's sla") {
			t.Errorf("%s: the page does not show it", when)
		}
	}
	active := v1alpha1.PhaseChange{Phase: v1alpha1.PhaseActive, At: v1alpha1.TimeOf(start.Add(3 * time.Hour))}
	broken := v1alpha1.PhaseChange{Phase: v1alpha1.PhaseDegraded, At: v1alpha1.TimeOf(start.Add(13 * time.Hour))}
	again := v1alpha1.PhaseChange{Phase: v1alpha1.PhaseActive, At: v1alpha1.TimeOf(start.Add(18 * time.Hour))}
	at(119*time.Minute, v1alpha1.PhaseReserved)
	want("in time", 0, 0, "")
	at(121*time.Minute, v1alpha1.PhaseReserved)
	want("late", 1, 0, "not usable within 2h0m0s: it takes 2h1m0s so far")
	at(4*time.Hour, v1alpha1.PhaseActive, active)
	want("late, and usable now", 0, 0, "")
	at(13*time.Hour+30*time.Minute, v1alpha1.PhaseDegraded, active, broken)
	want("an outage of half an hour after ten", 0, 0, "")
	at(15*time.Hour, v1alpha1.PhaseDegraded, active, broken)
	want("an outage that goes on for two hours", 0, 1, "usable 83.3333 % of 12h0m0s")
	at(20*time.Hour, v1alpha1.PhaseActive, active, broken, again)
	want("after it", 0, 1, "90 % was asked for")
	at(60*time.Hour, v1alpha1.PhaseActive, active, broken, again)
	want("long after it", 0, 0, "")
	d.look(view.Viewer{Groups: []string{"team-nlp"}})
	if w := d.get(t, "/api/ui/contracts/"+name); w.Code != 404 {
		t.Errorf("another tenant's: %d", w.Code)
	}
}
