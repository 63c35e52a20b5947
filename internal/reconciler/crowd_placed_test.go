package reconciler

import (
	"fmt"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
)

// roomy is a fleet with room for so many intents of one tenant, all on one flavor.
func roomy(n int) map[string]string {
	out := map[string]string{
		"fleet.yaml":              "apiVersion: fleetbroker.io/v1alpha1\nkind: Fleet\nmetadata: {name: acme}\nspec:\n  limits: {contracts: 100000}\n  writeBack: {inputs: main, branch: ledger, author: {name: fleetbroker, email: broker@example.org}}\n",
		"tenants/nlp.yaml":        nlp,
		"flavors/paris/h100.yaml": "apiVersion: fleetbroker.io/v1alpha1\nkind: Flavor\nmetadata: {name: h100, namespace: paris}\nspec:\n  capacity: {cpu: \"1000000\", memory: 1000Ti, pods: \"1000000\", ephemeral-storage: 10000Ti, gpu: 800}\n  gpu: {vendor: nvidia, model: nvidia-h100, memory: 80Gi, resourceName: nvidia.com/gpu}\n  price: {currency: EUR, perHour: {gpu: \"2.50\"}}\n",
	}
	for i := range n {
		name := fmt.Sprintf("m%05d", i)
		out["intents/vision/more/"+name+".yaml"] = "apiVersion: fleetbroker.io/v1alpha1\nkind: ResourceIntent\nmetadata: {name: " + name + ", namespace: vision}\nspec:\n  resources: {cpu: \"1\", memory: 1Gi, pods: \"1\", ephemeral-storage: 1Gi}\n  placement: {allowAccelerators: true}\n"
	}
	return out
}

// BenchmarkCrowdPlaced is what the placed contracts of one tenant cost in
// processor time, with the write-back and a remote in memory: the longest round
// while they are placed, the round that places another tenant's intent once they
// are, the round that writes that all of them work, and a start. Without any is
// the baseline; 1,000 is the default of limits.contracts.
func BenchmarkCrowdPlaced(b *testing.B) {
	for _, n := range []int{0, 1000, 20_000} {
		b.Run(fmt.Sprintf("contracts=%d", n), func(b *testing.B) {
			for range b.N {
				crowdPlaced(b, n)
			}
		})
	}
}

func crowdPlaced(b *testing.B, n int) {
	s, says := newStory(&testing.T{}, "ledger"), &spoken{said: v1alpha1.ConsumerObservations{}, generation: 1}
	puts := map[string][]byte{}
	for name, content := range roomy(n) {
		puts[name] = []byte(content)
	}
	if _, err := s.remote.Commit("main", ada, "Ask", gitobj.Change{Puts: puts}); err != nil {
		b.Fatal(err)
	}
	s.r.opts.Delivery = says
	round := func() (took time.Duration, rests bool) {
		s.at = s.at.Add(10 * time.Second)
		before := processorTime(b)
		out, err := s.r.Round(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		return processorTime(b) - before, !out.Again && len(out.Committed) == 0
	}
	rest := func() (longest time.Duration) {
		for range 100 {
			took, rests := round()
			longest = max(longest, took)
			if rests {
				return longest
			}
		}
		b.Fatal("the reconciler does not come to rest")
		return 0
	}
	report := func(took time.Duration, what string) {
		b.ReportMetric(float64(took.Microseconds())/1000, what+"-ms")
	}
	s.r.Reread()
	report(rest(), "placed")
	if held := s.r.ledger.Held(); held != n {
		b.Fatalf("%d of %d are held", held, n)
	}
	var longest time.Duration
	for i := range 5 {
		name := fmt.Sprintf("q%d", i)
		s.push(map[string]string{"intents/nlp/" + name + ".yaml": "apiVersion: fleetbroker.io/v1alpha1\nkind: ResourceIntent\nmetadata: {name: " + name + ", namespace: nlp}\nspec:\n  resources: {cpu: \"4\", memory: 16Gi, pods: \"4\", gpu: \"H100:1\"}\n"})
		s.r.Reread()
		took, _ := round()
		longest = max(longest, took)
		if len(s.r.ledger.ByIntent("nlp", name)) != 1 {
			b.Fatal("the other tenant's intent is not placed")
		}
		rest()
	}
	report(longest, "another")
	seen := map[string]v1alpha1.ConsumerObservation{}
	for c := range s.r.ledger.Contracts() {
		seen[c.Metadata.Name] = v1alpha1.ConsumerObservation{Reachable: true, Slice: v1alpha1.Present, Granted: c.Spec.Resources, VirtualNode: v1alpha1.Present, Node: v1alpha1.Present, NodeReady: true, Allocatable: c.Spec.Resources, Offloading: true}
	}
	says.said, says.generation = v1alpha1.ConsumerObservations{"rome": seen}, says.generation+1
	report(rest(), "works")
	s.start()
	s.r.opts.Delivery = says
	s.r.Reread()
	report(rest(), "start")
}
