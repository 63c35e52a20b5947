package nodes

import "github.com/fleetbroker/fleetbroker/internal/planner/quantity"

// Hosts reports whether parts of a size hold its pods.
func (m *Map) Hosts(parts []Part, size quantity.Vector, ask Ask) bool {
	p := divide(size, ask, m.Most(ask.Unit))
	n, rest := int64(0), p.rest == nil
	for i := range parts {
		k := times(p.pod, parts[i].Size)
		n += k
		if left := parts[i].Size.Clone().Sub(scaled(p.pod, k)); !rest && times(p.rest, left) > 0 {
			rest = true
		}
	}
	return n > p.n || n == p.n && rest
}
