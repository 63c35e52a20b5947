// Package message words what a commit of the ledger does: the line of its subject for an
// intent, and the trailers of its contracts. Both are functions of the change alone.
//
// The reconciler calls it when it puts a commit together.
package message

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner"
)

// Line says in one line what a plan does with an intent, as it stands in the
// commit's subject or body: "place vision/llm-finetune on paris/h100-pool
// (4x nvidia-h100, 12.09 EUR/h)".
func Line(d *planner.Decision, changes []model.Change) string {
	name := d.Tenant + "/" + d.Name
	var placed, released, other *model.Change
	for i := range changes {
		switch c := &changes[i]; {
		case c.Before == nil:
			placed = first(placed, c)
		case c.After == nil:
			other = first(other, c)
		case c.After.Status.Phase == v1alpha1.PhaseReleasing && c.Before.Status.Phase != v1alpha1.PhaseReleasing:
			released = first(released, c)
		default:
			other = first(other, c)
		}
	}
	switch {
	case placed != nil && released != nil:
		return fmt.Sprintf("move %s from %s to %s (%s)%s%s", name, flavorOf(released.Before), flavorOf(placed.After), size(placed.After), more(changes), forWhom(released.After))
	case placed != nil:
		return fmt.Sprintf("place %s on %s (%s)%s", name, flavorOf(placed.After), size(placed.After), more(changes))
	case released != nil && released.After.Status.Target == v1alpha1.PhasePreempted:
		return fmt.Sprintf("preempt %s on %s (%s)", name, flavorOf(released.Before), reasonOr(released.After, d.Reason))
	case released != nil:
		return fmt.Sprintf("release %s from %s (%s)", name, flavorOf(released.Before), reasonOr(released.After, d.Reason))
	case other != nil && other.After == nil:
		return fmt.Sprintf("retire %s of %s", other.Before.Metadata.Name, name)
	case other != nil && !other.Before.Spec.Resources.Equal(other.After.Spec.Resources):
		return fmt.Sprintf("resize %s on %s (%s)", name, flavorOf(other.After), size(other.After))
	case other != nil && other.Before.Status.Phase != other.After.Status.Phase:
		return stands(name, other.After)
	case other != nil && other.After.Status.Displaced != nil && other.Before.Status.Displaced == nil:
		return fmt.Sprintf("give notice to %s on %s until %s%s", name, flavorOf(other.After), other.After.Status.Displaced.Leaves.Format("2006-01-02T15:04:05Z07:00"), because(d.Reason))
	case other != nil && other.After.Status.Displaced == nil && other.Before.Status.Displaced != nil:
		return fmt.Sprintf("take back the notice to %s on %s", name, flavorOf(other.After))
	case other != nil && other.Before.Status.Drained.IsZero() && !other.After.Status.Drained.IsZero():
		return fmt.Sprintf("drained %s on %s", name, flavorOf(other.After))
	case other != nil && ledger.ReasonOf(other.Before) != ledger.ReasonOf(other.After):
		return stands(name, other.After)
	case other != nil:
		return fmt.Sprintf("update %s on %s", name, flavorOf(other.After))
	}
	return fmt.Sprintf("%s %s%s", d.Action, name, because(d.Reason))
}

// forWhom says for which intent a contract has moved, "" for none.
func forWhom(c *v1alpha1.Contract) string {
	if d := c.Status.Displaced; d != nil && d.Cause == v1alpha1.Moved {
		return " to make room for " + d.By
	}
	return ""
}

// stands says in which phase a contract is, and why.
func stands(name string, c *v1alpha1.Contract) string {
	return fmt.Sprintf("%s %s on %s%s", strings.ToLower(string(c.Status.Phase)), name, flavorOf(c), because(reasonOr(c, "")))
}

func first(have, c *model.Change) *model.Change {
	if have != nil {
		return have
	}
	return c
}

func more(changes []model.Change) string {
	n := -1
	for i := range changes {
		if changes[i].Before == nil {
			n++
		}
	}
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf(" and %d more", n)
}

func flavorOf(c *v1alpha1.Contract) string { return c.Spec.Provider + "/" + c.Spec.Flavor }

func size(c *v1alpha1.Contract) string {
	var what string
	if g := c.Spec.GPUs; g != nil && g.Count > 0 {
		what = fmt.Sprintf("%dx %s", g.Count, g.Model)
	} else {
		what = c.Spec.Resources[v1alpha1.CPU].Canonical(v1alpha1.CPU) + " cpu"
	}
	return fmt.Sprintf("%s, %s %s/h", what, c.Spec.Price.Hourly.Text(), c.Spec.Price.Currency)
}

// reasonOr is a contract's reason for people: its message, else its code, else
// other.
func reasonOr(c *v1alpha1.Contract, other string) string {
	return cmp.Or(c.Status.Message, c.Status.Reason, other)
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// Trailers are one `Contract:` line a contract that changes and stays in the
// tree.
func Trailers(changes []model.Change) []string {
	var out []string
	for _, c := range changes {
		if c.After == nil {
			continue
		}
		old := "-"
		if c.Before != nil {
			old = string(c.Before.Status.Phase)
		}
		out = append(out, fmt.Sprintf("Contract: %s %s -> %s", c.After.Metadata.Name, old, c.After.Status.Phase))
	}
	return out
}
