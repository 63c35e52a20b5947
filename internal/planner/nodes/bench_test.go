package nodes_test

import (
	"fmt"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/planner/nodes"
)

// differ are nodes of which no two have as much free.
func differ(n int) (list []nodes.Node) {
	for i := range n {
		list = append(list, nodes.Node{Name: fmt.Sprintf("n%05d", i*7919%n), Shape: size(8, 128, 1024), Free: size(8, 128, int64(1024+i))})
	}
	return list
}

// What taking and giving back one part costs where all nodes differ, and what it costs to
// make their map and to copy it.
func BenchmarkNodes(b *testing.B) {
	for _, n := range []int{100, 1_000, 10_000} {
		list := differ(n)
		m := nodes.New(list)
		b.Run(fmt.Sprintf("book/nodes=%d", n), func(b *testing.B) {
			held := nodes.Holding{Parts: []nodes.Part{{Node: list[n/2].Name, Size: size(1, 4, 16)}}}
			for b.Loop() {
				m.Book(&held, 1)
				m.Book(&held, -1)
			}
		})
		b.Run(fmt.Sprintf("make/nodes=%d", n), func(b *testing.B) {
			for b.Loop() {
				nodes.New(list)
			}
		})
		b.Run(fmt.Sprintf("copy/nodes=%d", n), func(b *testing.B) {
			for b.Loop() {
				m.Clone()
			}
		})
		b.Run(fmt.Sprintf("pack/nodes=%d", n), func(b *testing.B) {
			for b.Loop() {
				if m.Pack(size(4, 16, 64), nodes.Ask{Unit: 0}, nil) == nil {
					b.Fatal("4 GPUs fit nowhere")
				}
			}
		})
	}
}
