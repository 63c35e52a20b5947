package drains

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A budget keeps a pod when it selects it and allows nothing.
func TestHeldBy(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "train"}}}
	budget := func(app string, allowed int32) policyv1.PodDisruptionBudget {
		return policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Name: "budget"},
			Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}},
			Status:     policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: allowed},
		}
	}
	const kept = " (PodDisruptionBudget budget allows no disruption)"
	for name, c := range map[string]struct {
		budgets []policyv1.PodDisruptionBudget
		want    string
	}{
		"none":        {nil, ""},
		"of others":   {[]policyv1.PodDisruptionBudget{budget("serve", 0)}, ""},
		"that allows": {[]policyv1.PodDisruptionBudget{budget("train", 1)}, ""},
		"that keeps":  {[]policyv1.PodDisruptionBudget{budget("serve", 0), budget("train", 0)}, kept},
	} {
		t.Run(name, func(t *testing.T) {
			if got := heldBy(pod, c.budgets); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
