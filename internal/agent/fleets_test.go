package agent

import (
	"testing"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	offloadingv1beta1 "github.com/liqotech/liqo/apis/offloading/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// What a slice of another fleet holds is told under a name that no contract of this
// one has, and counts all the same; before a broker was heard nobody's is told apart.
func TestGrantsOf_NamesSlicesOfOtherFleetsApart(t *testing.T) {
	const own, other = "f3k9q2abu7", "a0a0a0a0a0"
	var slices []*authv1beta1.ResourceSlice
	var quotas []*offloadingv1beta1.Quota
	for namespace, fleet := range map[string]string{"liqo-tenant-rome": own, "liqo-tenant-oslo": other} {
		s := &authv1beta1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: namespace, Labels: map[string]string{labelReplicated: "true", v1alpha1.LabelFleet: fleet}}}
		slices = append(slices, s)
		q := &offloadingv1beta1.Quota{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: namespace, OwnerReferences: []metav1.OwnerReference{{Kind: authv1beta1.ResourceSliceKind, Name: "c"}}}}
		q.Spec.User = "c-" + fleet
		q.Spec.Resources = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}
		quotas = append(quotas, q)
	}
	id := own
	grants, byUser := grantsOf(quotas, slices, &id)
	cpu := map[string]int64{}
	for _, g := range grants {
		cpu[g.name] = g.resources[v1alpha1.CPU].Int64()
	}
	theirs := heldName("c." + other)
	if len(cpu) != 2 || cpu["c"] != 2000 || cpu[theirs] != 2000 || byUser["c-"+own] != "c" || byUser["c-"+other] != theirs {
		t.Errorf("held are %v, users %v; want c and %s with 2 CPU each", cpu, byUser, theirs)
	}
	if grants, _ := grantsOf(quotas, slices, nil); len(grants) != 1 || grants[0].name != "c" || grants[0].resources[v1alpha1.CPU].Int64() != 4000 {
		t.Errorf("before a broker was heard: %+v", grants)
	}
}
