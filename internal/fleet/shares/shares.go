// Package shares checks what intents write of the virtual nodes that share one slice
// (virtualNode.shares): they have room in a replica, whichever of its alternatives it
// comes from.
//
// It judges values; package fleet knows where they are written and reports them with
// file and line. Each problem states what to write instead.
//
// Pure functions; safe for concurrent use.
package shares

import (
	"fmt"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/fleet/domains"
)

// Of are the problems of an intent's shares, each with its place below spec.
func Of(s *v1alpha1.IntentSpec) []domains.Problem {
	v := s.VirtualNode
	if v == nil || len(v.Shares) == 0 {
		return nil
	}
	var out []domains.Problem
	add := func(below []any, format string, args ...any) {
		out = append(out, domains.Problem{At: append([]any{"virtualNode", "shares"}, below...), Text: fmt.Sprintf(format, args...)})
	}
	if len(v.Shares) > v1alpha1.MaxShares {
		add(nil, ": %d virtual nodes of one slice are too many; write at most %d", len(v.Shares), v1alpha1.MaxShares)
	}
	names := v.Shared()
	for i, share := range v.Shares {
		if missing := slices.IndexFunc(names, func(name string) bool { _, ok := share[name]; return !ok }); missing >= 0 {
			add([]any{i}, " has no %s, which another share has: all name the same resources, with 0 for none", names[missing])
		}
		for _, name := range []string{v1alpha1.CPU, v1alpha1.Memory} {
			if amount, ok := share[name]; ok && amount.IsZero() {
				add([]any{i, name}, " is 0: a Node without it is never ready")
			}
		}
	}
	fits := func(from v1alpha1.ResourceRequest, where string) {
		for _, text := range exceed(v, names, from, where) {
			add(nil, "%s", text)
		}
	}
	fits(s.Resources, "spec.resources")
	for i, alt := range s.Alternatives {
		fits(alt.Over(s.Resources), fmt.Sprintf("spec.alternatives[%d]", i))
	}
	return out
}

// exceed compares the sum of the shares with what a replica asks for.
func exceed(v *v1alpha1.VirtualNodeSpec, names []string, from v1alpha1.ResourceRequest, where string) (out []string) {
	for _, name := range names {
		sum := v1alpha1.Amount{}
		for _, share := range v.Shares {
			sum = sum.Add(share[name])
		}
		has, named := from.Named[name]
		if name == v1alpha1.GPU {
			if from.GPU != nil && from.GPU.Share != nil {
				out = append(out, ": a part of one GPU is not shared again; take gpu out of the shares")
				continue
			}
			named = from.GPU != nil
			if named {
				has = v1alpha1.AmountOf(int64(max(from.GPU.Count, 1)))
			}
		}
		switch {
		case !named && !sum.IsZero():
			out = append(out, fmt.Sprintf(" name %s, which %s does not: write there how much a replica has", name, where))
		case has.Less(sum):
			out = append(out, fmt.Sprintf(": together they have %s %s, and %s only %s", sum.Canonical(name), name, where, has.Canonical(name)))
		}
	}
	return out
}
