package store_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetbroker/fleetbroker/internal/api/logs/logtest"
	"github.com/fleetbroker/fleetbroker/internal/api/marketcrd"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/market"
	"github.com/fleetbroker/fleetbroker/internal/market/store"
	"github.com/fleetbroker/fleetbroker/internal/market/store/storetest"
)

func TestForeign(t *testing.T) {
	at := func(second int) *metav1.Time {
		out := metav1.NewTime(time.Date(2026, 11, 26, 12, 0, second, 0, time.UTC))
		return &out
	}
	entry := func(manager string, operation metav1.ManagedFieldsOperationType, second int) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: operation, Time: at(second), FieldsV1: metav1.NewFieldsV1("{}")}
	}
	const apply, update = metav1.ManagedFieldsOperationApply, metav1.ManagedFieldsOperationUpdate
	for name, test := range map[string]struct {
		entries []metav1.ManagedFieldsEntry
		want    string // "-": the last writer is the daemon
	}{
		"the daemon alone":               {[]metav1.ManagedFieldsEntry{entry("fleetbroker", update, 1)}, "-"},
		"another one later":              {[]metav1.ManagedFieldsEntry{entry("fleetbroker", update, 1), entry("kubectl-edit", update, 2)}, "kubectl-edit"},
		"another one before":             {[]metav1.ManagedFieldsEntry{entry("velero", update, 1), entry("fleetbroker", update, 2)}, "-"},
		"another one in the same second": {[]metav1.ManagedFieldsEntry{entry("kubectl-edit", update, 1), entry("fleetbroker", update, 1)}, "kubectl-edit"},
		"the last of two":                {[]metav1.ManagedFieldsEntry{entry("a", update, 3), entry("b", update, 2), entry("fleetbroker", update, 1)}, "a"},
		"another one alone":              {[]metav1.ManagedFieldsEntry{entry("kubectl-create", update, 1)}, "kubectl-create"},
		"applied under our name":         {[]metav1.ManagedFieldsEntry{entry("fleetbroker", update, 1), entry("fleetbroker", apply, 2)}, "fleetbroker"},
		"without a time":                 {[]metav1.ManagedFieldsEntry{{Manager: "x", Operation: update}, entry("fleetbroker", update, 1)}, "-"},
		"hidden":                         {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := store.Foreign(test.entries)
			if test.want == "-" {
				if len(got) > 0 {
					t.Errorf("got %+v, want none", got)
				}
				return
			}
			if len(got) != 1 || got[0].Manager != test.want || got[0].FieldsV1 != nil {
				t.Errorf("got %+v, want %q alone, without fields", got, test.want)
			}
		})
	}
}

// What another account wrote is ignored, logged and counted once by each replica, and
// written again with the next report.
func TestForeignWriter(t *testing.T) {
	r := newReplicas(t, "a")
	var log bytes.Buffer
	b := r.startLogging("b", &log)
	a := r.all[0]
	r.tick(11)
	must(t, a.report("paris", 7, 1, flavors("paris", 8, 0)))
	must(t, a.store.Observe(t.Context(), "paris", wire.Observed{Generation: "7.1", Root: strings.Repeat("ab", 20)}))
	r.tick(11)
	if n := b.store.Status().Foreign; n != 0 || b.gpus("paris") != 8 {
		t.Fatalf("%d foreign writes, %d GPUs; want none and 8", n, b.gpus("paris"))
	}

	r.objects.Touch("paris", "kubectl-edit", metav1.NewTime(r.now))
	r.tick(1)
	b.api.Again() // all is listed again: nothing new
	r.tick(1)
	for _, one := range r.all {
		if n := one.store.Status().Foreign; n != 2 {
			t.Errorf("%s counted %d foreign writes, want 2: the advertisement and the observation", one.name, n)
		}
		if got := one.gpus("paris"); got != 8 {
			t.Errorf("%s has %d GPUs, want the 8 of before", one.name, got)
		}
	}
	for _, object := range []string{"advertisement paris", "observation paris"} {
		logtest.Wants(t, log.String(), "FB1172")
		if n := strings.Count(log.String(), `object="`+object+`" manager=kubectl-edit`); n != 1 {
			t.Errorf("%s was logged %d times, want once:\n%s", object, n, log.String())
		}
		if b.store.Objects()[object] == "" {
			t.Errorf("%s is not among what is left out", object)
		}
	}

	// The agent reports that nothing changed: it is asked for all, and the objects are the daemon's again.
	if err := a.report("paris", 7, 1, nil); err == nil {
		t.Error("a report without a list was taken, and what the store has is another account's")
	}
	r.tick(11)
	must(t, a.report("paris", 7, 2, flavors("paris", 8, 0)))
	must(t, a.store.Observe(t.Context(), "paris", wire.Observed{Generation: "7.2", Root: strings.Repeat("ab", 20)}))
	r.tick(11)
	for _, one := range r.all {
		if left := one.store.Objects(); len(left) != 0 || one.store.Status().Foreign != 2 {
			t.Errorf("%s leaves out %v, and counted %d", one.name, left, one.store.Status().Foreign)
		}
	}
	must(t, b.report("paris", 7, 2, nil))
}

