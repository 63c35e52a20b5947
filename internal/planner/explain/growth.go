package explain

import (
	"fmt"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
)

// ScaledText states what an autoscaler has to add for an intent's new contracts.
func ScaledText(lines []draft.ContractLine) string {
	sum := v1alpha1.Resources{}
	for i := range lines {
		if a := lines[i].Action; a == draft.Place || a == draft.Move || a == draft.Resize {
			sum = sum.Add(lines[i].Scaled)
		}
	}
	if len(sum) == 0 {
		return ""
	}
	return "the provider's autoscaler has to add " + AmountsText(sum)
}

// AmountsText is amounts in words: "4 GPUs, 16 cpu".
func AmountsText(res v1alpha1.Resources) string {
	text := ""
	if n := res[v1alpha1.GPU]; n.Int64() == 1 {
		text = "1 GPU"
	} else if !n.IsZero() {
		text = n.Canonical(v1alpha1.GPU) + " GPUs"
	}
	for _, name := range res.Names() {
		if name == v1alpha1.GPU {
			continue
		}
		if text != "" {
			text += ", "
		}
		text += res[name].Canonical(name) + " " + name
	}
	return text
}

// LaterText states how many replicas are replaced after others, "" for none.
func LaterText(j *draft.Job) string {
	if j.Later == 0 {
		return ""
	}
	most, _ := j.In.Spec.Update.Steps()
	if j.Later == 1 {
		return fmt.Sprintf("1 replica is replaced after the others (update.maxUnavailable %d)", most)
	}
	return fmt.Sprintf("%d replicas are replaced after the others (update.maxUnavailable %d)", j.Later, most)
}
