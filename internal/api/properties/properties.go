// Package properties checks what is stated of a flavor, or of all of a cluster's, that can be
// compared and ranked, wherever it comes from: a file that people review, or a report.
//
// Invariants: one Problem for each mistake, in the order of the fields; what a list holds
// beyond its bound is not looked at.
//
// Called by fleet (files) and market (reports). Pure; safe for concurrent use.
package properties

import (
	"fmt"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// MaxStandard is how long the name of a security standard may be, in bytes.
const MaxStandard = 63

// Problem is a mistake.
type Problem struct {
	// At is where it is, below properties.
	At []any
	// Code is for programs.
	Code string
	// Text is what is wrong and what to write, to be put after the path.
	Text string
}

// String is the mistake with its path: securityStandards[2] is empty…
func (x Problem) String() string {
	at := ""
	for _, step := range x.At {
		if i, is := step.(int); is {
			at += fmt.Sprintf("[%d]", i)
		} else {
			at += fmt.Sprint(step)
		}
	}
	return at + x.Text
}

// Of are the mistakes of what is stated.
func Of(p *v1alpha1.FlavorProperties) (out []Problem) {
	if r := p.Reliability; r != nil && (r.Sign() < 0 || r.Cmp(v1alpha1.DecimalFromInt(1)) > 0) {
		out = append(out, Problem{[]any{"reliability"}, "BadValue", fmt.Sprintf(": %s is not between 0 and 1", r)})
	}
	for _, f := range []struct {
		name string
		n    *int64
	}{{"latencyMs", p.LatencyMs}, {"carbon", p.Carbon}} {
		if f.n != nil && *f.n < 0 {
			out = append(out, Problem{[]any{f.name}, "BadValue", fmt.Sprintf(": %d is less than 0", *f.n)})
		}
	}
	if n := len(p.SecurityStandards); n > v1alpha1.MaxNames {
		return append(out, Problem{[]any{"securityStandards"}, "LimitExceeded", fmt.Sprintf(": %d entries, and at most %d are read", n, v1alpha1.MaxNames)})
	}
	for i, name := range p.SecurityStandards {
		if name == "" || len(name) > MaxStandard {
			out = append(out, Problem{[]any{"securityStandards", i}, "BadValue", fmt.Sprintf(" is empty or longer than %d bytes; write for example ISO27001", MaxStandard)})
		}
	}
	return out
}
