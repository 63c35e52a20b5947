package ledger_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
)

func flavor(provider, name string, capacity v1alpha1.Resources) *v1alpha1.Flavor {
	return &v1alpha1.Flavor{
		Metadata: v1alpha1.Metadata{Name: name, Namespace: provider},
		Spec:     v1alpha1.FlavorSpec{Capacity: capacity, GPU: &v1alpha1.FlavorGPU{ResourceName: "nvidia.com/gpu"}},
	}
}

// sold is a contract of so much, in a slice's names.
func sold(name string, r v1alpha1.Resources) *v1alpha1.Contract {
	c := contract("vision", "llm", 0, 0)
	c.Metadata.Name, c.Spec.Slice, c.Spec.Resources = name, name, r
	return c
}

func TestAvailable(t *testing.T) {
	whole := amounts("cpu", "16", "memory", "64Gi", "gpu", "8")
	four := amounts("cpu", "4", "memory", "16Gi", "nvidia.com/gpu", "4")
	reports := func(name string, r v1alpha1.Resources) map[string]v1alpha1.Resources {
		return map[string]v1alpha1.Resources{name: r}
	}
	cases := map[string]struct {
		change func(*v1alpha1.Flavor)
		held   []*v1alpha1.Contract
		except string
		want   v1alpha1.Resources
	}{
		"nothing sold":                           {nil, nil, "", whole},
		"the provider's own use":                 {func(f *v1alpha1.Flavor) { f.Spec.Used = amounts("gpu", "3") }, nil, "", amounts("cpu", "16", "memory", "64Gi", "gpu", "5")},
		"a contract, before its slice is":        {nil, []*v1alpha1.Contract{sold("a", four)}, "", amounts("cpu", "12", "memory", "48Gi", "gpu", "4")},
		"a contract and its own pods: once":      {func(f *v1alpha1.Flavor) { f.Spec.Held = reports("a", amounts("cpu", "4", "memory", "8Gi", "gpu", "4")) }, []*v1alpha1.Contract{sold("a", four)}, "", amounts("cpu", "12", "memory", "48Gi", "gpu", "4")},
		"more runs than was sold":                {func(f *v1alpha1.Flavor) { f.Spec.Held = reports("a", amounts("gpu", "6")) }, []*v1alpha1.Contract{sold("a", four)}, "", amounts("cpu", "12", "memory", "48Gi", "gpu", "2")},
		"what lingers of an ended contract":      {func(f *v1alpha1.Flavor) { f.Spec.Held = reports("old", amounts("gpu", "2")) }, []*v1alpha1.Contract{sold("a", four)}, "", amounts("cpu", "12", "memory", "48Gi", "gpu", "2")},
		"a contract that is about to be resized": {func(f *v1alpha1.Flavor) { f.Spec.Held = reports("a", amounts("gpu", "4")) }, []*v1alpha1.Contract{sold("a", four)}, "a", whole},
		"a shrunk flavor has less than nothing":  {func(f *v1alpha1.Flavor) { f.Spec.Capacity = amounts("cpu", "2", "memory", "64Gi", "gpu", "8") }, []*v1alpha1.Contract{sold("a", four)}, "", v1alpha1.Resources{"cpu": v1alpha1.AmountOf(-2000), "memory": v1alpha1.AmountOf(48 << 30), "gpu": v1alpha1.AmountOf(4)}},
		"overcommit is cut down to whole units": {func(f *v1alpha1.Flavor) {
			f.Spec.Overcommit = v1alpha1.Overcommit{"gpu": dec("1.2"), "maxRisk": dec("0")}
		}, nil, "", amounts("cpu", "16", "memory", "64Gi", "gpu", "9")},
		"a ratio below one keeps a reserve":       {func(f *v1alpha1.Flavor) { f.Spec.Overcommit = v1alpha1.Overcommit{"gpu": dec("0.9")} }, nil, "", amounts("cpu", "16", "memory", "64Gi", "gpu", "7")},
		"a listed number of pods is a limit":      {func(f *v1alpha1.Flavor) { f.Spec.Capacity = amounts("pods", "10") }, nil, "", amounts("pods", "10")},
		"a listed storage is a limit":             {func(f *v1alpha1.Flavor) { f.Spec.Capacity = amounts("ephemeral-storage", "1Gi") }, nil, "", amounts("ephemeral-storage", "1Gi")},
		"a slice that was claimed from warm pool": {func(f *v1alpha1.Flavor) { f.Spec.Held = reports("warm-1", amounts("gpu", "4")) }, []*v1alpha1.Contract{claimed("a", "warm-1", four)}, "", amounts("cpu", "12", "memory", "48Gi", "gpu", "4")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := flavor("paris", "h100", whole)
			if tc.change != nil {
				tc.change(f)
			}
			got := ledger.Available(ledger.Figures(ledger.Member{Flavor: f, Held: tc.held}, nil, tc.except))
			for _, name := range []string{v1alpha1.Pods, v1alpha1.EphemeralStorage} {
				if _, listed := f.Spec.Capacity[name]; listed {
					continue
				}
				if got[name] != ledger.Unlimited {
					t.Errorf("%s is not listed and so not limited, but %v", name, got[name])
				}
				delete(got, name)
			}
			if !got.Equal(tc.want) {
				t.Errorf("available %v, want %v", got, tc.want)
			}
		})
	}
}

