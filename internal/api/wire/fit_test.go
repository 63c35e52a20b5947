package wire

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// A tenant leaves pods by the thousand on the Nodes of contracts that end, all with long
// names: what a consumer's agent reports of all contracts is taken all the same.
func TestObservedFitsWhateverPodsAreLeft(t *testing.T) {
	var pods []string
	for i := range 1000 {
		pods = append(pods, fmt.Sprintf("pod %s/%s%d (PodDisruptionBudget %s allows no disruption)", strings.Repeat("n", 63), strings.Repeat("p", 240), i, strings.Repeat("b", 250)))
	}
	o := Observed{Root: strings.Repeat("a", 40), Contracts: map[string]v1alpha1.ConsumerObservation{}}
	for i := range 1000 {
		o.Contracts[fmt.Sprintf("vision-train-%d-aaaa", i)] = v1alpha1.ConsumerObservation{Reachable: true, Blockers: pods, NodeMessage: strings.Repeat("<\x1b", 5000)}
	}
	o.Contracts["nlp-serve-0-bbbb"] = v1alpha1.ConsumerObservation{Reachable: true, NodeReady: true, Message: "x"}
	o.Fit()
	text, err := json.Marshal(o)
	if err != nil || len(text) > 8<<20 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	if err := o.Check(); err != nil {
		t.Error(err)
	}
	if c := o.Contracts["nlp-serve-0-bbbb"]; len(o.Contracts) != 1001 || !c.NodeReady || c.Message != "x" || len(o.Contracts["vision-train-7-aaaa"].Blockers) == 0 {
		t.Errorf("%d contracts, %+v", len(o.Contracts), c)
	}
	few := Observed{Contracts: map[string]v1alpha1.ConsumerObservation{"a": {Blockers: pods}}}
	if few.Fit(); len(few.Contracts["a"].Blockers) != len(pods) {
		t.Errorf("one contract has %d blockers left of %d", len(few.Contracts["a"].Blockers), len(pods))
	}
}
