package reconciler

import (
	"slices"
	"testing"
)

// TestANewProviderRendersNothingAgain: what a consumer has is laid beside what it should be
// once. That a contract comes with a provider that it had none of, or its last one of a
// provider goes, renders nothing of its other contracts, of which there may be thousands; that
// provider's Cluster file still counts when it changes.
func TestANewProviderRendersNothingAgain(t *testing.T) {
	s := newStory(t, "ledger")
	s.push(map[string]string{"intents/vision/train.yaml": intentOf("train", "4")})
	s.expect(s.rest(), placed, peering)
	first := s.r.renewed.of["rome"]
	if first == nil {
		t.Fatal("rome's manifests were not compared")
	}
	at := first.of
	s.push(map[string]string{
		"clusters/berlin.yaml":     "apiVersion: fleetbroker.io/v1alpha1\nkind: Cluster\nmetadata: {name: berlin}\nspec: {roles: [provider]}\n",
		"flavors/berlin/h100.yaml": "apiVersion: fleetbroker.io/v1alpha1\nkind: Flavor\nmetadata: {name: h100, namespace: berlin}\nspec:\n  capacity: {cpu: \"64\", memory: 512Gi, gpu: 8}\n  gpu: {vendor: nvidia, model: nvidia-h100, memory: 80Gi, resourceName: nvidia.com/gpu}\n  price: {currency: EUR, perHour: {gpu: \"2.50\"}}\n",
		"intents/vision/more.yaml": intentOf("more", "8"),
	})
	if got := s.rest(); !slices.Contains(got, "place vision/more on berlin/h100 (8x nvidia-h100, 20.00 EUR/h)") {
		t.Fatalf("committed %q", got)
	}
	now := s.r.renewed.of["rome"]
	if now.of != at {
		t.Error("all of rome's contracts were rendered again for one with a provider that was new to it")
	}
	s.delete("intents/vision/train.yaml")
	s.rest()
	if s.r.renewed.of["rome"].of != at {
		t.Error("all of rome's contracts were rendered again as the last one with a provider ended")
	}
	s.push(map[string]string{
		"clusters/berlin.yaml": "apiVersion: fleetbroker.io/v1alpha1\nkind: Cluster\nmetadata: {name: berlin}\nspec: {roles: [provider], liqo: {clusterID: berlin-at-last}}\n",
	})
	s.rest()
	if now := s.r.renewed.of["rome"]; now.of == at || now.facts.Clusters["berlin"].Spec.Liqo.ClusterID != "berlin-at-last" {
		t.Error("berlin's file has changed, and rome's manifests were not compared with what they should be now")
	}
}
