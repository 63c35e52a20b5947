package inventory_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// market draws offers: alone and in a pool, of whole cards and of parts, some with an
// autoscaler, some overcommitted with a risk.
func market(t *rapid.T) []*model.Offer {
	var out []*model.Offer
	for i := range rapid.IntRange(1, 4).Draw(t, "offers") {
		f := &v1alpha1.Flavor{Metadata: v1alpha1.Metadata{Namespace: rapid.SampledFrom([]string{"paris", "lyon"}).Draw(t, "provider"), Name: fmt.Sprintf("f%d", i)}}
		s := &f.Spec
		s.Capacity = v1alpha1.Resources{
			v1alpha1.CPU: v1alpha1.AmountOf(64_000), v1alpha1.Memory: v1alpha1.AmountOf(256 << 30), v1alpha1.Pods: v1alpha1.AmountOf(440),
			v1alpha1.EphemeralStorage: v1alpha1.AmountOf(1 << 40), v1alpha1.GPU: v1alpha1.AmountOf(8), "example.org/nic": v1alpha1.AmountOf(4),
		}
		s.Used = v1alpha1.Resources{v1alpha1.CPU: v1alpha1.AmountOf(rapid.Int64Range(0, 8000).Draw(t, "used"))}
		s.GPU = &v1alpha1.FlavorGPU{Model: "nvidia-t4"}
		if rapid.Bool().Draw(t, "parts") {
			s.GPU.Sharing, s.GPU.UnitsPerGPU = "mps", 4
			s.Capacity[v1alpha1.GPU] = v1alpha1.AmountOf(12)
		}
		if rapid.Bool().Draw(t, "pool") {
			s.Pool = "nodes"
		} else if rapid.Bool().Draw(t, "scales") {
			s.ScalableTo = v1alpha1.Resources{v1alpha1.CPU: v1alpha1.AmountOf(128_000)}
		}
		out = append(out, &model.Offer{Flavor: f})
	}
	return out
}

func inventoryOf(offers []*model.Offer, contracts []*v1alpha1.Contract) (*inventory.Inventory, *quantity.Names) {
	n := quantity.NewNames("capacity.")
	return inventory.New(inventory.Facts{Names: n, Blocked: func(*inventory.Offer) string { return "" }}, offers, slices.Values(contracts)), n
}

// size draws what a contract takes of an offer.
func size(t *rapid.T) v1alpha1.Resources {
	out := v1alpha1.Resources{}
	for name, most := range map[string]int64{v1alpha1.CPU: 8000, v1alpha1.Memory: 32 << 30, v1alpha1.Pods: 20, v1alpha1.GPU: 5, "example.org/nic": 2} {
		if n := rapid.Int64Range(0, most).Draw(t, name); n > 0 {
			out[name] = v1alpha1.AmountOf(n)
		}
	}
	return out
}

// state is all that takes change, as text.
func state(in *inventory.Inventory) string {
	out := &strings.Builder{}
	trim := func(v quantity.Vector) quantity.Vector {
		for len(v) > 0 && v[len(v)-1] == 0 {
			v = v[:len(v)-1]
		}
		return v
	}
	for _, o := range in.Offers() {
		fmt.Fprint(out, o.Ref, trim(o.Free()), trim(o.Held()), trim(o.HeldByPeers()))
		if d := o.Cards(); d != nil {
			fmt.Fprint(out, d.Free(), d.Empty(), d.Spare())
		}
		fmt.Fprintln(out)
	}
	return out.String()
}

// sums are free and held of each offer together, and what its peers hold of what they
// share: capacity less what the provider uses itself.
func sums(in *inventory.Inventory) (out []quantity.Vector) {
	for _, o := range in.Offers() {
		sum := o.Free().Clone().Add(o.Held()).Add(o.HeldByPeers())
		for len(sum) > 0 && sum[len(sum)-1] == 0 {
			sum = sum[:len(sum)-1]
		}
		out = append(out, sum)
	}
	return out
}

