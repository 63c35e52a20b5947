package top

import (
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/cli/tables"
	"github.com/fleetbroker/fleetbroker/internal/ui/view"
)

// When it is expected is unknown only where somebody has estimated it, as on the page of the
// queue: the ledger alone estimates nothing, and its sentence may name a time.
func TestPrint_Expected(t *testing.T) {
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	row := func(name string, expected v1alpha1.Time, unknown bool) view.QueueRow {
		return view.QueueRow{IntentRow: view.IntentRow{Tenant: "vision", Name: name, GPU: "4x H100"}, Waits: v1alpha1.TimeOf(at), Expected: expected, Unknown: unknown, Why: "why"}
	}
	p := &Picture{Data: view.FleetPage{Queue: []view.QueueRow{row("a", v1alpha1.TimeOf(at.Add(time.Hour)), false), row("b", v1alpha1.Time{}, true), row("c", v1alpha1.Time{}, false)}}}
	var out strings.Builder
	if err := p.Print(&out, tables.View{Now: func() time.Time { return at }}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"a": "2026-11-20T13:00:00Z", "b": "unknown", "c": "-"} {
		if line := "vision/" + name + "\t4x H100\t2026-11-20T12:00:00Z\t" + want + "\twhy\n"; !strings.Contains(out.String(), line) {
			t.Errorf("no %q in\n%s", line, out.String())
		}
	}
}
