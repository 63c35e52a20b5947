package enforce

import (
	"testing"
	"time"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	liqov1beta1 "github.com/liqotech/liqo/apis/core/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// An agent answers the slices of its own fleet: those of another one are neither denied
// for want of a contract nor withdrawn, whether their label says whose they are or what
// was granted does; and no consumer keeps what it was granted by another label.
func TestDecide_SlicesOfOtherFleetsAreLeft(t *testing.T) {
	const own, other = "f3k9q2abu7", "a0a0a0a0a0"
	promise := &Promise{Contract: "c", Slice: "c", ConsumerID: "rome", Flavor: "f", Standing: true}
	ended := *promise
	ended.Standing = false
	granted := func(contract, fleet string) map[string]string {
		return map[string]string{LabelContract: contract, LabelFleet: fleet}
	}
	for name, tc := range map[string]struct {
		fleet, label string
		by           map[string]string
		promise      *Promise
		want         Verdict
	}{
		"another's":                           {own, other, nil, nil, Leave},
		"another's, to one without an id":     {"", other, nil, nil, Leave},
		"another's of an equal name":          {own, other, nil, promise, Leave},
		"another's that was granted":          {own, other, granted("c", other), promise, Leave},
		"granted by another, no label":        {own, "", granted("c", other), nil, Leave},
		"granted before there were ids":       {own, "", granted("c", ""), nil, Leave},
		"own, without a contract":             {own, own, nil, nil, Deny},
		"no label, nothing granted":           {own, "", nil, nil, Deny},
		"own, contract ends":                  {own, own, granted("c", own), &ended, Deny},
		"relabelled after it was granted":     {own, other, granted("c", own), nil, Deny},
		"of before, its contract ends":        {own, "", granted("c", ""), &ended, Deny},
		"of before, relabelled":               {own, other, granted("c", ""), &ended, Deny},
		"fleet without an id, as it was":      {"", "", granted("c", ""), nil, Deny},
		"fleet without an id, one of an id's": {"", "", granted("c", own), nil, Leave},
	} {
		consumer := liqov1beta1.ClusterID("rome")
		s := &authv1beta1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "c", Labels: map[string]string{}}}
		if tc.label != "" {
			s.Labels[v1alpha1.LabelFleet] = tc.label
		}
		s.Spec.ConsumerClusterID = &consumer
		s.Status.NodeLabels = tc.by
		tenant := &authv1beta1.Tenant{}
		tenant.Spec.ClusterID = consumer
		now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
		got := Decide(Case{Slice: s, Tenant: tenant, Heard: true, Fleet: tc.fleet, Promise: tc.promise, Now: now, Since: now.Add(-time.Hour), Patience: time.Second, Confirmed: true})
		if got.Verdict != tc.want {
			t.Errorf("%s: %s (%s); want %s", name, got.Verdict, got.Message, tc.want)
		}
	}
}

// What is granted says by which fleet.
func TestNodeLabels_NameTheFleet(t *testing.T) {
	p := &Promise{Contract: "c", Flavor: "f"}
	if got := nodeLabels("f3k9q2abu7", p, nil)[LabelFleet]; got != "f3k9q2abu7" {
		t.Errorf("LabelFleet = %q", got)
	}
	if got, is := nodeLabels("", p, nil)[LabelFleet]; is {
		t.Errorf("a fleet without an id names %q", got)
	}
}
