package onnodes

import (
	"fmt"
	"math/bits"
	"regexp"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Bounds of what is stated of nodes.
const (
	// MaxNodes of one flavor.
	MaxNodes = 10_000
	// maxLabels of topology of a group, each at most maxKey and maxValue bytes.
	maxLabels = 32
	maxKey    = 317
	maxValue  = 63
	// MaxPieces is on how many nodes all contracts of one flavor can hold something, each
	// node counted for each of them.
	MaxPieces = 20_000
	// maxAmount is the most of a resource that a node can have.
	maxAmount = 1 << 60
	// maxResources of a node.
	maxResources = 64
)

var (
	hashForm   = regexp.MustCompile(`^n[0-9a-v]{13}$`)
	numberForm = regexp.MustCompile(`^(0|[1-9][0-9]{0,3})$`)
)

// IsHash reports whether a node is named by its hash, the value of the label
// fleetbroker.io/node: n and 13 digits of base32hex.
func IsHash(node string) bool { return hashForm.MatchString(node) }

// Unlimited reports whether a resource that is not listed is not limited.
func Unlimited(name string) bool {
	return name == v1alpha1.Pods || name == v1alpha1.EphemeralStorage
}

// Report checks the nodes of a reported flavor, and what contracts hold on them. The
// error begins with the field's path.
func Report(s *v1alpha1.FlavorSpec) error {
	if err := heldOn(s); err != nil {
		return err
	}
	n := s.Nodes
	if n == nil {
		return nil
	}
	if (n.Count != 0 || len(n.Size) > 0) && len(n.Groups) > 0 {
		return fmt.Errorf("spec.nodes: count and size go with a file, groups with a report; write one of them")
	}
	if problems := counted(s); len(problems) > 0 {
		return fmt.Errorf("%s", problems[0].Message)
	}
	seen, sum := map[string]bool{}, v1alpha1.Resources{}
	for i, g := range n.Groups {
		at := fmt.Sprintf("spec.nodes.groups[%d]", i)
		if err := group(at, &g); err != nil {
			return err
		}
		for _, node := range g.Nodes {
			if !IsHash(node) {
				return fmt.Errorf("%s.nodes: %.80q is not a node's hash: n and 13 digits of base32hex", at, node)
			}
			if seen[node] {
				return fmt.Errorf("%s.nodes: node %s is listed twice", at, node)
			}
			seen[node] = true
		}
		if len(seen) > MaxNodes {
			return fmt.Errorf("spec.nodes: more than %d nodes in one flavor: make several of it", MaxNodes)
		}
		for name, one := range g.Shape {
			all, fits := times(one, int64(len(g.Nodes)))
			if sum[name] = sum[name].Add(all); !fits || sum[name].Int64() > maxAmount {
				return fmt.Errorf("%s.shape.%s is out of bounds", at, name)
			}
		}
	}
	for _, name := range sum.Names() {
		has, listed := s.Capacity[name]
		if !listed && Unlimited(name) {
			continue
		}
		if has.Less(sum[name]) {
			return fmt.Errorf("spec.nodes: all nodes together have %s %s, and spec.capacity has %s", sum[name].Canonical(name), name, has.Canonical(name))
		}
	}
	return nil
}

// group checks one group of nodes but for their hashes.
func group(at string, g *v1alpha1.NodeGroup) error {
	if len(g.Nodes) == 0 {
		return fmt.Errorf("%s has no nodes: leave it out", at)
	}
	if len(g.Shape) == 0 {
		return fmt.Errorf("%s.shape is empty: state what is allocatable on a node", at)
	}
	for path, list := range map[string]v1alpha1.Resources{".shape": g.Shape, ".free": g.Free} {
		if err := amounts(at+path, list); err != nil {
			return err
		}
	}
	for _, name := range g.Free.Names() {
		if has := g.Shape[name]; has.Less(g.Free[name]) {
			return fmt.Errorf("%s.free.%s is %s, and a node has %s", at, name, g.Free[name].Canonical(name), has.Canonical(name))
		}
	}
	if len(g.Labels) > maxLabels {
		return fmt.Errorf("%s.labels: %d entries, at most %d", at, len(g.Labels), maxLabels)
	}
	for k, v := range g.Labels {
		if k == "" || len(k) > maxKey || len(v) > maxValue || !plain(k) || !plain(v) {
			return fmt.Errorf("%s.labels: %+.80q: %+.80q is not a label: plain ASCII, a value of at most %d characters", at, k, v, maxValue)
		}
	}
	return nil
}

// heldOn checks what contracts hold on which node: never more than on the flavor.
func heldOn(s *v1alpha1.FlavorSpec) error {
	pieces := 0
	for contract, nodes := range s.HeldOn {
		if pieces += len(nodes); pieces > MaxPieces {
			return fmt.Errorf("spec.heldOn: more than %d pieces of contracts on nodes: make several flavors of it", MaxPieces)
		}
		held, holds := s.Held[contract]
		if !holds {
			return fmt.Errorf("spec.heldOn: %.80q is not in spec.held", contract)
		}
		if len(nodes) == 0 || len(nodes) > MaxNodes {
			return fmt.Errorf("spec.heldOn.%s: %d nodes; from 1 to %d are taken", contract, len(nodes), MaxNodes)
		}
		sum := v1alpha1.Resources{}
		for node, r := range nodes {
			if !IsHash(node) {
				return fmt.Errorf("spec.heldOn.%s: %.80q is not a node's hash: n and 13 digits of base32hex", contract, node)
			}
			if err := amounts("spec.heldOn."+contract+"."+node, r); err != nil {
				return err
			}
			for _, name := range r.Names() {
				if has := held[name]; has.Less(r[name]) {
					return fmt.Errorf("spec.heldOn.%s.%s has %s %s, and spec.held.%[1]s has %[5]s", contract, node, r[name].Canonical(name), name, has.Canonical(name))
				}
			}
			sum = sum.Add(r)
		}
		for _, name := range sum.Names() { // sums saturate
			if has := held[name]; has.Less(sum[name]) {
				return fmt.Errorf("spec.heldOn.%s: all nodes together have %s %s, and spec.held.%[1]s has %[4]s", contract, sum[name].Canonical(name), name, has.Canonical(name))
			}
		}
	}
	return nil
}

// Entries is how many entries the lists of nodes have, empty ones counted too.
func Entries(s *v1alpha1.FlavorSpec) int {
	n := len(s.HeldOn)
	for _, nodes := range s.HeldOn {
		n += 2 * len(nodes)
		for _, r := range nodes {
			n += len(r)
		}
	}
	if s.Nodes == nil {
		return n
	}
	n += len(s.Nodes.Size)
	for i := range s.Nodes.Groups {
		g := &s.Nodes.Groups[i]
		n += 1 + len(g.Shape) + len(g.Free) + len(g.Labels) + len(g.Nodes)
	}
	return n
}

// amounts checks a list of resources of one node.
func amounts(at string, r v1alpha1.Resources) error {
	if len(r) > maxResources {
		return fmt.Errorf("%s: %d resources, at most %d", at, len(r), maxResources)
	}
	for name, a := range r {
		if name == "" || len(name) > maxKey || !plain(name) || strings.ContainsAny(name, " \"\\") {
			return fmt.Errorf("%s: %+.80q is not a resource's name", at, name)
		}
		if n := a.Int64(); n < 0 || n > maxAmount {
			return fmt.Errorf("%s.%s: %d is out of bounds", at, name, n)
		}
	}
	return nil
}

// times is n times an amount, both not negative; fits is false where that is no number.
func times(a v1alpha1.Amount, n int64) (product v1alpha1.Amount, fits bool) {
	high, low := bits.Mul64(uint64(a.Int64()), uint64(n)) //nolint:gosec // neither is negative
	if high != 0 || low > maxAmount {
		return v1alpha1.AmountOf(maxAmount), false
	}
	return v1alpha1.AmountOf(int64(low)), true //nolint:gosec // below maxAmount
}

func plain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}
