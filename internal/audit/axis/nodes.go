package axis

import (
	"fmt"
	"maps"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
)

// overNodes is what is wrong with the nodes that a contract names, at an instant: all who
// take something then have together no more of each than its figures leave, and its own
// parts add up to what it has. "" where nothing is.
func overNodes(c *v1alpha1.Contract, all []*v1alpha1.Contract, takes func(*v1alpha1.Contract) bool) string {
	if len(c.Spec.Nodes) == 0 {
		return ""
	}
	ref := c.Spec.Provider + "/" + c.Spec.Flavor
	sum, own := map[string]v1alpha1.Resources{}, v1alpha1.Resources{}
	for _, other := range all {
		if !takes(other) {
			continue
		}
		for i := range other.Spec.Nodes {
			n := &other.Spec.Nodes[i]
			sum[n.Node] = sum[n.Node].Add(renamed(n.Resources, other, c))
		}
	}
	for i := range c.Spec.Nodes {
		n := &c.Spec.Nodes[i]
		own = own.Add(n.Resources)
		figures, known := c.Decision.Offer.Nodes[n.Node]
		if !known {
			return fmt.Sprintf("it lies on node %s of %s, and its decision records no figures of that", n.Node, ref)
		}
		for _, r := range sum[n.Node].Names() {
			have, listed := figures[r]
			if ledger.PerNode(r) && (listed || r != v1alpha1.EphemeralStorage) && have.Less(sum[n.Node][r]) {
				return fmt.Sprintf("%s of node %s of %s: contracts hold %s, and have at most %s", r, n.Node, ref, sum[n.Node][r].Canonical(r), have.Canonical(r))
			}
		}
	}
	for _, r := range own.Max(c.Spec.Resources).Names() {
		if own[r] != c.Spec.Resources[r] {
			return fmt.Sprintf("its nodes have %s %s together, and it has %s", own[r].Canonical(r), r, c.Spec.Resources[r].Canonical(r))
		}
	}
	return ""
}

// renamed is part of a contract's resources in its flavor's own names.
func renamed(r v1alpha1.Resources, of, like *v1alpha1.Contract) v1alpha1.Resources {
	part := v1alpha1.Contract{Spec: v1alpha1.ContractSpec{GPUs: of.Spec.GPUs, Resources: r}}
	return Offered(&part, like)
}

// nodeFaults is overNodes now, or of a booking when its term begins, and at every instant at
// which a booking begins during its term.
func nodeFaults(c *v1alpha1.Contract, from v1alpha1.Time, held, booked map[string]*v1alpha1.Contract) []string {
	if len(c.Spec.Nodes) == 0 {
		return nil
	}
	all := slices.Concat(slices.Collect(maps.Values(held)), slices.Collect(maps.Values(booked)))
	if c.Status.Phase != v1alpha1.PhaseBooked {
		if why := overNodes(c, all, func(o *v1alpha1.Contract) bool { return o.Status.Phase.Held() }); why != "" {
			return []string{why}
		}
	}
	for _, at := range ledger.Starts(all, from, c.Spec.Term.End) {
		if why := overNodes(c, all, func(o *v1alpha1.Contract) bool { return ledger.TakesAt(o, at) }); why != "" {
			return []string{why + " at " + stamp(at)}
		}
	}
	return nil
}
