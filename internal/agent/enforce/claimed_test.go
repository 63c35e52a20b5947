package enforce

import (
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// A warm slice that an intent took over is found by what the contract says, not
// by the contract's name: it stays granted, its capacity is not counted against
// itself, and the Node tells the new contract.
func TestAClaimedSliceIsFoundByWhatTheContractSays(t *testing.T) {
	const warm, contract = "fleetbroker-h100-warm-0-aaaaaaaa", "vision-train-0-k3f9q2ab"
	var book Book
	promise := Promise{
		Contract: warm, Slice: warm, ConsumerID: "cl-rome", Flavor: "h100", Resources: res(wanted), Standing: true,
	}
	flavor := v1alpha1.Flavor{Metadata: v1alpha1.Metadata{Name: "h100", Namespace: "paris"}, Spec: v1alpha1.FlavorSpec{
		Capacity: res("cpu=16 memory=128Gi gpu=4 pods=50"), NodeSelector: map[string]string{"pool": "h100"},
		GPU:  &v1alpha1.FlavorGPU{ResourceName: "nvidia.com/gpu", UnitsPerGPU: 1},
		Held: map[string]v1alpha1.Resources{warm: res("cpu=16 memory=128Gi gpu=4 pods=50")},
	}}
	given := map[string]Given{warm: {Flavor: "h100", Resources: res(wanted)}}
	s := slice(wanted, "", "")
	s.Name = warm
	decide := func() Answer {
		c := base()
		c.Slice, c.Promise = s, book.Promise("cl-rome", s.Name)
		c.Offer = OfferOf([]v1alpha1.Flavor{flavor}, c.Promise, given)
		return Decide(c)
	}
	book.Tell("", []Promise{promise}, 1)
	if a := decide(); a.Verdict != Grant || a.NodeLabels[LabelContract] != warm {
		t.Fatalf("the warm contract: %+v", a)
	}
	promise.Contract, promise.Tenant, promise.Intent = contract, "vision", "train"
	book.Tell("", []Promise{promise}, 1)
	a := decide()
	if a.Verdict != Grant || a.NodeLabels[LabelContract] != contract || text(a.Resources) != wanted {
		t.Errorf("claimed: %+v", a)
	}
	if book.Promise("cl-rome", contract) != nil {
		t.Error("a slice of the contract's own name, which nobody made, would be granted too")
	}
}
