//go:build e2e

package liqo

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/fleetbroker/fleetbroker/internal/delivery/peering"
	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/rig"
)

var slicesResource = schema.GroupVersionResource{Group: "authentication.liqo.io", Version: "v1beta1", Resource: "resourceslices"}

// BenchmarkLiqoAccepts is what Liqo takes by itself, whoever delivers: from a
// slice that is applied to its provider's Accepted on the consumer. The slices
// are of Liqo's own class, so that no agent is asked, and make no virtual nodes.
func BenchmarkLiqoAccepts(b *testing.B) {
	ctx, cancel := context.WithTimeout(b.Context(), 15*time.Minute)
	defer cancel()
	r, err := rig.Start(ctx, rig.Options{
		Dir: b.TempDir(), Bin: bin, Liqo: true, Consumers: []string{"rome"}, Providers: map[string][]env.GPUNode{"paris": nil}, Progress: os.Stderr,
	})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = r.Stop() }()
	side := func(name, other string) peering.Side {
		return peering.Side{
			Name: name, ID: name, Namespace: "liqo-tenant-" + other,
			Config: func(context.Context) (*rest.Config, error) { return r.Clusters[name].Config, nil },
		}
	}
	if _, err := peering.Ensure(ctx, side("rome", "paris"), side("paris", "rome"), time.Now()); err != nil {
		b.Fatal(err)
	}
	client, err := dynamic.NewForConfig(r.Clusters["rome"].Config)
	if err != nil {
		b.Fatal(err)
	}
	on := client.Resource(slicesResource).Namespace("liqo-tenant-paris")
	accept(ctx, b, on, 1) // Liqo has begun
	for b.Loop() {
		for _, n := range []int{10, 100} {
			took, all := accept(ctx, b, on, n)
			b.ReportMetric(took[n/2].Seconds()*1000, fmt.Sprintf("ms/%d-median", n))
			b.ReportMetric(took[n-1].Seconds()*1000, fmt.Sprintf("ms/%d-slowest", n))
			b.ReportMetric(all.Seconds()*1000, fmt.Sprintf("ms/%d-all", n))
		}
	}
}

// accept applies n slices, as many at once as delivery does, and says how long
// each took to be accepted, in order, and all of them together. It leaves none.
func accept(ctx context.Context, b *testing.B, on dynamic.ResourceInterface, n int) (took []time.Duration, all time.Duration) {
	b.Helper()
	watch, err := on.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		b.Fatal(err)
	}
	defer watch.Stop()
	applied := make([]time.Time, n)
	began := time.Now()
	var group errgroup.Group
	group.SetLimit(16)
	for i := range n {
		group.Go(func() error {
			applied[i] = time.Now()
			_, err := on.Create(ctx, slice(fmt.Sprintf("slice-%d-of-%d", i, n)), metav1.CreateOptions{})
			return err
		})
	}
	accepted := map[string]time.Time{}
	for len(accepted) < n {
		select {
		case event := <-watch.ResultChan():
			if u, ok := event.Object.(*unstructured.Unstructured); ok && granted(u) && accepted[u.GetName()].IsZero() {
				accepted[u.GetName()] = time.Now()
			}
		case <-ctx.Done():
			b.Fatalf("%d of %d slices are accepted: %v", len(accepted), n, ctx.Err())
		}
	}
	all = time.Since(began)
	if err := group.Wait(); err != nil {
		b.Fatal(err)
	}
	for i := range n {
		took = append(took, accepted[fmt.Sprintf("slice-%d-of-%d", i, n)].Sub(applied[i]))
	}
	slices.Sort(took)
	if err := on.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		b.Fatal(err)
	}
	for gone := 0; gone < n; {
		select {
		case event := <-watch.ResultChan():
			if event.Type == "DELETED" {
				gone++
			}
		case <-ctx.Done():
			b.Fatalf("%d of %d slices are gone: %v", gone, n, ctx.Err())
		}
	}
	return took, all
}

// slice is one that Liqo replicates and answers.
func slice(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "authentication.liqo.io/v1beta1", "kind": "ResourceSlice",
		"metadata": map[string]any{
			"name": name, "namespace": "liqo-tenant-paris",
			"labels": map[string]any{"liqo.io/remote-cluster-id": "paris", "liqo.io/remoteID": "paris", "liqo.io/replication": "true"},
		},
		"spec": map[string]any{
			"class": "default", "providerClusterID": "paris",
			"resources": map[string]any{"cpu": "4", "memory": "16Gi", "pods": "20", "ephemeral-storage": "20Gi", "nvidia.com/gpu": "1"},
		},
	}}
}

// granted reports whether the provider has accepted all of a slice.
func granted(u *unstructured.Unstructured) bool {
	list, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	return slices.ContainsFunc(list, func(c any) bool {
		m, _ := c.(map[string]any)
		return m["type"] == "Resources" && m["status"] == "Accepted"
	})
}
