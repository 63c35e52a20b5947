package nodes_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/fleetbroker/fleetbroker/internal/planner/nodes"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

func size(gpus, cpu, memory int64) quantity.Vector {
	return quantity.Vector{cpu, memory, 20, 0, gpus}
}

// drawMap is a map of nodes of 8 or 4 units, partly in use.
func drawMap(t *rapid.T) *nodes.Map {
	var list []nodes.Node
	for i := range rapid.IntRange(1, 6).Draw(t, "nodes") {
		n := rapid.SampledFrom([]int64{8, 8, 4}).Draw(t, "units")
		list = append(list, nodes.Node{
			Name: fmt.Sprintf("n%02d", i), Shape: size(n, n*12_000, n<<33),
			Free: size(rapid.Int64Range(0, n).Draw(t, "free"), rapid.Int64Range(0, n*12).Draw(t, "cores")*1000, rapid.Int64Range(0, n<<3).Draw(t, "gi")<<30),
		})
	}
	return nodes.New(list)
}

func drawAsk(t *rapid.T) (quantity.Vector, nodes.Ask) {
	gpus := rapid.Int64Range(1, 20).Draw(t, "gpus")
	ask := nodes.Ask{Unit: quantity.GPU}
	v := size(gpus, gpus*rapid.Int64Range(1, 12).Draw(t, "cpu")*1000, gpus*rapid.Int64Range(1, 8).Draw(t, "memory")<<30)
	if rapid.Bool().Draw(t, "states pods") {
		per := rapid.Int64Range(1, gpus).Draw(t, "per pod")
		ask.Pod = size(per, v[quantity.CPU]*per/gpus, 0)
		ask.Named = []int{quantity.GPU, quantity.CPU}
	}
	return v, ask
}

func text(m *nodes.Map) string {
	out := ""
	m.Each(func(name string, _, free quantity.Vector) { out += fmt.Sprintln(name, free) })
	return out
}

// copied is a map that is made of what another has free.
func copied(m *nodes.Map) *nodes.Map {
	var list []nodes.Node
	m.Each(func(name string, shape, free quantity.Vector) {
		list = append(list, nodes.Node{Name: name, Shape: shape, Free: free})
	})
	return nodes.New(list)
}

// Whatever is packed, no node gives more than it has, parts add up to what was packed on
// each node once, packing again gives the same, also on a map that is made with as much
// free, and what is given back was never there.
func TestPack_NeverMoreThanThereIs(t *testing.T) {
	packed := 0
	rapid.Check(t, func(t *rapid.T) {
		m := drawMap(t)
		was := text(m)
		var undo []nodes.Holding
		for range rapid.IntRange(1, 5).Draw(t, "asks") {
			v, ask := drawAsk(t)
			parts := m.Pack(v, ask, nil)
			if again := m.Pack(v, ask, nil); fmt.Sprint(again) != fmt.Sprint(parts) {
				t.Fatalf("%v and %v", parts, again)
			}
			if fresh := copied(m).Pack(v, ask, nil); fmt.Sprint(fresh) != fmt.Sprint(parts) {
				t.Fatalf("%v, and of a map that was made with as much free %v", parts, fresh)
			}
			if fits := m.Fits(v, ask); fits != (parts != nil) {
				t.Fatalf("fits %v, packed %v", fits, parts)
			}
			if parts == nil {
				continue
			}
			packed++
			var sum quantity.Vector
			seen := map[string]bool{}
			for _, p := range parts {
				if seen[p.Node] || !m.Holds(p) {
					t.Fatalf("%v of\n%s", parts, text(m))
				}
				seen[p.Node], sum = true, sum.Add(p.Size)
			}
			if !sum.Equal(v) {
				t.Fatalf("parts have %v, packed %v", sum, v)
			}
			if !m.Hosts(parts, v, ask) {
				t.Fatalf("%v do not hold the pods of %v by %v", parts, v, ask)
			}
			h := nodes.Holding{Parts: parts}
			m.Book(&h, 1)
			undo = append(undo, h)
			m.Each(func(name string, _, free quantity.Vector) {
				if free.Deficit() >= 0 && free.Deficit() != quantity.Pods {
					t.Fatalf("node %s has %v", name, free)
				}
			})
		}
		for i := range undo { // in any order
			m.Book(&undo[i], -1)
		}
		if now := text(m); now != was {
			t.Fatalf("%s\nwas\n%s", now, was)
		}
	})
	if packed == 0 {
		t.Error("nothing was ever packed")
	}
}

// What lies nobody knows where is given back as it was taken, and takes no more than there is.
func TestLoose(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawMap(t)
		was := text(m)
		var list []nodes.Holding
		for range rapid.IntRange(1, 4).Draw(t, "loose") {
			v, _ := drawAsk(t)
			list = append(list, nodes.Holding{Loose: v})
			m.Book(&list[len(list)-1], 1)
			m.Each(func(name string, _, free quantity.Vector) {
				if d := free.Deficit(); d >= 0 {
					t.Fatalf("node %s has %v", name, free)
				}
			})
		}
		for i := range list {
			m.Book(&list[i], -1)
		}
		if now := text(m); now != was {
			t.Fatalf("%s\nwas\n%s", now, was)
		}
	})
}

// TestBookAll: what is taken and given back at once leaves a map as if it came one after the
// other, whatever is then packed on it.
func TestBookAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		one := drawMap(t)
		all := one.Clone()
		var list []nodes.Booking
		for range rapid.IntRange(0, 20).Draw(t, "bookings") {
			h := &nodes.Holding{}
			for k := range rapid.IntRange(0, 2).Draw(t, "parts") {
				h.Parts = append(h.Parts, nodes.Part{Node: fmt.Sprintf("n%02d", rapid.IntRange(0, 7).Draw(t, "node")), Size: size(int64(k), rapid.Int64Range(0, 3).Draw(t, "cores")*1000, 1<<30)})
			}
			if rapid.Bool().Draw(t, "loose") {
				h.Loose = size(rapid.Int64Range(1, 3).Draw(t, "loose GPUs"), 1000, 1<<30)
			}
			sign := rapid.SampledFrom([]int64{1, 1, -1}).Draw(t, "sign")
			list = append(list, nodes.Booking{Holding: h, Sign: sign})
			one.Book(h, sign)
		}
		all.BookAll(list)
		if a, b := text(one), text(all); a != b {
			t.Fatalf("at once:\n%sone after the other:\n%s", b, a)
		}
		v, ask := drawAsk(t)
		if a, b := fmt.Sprint(one.Pack(v, ask, nil)), fmt.Sprint(all.Pack(v, ask, nil)); a != b {
			t.Fatalf("%v is packed on %s at once, and on %s one after the other", v, b, a)
		}
	})
}
