//go:build e2e && full

package liqo

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/test/env/rigtest"
)

// identities are what stands for contracts on both clusters, so that what was
// made anew or twice shows.
func (f *fleet) identities() string {
	f.t.Helper()
	var out []string
	for _, at := range []struct{ cluster, kinds string }{
		{"rome", "resourceslices.authentication.liqo.io,virtualnodes.offloading.liqo.io,namespaceoffloadings.offloading.liqo.io,nodes,namespaces,secrets,pods"},
		{"paris", "resourceslices.authentication.liqo.io,quotas.offloading.liqo.io,tenants.authentication.liqo.io,nodes,namespaces,pods"},
	} {
		text, err := f.kubectl(at.cluster, "get", at.kinds, "-A", "-o", `jsonpath={range .items[*]}{.kind} {.metadata.name} {.metadata.uid}{"\n"}{end}`)
		if err != nil {
			f.t.Fatal(err)
		}
		for line := range strings.Lines(text) {
			out = append(out, at.cluster+": "+strings.TrimSpace(line))
		}
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// The consumer's API server crashes and comes back, with the same data: meanwhile
// what was Active stays so, with the reason why nobody knows better, what is new
// waits, and a release holds its capacity. Then all goes on, and nothing was
// made anew.
func TestConsumerRestarts(t *testing.T) {
	f := start(t, "paris")
	f.Put("vision", "train", intent("vision", "train", 2))
	f.Put("nlp", "serve", intent("nlp", "serve", 1))
	train, serve := f.Contract("vision", "train", "Active"), f.Contract("nlp", "serve", "Active")
	f.apply("rome", rigtest.Deployment("vision", 2))
	f.runs("rome", "vision", train, 2)
	before, steps := f.identities(), f.steps(train)

	if err := f.Clusters["rome"].KillAPIServer(); err != nil {
		t.Fatal(err)
	}
	f.reason(train, "Active", "ConsumerUnreachable")
	f.Put("vision", "late", intent("vision", "late", 1))
	late := f.Contract("vision", "late", "Reserved")
	f.reason(late, "Reserved", "ConsumerUnreachable")
	f.runs("paris", "vision-rome", "paris-gpu", 2)
	if err := f.Clusters["rome"].StartAPIServer(f.ctx); err != nil {
		t.Fatal(err)
	}
	f.Contract("vision", "late", "Active")
	f.Eventually("the state of train has no reason", func() error {
		s, err := f.state(train)
		if err == nil && (s.Reason != "" || s.Phase != "Active") {
			err = fmt.Errorf("it is %s: %s", s.Phase, s.Why())
		}
		return err
	})
	if now := f.steps(train); now != steps {
		t.Errorf("the ledger said of %s: %s; and says: %s", train, steps, now)
	}
	after := f.identities()
	for line := range strings.Lines(before) {
		if !strings.Contains(after, strings.TrimSpace(line)) {
			t.Errorf("this is gone, or was made anew: %s", line)
		}
	}
	f.says("rome", "3", "get", "resourceslices.authentication.liqo.io", "-A", "-o", "go-template={{len .items}}")

	// Once more, while one is released.
	f.apply("rome", "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: train, namespace: vision}\nspec: {minAvailable: 2, selector: {matchLabels: {app: train}}}\n")
	f.says("rome", "1 0", "get", "pdb", "train", "-n", "vision", "-o", "jsonpath={.status.observedGeneration} {.status.disruptionsAllowed}")
	f.Remove("vision", "train")
	f.Contract("vision", "train", "Releasing")
	if err := errors.Join(f.Clusters["rome"].KillAPIServer(), f.Clusters["rome"].StartAPIServer(f.ctx)); err != nil {
		t.Fatal(err)
	}
	f.run("rome", "delete", "pdb", "train", "-n", "vision")
	f.Contract("vision", "train", "Released")
	f.says("rome", "", "get", "resourceslices.authentication.liqo.io,virtualnodes.offloading.liqo.io,node", "-A", "-l", "fleetbroker.io/contract="+train, "-o", "name")
	f.ready(serve, "nlp.serve")
	f.ready(late, "vision.late")
	f.Sound()
}