func claimed(name, slice string, r v1alpha1.Resources) *v1alpha1.Contract {
	c := sold(name, r)
	c.Spec.Slice = slice
	return c
}

// TestPool: two MIG profiles cut from the same nodes share CPU, memory and
// pods, not units.
func TestPool(t *testing.T) {
	pool := func(name string, units string) *v1alpha1.Flavor {
		f := flavor("paris", name, amounts("cpu", "16", "memory", "64Gi", "pods", "20", "gpu", units))
		f.Spec.Pool = "nodes-a"
		f.Spec.Used = amounts("cpu", "1", "pods", "2")
		return f
	}
	small, large, apart := pool("mig-1g", "7"), pool("mig-3g", "2"), pool("mig-7g", "1")
	apart.Spec.Pool = "nodes-b"
	of := func(f *v1alpha1.Flavor, held ...*v1alpha1.Contract) ledger.Member {
		return ledger.Member{Flavor: f, Held: held}
	}
	six := sold("a", amounts("cpu", "6", "memory", "8Gi", "pods", "5", "nvidia.com/gpu", "3"))
	four := sold("b", amounts("cpu", "4", "memory", "8Gi", "pods", "5", "nvidia.com/gpu", "1"))
	other := sold("c", amounts("cpu", "16"))
	members := []ledger.Member{of(small, six), of(large, four), of(apart, other)}

	figures := ledger.Figures(members[0], members, "")
	if want := amounts("cpu", "4", "memory", "8Gi", "pods", "5"); !figures.Pool.Equal(want) {
		t.Errorf("the others' share %v, want %v", figures.Pool, want)
	}
	free := ledger.Available(figures)
	if want := amounts("cpu", "5", "memory", "48Gi", "pods", "8", "gpu", "4"); free[v1alpha1.CPU] != want[v1alpha1.CPU] || free[v1alpha1.Memory] != want[v1alpha1.Memory] || free[v1alpha1.Pods] != want[v1alpha1.Pods] || free[v1alpha1.GPU] != want[v1alpha1.GPU] {
		t.Errorf("free %v, want %v", free, want)
	}
	// A member that does not limit pods is limited by the one that does.
	delete(small.Spec.Capacity, v1alpha1.Pods)
	if got := ledger.Available(ledger.Figures(members[0], members, ""))[v1alpha1.Pods].Int64(); got != 20-2-5-5 {
		t.Errorf("%d pods", got)
	}
	// What a decision records of it can be read back, even where more is sold than there is.
	over := ledger.Figures(of(small, six, sold("d", amounts("pods", "40"))), members, "")
	written, err := ledger.Encode(over)
	if err != nil {
		t.Fatal(err)
	}
	var back v1alpha1.OfferFigures
	if err := ledger.Decode(written, &back); err != nil || !back.Pool.Equal(over.Pool) {
		t.Errorf("pool %v read back as %v: %v", over.Pool, back.Pool, err)
	}
	// Members that disagree: the smallest capacity and the largest use hold for all.
	large.Spec.Capacity[v1alpha1.CPU], large.Spec.Used[v1alpha1.CPU] = v1alpha1.AmountOf(14000), v1alpha1.AmountOf(3000)
	for i := range 2 {
		if got := ledger.Available(ledger.Figures(members[i], members, ""))[v1alpha1.CPU].Int64(); got != 14000-3000-10000 {
			t.Errorf("member %d: %d milli-CPU", i, got)
		}
	}
}

