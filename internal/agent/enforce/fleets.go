package enforce

import (
	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// FleetOf is the id of the fleet that a slice is of: the one whose agent granted it,
// else the one that its consumer's copy names; "" where nothing says. The label is the
// consumer's to write, what was granted is not: who relabels a granted slice does not
// keep it.
func FleetOf(s *authv1beta1.ResourceSlice) string {
	if id := s.Status.NodeLabels[LabelFleet]; id != "" {
		return id
	}
	return s.Labels[v1alpha1.LabelFleet]
}

// others reports whether a slice is another fleet's, whose agent in this cluster
// answers it: it is neither granted nor denied nor withdrawn here. Liqo copies labels
// only when it makes the copy, so that slices from before fleets were told apart name
// none: what was granted by this fleet's contract is its own, and what another agent
// granted that says of no fleet is of one that has no id.
func (c Case) others() bool {
	by := c.Slice.Status.NodeLabels
	switch id := FleetOf(c.Slice); {
	case by[LabelFleet] != "":
		return id != c.Fleet
	case c.Promise != nil && by[LabelContract] == c.Promise.Contract:
		return false
	case id != "":
		return id != c.Fleet
	}
	return c.Fleet != "" && by[LabelContract] != "" && c.Promise == nil
}
