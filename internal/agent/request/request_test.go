package request

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/yaml"

	"github.com/fleetbroker/fleetbroker/internal/api/crd"
	"github.com/fleetbroker/fleetbroker/internal/api/logs/logtest"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
)

const full = `
metadata: {name: train, namespace: vision, uid: u-1, annotations: {fleetbroker.io/owner: ada@example.org}}
spec:
  resources: {cpu: "16", memory: 128Gi, pods: 50, rdma/hca: "2", gpu: {count: 4, models: [H100], memory: 80Gi}}
  replicas: 3
  minReplicas: 2
  priority: 100
  duration: 72h
  placement: {providers: [paris], regions: [eu-west-3], labels: {compliance: gdpr}, maxLatency: 20ms, where: 'flavor.price.hourly < 30.0'}
  budget: {maxHourly: "120", currency: EUR}
  purchase: [spot]
  queue: {policy: wait, timeout: 24h}
  offload: true
`

func object(t *testing.T, text string) *crd.ResourceRequest {
	t.Helper()
	o := &crd.ResourceRequest{}
	if err := yaml.UnmarshalStrict([]byte(text), o); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestARequestIsAskedForAsAnIntentWould(t *testing.T) {
	q, err := askOf(object(t, full))
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(q)
	if err != nil {
		t.Fatal(err)
	}
	want := &wire.ReservationRequest{
		Requester: &wire.Requester{Namespace: "vision", Name: "train", UID: "u-1", Owner: "ada@example.org"}, Spec: &v1alpha1.IntentSpec{},
	}
	const intent = `
resources: {cpu: "16", memory: 128Gi, pods: "50", rdma/hca: "2", gpu: {count: 4, models: [H100], memory: 80Gi}}
replicas: 3
minReplicas: 2
gang: false
priority: 100
schedule: {duration: 72h}
placement: {providers: {allow: [paris]}, regions: [eu-west-3], labels: {compliance: gdpr}, maxLatency: 20ms, where: 'flavor.price.hourly < 30.0'}
budget: {maxHourly: "120", currency: EUR}
purchase: [spot]
queue: {policy: wait, timeout: 24h}
offload: {namespaces: [{name: vision}]}
`
	if err := yaml.UnmarshalStrict([]byte(intent), want.Spec); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(text) {
		t.Errorf("asks\n%s\nwant\n%s", got, text)
	}
}

func TestTheOwnerIsWhoMadeItElseItsController(t *testing.T) {
	o := object(t, full)
	o.Annotations = nil
	yes := true
	o.OwnerReferences = []metav1.OwnerReference{{Kind: "Notebook", Name: "ada"}, {Kind: "Job", Name: "nightly", Controller: &yes}}
	if got := ownerOf(o); got != "Job/nightly" {
		t.Errorf("owner %q", got)
	}
	o.Annotations = map[string]string{v1alpha1.AnnotationOwner: strings.Repeat("x", 400)}
	if got := ownerOf(o); len(got) > 253 {
		t.Errorf("an owner of %d bytes", len(got))
	}
}

// fake answers what it is told to.
type fake struct {
	reservation wire.Reservation
	err         error
	keys        []string
}

func (f *fake) Reserve(_ context.Context, key string, _ wire.ReservationRequest) (wire.Reservation, error) {
	f.keys = append(f.keys, key)
	return f.reservation, f.err
}
func (f *fake) Release(context.Context, string) error { return f.err }

func TestAnswers(t *testing.T) {
	no := func(status int, reason string, after time.Duration) error {
		return &wire.Refusal{Status: status, Body: wire.Error{Reason: reason, Error: "words"}, RetryAfter: after}
	}
	for name, c := range map[string]struct {
		broker fake
		phase  string
		reason string
		again  time.Duration
	}{
		"reserved":      {fake{reservation: wire.Reservation{ID: "rq-1", Contract: "c", Status: wire.ReservationStatus{Phase: wire.PhaseReserved}}}, crd.RequestReserved, "", 0},
		"queued":        {fake{reservation: wire.Reservation{ID: "rq-1", Status: wire.ReservationStatus{Phase: wire.PhasePending}}}, crd.RequestPending, "", 0},
		"nothing fits":  {fake{err: no(http.StatusConflict, "NothingFits", 0)}, crd.RequestFailed, "NothingFits", 0},
		"a mistake":     {fake{err: no(http.StatusBadRequest, "BadRequest", 0)}, crd.RequestFailed, "BadRequest", 0},
		"deaf":          {fake{err: no(http.StatusServiceUnavailable, wire.ReasonDeaf, 5*time.Second)}, crd.RequestPending, wire.ReasonDeaf, 5 * time.Second},
		"too many":      {fake{err: no(http.StatusTooManyRequests, "Busy", 0)}, crd.RequestPending, "Busy", again},
		"not enabled":   {fake{err: no(http.StatusForbidden, wire.ReasonNotEnabled, 0)}, crd.RequestPending, wire.ReasonNotEnabled, again},
		"broken broker": {fake{err: no(http.StatusInternalServerError, "Oops", 0)}, crd.RequestPending, "Oops", again},
		"cut off":       {fake{err: errors.New("connection refused")}, crd.RequestPending, "NoAnswer", again},
	} {
		t.Run(name, func(t *testing.T) {
			o := object(t, full)
			o.Status.Phase = crd.RequestPending
			lines := &logtest.Lines{}
			r := &Reconciler{Cluster: "rome", Broker: &c.broker, Log: lines.Logger()}
			wait := r.ask(t.Context(), o)
			if c.broker.err == nil {
				lines.Wants(t, "FB1026")
			}
			if answered := strings.Contains(lines.String(), "msg=\"reservation answered\" namespace="+o.Namespace+" name="+o.Name+" reservation=rq-1 phase="+c.phase); answered != (c.broker.err == nil) {
				t.Errorf("logged %s", lines)
			}
			if o.Status.Phase != c.phase || o.Status.Reason != c.reason || wait != c.again {
				t.Errorf("%+v, again in %s", o.Status, wait)
			}
			if len(c.broker.keys) != 1 || c.broker.keys[0] != "u-1" {
				t.Errorf("asked with keys %v", c.broker.keys)
			}
		})
	}
}

func TestFollow(t *testing.T) {
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	id := wire.ReservationID("rome", "u-1")
	contract := func(name string, phase v1alpha1.Phase) wire.Instruction {
		return wire.Instruction{Contract: name, Provider: "paris", Request: true, Intent: id, Phase: phase, Reason: "why", Term: v1alpha1.Term{Start: v1alpha1.TimeOf(at), End: v1alpha1.TimeOf(at.Add(time.Hour))}}
	}
	word := func(later time.Duration, state v1alpha1.IntentPhase, contracts ...wire.Instruction) *wire.Instructions {
		in := &wire.Instructions{At: v1alpha1.TimeOf(at.Add(later)), Consume: append(contracts, wire.Instruction{Contract: "foreign", Request: true, Intent: "rq-other", Phase: v1alpha1.PhaseActive})}
		if state != "none" {
			in.Requests = []wire.RequestState{{ID: "rq-other"}, {ID: id, State: state, Reason: "R", Message: "M"}}
		}
		return in
	}
	for name, c := range map[string]struct {
		in       *wire.Instructions
		phase    string
		contract string
	}{
		"nothing heard":                 {nil, crd.RequestReserved, "old"},
		"older than the reservation":    {word(-time.Second, "none"), crd.RequestReserved, "old"},
		"of the same second":            {word(0, "none"), crd.RequestReserved, "old"},
		"gone":                          {word(time.Second, "none"), crd.RequestReleased, "old"},
		"peering":                       {word(1, v1alpha1.IntentPlaced, contract("a", v1alpha1.PhasePeering)), crd.RequestReserved, "a"},
		"active":                        {word(1, v1alpha1.IntentPlaced, contract("a", v1alpha1.PhaseActive)), crd.RequestActive, "a"},
		"one of two is not yet":         {word(1, v1alpha1.IntentPlaced, contract("a", v1alpha1.PhaseActive), contract("b", v1alpha1.PhaseReserved)), crd.RequestReserved, "a"},
		"degraded":                      {word(1, v1alpha1.IntentPlaced, contract("a", v1alpha1.PhaseDegraded)), crd.RequestDegraded, "a"},
		"moved":                         {word(1, v1alpha1.IntentPlaced, contract("a", v1alpha1.PhaseReleasing), contract("b", v1alpha1.PhaseActive)), crd.RequestActive, "b"},
		"queued again":                  {word(1, v1alpha1.IntentQueued, contract("a", v1alpha1.PhaseReleasing)), crd.RequestPending, "old"},
		"its term has ended":            {word(1, v1alpha1.IntentDone), crd.RequestReleased, "old"},
		"waited too long":               {word(1, v1alpha1.IntentRefused), crd.RequestFailed, "old"},
		"placed, contracts still to be": {word(1, v1alpha1.IntentPlaced), crd.RequestPending, "old"},
	} {
		t.Run(name, func(t *testing.T) {
			s := crd.ResourceRequestStatus{Phase: crd.RequestReserved, ReservationName: id, Contract: "old", ReservedAt: timeOf(at)}
			follow(&s, "rome", string(types.UID("u-1")), c.in)
			if s.Phase != c.phase || s.Contract != c.contract {
				t.Errorf("%+v", s)
			}
		})
	}
}

// Who asked finds at the object what became of it.
func TestRequestsHaveEvents(t *testing.T) {
	to := events.NewFakeRecorder(10)
	r := &Reconciler{Cluster: "rome", Events: to}
	status := func(phase, reservation, reason, message, contract string) crd.ResourceRequestStatus {
		return crd.ResourceRequestStatus{Phase: phase, ReservationName: reservation, Reason: reason, Message: message, Contract: contract}
	}
	life := []crd.ResourceRequestStatus{
		{}, status(crd.RequestPending, "", "", "", ""), status(crd.RequestPending, "", "Deaf", "ask again", ""), status(crd.RequestPending, "q", "NothingFits", "no room", ""),
		status(crd.RequestPending, "q", "NothingFits", "still no room", ""), status(crd.RequestReserved, "q", "", "", "c-0"), status(crd.RequestDegraded, "q", "Degraded", "c-0: lost", "c-0"),
	}
	for i := 1; i < len(life); i++ {
		r.tell(&crd.ResourceRequest{Status: life[i]}, &life[i-1])
	}
	close(to.Events)
	var got []string
	for e := range to.Events {
		got = append(got, e)
	}
	want := []string{
		"Normal Deaf it is not answered yet: ask again", "Normal Queued it waits in the queue: no room",
		"Normal Reserved the reservation is Reserved: c-0", "Warning Degraded the reservation is Degraded: c-0: c-0: lost",
	}
	if !slices.Equal(got, want) {
		t.Errorf("told is %q, want %q", got, want)
	}
}

// An API server refuses an Event of more than 1 kB: reasons may be longer.
func TestEventsOfLongReasonsFit(t *testing.T) {
	to := events.NewFakeRecorder(1)
	r := &Reconciler{Cluster: "rome", Events: to}
	o := &crd.ResourceRequest{Status: crd.ResourceRequestStatus{Phase: crd.RequestFailed, Reason: "NothingFits", Message: strings.Repeat("no offer: 1.2.3 ü, ", 300)}}
	r.tell(o, &crd.ResourceRequestStatus{})
	if got := <-to.Events; len(got) > 1024+100 || !utf8.ValidString(got) || !strings.Contains(got, "no offer") {
		t.Errorf("%d bytes: %.200s", len(got), got)
	}
}
