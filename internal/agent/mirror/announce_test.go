package mirror

import (
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
)

func TestEventOfNews(t *testing.T) {
	at := v1alpha1.TimeOf(time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC))
	e := eventOf("rome", &wire.News{ID: "AB01", At: at, Tenant: "vision", Intent: "huge", Reason: "Queued", Text: "vision/huge is queued: " + strings.Repeat("ü", 2000)})
	if e.Name != "fleetbroker.ab01" || e.Namespace != "default" || e.Type != "Normal" || e.Reason != "Queued" || !e.EventTime.Time.Equal(at.Time) ||
		e.Regarding.Kind != "ResourceIntent" || e.Regarding.Name != "vision.huge" || e.Regarding.Namespace != "" || e.ReportingInstance == "" {
		t.Errorf("%+v", e)
	}
	if len(e.Note) > 1024 || !strings.HasPrefix(e.Note, "vision/huge is queued: ü") || !strings.HasSuffix(e.Note, "ü...") {
		t.Errorf("%d bytes: %q", len(e.Note), e.Note)
	}
	e = eventOf("rome", &wire.News{ID: "2", At: at, Tenant: "vision", Reason: "Budget80", Text: "vision has spent 80 % of its budget", Warning: true})
	if e.Type != "Warning" || e.Regarding.Kind != "Tenant" || e.Regarding.Name != "vision" || e.Note != "vision has spent 80 % of its budget" {
		t.Errorf("%+v", e)
	}
	e = eventOf("paris", &wire.News{ID: "3", At: at, Reason: "PriceContradicted", Text: "provider paris: its agent reports otherwise", Warning: true})
	if e.Type != "Warning" || e.Regarding.Kind != "Cluster" || e.Regarding.Name != "paris" {
		t.Errorf("%+v", e)
	}
}
