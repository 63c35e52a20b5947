package reconciler

import (
	"fmt"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/bulletin"
)

// News go to the clusters that they are for, once, wake them, and are forgotten
// after an hour.
func TestAnnounce(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	tenant := &v1alpha1.Tenant{Metadata: v1alpha1.Metadata{Name: "vision"}, Spec: v1alpha1.TenantSpec{Consumers: []string{"rome", "oslo"}}}
	r := &Reconciler{opts: Options{Now: func() time.Time { return now }}}
	news := func(id, intent string, age time.Duration) wire.News {
		return wire.News{ID: id, At: v1alpha1.TimeOf(now.Add(-age)), Tenant: "vision", Intent: intent, Reason: "Queued", Text: intent + " is queued"}
	}
	r.Announce(news("early", "a", 0)) // before the first round there is nobody
	there := &model.Intent{ResourceIntent: &v1alpha1.ResourceIntent{Metadata: v1alpha1.Metadata{Name: "there", Namespace: "vision"}}}
	there.Spec.Consumer = "oslo"
	r.standing.Store(&standing{fleet: &fleet.Fleet{Tenants: map[string]*v1alpha1.Tenant{"vision": tenant}, Intents: []*model.Intent{there}}})
	told := func(cluster string) string {
		text := ""
		for _, n := range r.announced.Of(cluster, now) {
			text += n.ID + " "
		}
		return text
	}
	woken := r.listeners.of("rome")
	r.Announce(news("1", "a", 0))
	r.Announce(news("1", "a", 0))
	r.Announce(news("budget", "", time.Minute))
	r.Announce(news("old", "a", time.Hour))
	r.Announce(news("2", "there", 0))
	select {
	case <-woken:
	default:
		t.Error("who waits for news is not woken")
	}
	if rome, oslo := told("rome"), told("oslo"); rome != "1 budget " || oslo != "budget 2 " {
		t.Errorf("rome is told %q, oslo %q", rome, oslo)
	}
	if got := consumersOf(r.standing.Load().fleet, "nobody", "a"); len(got) != 0 {
		t.Errorf("news of a tenant that is gone go to %v", got)
	}
	for i := range 2 * bulletin.Each {
		r.Announce(news(fmt.Sprint("many", i), "a", 0))
	}
	if got := r.announced.Of("rome", now); len(got) != bulletin.Each || got[bulletin.Each-1].ID != fmt.Sprint("many", 2*bulletin.Each-1) {
		t.Errorf("%d are kept, the last is %v", len(got), got[len(got)-1])
	}
	now = now.Add(bulletin.Age)
	if rome, oslo := told("rome"), told("oslo"); rome != "" || oslo != "" {
		t.Errorf("an hour later rome is told %q, oslo %q", rome, oslo)
	}
}
