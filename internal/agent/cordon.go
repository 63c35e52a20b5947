package agent

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// What administrators say of a flavor by its nodes, as an annotation or a
// label. One node is enough: those that join later need not be told.
//
//	kubectl annotate nodes -l fleetbroker.io/pool=h100 fleetbroker.io/cordon=true
//	kubectl annotate nodes -l fleetbroker.io/pool=h100 fleetbroker.io/drain=2026-12-01T08:00:00Z
//
// (`kubectl cordon` takes a single node out of service.)
const (
	noteCordon = v1alpha1.Group + "/cordon"
	// noteDrain is when contracts must have moved elsewhere, RFC 3339. Colons
	// cannot stand in a label's value, so that it is an annotation only.
	noteDrain = v1alpha1.Group + "/drain"
)

// wishes is what the nodes of a group say of selling: nothing new, or to be
// empty by the earliest time that any of them names.
func (g *group) wishes() (cordon bool, drain v1alpha1.Time, problems []string) {
	for _, n := range g.nodes {
		cordon = cordon || n.Annotations[noteCordon] == "true" || n.Labels[noteCordon] == "true"
		text := n.Annotations[noteDrain]
		if text == "" {
			continue
		}
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			problems = append(problems, unreadable(n, err))
			continue
		}
		if by := v1alpha1.TimeOf(at); drain.IsZero() || by.Before(drain.Time) {
			drain = by
		}
	}
	return cordon, drain, problems
}

func unreadable(n *corev1.Node, err error) string {
	return fmt.Sprintf("node %s: annotation %s is ignored: %v; write for example 2026-12-01T08:00:00Z", n.Name, noteDrain, err)
}
