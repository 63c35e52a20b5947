package agent

import (
	"context"
	"errors"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetbroker/fleetbroker/internal/api/wire"
)

// oneLease is an API with the agents' Lease, or without it.
type oneLease struct {
	lease *coordinationv1.Lease
	fails error // of the next call
}

func (l *oneLease) failure() error {
	err := l.fails
	l.fails = nil
	return err
}

func (l *oneLease) Get(_ context.Context, name string, _ metav1.GetOptions) (*coordinationv1.Lease, error) {
	if err := l.failure(); err != nil {
		return nil, err
	}
	if l.lease == nil || name != leaseName {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "leases"}, name)
	}
	return l.lease.DeepCopy(), nil
}

func (l *oneLease) Update(_ context.Context, lease *coordinationv1.Lease, _ metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	if err := l.failure(); err != nil {
		return nil, err
	}
	if lease.ResourceVersion != l.lease.ResourceVersion {
		return nil, apierrors.NewConflict(schema.GroupResource{Resource: "leases"}, lease.Name, errors.New("it was renewed"))
	}
	l.lease = lease.DeepCopy()
	return lease, nil
}

// renewing is an API in which the Lease is renewed after each Get.
type renewing struct{ *oneLease }

func (r renewing) Get(ctx context.Context, name string, o metav1.GetOptions) (*coordinationv1.Lease, error) {
	lease, err := r.oneLease.Get(ctx, name, o)
	r.lease.ResourceVersion += "1"
	return lease, err
}

// An agent that starts again, or another replica of it, does not go back behind what the
// one before was told; what is kept takes nothing from the Lease.
func TestTheLedgersNumberOutlivesTheAgent(t *testing.T) {
	holder := "a"
	api := &oneLease{lease: &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: leaseName, ResourceVersion: "7", Annotations: map[string]string{"other": "x"}},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder},
	}}
	now := epoch.Time
	agent := func(l leases) *position {
		h := &hearing{log: quiet, told: func(wire.Instructions, time.Time, bool) {}}
		p := &position{leases: l, hearing: h, now: func() time.Time { return now }, log: quiet}
		p.read(t.Context())
		return p
	}
	hears := func(p *position, seq uint64) bool {
		return p.hearing.hear("a", &wire.Instructions{Version: "v", Seq: seq}, now)
	}
	one := agent(api)
	if !hears(one, 9) {
		t.Fatal("the first agent takes no word")
	}
	if err := one.write(t.Context()); err != nil || api.lease.Annotations[annotationLedger] != "9" {
		t.Fatalf("kept %v, %v", api.lease.Annotations, err)
	}
	if api.lease.Annotations["other"] != "x" || *api.lease.Spec.HolderIdentity != "a" {
		t.Errorf("the Lease is %+v", api.lease)
	}
	api.fails = errors.New("not to be asked")
	if err := one.write(t.Context()); err != nil {
		t.Errorf("the same number is written again: %v", err)
	}
	api.fails = nil

	two := agent(api)
	if got := two.hearing.after(); got != 9 {
		t.Errorf("the next one asks after %d, want 9", got)
	}
	if hears(two, 8) {
		t.Error("the next one goes back")
	}
	if !hears(two, 9) || !hears(two, 12) {
		t.Error("the next one does not go on")
	}
	two.leases = renewing{api}
	if err := two.write(t.Context()); err != nil || two.kept != 9 {
		t.Errorf("a renewal in between: %v, and it takes %d for kept", err, two.kept)
	}
	two.leases = api
	if err := two.write(t.Context()); err != nil || api.lease.Annotations[annotationLedger] != "12" {
		t.Errorf("after that it keeps %v, %v", api.lease.Annotations, err)
	}

	// The ledger was set back by its operators.
	now = now.Add(setBack)
	if !hears(two, 3) {
		t.Error("a ledger that was set back is not taken")
	}
	if err := two.write(t.Context()); err != nil || api.lease.Annotations[annotationLedger] != "3" {
		t.Errorf("it keeps %v, %v", api.lease.Annotations, err)
	}
}

// What cannot be read keeps no agent from its work.
func TestTheLedgersNumberIsNotKnown(t *testing.T) {
	lease := func(text string) *oneLease {
		return &oneLease{lease: &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: leaseName, Annotations: map[string]string{annotationLedger: text}}}}
	}
	gone := lease("9")
	gone.fails = errors.New("connection refused")
	for name, api := range map[string]leases{"no Lease": &oneLease{}, "no API": gone, "no number": lease("x"), "too large": lease("9223372036854775808"), "below zero": lease("-1"), "nothing kept": nil} {
		h := &hearing{log: quiet, told: func(wire.Instructions, time.Time, bool) {}}
		p := &position{leases: api, hearing: h, now: time.Now, log: quiet}
		p.read(t.Context())
		if got := h.after(); got != 0 {
			t.Errorf("%s: %d is known", name, got)
		}
		if !h.hear("a", &wire.Instructions{Version: "v", Seq: 1}, time.Now()) {
			t.Errorf("%s: no word is taken", name)
		}
		if err := p.write(t.Context()); name == "no Lease" && err == nil {
			t.Error("a number is kept in no Lease")
		}
	}
}
