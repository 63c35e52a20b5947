package enforce

import (
	"testing"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
)

// Liqo takes the slices of a Drained Tenant away here and tells the consumer
// nothing: the contracts are refused, whether there are slices or not, until the
// Tenant is Active again.
func TestADrainedTenantsContractsAreRefused(t *testing.T) {
	changes := 0
	r := &Reconciler{Book: &Book{}, Changed: func() { changes++ }, refused: map[string]string{}}
	r.Book.Tell("", []Promise{
		{Contract: "a", Slice: "a", ConsumerID: "cl-rome", Standing: true},
		{Contract: "b", Slice: "b", ConsumerID: "cl-oslo", Standing: true},
		{Contract: "c", Slice: "c", ConsumerID: "cl-rome"},
	}, 1)
	drained := []authv1beta1.Tenant{{Spec: authv1beta1.TenantSpec{ClusterID: "cl-rome", TenantCondition: authv1beta1.TenantConditionDrained}}}
	r.setDrained(drained)
	r.setDrained(drained)
	if got := r.Refused(); len(got) != 1 || got["a"] == "" || changes != 1 {
		t.Fatalf("refused %v after %d changes", got, changes)
	}
	drained[0].Spec.TenantCondition = authv1beta1.TenantConditionActive
	if r.setDrained(drained); len(r.Refused()) != 0 || changes != 2 {
		t.Fatalf("refused %v after %d changes", r.Refused(), changes)
	}
}
