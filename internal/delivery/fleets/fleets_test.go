package fleets

import (
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

const id, otherID = "f3k9q2abu7", "a0a0a0a0a0"

func TestSet_NamesAreTheFleets(t *testing.T) {
	seen := map[string]string{}
	for _, s := range []Set{{Namespace: "fleetbroker"}, {id, "fleetbroker"}, {otherID, "fleetbroker"}, {id, "brokers"}} {
		// The definition of KEP-3659: base64url(sha256("<name>.<namespace>.ConfigMap.")).
		if got := s.ID(); !strings.HasPrefix(got, "applyset-") || !strings.HasSuffix(got, "-v1") || len(got) != len("applyset-")+43+len("-v1") {
			t.Errorf("%+v: id %s", s, got)
		}
		if was, taken := seen[s.ID()]; taken {
			t.Errorf("%+v has the id of %s", s, was)
		}
		seen[s.ID()] = s.Name()
		parent := s.Parent([]string{"x"}, []string{"a", "b"})
		if parent.GetLabels()[labelID] != s.ID() || parent.GetName() != s.Name() || (parent.GetAnnotations()[annotationAdopted] != "") != (s.Fleet != "") {
			t.Errorf("%+v: parent %v", s, parent)
		}
	}
	if got := (Set{}).Name(); got != "fleetbroker" {
		t.Errorf("a fleet without an id has the Lease %s; want fleetbroker", got)
	}
	if long := (Set{Fleet: strings.Repeat("x", 80)}).Name(); len(long) > 63 {
		t.Errorf("got a name of %d characters", len(long))
	}
}

// object is one of a kind, with labels or annotations as "key=value".
func object(kind string, notes ...string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"kind": kind, "metadata": map[string]any{"name": "x"}}}
	labels, annotations := map[string]string{}, map[string]string{}
	for _, n := range notes {
		k, v, _ := strings.Cut(n, "=")
		if rest, ok := strings.CutPrefix(k, "@"); ok {
			annotations[rest] = v
		} else {
			labels[k] = v
		}
	}
	u.SetLabels(labels)
	u.SetAnnotations(annotations)
	return u
}

func TestSet_Other(t *testing.T) {
	set, old, tenant := Set{id, "fleetbroker"}, Set{Namespace: "fleetbroker"}, v1alpha1.LabelTenant+"=vision"
	of := func(s Set) string { return LabelPartOf + "=" + s.ID() }
	for name, tc := range map[string]struct {
		set  Set
		u    *unstructured.Unstructured
		want string
	}{
		"nothing":                           {set, nil, ""},
		"own":                               {set, object("ResourceSlice", of(set), v1alpha1.LabelFleet+"="+id), ""},
		"made by hand":                      {set, object("ResourceSlice"), ""},
		"a tool's, of this fleet":           {set, object("ResourceSlice", v1alpha1.LabelFleet+"="+id), ""},
		"another fleet's":                   {set, object("ResourceSlice", of(set), v1alpha1.LabelFleet+"="+otherID), "fleet " + otherID},
		"another fleet's, to one without":   {old, object("ResourceSlice", v1alpha1.LabelFleet+"="+id), "fleet " + id},
		"of before":                         {set, object("ResourceSlice", of(old)), "a fleet without an id"},
		"of before, to one without":         {old, object("ResourceSlice", of(old)), ""},
		"another set":                       {old, object("ResourceSlice", LabelPartOf+"=applyset-x-v1"), "the set applyset-x-v1"},
		"namespace":                         {set, object("Namespace", tenant, "@"+v1alpha1.LabelFleet+"="+id), ""},
		"another's namespace":               {set, object("Namespace", tenant, "@"+v1alpha1.LabelFleet+"="+otherID), "fleet " + otherID},
		"a team's namespace":                {set, object("Namespace", tenant), ""},
		"namespace of before":               {set, object("Namespace", tenant, "@"+AnnotationApplied+"=00"), "a fleet without an id"},
		"a peering's namespace is no one's": {set, object("Namespace", "@"+AnnotationApplied+"=00"), ""},
	} {
		if got := tc.set.Other(tc.u); got != tc.want {
			t.Errorf("%s: Other = %q; want %q", name, got, tc.want)
		}
	}
}

// Fields that the old manager applied are the new one's, whether it applied or
// patched them, those of others stay theirs, and a second time changes nothing.
func TestSet_ManagedFieldsChangeHands(t *testing.T) {
	fields := func(s string) *metav1.FieldsV1 { return metav1.NewFieldsV1(s) }
	before := []metav1.ManagedFieldsEntry{
		{Manager: "fleetbroker", Operation: metav1.ManagedFieldsOperationApply, APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: fields(`{"f:spec":{"f:class":{}}}`)},
		{Manager: "fleetbroker", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: fields(`{"f:metadata":{"f:annotations":{"f:x":{}}}}`)},
		{Manager: "liqo", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: fields(`{"f:spec":{"f:csr":{}}}`)},
		{Manager: "fleetbroker-poke", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: fields(`{"f:metadata":{"f:annotations":{"f:poke":{}}}}`)},
	}
	set := Set{id, "fleetbroker"}
	after, err := set.managed(slices.Clone(before))
	if err != nil {
		t.Fatal(err)
	}
	by := map[string]string{}
	for _, e := range after {
		by[e.Manager+" "+string(e.Operation)] += e.FieldsV1.GetRawString()
	}
	if own := by["fleetbroker-"+id+" Apply"]; len(by) != 3 || !strings.Contains(own, "f:class") || !strings.Contains(own, "f:x") ||
		!strings.Contains(by["liqo Update"], "f:csr") || !strings.Contains(by["fleetbroker-poke Update"], "f:poke") {
		t.Errorf("fields belong to %v", by)
	}
	again, err := set.managed(slices.Clone(after))
	if err != nil || len(again) != len(after) {
		t.Errorf("a second time: %v, %v", again, err)
	}
}

// Nobody adopts beside a daemon that renews the old Lease: it is waited for by this
// one's clock, whatever time the Lease says.
func TestElder_WaitsUntilTheLeaseIsNoLongerRenewed(t *testing.T) {
	start := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	lease := func(version, who string) *coordinationv1.Lease {
		seconds := int32(30)
		l := &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: &who, LeaseDurationSeconds: &seconds}}
		l.ResourceVersion = version
		return l
	}
	var e Elder
	for _, step := range []struct {
		after       time.Duration
		version     string
		who, holder string
	}{
		{0, "1", "old", "old"}, {29 * time.Second, "1", "old", "old"},
		{31 * time.Second, "2", "old", "old"}, // renewed meanwhile
		{60 * time.Second, "2", "old", "old"}, {61 * time.Second, "2", "old", ""},
		{62 * time.Second, "3", "", ""}, {63 * time.Second, "4", "me", ""},
	} {
		if got := e.holder(lease(step.version, step.who), "me", start.Add(step.after)); got != step.holder {
			t.Errorf("after %s the holder is %q; want %q", step.after, got, step.holder)
		}
	}
}
