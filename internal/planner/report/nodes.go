package report

import (
	"fmt"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
)

// nodesShown is of how many nodes a line says how much the contract has of each.
const nodesShown = 4

// onNodes is on how many nodes a contract lies, and how many GPUs it has of each: ", on 2
// nodes with 8 GPUs each"; "" for one node, and for none.
func onNodes(c *planner.ContractLine) string {
	if len(c.Nodes) < 2 {
		return ""
	}
	name, unit := "", "GPUs"
	if c.GPUs != nil {
		name = c.GPUs.ResourceName
	}
	var each []string
	alike := true
	for i := range c.Nodes {
		n := c.Nodes[i].Resources[name]
		alike = alike && n == c.Nodes[0].Resources[name]
		each = append(each, n.Canonical(v1alpha1.GPU))
	}
	switch {
	case name == "":
		return fmt.Sprintf(", on %d nodes", len(c.Nodes))
	case alike:
		if each[0] == "1" {
			unit = "GPU"
		}
		return fmt.Sprintf(", on %d nodes with %s %s each", len(c.Nodes), each[0], unit)
	case len(each) > nodesShown:
		return fmt.Sprintf(", on %d nodes", len(c.Nodes))
	}
	last := len(each) - 1
	return fmt.Sprintf(", on %d nodes with %s and %s GPUs", len(c.Nodes), strings.Join(each[:last], ", "), each[last])
}
