package delivery

import (
	"context"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/manifests"
)

const (
	// maxToldRefusals bounds how many files are named, each by itself.
	maxToldRefusals = 20
	// maxNote is the longest note that an Event takes.
	maxNote = 1024
	// reasonRefused is that of events about what is not delivered.
	reasonRefused = "NotDelivered"
)

var events = gvr("events.k8s.io", "v1", "events")

// conflicts say of namespaces why their offloading is refused, in order.
func conflicts(refused map[string]string) []string {
	var out []string
	for _, namespace := range slices.Sorted(maps.Keys(refused)) {
		out = append(out, conflict(namespace, refused[namespace]))
	}
	return out
}

func conflict(namespace, why string) string { return "namespace " + namespace + ": " + why }

// newOnes are those that were not there before, as many as are told.
func newOnes(before, now []string) []string {
	var out []string
	for _, text := range now {
		if len(out) < maxToldRefusals && !slices.Contains(before, text) {
			out = append(out, text)
		}
	}
	return out
}

// refusedHere are the namespaces that an agent offloads to nobody: those that the
// broker names, and those that the contracts which it was given show to clash. The
// last look at remote names is where they are applied.
func refusedHere(m wire.Manifests) map[string]string {
	out := maps.Clone(m.Refused)
	if m.Cluster == nil {
		return out
	}
	name := m.Cluster.Metadata.Name
	var standing []*v1alpha1.Contract // they come without their phase
	for _, c := range m.Contracts {
		if _, rendered := m.Files[strings.TrimPrefix(manifests.SliceFile(c), manifests.Dir(name)+"/")]; rendered {
			with := *c
			with.Status.Phase = v1alpha1.PhaseReserved
			standing = append(standing, &with)
		}
	}
	for at, why := range manifests.RemoteConflicts(slices.Values(standing), map[string]*v1alpha1.Cluster{name: m.Cluster}) {
		if out == nil {
			out = map[string]string{}
		}
		if out[at[1]] == "" {
			out[at[1]] = why
		}
	}
	return out
}

// tellRefused writes an Event into the cluster about each thing that is newly
// refused, beside the ApplySet's parent. One that cannot be written is in the
// status and the log all the same.
func (w *worker) tellRefused(ctx context.Context, c *conn) {
	w.mu.Lock()
	untold := w.untold
	w.untold = nil
	w.mu.Unlock()
	for _, note := range untold {
		event := w.refusal(note)
		err := c.call(ctx, func(ctx context.Context) error {
			_, err := c.dynamic.Resource(events).Namespace(w.options.Namespace).Create(ctx, event, metav1.CreateOptions{FieldManager: c.manager})
			return err
		})
		if err != nil {
			w.log.Info("the cluster takes no event of what is not delivered", "error", explain(err))
			return
		}
	}
}

func (w *worker) refusal(note string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "events.k8s.io/v1", "kind": "Event",
		"metadata":  map[string]any{"generateName": "fleetbroker-refused-", "namespace": w.options.Namespace},
		"eventTime": w.options.Clock.Now().UTC().Format(metav1.RFC3339Micro),
		"type":      "Warning", "reason": reasonRefused, "action": "Deliver",
		"reportingController": "fleetbroker.io/delivery", "reportingInstance": short(w.options.Identity, 128),
		"note":      short(note, maxNote),
		"regarding": map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "namespace": w.options.Namespace, "name": w.own.Name()},
	}}
}

// short is a text of at most so many bytes.
func short(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit -= len("…"); limit > 0 && text[limit]&0xC0 == 0x80; limit-- { // within a character
	}
	return text[:limit] + "…"
}
