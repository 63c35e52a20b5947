//go:build e2e

package decodable_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetbroker/fleetbroker/internal/agent/replies"
	"github.com/fleetbroker/fleetbroker/internal/api/crd"
	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/envtest"
)

// What a real API server takes by Liqo's schemas and ours, which types cannot read, keeps
// nothing else from being read.
func TestWhatAnAPIServerTakesIsRead(t *testing.T) {
	cluster := envtest.Cluster(t, env.ClusterOptions{Name: "rome"})
	ctx := t.Context()
	if err := env.InstallLiqoCRDs(ctx, cluster.Config); err != nil {
		t.Fatal(err)
	}
	if err := env.InstallAgentCRDs(ctx, cluster.Config); err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	if err := authv1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := crd.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(replies.Bounded(cluster.Config), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	taken := 0
	create := func(text string) {
		t.Helper()
		u := &unstructured.Unstructured{}
		if err := json.Unmarshal([]byte(text), &u.Object); err != nil {
			t.Fatal(err)
		}
		if err := c.Create(ctx, u); err != nil {
			t.Logf("not taken: %v", err)
			return
		}
		taken++
	}
	for i, quantity := range []string{`"1e5.5"`, `"1e-2147483647"`, `"1e2147483647"`, `"4"`} {
		create(fmt.Sprintf(`{"apiVersion":"authentication.liqo.io/v1beta1","kind":"ResourceSlice","metadata":{"name":"s%d","namespace":"default"},"spec":{"class":"fleetbroker","providerClusterID":"paris","consumerClusterID":"rome","resources":{"cpu":%s}}}`, i, quantity))
	}
	slices := taken
	for i, resources := range []string{`{"cpu":1,"x":{"a":1}}`, `{"cpu":1,"x":1.5}`, `{"cpu":99999999999}`, `{"cpu":2}`} {
		create(fmt.Sprintf(`{"apiVersion":"fleetbroker.io/v1alpha1","kind":"ResourceRequest","metadata":{"name":"r%d","namespace":"default"},"spec":{"resources":%s}}`, i, resources))
	}
	if slices < 2 || taken < slices+2 {
		t.Errorf("the API server took %d slices and %d requests: the attack is another", slices, taken-slices)
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	var list authv1beta1.ResourceSliceList
	var requests crd.ResourceRequestList
	done := make(chan error, 2)
	go func() { done <- c.List(ctx, &list); done <- c.List(ctx, &requests) }()
	for range 2 {
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
		case <-ctx.Done():
			t.Fatal("a list is still being decoded")
		}
	}
	if len(list.Items) != slices || len(requests.Items) != taken-slices {
		t.Errorf("%d slices and %d requests are read, taken were %d and %d", len(list.Items), len(requests.Items), slices, taken-slices)
	}
}
