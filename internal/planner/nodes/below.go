package nodes

import "github.com/fleetbroker/fleetbroker/internal/planner/quantity"

// Lacks reports whether of some node more is held by name than there is.
func (m *Map) Lacks() bool {
	for i := range m.free {
		if m.free[i].Deficit() >= 0 {
			return true
		}
	}
	return false
}

// Below calls f with each node of which more is held by name than there is, and how much
// more, by name. What is loose lies on no node, and pods are no node's.
func (m *Map) Below(f func(node string, lack quantity.Vector)) {
	for i, name := range m.names {
		if m.free[i].Deficit() >= 0 {
			f(name, m.free[i].Negative())
		}
	}
}
