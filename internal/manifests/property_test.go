package manifests

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// drawContract draws contract n in any state.
func drawContract(rt *rapid.T, n int) *v1alpha1.Contract {
	c := contract(
		rapid.SampledFrom([]string{"vision", "nlp", "a", "a-b"}).Draw(rt, "tenant"),
		rapid.SampledFrom([]string{"train", "serve", "batch", "x"}).Draw(rt, "intent"),
		fmt.Sprintf("c%d", n),
		provider(rapid.SampledFrom([]string{"paris", "milan"}).Draw(rt, "provider")),
		later(time.Duration(rapid.IntRange(0, 3).Draw(rt, "start"))*time.Minute),
	)
	c.Spec.Consumer = rapid.SampledFrom([]string{"rome", "oslo"}).Draw(rt, "consumer")
	c.Status.Phase = rapid.SampledFrom([]v1alpha1.Phase{
		v1alpha1.PhaseReserved, v1alpha1.PhaseActive, v1alpha1.PhaseReleasing, v1alpha1.PhaseReleased,
	}).Draw(rt, "phase")
	if rapid.IntRange(0, 3).Draw(rt, "drained") == 0 {
		c.Status.Drained = v1alpha1.TimeOf(noon)
	}
	if rapid.IntRange(0, 5).Draw(rt, "bad") == 0 {
		c.Spec.Resources[v1alpha1.GPU] = v1alpha1.AmountOf(1)
	}
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"vision", "nlp", "shared"}), 0, 3, rapid.ID).Draw(rt, "namespaces") {
		offload(append(offloaded(c), v1alpha1.OffloadNamespace{Name: name, Quota: rapid.Bool().Draw(rt, "quota")})...)(c)
	}
	return c
}

// Rendering only what a change touches must give what rendering everything
// gives, whatever the order of contracts.
func TestUpdateAgreesWithAll(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		clusters := fleet()
		contracts := map[int]*v1alpha1.Contract{}
		var ix Index
		files := map[string][]byte{}
		for round := range rapid.IntRange(1, 4).Draw(rt, "rounds") {
			var changes []model.Change
			for _, n := range rapid.SliceOfNDistinct(rapid.IntRange(0, 7), 1, 4, rapid.ID).Draw(rt, "changed") {
				var after *v1alpha1.Contract
				if rapid.IntRange(0, 3).Draw(rt, "gone") > 0 {
					after = drawContract(rt, n)
				}
				changes = append(changes, model.Change{Before: contracts[n], After: after})
				contracts[n] = after
			}
			ix = ix.With(changes)
			out, err := Update(ix, clusters, changes)
			if err != nil {
				rt.Fatal(err)
			}
			for name, b := range out.Files {
				if b == nil {
					delete(files, name)
				} else {
					files[name] = b
				}
			}
			all := slices.DeleteFunc(slices.Collect(maps.Values(contracts)), func(c *v1alpha1.Contract) bool { return c == nil }) // in any order
			want, err := All(NewIndex(all), clusters)
			if err != nil {
				rt.Fatal(err)
			}
			compareFiles(rt, round, files, want.Files)
			followed, err := All(ix, clusters)
			if err != nil {
				rt.Fatal(err)
			}
			compareFiles(rt, round, followed.Files, want.Files)
		}
	})
}

func compareFiles(rt *rapid.T, round int, got, want map[string][]byte) {
	for name := range got {
		if _, ok := want[name]; !ok {
			rt.Fatalf("round %d: %s is left over", round, name)
		}
	}
	for name, b := range want {
		if !bytes.Equal(b, got[name]) {
			rt.Fatalf("round %d: %s\ngot:\n%s\nwant:\n%s", round, name, got[name], b)
		}
	}
}

// Every directory lists exactly what lies in it, so that each is complete for
// `kubectl apply -k`; no virtual node stands without its slice.
func TestTreeIsComplete(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var contracts []*v1alpha1.Contract
		for n := range rapid.IntRange(0, 12).Draw(rt, "contracts") {
			contracts = append(contracts, drawContract(rt, n))
		}
		out, err := All(NewIndex(contracts), fleet())
		if err != nil {
			rt.Fatal(err)
		}
		listed := map[string]bool{}
		for name, b := range out.Files {
			dir, ok := strings.CutSuffix(name, "/"+kustomizationFile)
			if !ok {
				continue
			}
			var k struct {
				Resources []string `json:"resources"`
			}
			if err := yaml.UnmarshalStrict(b, &k, yaml.DisallowUnknownFields); err != nil && len(k.Resources) == 0 {
				rt.Fatalf("%s: %v", name, err)
			}
			for _, r := range k.Resources {
				listed[dir+"/"+r] = true
			}
		}
		for name := range out.Files {
			dir := strings.TrimSuffix(name, "/"+kustomizationFile)
			if strings.Count(dir, "/") > 1 && !listed[dir] {
				rt.Errorf("%s is in no kustomization", dir)
			}
			if node, ok := strings.CutSuffix(name, "-virtualnode.yaml"); ok && out.Files[node+"-slice.yaml"] == nil {
				rt.Errorf("%s has no slice", name)
			}
			delete(listed, dir)
		}
		for name := range listed {
			rt.Errorf("%s is listed and missing", name)
		}
	})
}