// TestSellingWhatIsAvailableNeverOversells: whatever is reported and held, a
// new contract of exactly what is available leaves nothing negative, and one
// unit more does.
func TestSellingWhatIsAvailableNeverOversells(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := func(name string, most int64) v1alpha1.Amount {
			return v1alpha1.AmountOf(rapid.Int64Range(0, most).Draw(t, name))
		}
		draw := func(gpu string, most int64) v1alpha1.Resources {
			return v1alpha1.Resources{"cpu": n("cpu", most), "memory": n("memory", most), gpu: n("gpu", most)}
		}
		var members []ledger.Member
		for _, name := range []string{"one", "two"} {
			f := flavor("paris", name, draw("gpu", 1000))
			f.Spec.Pool = rapid.SampledFrom([]string{"", "p"}).Draw(t, "pool")
			f.Spec.Used = draw("gpu", 50)
			f.Spec.Held = map[string]v1alpha1.Resources{name + "-0": draw("gpu", 50), name + "-gone": draw("gpu", 50)}
			f.Spec.Overcommit = v1alpha1.Overcommit{"cpu": dec("1.37")}
			members = append(members, ledger.Member{Flavor: f, Held: []*v1alpha1.Contract{
				sold(name+"-0", draw("nvidia.com/gpu", 50)), sold(name+"-1", draw("nvidia.com/gpu", 50)),
			}})
		}
		free := ledger.Available(ledger.Figures(members[0], members, ""))
		size := v1alpha1.Resources{}
		for _, name := range []string{"cpu", "memory", "gpu"} {
			size[name] = free[name].Max(v1alpha1.Amount{})
		}
		members[0].Held = append(members[0].Held, sold("new", ledger.AsSliced(size, members[0].Flavor)))
		for i := range members {
			before := ledger.Available(ledger.Figures(members[i], members, "new"))
			after := ledger.Available(ledger.Figures(members[i], members, ""))
			for name, left := range after {
				if left.Int64() < 0 && before[name].Int64() >= 0 {
					t.Fatalf("%s of %s: %d left of %d after selling %d", name, members[i].Flavor.Ref(), left.Int64(), before[name].Int64(), size[name].Int64())
				}
			}
		}
		if after := ledger.Available(ledger.Figures(members[0], members, "")); free["gpu"].Int64() >= 0 && after["gpu"].Int64() != 0 {
			t.Fatalf("%d units left", after["gpu"].Int64())
		}
	})
}

func TestFits(t *testing.T) {
	free := amounts("cpu", "4", "gpu", "1")
	if short, ok := ledger.Fits(free, amounts("cpu", "4", "gpu", "1", "pods", "0")); !ok {
		t.Errorf("short of %s", short)
	}
	if short, ok := ledger.Fits(free, amounts("cpu", "5", "gpu", "2")); ok || short != "cpu" {
		t.Errorf("short of %q, want cpu, the first by name", short)
	}
	if short, ok := ledger.Fits(free, amounts("rdma/hca", "1")); ok || short != "rdma/hca" {
		t.Errorf("an absent resource is none, but short of %q", short)
	}
}

func TestTotalsCountFractionsOfCardsExactly(t *testing.T) {
	var sum ledger.Totals
	unit := contract("vision", "llm", 0, 0)
	unit.Spec.GPUs = &v1alpha1.ContractGPU{Count: 1, Model: "nvidia-a100", UnitsPerGPU: 7}
	for range 7 {
		sum.Add(unit)
	}
	if got := sum.MilliCards().Int64(); got != 1000 {
		t.Errorf("seven sevenths are %d thousandths", got)
	}
	sum.Remove(unit)
	if got := sum.MilliCards().Int64(); got != 858 {
		t.Errorf("six sevenths are %d thousandths, want them rounded up", got)
	}
	whole := contract("vision", "llm", 1, 0)
	sum.Add(whole)
	if by := sum.ByModel(); by["nvidia-h100"].Int64() != 4000 || by["nvidia-a100"].Int64() != 858 {
		t.Errorf("%v", by)
	}
	releasing := contract("vision", "llm", 2, 0)
	releasing.Status.Phase = v1alpha1.PhaseReleasing
	before := sum.Contracts
	sum.Add(releasing)
	if sum.Contracts != before {
		t.Error("Releasing counts against the tenant")
	}
}
