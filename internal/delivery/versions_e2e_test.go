//go:build e2e

package delivery

import (
	"context"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/envtest"
)

// What is rendered as v1 is applied as v1beta1 where the cluster serves that alone: once,
// and put back when it is changed there. Where neither is served, the trouble says what to
// write into the cluster's file.
func TestPoliciesInTheServedVersion(t *testing.T) {
	const v1, beta = "admissionregistration.k8s.io/v1/mutatingadmissionpolic", "admissionregistration.k8s.io/v1beta1=true,"
	off := "--runtime-config=" + v1 + "ies=false," + v1 + "ybindings=false"
	clusters := envtest.Clusters(t,
		env.ClusterOptions{Name: "rome", APIServerArgs: []string{"--disable-admission-plugins=ServiceAccount,MutatingAdmissionPolicy", strings.Replace(off, "=", "="+beta, 1)}},
		env.ClusterOptions{Name: "oslo", APIServerArgs: []string{"--disable-admission-plugins=ServiceAccount,MutatingAdmissionPolicy", off}})
	for _, c := range clusters {
		if err := env.InstallLiqoCRDs(t.Context(), c.Config); err != nil {
			t.Fatal(err)
		}
	}
	access := testAccess{"rome": clusters[0], "oslo": clusters[1]}
	want := desired(t, "rome", contract("rome", "train"))
	r, rome := newRig(t, access, nil), watch(t, access["rome"])
	r.deliver(want)
	r.settled(t, want)
	policies := rome.dyn.Resource(gvr(admission, "v1beta1", "mutatingadmissionpolicies"))
	const name = "fleetbroker-intent-tolerations"
	if u, err := policies.Get(t.Context(), name, metav1.GetOptions{}); err != nil || u.GetAPIVersion() != admission+"/v1beta1" {
		t.Fatalf("got %v, %v", u, err)
	}
	applied := func() int {
		return len(slices.DeleteFunc(r.takeWrites(), func(w string) bool { return !strings.Contains(w, "/v1beta1/mutatingadmissionpolicies/") }))
	}
	if n := applied(); n != 1 {
		t.Errorf("applied %d times, want once", n)
	}
	again := want
	again.Commit = tree.Hash{1}
	r.deliver(again)
	r.settled(t, again)
	if n := applied(); n != 0 {
		t.Errorf("what stands was applied %d times", n)
	}
	if _, err := policies.Patch(t.Context(), name, "application/merge-patch+json", []byte(`{"spec":{"failurePolicy":"Ignore"}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	envtest.Eventually(t, "the policy to be put back", func(ctx context.Context) bool {
		u, err := policies.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false
		}
		spec, _ := u.Object["spec"].(map[string]any)
		return spec["failurePolicy"] == "Fail"
	})

	elsewhere := desired(t, "oslo", contract("oslo", "train"))
	r.deliver(elsewhere)
	envtest.Eventually(t, "the trouble to be said", func(context.Context) bool {
		return slices.ContainsFunc(r.Status()["oslo"].Troubles, func(p string) bool { return strings.Contains(p, "write `admission: webhook` into clusters/oslo.yaml") })
	})
}