// What is taken and lent, undone by its inverses in the order of a journal, was never
// there, whatever it was; and what is free and held of an offer are its capacity
// throughout.
func TestTakesAreUndoneByTheirInverses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in, names := inventoryOf(market(t), nil)
		was, all := state(in), fmt.Sprint(sums(in))
		var undo []func()
		for range rapid.IntRange(1, 12).Draw(t, "takes") {
			o := rapid.SampledFrom(in.Offers()).Draw(t, "offer")
			v := names.VectorOf(size(t))
			var cards []v1alpha1.CardUnits
			if d := o.Cards(); d != nil && v.At(quantity.GPU) > 0 && rapid.Bool().Draw(t, "on cards") {
				cards = d.MostUsed(v.At(quantity.GPU))
			}
			switch rapid.IntRange(0, 2).Draw(t, "kind") {
			case 0:
				d := inventory.Delta{Size: v, Taken: cards}
				in.Take(o.Place(), d)
				undo = append(undo, func() { in.Take(o.Place(), d.Inverse()) })
			case 1:
				d := inventory.Delta{Size: v.Negative(), Back: cards}
				in.Take(o.Place(), d)
				undo = append(undo, func() { in.Take(o.Place(), d.Inverse()) })
			case 2:
				lent, held := state(in), o.Held().Clone()
				loan := inventory.Loan{Size: v, Cards: cards}
				in.Lend(o.Place(), loan)
				if !o.Held().Equal(held) {
					t.Fatalf("%v is held while lent, was %v", o.Held(), held)
				}
				in.Unlend(o.Place(), loan)
				if now := state(in); now != lent {
					t.Fatalf("lent and back:\n%s\nwas\n%s", now, lent)
				}
			}
			if now := fmt.Sprint(sums(in)); now != all {
				t.Fatalf("free and held are %s, were %s", now, all)
			}
		}
		for _, f := range slices.Backward(undo) {
			f()
		}
		if now := state(in); now != was {
			t.Fatalf("%s\nwas\n%s", now, was)
		}
	})
}

// Contracts taken one by one leave what the ledger's arithmetic leaves of them all.
func TestTakesAreTheLedgersArithmetic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		offers := market(t)
		in, _ := inventoryOf(offers, nil)
		var contracts []*v1alpha1.Contract
		for i := range rapid.IntRange(1, 6).Draw(t, "contracts") {
			o := rapid.SampledFrom(in.Offers()).Draw(t, "offer")
			c := &v1alpha1.Contract{Metadata: v1alpha1.Metadata{Name: fmt.Sprintf("c%d", i)}}
			c.Spec.Provider, c.Spec.Flavor, c.Spec.Slice, c.Spec.Resources = o.Provider, o.Name, c.Metadata.Name, size(t)
			c.Status.Phase = v1alpha1.PhaseActive
			if units := c.Spec.Resources[v1alpha1.GPU].Int64(); units > 0 {
				c.Spec.GPUs = &v1alpha1.ContractGPU{Count: units, ResourceName: o.GPUName}
				if d := o.Cards(); d != nil {
					if c.Spec.GPUs.Cards = d.MostUsed(units); len(c.Spec.GPUs.Cards) == 0 {
						continue
					}
				}
			}
			in.Take(o.Place(), inventory.Delta{Size: in.Footprint(o, c.Metadata.Name, c), Taken: inventory.CardsOf(c)})
			contracts = append(contracts, c)
		}
		again, _ := inventoryOf(offers, contracts)
		if one, all := state(in), state(again); one != all {
			t.Fatalf("one by one\n%s\nall\n%s", one, all)
		}
		// What changed is what was touched: nothing else needs a second look.
		fresh, _ := inventoryOf(offers, nil)
		touched := map[int32]bool{}
		for _, i := range in.Touched(0) {
			touched[i] = true
		}
		for i, o := range in.Offers() {
			if f := fresh.Offers()[i]; !o.Free().Equal(f.Free()) && !touched[int32(i)] {
				t.Fatalf("%s has %v free, had %v, and nobody is told (%v)", o.Ref, o.Free(), f.Free(), slices.Sorted(maps.Keys(touched)))
			}
		}
	})
}

// An inventory brought up to date is one read from nothing.
func TestMeasureAfterARound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		offers := market(t)
		in, names := inventoryOf(offers, nil)
		for range rapid.IntRange(0, 4).Draw(t, "takes") { // a round that came to nothing
			o := rapid.SampledFrom(in.Offers()).Draw(t, "taken of")
			in.Take(o.Place(), inventory.Delta{Size: names.VectorOf(size(t))})
		}
		at := rapid.IntRange(0, len(offers)-1).Draw(t, "reports")
		next := *offers[at]
		f := *next.Flavor
		f.Spec.Used = v1alpha1.Resources{v1alpha1.CPU: v1alpha1.AmountOf(12_000)}
		next.Flavor = &f
		offers = slices.Clone(offers)
		offers[at] = &next
		in.Begin(inventory.Facts{Names: names, Blocked: func(*inventory.Offer) string { return "" }})
		o := in.Handed(at)
		in.Describe(o, &next, true)
		in.Measure()
		again, _ := inventoryOf(offers, nil)
		if one, all := state(in), state(again); one != all {
			t.Fatalf("brought up to date\n%s\nread anew\n%s", one, all)
		}
		if got := in.Altered(0); len(got) != 1 || int(got[0].Offer) != o.Index || !got[0].UseOnly {
			t.Fatalf("altered %v", got)
		}
	})
}
