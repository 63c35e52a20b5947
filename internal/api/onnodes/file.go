package onnodes

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Count is on how many nodes a flavor lies, "-" where nobody shows them.
func Count(n *v1alpha1.FlavorNodes) string {
	if n == nil {
		return "-"
	}
	count := n.Count
	for i := range n.Groups {
		count += int64(len(n.Groups[i].Nodes))
	}
	return strconv.FormatInt(count, 10)
}

// Problem is a mistake in a flavor's file: where below spec, and what to write.
type Problem struct {
	Path    []any
	Message string
}

// File checks what a file states of its flavor's nodes.
func File(s *v1alpha1.FlavorSpec) []Problem {
	var out []Problem
	if len(s.HeldOn) > 0 {
		out = append(out, Problem{[]any{"heldOn"}, "spec.heldOn is what agents report; take it out"})
	}
	if s.Nodes == nil || s.Capacity == nil { // a file of facts alone has none: fleet refuses it
		return out
	}
	if len(s.Nodes.Groups) > 0 {
		return append(out, Problem{[]any{"nodes", "groups"}, "spec.nodes.groups is what agents report; write nodes: {count: <how many>, size: {<what one has>}}"})
	}
	if s.Nodes.Count == 0 {
		return append(out, Problem{[]any{"nodes", "count"}, "spec.nodes.count is missing; write how many equal nodes the capacity lies on"})
	}
	return append(out, counted(s)...)
}

// counted checks count and size against the capacity. Cards must all lie on nodes; of
// the rest a node may keep some for itself.
func counted(s *v1alpha1.FlavorSpec) []Problem {
	n := s.Nodes
	if n.Count == 0 && len(n.Size) == 0 {
		return nil
	}
	if n.Count < 1 || n.Count > MaxNodes {
		return []Problem{{[]any{"nodes", "count"}, fmt.Sprintf("spec.nodes.count: %d is not a number of nodes from 1 to %d", n.Count, MaxNodes)}}
	}
	if err := amounts("spec.nodes.size", n.Size); err != nil {
		return []Problem{{[]any{"nodes", "size"}, err.Error()}}
	}
	var out []Problem
	for _, name := range []string{v1alpha1.Memory, v1alpha1.EphemeralStorage} {
		if bytes := n.Size[name].Int64(); bytes > 0 && bytes < 1<<20 {
			return []Problem{{[]any{"nodes", "size", name}, fmt.Sprintf("spec.nodes.size.%s: %d is %[2]d bytes; write %[2]dGi", name, bytes)}}
		}
	}
	if text := unstated(s); text != "" {
		out = append(out, Problem{[]any{"nodes", "size"}, text})
	}
	over := exceeding(s)
	if len(over) > 1 { // the count is wrong, rather than each of the sizes
		return append(out, Problem{[]any{"nodes", "count"}, tooMany(s, over)})
	}
	for _, name := range n.Size.Names() {
		at := []any{"nodes", "size", name}
		has, listed := s.Capacity[name]
		all, fits := times(n.Size[name], n.Count)
		switch {
		case !listed && Unlimited(name):
		case !listed:
			out = append(out, Problem{at, fmt.Sprintf("spec.nodes.size has %s, and spec.capacity does not list it; add it there, or take it out", name)})
		case !fits || has.Less(all):
			out = append(out, Problem{at, fmt.Sprintf("spec.nodes: %d nodes of %s %s have %s together, and spec.capacity has %s; write a size of at most %q, or the capacity of all nodes",
				n.Count, n.Size[name].Canonical(name), name, all.Canonical(name), has.Canonical(name), readable(name, has.Int64()/n.Count))})
		case name == v1alpha1.GPU && all.Less(has):
			out = append(out, Problem{at, fmt.Sprintf("spec.nodes: %d nodes of %s gpu have %s together, and spec.capacity has %s: the others are on no node; write the nodes of all of them, or capacity.gpu: %s",
				n.Count, n.Size[name].Canonical(name), all.Canonical(name), has.Canonical(name), all.Canonical(name))})
		}
	}
	return out
}

// unstated says what a size does not name that the capacity has; "" when it names all.
func unstated(s *v1alpha1.FlavorSpec) string {
	var names, write []string
	for _, name := range s.Capacity.Names() {
		if _, stated := s.Nodes.Size[name]; !stated && !s.Capacity[name].IsZero() {
			names = append(names, name)
			write = append(write, fmt.Sprintf("%s: %q", name, readable(name, s.Capacity[name].Int64()/s.Nodes.Count)))
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("spec.nodes.size has no %s, so no pod could have any; write what one node has of it, such as %s", strings.Join(names, ", "), strings.Join(write, ", "))
}

// exceeding are the resources of which all nodes together have more than the capacity.
func exceeding(s *v1alpha1.FlavorSpec) (over []string) {
	for _, name := range s.Nodes.Size.Names() {
		has, listed := s.Capacity[name]
		if all, fits := times(s.Nodes.Size[name], s.Nodes.Count); listed && (!fits || has.Less(all)) {
			over = append(over, name)
		}
	}
	return over
}

// tooMany says of more nodes than several resources of the capacity allow how many those do.
func tooMany(s *v1alpha1.FlavorSpec, over []string) string {
	count, list := s.Nodes.Count, make([]string, len(over))
	for i, name := range over {
		all, _ := times(s.Nodes.Size[name], s.Nodes.Count)
		list[i] = fmt.Sprintf("%s %s of %s", all.Canonical(name), name, s.Capacity[name].Canonical(name))
		count = min(count, s.Capacity[name].Int64()/s.Nodes.Size[name].Int64())
	}
	remedy := fmt.Sprintf("write count: %d, or the capacity of all nodes", count)
	if count < 1 {
		remedy = "write what one node has under size, and the capacity of all nodes"
	}
	return fmt.Sprintf("spec.nodes.count: %d nodes of this size have more together than spec.capacity (%s); %s", s.Nodes.Count, strings.Join(list, ", "), remedy)
}

// readable is an amount as people write it, rounded down: in whole Gi or Mi, and in whole
// cores, where there is one.
func readable(name string, amount int64) string {
	units := []int64{1 << 30, 1 << 20}
	if name == v1alpha1.CPU {
		units = []int64{1000}
	} else if name != v1alpha1.Memory && name != v1alpha1.EphemeralStorage && !strings.HasPrefix(name, "hugepages-") {
		units = nil
	}
	for _, unit := range units {
		if amount >= unit {
			amount -= amount % unit
			break
		}
	}
	return v1alpha1.AmountOf(amount).Canonical(name)
}
