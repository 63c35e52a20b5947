package ui_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/plantest"
	"github.com/fleetbroker/fleetbroker/internal/ui/view"
	"github.com/fleetbroker/fleetbroker/test/hostile"
)

// asked is a page's data.
func asked[T any](t testing.TB, d *daemon, path string) (out T) {
	t.Helper()
	var got struct{ Data T }
	w := d.get(t, "/api/ui"+path)
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != http.StatusOK {
		t.Fatalf("%s: %d %v %.300s", path, w.Code, err, w.Body)
	}
	return got.Data
}

// windowed has an intent want its capacity at night, and says whose it is.
func windowed(in *model.Intent) {
	in.Spec.Schedule.Windows = []v1alpha1.Window{{From: "20:00", To: "06:00"}}
	in.Metadata.Labels = map[string]string{"team": "night <b>shift</b>"}
}

// TestCalendar: what is held goes down as terms end; names are for those who see the tenant.
func TestCalendar(t *testing.T) {
	d, b := newDaemon(t), small()
	b.Intent("vision/night", plantest.Wants(2, "nvidia-h100"), windowed)
	b.Round()
	d.show(b)
	row := func(path, flavor string) view.CalendarRow {
		t.Helper()
		for _, r := range asked[view.CalendarPage](t, d, path).Rows.Items {
			if r.Provider+"/"+r.Flavor == flavor {
				return r
			}
		}
		t.Fatalf("%s has no %s", path, flavor)
		return view.CalendarRow{}
	}
	said := func(r view.CalendarRow) string {
		out := fmt.Sprintf("%d %s of which %d used:", r.Capacity, r.Resource, r.Used)
		for _, s := range r.Steps {
			out += fmt.Sprintf(" %s %d", s.At.UTC().Format("2 15:04"), s.Held)
		}
		return out
	}
	embed := b.Contracts("nlp/embed")[0]
	end := embed.Spec.Term.End.UTC().Format("2 15:04")
	now := d.now.UTC().Format("2 15:04")
	r := row("/calendar", "berlin/a100-pool")
	if got, want := said(r), fmt.Sprintf("32 gpu of which 0 used: %s 4 %s 0", now, end); got != want || len(r.Terms) != 1 || r.Terms[0].Contract != embed.Metadata.Name || r.Terms[0].Amount != 4 {
		t.Errorf("got %s %+v, want %s", got, r.Terms, want)
	}
	if got, want := said(row("/calendar?days=1", "berlin/a100-pool")), fmt.Sprintf("32 gpu of which 0 used: %s 4", now); got != want {
		t.Errorf("a day: got %s, want %s", got, want)
	}
	if got := row("/calendar", "milan/cpu"); got.Resource != "cpu" || got.Capacity == 0 || len(got.Steps) != 1 || got.Steps[0].Held != 0 {
		t.Errorf("without GPUs: %+v", got)
	}
	if got := row("/calendar", "milan/l4-pool"); got.Steps[0].Held != 6 || len(got.Terms) != 0 {
		t.Errorf("open terms: %+v", got)
	}
	page := asked[view.CalendarPage](t, d, "/calendar?days=7")
	if page.WindowsTotal != 1 || page.Windows[0].Intent != "night" || len(page.Windows[0].Spans) < 7 || page.Windows[0].Spans[1].To.Sub(page.Windows[0].Spans[1].From.Time) != 10*time.Hour {
		t.Errorf("windows: %+v", page.Windows)
	}
	if got := asked[view.CalendarPage](t, d, "/calendar?size=2&page=2").Rows; len(got.Items) != 2 || got.Total != 4 || got.Pages != 2 {
		t.Errorf("paged: %+v", got)
	}
	d.look(view.Viewer{Groups: []string{"team-vision"}})
	if r := row("/calendar", "berlin/a100-pool"); len(r.Terms) != 0 || r.Steps[0].Held != 4 {
		t.Errorf("a member of vision sees %+v of nlp", r)
	}
	if n := asked[view.CalendarPage](t, d, "/calendar").WindowsTotal; n != 1 {
		t.Errorf("a member of vision sees %d windows", n)
	}
	d.look(view.Viewer{})
	if p := asked[view.CalendarPage](t, d, "/calendar"); p.WindowsTotal != 0 || len(p.Windows) != 0 {
		t.Errorf("who sees totals only sees %+v", p.Windows)
	}
}

