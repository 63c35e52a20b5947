package reconciler

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/escape"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/bulletin"
)

// Announce lets the agents of those clusters know in which a tenant has its
// capacity: of the one that news of an intent are for, or of all its consumers.
// Safe for any goroutine; it holds up no round.
func (r *Reconciler) Announce(n wire.News) {
	s := r.standing.Load()
	if s == nil || r.opts.Now().Sub(n.At.Time) >= bulletin.Age {
		return
	}
	told := map[string]bool{}
	for _, cluster := range consumersOf(s.fleet, n.Tenant, n.Intent) {
		r.announced.Add(cluster, n)
		told[cluster] = true
	}
	r.listeners.tell(false, told)
}

// warn lets the agent of a provider know what people should look at of it: one
// of each type a day, so that a restart tells it no second time.
func (r *Reconciler) warn(c planner.Condition, at v1alpha1.Time) {
	if r.opts.Shadow {
		return
	}
	sum := sha256.Sum256([]byte(strings.Join([]string{"condition", c.Provider, c.Type, at.UTC().Format(time.DateOnly)}, "\x00")))
	r.announced.Add(c.Provider, wire.News{
		ID: hex.EncodeToString(sum[:16]), At: at, Reason: c.Type, Text: escape.Line("provider " + c.Provider + ": " + c.Message), Warning: true,
	})
	r.listeners.tell(false, map[string]bool{c.Provider: true})
}

// consumersOf are the clusters in which an intent is to have its capacity;
// without an intent, in which its tenant may.
func consumersOf(f *fleet.Fleet, tenant, intent string) []string {
	t, in := f.Tenants[tenant], &v1alpha1.IntentSpec{}
	switch {
	case t == nil:
		return nil
	case intent == "":
		return t.Spec.Consumers
	}
	if it := f.Intent(tenant, intent); it != nil {
		in = &it.Spec
	}
	return []string{t.Spec.ConsumerOf(in)}
}
