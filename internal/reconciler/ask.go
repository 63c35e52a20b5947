package reconciler

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/fleetbroker/fleetbroker/internal/api/genyaml"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
)

// maxField bounds each field of a Requester, in bytes.
const maxField = 253

// check refuses what no fleet would take, and makes a request of the first form
// into one with a Spec.
func check(ask *wire.Ask) error {
	q := &ask.Request
	bad := func(format string, args ...any) error {
		return refusal(http.StatusBadRequest, "BadRequest", format, args...)
	}
	if who := q.Requester; who != nil {
		for name, text := range map[string]string{"namespace": who.Namespace, "name": who.Name, "uid": who.UID, "owner": who.Owner} {
			if len(text) > maxField || !printable(text) {
				return bad("requester.%s: at most %d printable characters", name, maxField)
			}
		}
	}
	spec, err := specOf(q)
	if err != nil {
		return bad("%v", err)
	}
	switch {
	case spec.Consumer != "" && spec.Consumer != ask.Cluster:
		return bad("spec.consumer: the capacity appears in the cluster that asks, %s, not in %s", ask.Cluster, spec.Consumer)
	case spec.Stage == v1alpha1.StageFind:
		return bad("spec.stage: find reserves nothing; use `fleetbroker plan`, or stage reserve or peer")
	case spec.Suspend:
		return bad("spec.suspend: a reservation cannot begin suspended; leave it out")
	}
	spec.Consumer = ask.Cluster
	*q = wire.ReservationRequest{Spec: spec, Requester: q.Requester}
	return nil
}

// specOf is what a request of either form asks for. When nothing is said of
// waiting, it does not wait.
func specOf(q *wire.ReservationRequest) (*v1alpha1.IntentSpec, error) {
	spec := &v1alpha1.IntentSpec{}
	switch {
	case q.Spec != nil && q.RequestedResources != nil:
		return nil, fmt.Errorf("write either requestedResources or spec")
	case q.Spec != nil:
		copied := *q.Spec
		spec = &copied
	case q.RequestedResources != nil:
		resources, err := requested(q.RequestedResources)
		if err != nil {
			return nil, fmt.Errorf("requestedResources: %w", err)
		}
		spec.Resources = resources
	default:
		return nil, fmt.Errorf("nothing is asked for: write requestedResources, or spec")
	}
	if q.Priority != nil {
		spec.Priority = *q.Priority
	}
	if q.Duration != "" {
		text, err := json.Marshal(q.Duration)
		if err != nil {
			return nil, fmt.Errorf("duration: %w", err)
		}
		if err := spec.Schedule.Duration.UnmarshalJSON(text); err != nil {
			return nil, fmt.Errorf("duration: %w", err)
		}
		if spec.Schedule.Duration.Duration == 0 {
			return nil, fmt.Errorf("duration: %q must be greater than zero", q.Duration)
		}
	}
	if q.Queue != nil {
		spec.Queue = *q.Queue
	}
	spec.Queue.Policy = cmp.Or(spec.Queue.Policy, "fail")
	return spec, nil
}

// requested are the first form's quantities: cpu and memory must be above zero.
func requested(q *wire.Quantities) (v1alpha1.ResourceRequest, error) {
	out := v1alpha1.ResourceRequest{Named: v1alpha1.Resources{}}
	for _, one := range []struct {
		name, text string
		must       bool
	}{{v1alpha1.CPU, q.CPU, true}, {v1alpha1.Memory, q.Memory, true}, {v1alpha1.EphemeralStorage, q.Storage, false}, {v1alpha1.GPU, q.GPU, false}} {
		if one.text == "" && !one.must {
			continue
		}
		amount, err := v1alpha1.ParseAmount(one.name, one.text)
		if err != nil {
			return out, err // says of which resource
		}
		switch {
		case one.must && amount.IsZero():
			return out, fmt.Errorf("%s: %q is not above zero", one.name, one.text)
		case amount.IsZero():
		case one.name == v1alpha1.GPU:
			if amount.Int64() > 1<<20 {
				return out, fmt.Errorf("gpu: %q is more than any cluster has", one.text)
			}
			out.GPU = &v1alpha1.GPURequest{Count: int32(amount.Int64())}
		default:
			out.Named[one.name] = amount
		}
	}
	return out, nil
}

func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

// digestOfAsk names what is asked for: equal requests have equal digests.
func digestOfAsk(ask *wire.Ask) (string, error) {
	text, err := json.Marshal(ask.Request)
	if err != nil {
		return "", fmt.Errorf("digest of a request: %w", err)
	}
	return fmt.Sprintf("sha256:%x", sha256.Sum256(text)), nil
}

// idOf names a reservation. With a key it follows from cluster and key alone,
// so that a retry finds it whoever answers; without, from all that tells this
// request apart.
func idOf(w *waiter, digest string) string {
	switch {
	case w.ask.Key != "":
		return wire.ReservationID(w.ask.Cluster, w.ask.Key)
	case w.ask.ID != "":
		return w.ask.ID
	}
	return wire.NameReservation("body", w.ask.Cluster, digest, fmt.Sprint(w.arrived.UnixNano()), fmt.Sprint(w.nonce))
}

// intentFile is a request as it stands under requests/.
func intentFile(w *waiter, digest, tenant string, defaults v1alpha1.Duration, now v1alpha1.Time) ([]byte, error) {
	spec := *w.ask.Request.Spec
	if spec.Schedule.Duration.Duration == 0 {
		spec.Schedule.Duration = defaults
	}
	notes := map[string]string{
		v1alpha1.AnnotationRequestedBy:   w.ask.Cluster,
		v1alpha1.AnnotationRequestedAt:   now.UTC().Format(timeLayout),
		v1alpha1.AnnotationRequestDigest: digest,
	}
	put := func(name, text string) {
		if text != "" {
			notes[name] = text
		}
	}
	put(v1alpha1.AnnotationIdempotencyKey, w.ask.Key)
	if who := w.ask.Request.Requester; who != nil {
		put(v1alpha1.AnnotationRequester, strings.Trim(who.Namespace+"/"+who.Name, "/"))
		put(v1alpha1.AnnotationRequesterUID, who.UID)
		put(v1alpha1.AnnotationOwner, who.Owner)
	}
	file, err := genyaml.Marshal(&v1alpha1.ResourceIntent{
		TypeMeta: v1alpha1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindResourceIntent},
		Metadata: v1alpha1.Metadata{Name: w.id, Namespace: tenant, Annotations: notes},
		Spec:     spec,
	})
	if err != nil {
		return nil, fmt.Errorf("write the request of %s: %w", w.ask.Cluster, err)
	}
	return file, nil
}

// timeLayout of annotations.
const timeLayout = "2006-01-02T15:04:05Z07:00"
