package request

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetbroker/fleetbroker/internal/api/crd"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
)

// askOf is a ResourceRequest as brokers take it. The specification goes through
// the text form of an intent, so that both are read by the same rules.
func askOf(o *crd.ResourceRequest) (wire.ReservationRequest, error) {
	text, err := json.Marshal(intentOf(o))
	if err != nil {
		return wire.ReservationRequest{}, fmt.Errorf("write the request: %w", err)
	}
	spec := &v1alpha1.IntentSpec{}
	if err := json.Unmarshal(text, spec); err != nil {
		return wire.ReservationRequest{}, fmt.Errorf("spec: %w", err)
	}
	return wire.ReservationRequest{
		Spec:      spec,
		Requester: &wire.Requester{Namespace: o.Namespace, Name: o.Name, UID: string(o.UID), Owner: ownerOf(o)},
	}, nil
}

// intentOf is the specification of an intent, as it would be written.
func intentOf(o *crd.ResourceRequest) map[string]any {
	s := &o.Spec
	out := map[string]any{"resources": s.Resources}
	put := func(is bool, name string, value any) {
		if is {
			out[name] = value
		}
	}
	put(s.Replicas > 0, "replicas", s.Replicas)
	put(s.MinReplicas > 0, "minReplicas", s.MinReplicas)
	put(s.MinReplicas > 0, "gang", false)
	put(s.Priority > 0, "priority", s.Priority)
	put(s.Duration != "", "schedule", map[string]any{"duration": s.Duration})
	put(s.Budget != nil, "budget", s.Budget)
	put(len(s.Purchase) > 0, "purchase", s.Purchase)
	put(s.Queue != nil, "queue", s.Queue)
	if p := s.Placement; p != nil {
		where := map[string]any{"regions": p.Regions, "labels": p.Labels}
		if len(p.Providers) > 0 {
			where["providers"] = map[string]any{"allow": p.Providers}
		}
		if p.MaxLatency != "" {
			where["maxLatency"] = p.MaxLatency
		}
		if p.Where != "" {
			where["where"] = p.Where
		}
		out["placement"] = where
	}
	put(s.Offload, "offload", map[string]any{"namespaces": []any{map[string]any{"name": o.Namespace}}})
	return out
}

// ownerOf is who asks: the user that the admission policy has written down, or
// the controller of the object.
func ownerOf(o *crd.ResourceRequest) string {
	if who := o.Annotations[v1alpha1.AnnotationOwner]; who != "" {
		return cut(who)
	}
	if c := metav1.GetControllerOf(o); c != nil {
		return cut(c.Kind + "/" + c.Name)
	}
	return ""
}

// cut is what a broker takes of a requester's field: 253 bytes.
func cut(s string) string { return v1alpha1.CutName(s, 253) }
