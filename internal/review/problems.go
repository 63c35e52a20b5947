package review

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/planner/report"
)

// maxLines bounds the problems that are told one by one.
const maxLines = 50

// problems are what is wrong with a pull request and was not wrong before.
func problems(in Input) []report.Problem {
	out := news(in.Before.Fleet, in.whole().Fleet)
	if in.Own != nil {
		policy := map[string]bool{}
		for _, path := range in.Changes.Policy {
			policy[path] = true
		}
		for _, p := range news(in.Before.Fleet, in.Own.Fleet) {
			if policy[p.File] {
				out = append(out, p)
			}
		}
		out = append(out, foreignSecrets(in.Before.Fleet, in.Own.Fleet)...)
	}
	for _, path := range in.Changes.Generated {
		out = append(out, report.Problem{File: path, Line: 1, Message: "this file is written by fleetbroker alone, and a change of it would be undone; change the intent instead (or overlays/ for manifests)"})
	}
	slices.SortStableFunc(out, func(a, b report.Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Message, b.Message))
	})
	out = slices.Compact(out)
	if left := len(out) - maxLines; left > 0 {
		out = append(out[:maxLines:maxLines], report.Problem{Message: fmt.Sprintf("and %d problems more: `fleetbroker validate` names them all", left)})
	}
	return out
}

// news are the errors of after that before did not have. What moved to another
// line is not new.
func news(before, after *fleet.Fleet) []report.Problem {
	type key struct{ file, message string }
	known := map[key]int{}
	for _, d := range before.Errors() {
		known[key{d.File, d.Message}]++
	}
	var out []report.Problem
	for _, d := range after.Errors() {
		k := key{d.File, d.Message}
		if known[k] > 0 {
			known[k]--
			continue
		}
		out = append(out, report.Problem{File: d.File, Line: d.Line, Column: d.Column, Message: d.Message})
	}
	return out
}

// foreignSecrets are Clusters that name the Secret of another one. A Secret is
// labelled for one cluster, so that the daemon would refuse it; here it is told
// to whoever reviews.
func foreignSecrets(before, own *fleet.Fleet) []report.Problem {
	owner := map[string]string{}
	for _, name := range sorted(before.Clusters) {
		if a := before.Clusters[name].Spec.Access; a != nil && a.KubeconfigSecretRef != nil && owner[a.KubeconfigSecretRef.Name] == "" {
			owner[a.KubeconfigSecretRef.Name] = name
		}
	}
	var out []report.Problem
	for _, name := range sorted(own.Clusters) {
		a := own.Clusters[name].Spec.Access
		if a == nil || a.KubeconfigSecretRef == nil {
			continue
		}
		if of := owner[a.KubeconfigSecretRef.Name]; of != "" && of != name {
			out = append(out, report.Problem{File: "clusters/" + name + ".yaml", Line: 1, Message: fmt.Sprintf("spec.access.kubeconfigSecretRef: Secret %s is that of cluster %s; the daemon uses a Secret only for the cluster that its label fleetbroker.io/cluster names", a.KubeconfigSecretRef.Name, of)})
		}
	}
	return out
}

// unread are the problems of what could not be read, for the table; one of an
// intent that could be read stands in its decision.
func unread(in Input, lines []report.Problem) []report.Problem {
	whole := map[string]bool{} // by problem, false where it stands in a decision
	sides := []*fleet.Fleet{in.whole().Fleet}
	if in.Own != nil {
		sides = append(sides, in.Own.Fleet)
	}
	for _, f := range sides {
		for _, d := range f.Errors() {
			whole[d.File+"\x00"+d.Message] = false
		}
		for _, d := range f.Unread() {
			whole[d.File+"\x00"+d.Message] = true
		}
	}
	var out []report.Problem
	for _, l := range lines {
		if w, known := whole[l.File+"\x00"+l.Message]; w || !known {
			out = append(out, l)
		}
	}
	return out
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