// A list that another account changed is not sold, by a replica that runs and by one that
// starts.
func TestForeignWriter_ListIsNotSold(t *testing.T) {
	r := newReplicas(t, "a")
	a := r.all[0]
	must(t, a.report("paris", 7, 1, flavors("paris", 8, 0)))
	r.tick(11)
	now := metav1.NewTime(r.now)
	r.objects.Forge(stamped("paris", 7, 2, flavors("paris", 800, 0), metav1.ManagedFieldsEntry{Manager: "curl", Time: &now}))
	r.tick(1)
	b := r.start("b", "1")
	r.tick(2)
	if got := a.gpus("paris"); got != 8 {
		t.Errorf("a has %d GPUs, want 8", got)
	}
	if got := b.gpus("paris"); got != -1 {
		t.Errorf("b has %d GPUs, want no offer", got)
	}
	r.tick(10)
	must(t, b.report("paris", 7, 2, flavors("paris", 6, 0)))
	r.tick(2)
	for _, one := range r.all {
		if got := one.gpus("paris"); got != 6 {
			t.Errorf("%s has %d GPUs, want 6", one.name, got)
		}
	}
}

// A Heartbeat that another account wrote vouches for nobody; the replica's next one counts.
func TestForeignWriter_Heartbeat(t *testing.T) {
	r := newReplicas(t, "a", "b")
	a := r.all[0]
	r.tick(11)
	h := r.objects.Beat("b")
	now := metav1.NewTime(r.now)
	h.Spec.Beat += 100
	h.Spec.Address, h.ManagedFields = "attacker:8443", []metav1.ManagedFieldsEntry{{Manager: "curl", Time: &now}}
	r.objects.ForgeBeat(h)
	ghost := &marketcrd.Heartbeat{Spec: marketcrd.HeartbeatSpec{Life: "9", Beat: 1, Serving: true, Address: "ghost:8443"}}
	ghost.Name, ghost.ManagedFields = "ghost", h.ManagedFields
	r.objects.ForgeBeat(ghost)
	r.tick(1)
	if got := a.store.Address("b"); got == "attacker:8443" {
		t.Error("a forged address counts")
	}
	if n := a.store.Status().Foreign; n != 2 {
		t.Errorf("%d foreign writes, want 2", n)
	}
	r.tick(12)
	if live, _ := a.store.Live(); len(live) != 2 || live[1] != "b" {
		t.Errorf("live are %v, want a and b", live)
	}
	if left := a.store.Objects(); len(left) != 1 || left["heartbeat ghost"] == "" {
		t.Errorf("left out: %v, want the ghost's alone", left)
	}
}

// stamped is an Advertisement that its last writer left.
func stamped(provider string, epoch, n uint64, content *wire.FlavorReport, by metav1.ManagedFieldsEntry) *marketcrd.Advertisement {
	ad := storetest.Packed(content)
	ad.Name, ad.Spec.Generation = provider, wire.Generation{Epoch: epoch, N: n}.String()
	ad.ManagedFields = []metav1.ManagedFieldsEntry{by}
	return ad
}

// startLogging is start with a log.
func (r *replicas) startLogging(name string, to *bytes.Buffer) *replica {
	r.t.Helper()
	one := &replica{name: name, api: r.objects.API(), market: market.New(market.Options{Now: func() time.Time { return r.now }})}
	one.store = store.NewShared(store.Options{API: one.api, Market: one.market, Replica: name, Life: "1", Now: func() time.Time { return r.now }, Log: slog.New(slog.NewTextHandler(to, nil))})
	one.store.Follow(r.t.Context(), one.api.Follow)
	r.all = append(r.all, one)
	return one
}
