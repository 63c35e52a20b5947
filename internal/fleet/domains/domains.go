// Package domains checks what intents and the fleet write of the domains that replicas
// share (placement.within) or are spread over (placement.spread).
//
// It judges values; package fleet knows where they are written and reports them with
// file and line. Each problem states what to write instead.
//
// Pure functions; safe for concurrent use.
package domains

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/fleetbroker/fleetbroker/internal/api/nearest"
	"github.com/fleetbroker/fleetbroker/internal/api/strictyaml"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Problem is a value that cannot be meant.
type Problem struct {
	// At is where it is, below placement (or, of a fleet's default, below defaults).
	At []any
	// Text is what is wrong and what to write, to be put after the path.
	Text string
}

// Of are the problems of a placement's within and spread. single: spread is one entry in
// place of a list.
func Of(pl *v1alpha1.Placement, single bool) []Problem {
	out := Within(pl.Within)
	for i := range pl.Spread {
		sp, at := &pl.Spread[i], []any{"spread", i}
		if single {
			at = at[:1]
		}
		out = append(out, domain(at, sp.By, sp.Label)...)
		for _, n := range []struct {
			name  string
			value int32
		}{{"maxSkew", sp.MaxSkew}, {"minDomains", sp.MinDomains}} {
			if n.value < 0 {
				out = append(out, Problem{below(at, n.name), fmt.Sprintf(": %d is less than 0", n.value)})
			}
		}
		if w := pl.Within; w != nil && w.By != "" && w.Policy != v1alpha1.WithinNone && sp.Contradicts(w.By, w.Label) {
			out = append(out, Problem{[]any{"within"}, fmt.Sprintf(": all replicas in one %s cannot be spread by %s too (placement.spread): take one of the two out, or write within: {policy: None}", w.By, sp.By)})
		}
	}
	return out
}

// NoSkew are the places in a document where a placement, which stands at one, spreads with
// maxSkew: 0 written out, which counts as 1. A nil document has none.
func NoSkew(pl *v1alpha1.Placement, doc *strictyaml.Document, placement []any) (out [][]any) {
	if doc == nil {
		return nil
	}
	for i := range pl.Spread {
		one := append(slices.Clone(placement), "spread", "maxSkew") // one entry in place of a list
		for _, at := range [][]any{one, append(slices.Clone(placement), "spread", i, "maxSkew")} {
			if pl.Spread[i].MaxSkew == 0 && doc.Text(at...) != "" {
				out = append(out, at)
			}
		}
	}
	return out
}

// Within are the problems of one by itself; nil has none.
func Within(w *v1alpha1.Within) []Problem {
	if w == nil {
		return nil
	}
	at := []any{"within"}
	var out []Problem
	policies := []string{string(v1alpha1.WithinRequired), string(v1alpha1.WithinPreferred), string(v1alpha1.WithinNone)}
	if p := string(w.Policy); p != "" && !slices.Contains(policies, p) {
		out = append(out, Problem{below(at, "policy"), Unknown(p, policies)})
	}
	if w.Policy == v1alpha1.WithinNone && w.By == "" && w.Label == "" {
		return out
	}
	return append(out, domain(at, w.By, w.Label)...)
}

// domain are the problems of a kind of domain and the key of its label.
func domain(at []any, by, label string) []Problem {
	var out []Problem
	switch {
	case by == "":
		out = append(out, Problem{below(at, "by"), " is missing; write one of " + strings.Join(v1alpha1.Domains, ", ")})
	case strings.Contains(by, "/") || slices.Contains([]string{"rack", "block", "nvlink", "node"}, strings.ToLower(by)):
		return append(out, Problem{below(at, "by"), fmt.Sprintf(": %q is no kind of domain; write by: label, and label: with the key of the label that names it, such as topology.kubernetes.io/rack", by)})
	case !slices.Contains(v1alpha1.Domains, by):
		return append(out, Problem{below(at, "by"), Unknown(by, v1alpha1.Domains)})
	}
	switch {
	case by == "label" && label == "":
		out = append(out, Problem{below(at, "label"), " is missing: by: label needs the key of a label, such as topology.kubernetes.io/rack"})
	case label != "" && by != "label":
		out = append(out, Problem{below(at, "label"), ": goes with by: label only; write by: label, or take it out"})
	case label != "":
		if list := validation.IsQualifiedName(label); len(list) > 0 {
			out = append(out, Problem{below(at, "label"), fmt.Sprintf(": %q is not a label key: %s", label, list[0])})
		}
	}
	return out
}

// Network are the problems of a location's network.
func Network(name string) []Problem {
	if len(name) > 63 || strings.ContainsFunc(name, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return []Problem{{[]any{"network"}, fmt.Sprintf(": %q is not a name of at most 63 plain characters without spaces; write for example eu-ib-1", name)}}
	}
	return nil
}

// Unknown is what is wrong with a value that is none of those known.
func Unknown(value string, known []string) string {
	for _, k := range known {
		if strings.EqualFold(k, value) {
			return fmt.Sprintf(": unknown value %q (did you mean %q?)", value, k)
		}
	}
	if near := nearest.Of(value, known); near != "" {
		return fmt.Sprintf(": unknown value %q (did you mean %q?)", value, near)
	}
	return fmt.Sprintf(": unknown value %q; write one of %s", value, strings.Join(known, ", "))
}

func below(at []any, name string) []any { return append(slices.Clone(at), name) }
