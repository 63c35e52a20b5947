package drains

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// A budget keeps a pod when it selects it and allows nothing.
func TestHeldBy(t *testing.T) {
	pod := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "train"}}}
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

// A cluster that shows a pod whose quantity takes days to read keeps nobody busy: quantities
// of pods that are left are not read.
func TestLeft_ReadsNoQuantity(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path != "/api/v1/pods" {
			fmt.Fprint(w, `{"kind":"PodDisruptionBudgetList","apiVersion":"policy/v1","metadata":{},"items":[]}`)
			return
		}
		fmt.Fprint(w, `{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[{"metadata":{"name":"a","namespace":"vision","uid":"u"},
"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"1e-2147483647"}}}]}},
{"metadata":{"name":"d","namespace":"vision","ownerReferences":[{"kind":"DaemonSet","name":"x","controller":true}]}}]}`)
	}))
	defer server.Close()
	api, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan []Pod, 1)
	go func() {
		done <- Left(t.Context(), api, func(ctx context.Context, do func(context.Context) error) error { return do(ctx) }, "vision-train-0")
	}()
	select {
	case pods := <-done:
		if len(pods) != 1 || pods[0].Text != "pod vision/a" || pods[0].UID != "u" {
			t.Errorf("got %+v", pods)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the pods are still being read")
	}
}