// TestCalendar_Bookings: what is booked is drawn from its start, beside what is held, and
// no more terms are said to end than do.
func TestCalendar_Bookings(t *testing.T) {
	d, b := newDaemon(t), small()
	b.Tenant("nlp", "rome", func(s *v1alpha1.TenantSpec) {
		s.Members, s.Quota = []string{"team-nlp"}, &v1alpha1.TenantQuota{Book: true}
	})
	start := v1alpha1.TimeOf(b.W.Now.Add(5 * 24 * time.Hour))
	b.Intent("nlp/later", plantest.Wants(8, "nvidia-a100"), func(in *model.Intent) {
		in.Spec.Schedule = v1alpha1.Schedule{NotBefore: start, Duration: v1alpha1.Duration{Duration: 48 * time.Hour}, Book: true}
	})
	for i := range 23 {
		b.Intent(fmt.Sprintf("nlp/job-%d", i), plantest.Wants(1, "nvidia-a100"), plantest.For(24*time.Hour))
	}
	b.Round()
	d.show(b)
	for _, r := range asked[view.CalendarPage](t, d, "/calendar").Rows.Items {
		if r.Flavor != "a100-pool" {
			continue
		}
		booked := 0
		for _, s := range r.Steps {
			if s.Booked == 8 && (s.At.Before(start.Time) || !s.At.Before(start.Add(48*time.Hour))) {
				t.Errorf("booked from %s on", s.At)
			}
			booked += int(s.Booked)
		}
		if r.Steps[0].Held != 27 || r.Steps[0].Booked != 0 || booked != 8 || r.TermsTotal != 25 || len(r.Terms) != 20 {
			t.Errorf("got %+v, %d terms of %d", r.Steps, len(r.Terms), r.TermsTotal)
		}
	}
	page := d.get(t, "/ui/calendar").Body.String()
	for _, want := range []string{`class="b-booked"`, "25 terms ending or booked, the first 20", "8 booked"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	if got := asked[view.List[view.ContractRow]](t, d, "/contracts?q=later"); len(got.Items) != 1 || got.Items[0].Phase != v1alpha1.PhaseBooked {
		t.Errorf("the list of contracts shows %+v", got.Items)
	}
}

// TestTablesHaveRoles: below 700 px tables are drawn as blocks, which takes from them what
// they are unless it is said.
func TestTablesHaveRoles(t *testing.T) {
	d, b := newDaemon(t), small()
	d.show(b)
	part := regexp.MustCompile(`<(table|thead|tbody|tr|th|td)\b[^>]*>`)
	for _, path := range []string{"contracts", "intents", "providers", "flavors", "flavors/paris/h100-pool", "tenants", "cost", "peerings"} {
		page := d.get(t, "/ui/"+path).Body.String()
		found := part.FindAllString(page, -1)
		for _, tag := range found {
			if !strings.Contains(tag, ` role="`) {
				t.Errorf("%s: %s has no role", path, tag)
			}
		}
		if len(found) == 0 {
			t.Errorf("%s has no table", path)
		}
	}
}

// TestCostByLabel: costs are added up by a label of intents, whatever is in it.
func TestCostByLabel(t *testing.T) {
	d, b := newDaemon(t), small()
	b.Intent("vision/night", plantest.Wants(2, "nvidia-l4"), func(in *model.Intent) {
		in.Metadata.Labels = map[string]string{"team": strings.Join(hostile.Texts(), " "), "nlp-secret": "x"}
	})
	b.Round()
	b.Deliver()
	b.Tick(time.Hour)
	d.now = b.W.Now.Add(time.Hour)
	d.show(b)
	p := asked[view.CostPage](t, d, "/cost?by=label:team")
	tenants := asked[view.CostPage](t, d, "/cost")
	if len(p.Rows.Items) != 2 || p.Total.Cost.Cmp(tenants.Total.Cost) != 0 || p.Rows.Items[0].Name != "(without the label)" || len(p.Labels) != 2 {
		t.Errorf("got %+v, labels %q", p.Rows.Items, p.Labels)
	}
	text := d.get(t, "/ui/cost?by=label:team").Body.String()
	if strings.Contains(text, "<img src=x") || strings.Count(text, "<script") != 1 {
		t.Error("a label is markup")
	}
	if w := d.get(t, "/api/ui/cost.csv?by=label:team"); w.Code != http.StatusOK || !strings.HasPrefix(w.Body.String(), "label:team,cost") {
		t.Errorf("as CSV: %d %.100s", w.Code, w.Body)
	}
	d.look(view.Viewer{Groups: []string{"team-nlp"}})
	if p := asked[view.CostPage](t, d, "/cost?by=label:nlp-secret"); len(p.Labels) != 0 || len(p.Rows.Items) != 1 || p.Rows.Items[0].Name != "(without the label)" {
		t.Errorf("a member of nlp sees %+v, labels %q", p.Rows.Items, p.Labels)
	}
	d.look(view.Viewer{})
	if p := asked[view.CostPage](t, d, "/cost?by=label:team"); len(p.Rows.Items) != 0 || len(p.Labels) != 0 {
		t.Errorf("who sees totals only sees %+v", p)
	}
}

// TestPeeringPage: a pair of clusters with the contracts over it that are seen.
func TestPeeringPage(t *testing.T) {
	d, b := newDaemon(t), small()
	d.history(b)
	d.show(b)
	p := asked[view.PeeringPage](t, d, "/peerings/rome/milan")
	if p.Contracts != 3 || p.Active != 3 || p.GPUs != 6 || p.Held.Total != 3 || p.Hourly.IsZero() || p.ConsumerState == "" || p.ProviderState == "" {
		t.Errorf("%+v", p)
	}
	for _, path := range []string{"/peerings/milan/rome", "/peerings/rome/nowhere", "/peerings/rome/%3Cscript%3E"} {
		if w := d.get(t, "/api/ui"+path); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	d.look(view.Viewer{Groups: []string{"team-vision"}})
	if p := asked[view.PeeringPage](t, d, "/peerings/rome/milan"); p.Contracts != 3 {
		t.Errorf("a member sees %+v", p)
	}
	if w := d.get(t, "/api/ui/peerings/rome/berlin"); w.Code != http.StatusNotFound {
		t.Errorf("another tenant's pair: %d", w.Code)
	}
}
