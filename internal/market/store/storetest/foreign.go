package storetest

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetbroker/fleetbroker/internal/api/marketcrd"
)

// ForgeBeat puts a Heartbeat there as another account does.
func (o *Objects) ForgeBeat(h *marketcrd.Heartbeat) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.beats == nil {
		o.beats = map[string]*marketcrd.Heartbeat{}
	}
	h = h.DeepCopy()
	h.ResourceVersion = o.next()
	o.beats[h.Name] = h
	o.log = append(o.log, event{beat: h.DeepCopy()})
}

// Beat is a replica's Heartbeat as it stands, nil where there is none.
func (o *Objects) Beat(replica string) *marketcrd.Heartbeat {
	o.mu.Lock()
	defer o.mu.Unlock()
	if h := o.beats[replica]; h != nil {
		return h.DeepCopy()
	}
	return nil
}

// Touch makes an account, by its field manager, the last writer of what there is of a
// cluster: its Advertisement and its Observation.
func (o *Objects) Touch(cluster, manager string, at metav1.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	entries := []metav1.ManagedFieldsEntry{{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, Time: &at}}
	if was := o.ads[cluster]; was != nil {
		ad := was.DeepCopy()
		ad.ResourceVersion, ad.ManagedFields = o.next(), entries
		o.ads[cluster] = ad
		o.log = append(o.log, event{ad: ad.DeepCopy()})
	}
	if was := o.seen[cluster]; was != nil {
		seen := was.DeepCopy()
		seen.ResourceVersion, seen.ManagedFields = o.next(), entries
		o.seen[cluster] = seen
		o.log = append(o.log, event{seen: seen.DeepCopy()})
	}
}
