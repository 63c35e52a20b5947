package reconciler

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/escape"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/planner"
)

// Bounds of what clusters are told beside contracts: Kubernetes itself keeps an
// Event for an hour.
const (
	newsAge  = time.Hour
	newsEach = 50 // of a cluster; the oldest go first
)

// announced is what clusters are told beside contracts, by cluster. It is only
// in memory: who restarts tells what comes from then on.
type announced struct {
	mu sync.Mutex
	by map[string][]wire.News
}

// of is what a cluster is told now, oldest first.
func (a *announced) of(cluster string, now time.Time) []wire.News {
	a.mu.Lock()
	defer a.mu.Unlock()
	young := func(n wire.News) bool { return now.Sub(n.At.Time) < newsAge }
	list := a.by[cluster]
	if i := slices.IndexFunc(list, young); i < 0 {
		delete(a.by, cluster)
	} else if i > 0 {
		a.by[cluster] = slices.Clone(list[i:])
	}
	return a.by[cluster]
}

// add adds news of a cluster unless they are known.
func (a *announced) add(cluster string, n wire.News) {
	a.mu.Lock()
	defer a.mu.Unlock()
	list := a.by[cluster]
	if slices.ContainsFunc(list, func(o wire.News) bool { return o.ID == n.ID }) {
		return
	}
	if a.by == nil {
		a.by = map[string][]wire.News{}
	}
	list = append(slices.Clone(list), n) // who was told the former list may still read it
	a.by[cluster] = list[max(0, len(list)-newsEach):]
}

// Announce lets the agents of those clusters know in which a tenant has its
// capacity: of the one that news of an intent are for, or of all its consumers.
// Safe for any goroutine; it holds up no round.
func (r *Reconciler) Announce(n wire.News) {
	s := r.standing.Load()
	if s == nil || r.opts.Now().Sub(n.At.Time) >= newsAge {
		return
	}
	told := map[string]bool{}
	for _, cluster := range consumersOf(s.fleet, n.Tenant, n.Intent) {
		r.announced.add(cluster, n)
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
	r.announced.add(c.Provider, wire.News{
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
