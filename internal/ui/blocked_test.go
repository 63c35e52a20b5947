package ui_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/plantest"
	"github.com/fleetbroker/fleetbroker/internal/ui/view"
)

// TestQueue_BlockedByOthers: who waits for CPU, parts of cards or other accelerators sees who
// holds these, too, and no account that holds what they do not wait for.
func TestQueue_BlockedByOthers(t *testing.T) {
	d, b := newDaemon(t), small()
	asks := func(resources string) func(*v1alpha1.IntentSpec) {
		return func(s *v1alpha1.IntentSpec) {
			s.Resources = v1alpha1.ResourceRequest{Named: plantest.Amounts(resources)}
		}
	}
	parts := func(n int32) func(*v1alpha1.IntentSpec) {
		return func(s *v1alpha1.IntentSpec) {
			s.Resources = v1alpha1.ResourceRequest{Named: plantest.Amounts("cpu=1 memory=1Gi"), GPU: &v1alpha1.GPURequest{Count: n, Profile: "1g.10gb"}}
		}
	}
	b.Offer("milan/cpu", plantest.Costs("0", "cpu=0.02"))
	b.Offer("milan/mig", plantest.Cards("nvidia-a100", 7, "10Gi"), plantest.Costs("0.30"), plantest.Spec(func(s *v1alpha1.FlavorSpec) {
		s.GPU.Sharing, s.GPU.Profile, s.GPU.UnitsPerGPU = "mig", "1g.10gb", 7
	}))
	b.Offer("milan/gaudi", plantest.Capacity("habana.ai/gaudi=8"), plantest.Costs("0", "habana.ai/gaudi=1.10"))
	b.Intent("vision/build", plantest.With(asks("cpu=200 memory=64Gi")))
	b.Intent("vision/parts", plantest.With(parts(5)))
	b.Intent("vision/gaudi", plantest.With(asks("cpu=4 memory=4Gi habana.ai/gaudi=6")))
	b.Round()
	b.Deliver()
	b.Intent("nlp/build", plantest.With(asks("cpu=100 memory=64Gi")))
	b.Intent("nlp/parts", plantest.With(parts(4)))
	b.Intent("nlp/gaudi", plantest.With(asks("cpu=4 memory=4Gi habana.ai/gaudi=4")))
	b.Round()
	d.show(b)
	got := map[string][]view.Holder{}
	for _, r := range asked[view.List[view.QueueRow]](t, d, "/queue?q=nlp/").Items {
		got[r.Name] = r.BlockedBy
	}
	for name, want := range map[string]view.Holder{
		"build": {Tenant: "vision", Contracts: 1, Resources: plantest.Amounts("cpu=200")},
		"parts": {Tenant: "vision", Contracts: 1, GPUs: 5},
		"gaudi": {Tenant: "vision", Contracts: 1, Resources: plantest.Amounts("habana.ai/gaudi=6")},
	} {
		if h := got[name]; len(h) != 1 || h[0].Tenant != want.Tenant || h[0].Contracts != want.Contracts || h[0].GPUs != want.GPUs || !h[0].Resources.Equal(want.Resources) {
			t.Errorf("nlp/%s is blocked by %+v, want %+v", name, h, want)
		}
	}
	page := d.get(t, "/ui/queue").Body.String()
	for _, want := range []string{"</a>, 200 CPU in 1 contract", "</a>, 5 GPUs in 1 contract", "</a>, 6 habana.ai/gaudi in 1 contract"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

// TestQueue_BlockedByPoolsAndBookings: who waits sees who holds what flavors of one pool have in
// common, and who has booked what is free until then; of tenants that one does not see there is
// their sum alone.
func TestQueue_BlockedByPoolsAndBookings(t *testing.T) {
	d, b := newDaemon(t), small()
	pool := plantest.Spec(func(s *v1alpha1.FlavorSpec) { s.Pool = "shared" })
	room := plantest.Capacity("cpu=64 memory=512Gi pods=200 ephemeral-storage=1Ti")
	b.Offer("milan/small", room, pool, plantest.In("one", "one-a"), plantest.Costs("0", "cpu=0.01"))
	b.Offer("milan/large", room, pool, plantest.In("two", "two-a"), plantest.Costs("0", "cpu=0.01"))
	b.Offer("milan/h200", plantest.Cards("nvidia-h200", 8, "141Gi"), plantest.Costs("4"))
	b.Tenant("speech", "rome", func(t *v1alpha1.TenantSpec) { t.Quota = &v1alpha1.TenantQuota{Book: true} })
	cpus := func(n, region string) func(*v1alpha1.IntentSpec) {
		return func(s *v1alpha1.IntentSpec) {
			s.Resources = v1alpha1.ResourceRequest{Named: plantest.Amounts("cpu=" + n + " memory=4Gi")}
			s.Placement.Regions = []string{region}
		}
	}
	at := v1alpha1.TimeOf(b.W.Now.Add(48 * time.Hour))
	b.Intent("vision/pooled", plantest.With(cpus("40", "two")))
	b.Intent("speech/later", plantest.Wants(6, "H200"), plantest.With(func(s *v1alpha1.IntentSpec) {
		s.Schedule.Book, s.Schedule.NotBefore, s.Schedule.Duration = true, at, v1alpha1.Duration{Duration: 24 * time.Hour}
	}))
	b.Round()
	b.Deliver()
	b.Intent("nlp/pooled", plantest.With(cpus("40", "one")))
	b.Intent("nlp/open", plantest.Wants(4, "H200"))
	b.Round()
	d.show(b)
	got := map[string][]view.Holder{}
	for _, r := range asked[view.List[view.QueueRow]](t, d, "/queue?q=nlp/").Items {
		got[r.Name] = r.BlockedBy
	}
	if h := got["pooled"]; len(h) != 1 || h[0].Tenant != "vision" || h[0].Booked || h[0].Contracts != 1 || !h[0].Resources.Equal(plantest.Amounts("cpu=40")) {
		t.Errorf("nlp/pooled is blocked by %+v, want what vision holds of the pool", h)
	}
	if h := got["open"]; len(h) != 1 || h[0].Tenant != "speech" || !h[0].Booked || h[0].GPUs != 6 || h[0].Contracts != 1 || h[0].Begins != at || !h[0].Ends.IsZero() {
		t.Errorf("nlp/open is blocked by %+v, want what speech has booked from %s", h, at)
	}
	if page := d.get(t, "/ui/queue").Body.String(); !strings.Contains(page, "</a>, 6 GPUs in 1 booking, the first begins <time") {
		t.Errorf("the page does not tell of the booking: %s", page)
	}
}

// TestCalendar_Axis: a calendar's axis has round dates between its ends, few enough to be
// read, whatever the number of days; and the chart has a line at each.
func TestCalendar_Axis(t *testing.T) {
	d := newDaemon(t)
	d.show(small())
	for query, want := range map[string][2]string{"?days=1": {"18:00", "06:00"}, "?days=7": {"Sun 22", "Fri 27"}, "?days=30": {"30 Nov", "14 Dec"}, "?days=90": {"30 Nov", "25 Jan"}, "?days=366": {"2027", "Mar"}} {
		page := d.get(t, "/ui/calendar"+query).Body.String()
		_, chart, _ := strings.Cut(page, `<svg class="calendar"`)
		chart, rest, _ := strings.Cut(chart, "</svg>")
		_, axis, _ := strings.Cut(rest, `<svg class="axis"`)
		axis, _, _ = strings.Cut(axis, "</svg>")
		lines, words := strings.Count(chart, `class="b-tick"`), strings.Count(axis, "<text")
		if lines < 3 || lines > 13 || words < 3 || words > lines+1 || !strings.Contains(axis, ">now<") || !strings.Contains(axis, ">"+want[0]+"<") || !strings.Contains(axis, ">"+want[1]+"<") {
			t.Errorf("%s: %d lines, want %q in %s", query, lines, want, axis)
		}
	}
}
