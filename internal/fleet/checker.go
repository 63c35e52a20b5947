package fleet

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/fleetbroker/fleetbroker/internal/api/celenv"
	"github.com/fleetbroker/fleetbroker/internal/api/escape"
	"github.com/fleetbroker/fleetbroker/internal/api/generations"
	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/nearest"
	"github.com/fleetbroker/fleetbroker/internal/api/strictyaml"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/fleet/naming"
)

// checker collects what is wrong with one document.
type checker struct {
	file     string
	doc      *strictyaml.Document // nil: no places are known, line 1 is said
	programs *programs
	diags    []Diagnostic
	said     map[Severity]int // how many of diags there are
	// inPlace: the object lies in its own namespace's directory.
	inPlace bool
	// compiled are the bytes of the expressions that had to be compiled.
	compiled int64
}

// place is a path of field names and list indexes.
type place []any

func at(steps ...any) place { return steps }

// in is a place below p.
func (p place) in(steps ...any) place {
	return append(append(make(place, 0, len(p)+len(steps)), p...), steps...)
}

// String is the path as people write it: spec.placement.spread[0].by.
func (p place) String() string {
	var b strings.Builder
	for _, s := range p {
		switch s := s.(type) {
		case int:
			fmt.Fprintf(&b, "[%d]", s)
		case string:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(s)
		}
	}
	return b.String()
}

// maxDiagnostics is how many mistakes of a severity are listed of one document,
// each with its place: finding that takes as long as the list it stands in.
const maxDiagnostics = 100

// report returns the diagnostic, nil when there are too many.
func (c *checker) report(p place, severity Severity, code, format string, args ...any) *Diagnostic {
	if c.said == nil {
		c.said = map[Severity]int{}
	}
	if c.said[severity]++; c.said[severity] > maxDiagnostics {
		if c.said[severity] == maxDiagnostics+1 {
			c.diags = append(c.diags, Diagnostic{File: c.file, Line: 1, Column: 1, Severity: severity, Code: "TooManyMistakes",
				Message: fmt.Sprintf("one document has more than %d mistakes like those listed, and the others are not listed: correct these first", maxDiagnostics)})
		}
		return nil
	}
	line, column := 1, 1
	if c.doc != nil {
		line, column = c.doc.At(p...)
	}
	c.diags = append(c.diags, Diagnostic{File: c.file, Line: line, Column: column, Message: escape.Reason(fmt.Sprintf(format, args...)), Severity: severity, Code: code})
	return &c.diags[len(c.diags)-1]
}

func (c *checker) errorf(p place, code, format string, args ...any) {
	c.report(p, Error, code, format, args...)
}

// keyf reports a mistake of a map's key, where the key stands.
func (c *checker) keyf(p place, code, format string, args ...any) {
	if d := c.report(p, Error, code, format, args...); d != nil && c.doc != nil {
		d.Line, d.Column = c.doc.KeyAt(p...)
	}
}

func (c *checker) warnf(p place, code, format string, args ...any) {
	c.report(p, Warning, code, format, args...)
}

// oneOf checks an enumerated value; "" is the default and always right.
func (c *checker) oneOf(p place, value string, known ...string) {
	if value == "" {
		return
	}
	for _, k := range known {
		if value == k {
			return
		}
	}
	if near := nearest.Of(value, known); near != "" {
		c.errorf(p, "BadValue", "%s: unknown value %q (did you mean %q?)", p, value, near)
		return
	}
	c.errorf(p, "BadValue", "%s: unknown value %q; write one of %s", p, value, strings.Join(known, ", "))
}

// within checks a whole number's bounds.
func (c *checker) within(p place, value, least, most int64) {
	if value < least || value > most {
		if most == noMost {
			c.errorf(p, "BadValue", "%s: %d is less than %d", p, value, least)
			return
		}
		c.errorf(p, "BadValue", "%s: %d is not between %d and %d", p, value, least, most)
	}
}

const noMost = 1<<63 - 1

// positive checks a limit that must be more than nothing.
func (c *checker) positive(p place, d *v1alpha1.Decimal) {
	c.aboveZero(p, d, "; leave it out for no limit")
}

// aboveZero checks a number that must be more than nothing.
func (c *checker) aboveZero(p place, d *v1alpha1.Decimal, remedy string) {
	if d != nil && d.Sign() <= 0 {
		c.errorf(p, "BadValue", "%s: %s is not more than 0%s", p, d, remedy)
	}
}

// ratio checks a number from 0 to 1.
func (c *checker) ratio(p place, d *v1alpha1.Decimal) {
	if d != nil && (d.Sign() < 0 || d.Cmp(v1alpha1.DecimalFromInt(1)) > 0) {
		c.errorf(p, "BadValue", "%s: %s is not between 0 and 1", p, d)
	}
}

func (c *checker) currency(p place, value string) {
	switch upper := strings.ToUpper(value); {
	case value == "" || currencyForm.MatchString(value):
	case currencyForm.MatchString(upper):
		c.errorf(p, "BadValue", "%s: %q is not a currency (did you mean %q?)", p, value, upper)
	default:
		c.errorf(p, "BadValue", "%s: %q is not a currency; write three capital letters, such as EUR", p, value)
	}
}

func (c *checker) label(p place, value string) {
	if why := naming.Bad(p.String(), value); why != "" {
		c.errorf(p, "BadName", "%s", why)
	}
}

// expression compiles a CEL expression, by the bound for a policy of the fleet or
// for an intent; its mistake is reported where it stands within the scalar.
func (c *checker) expression(p place, source string, policy bool) model.Predicate {
	prog, made, err := c.programs.compile(expression{source, policy})
	if made {
		c.compiled += int64(len(source))
	}
	if err == nil {
		return prog
	}
	var mistake *celenv.Error
	if !errors.As(err, &mistake) {
		mistake = &celenv.Error{Line: 1, Column: 1, Message: err.Error()}
	}
	if d := c.report(p, Error, "BadExpression", "%s: %s", p, mistake.Message); d != nil && c.doc != nil {
		d.Line, d.Column = c.doc.Within(mistake.Line, mistake.Column, p...)
	}
	return nil
}

// maxPrograms is how many compiled expressions a generation of programs keeps.
const maxPrograms = 2_000

// programs are compiled expressions by source: thousands of intents share few.
// What is used stays, and what is not asked for goes.
type programs struct {
	mu   sync.Mutex
	kept generations.Cache[expression, compiled]
}

// expression is a source, and whether it is a policy's: those may cost more.
type expression struct {
	source string
	policy bool
}

type compiled struct {
	prog *celenv.Program
	err  error
}

// compile is the program of an expression, and whether it had to be made.
func (ps *programs) compile(e expression) (p *celenv.Program, made bool, err error) {
	ps.mu.Lock()
	c, ok := ps.kept.Get(e)
	ps.mu.Unlock()
	if ok {
		return c.prog, false, c.err
	}
	compile := celenv.Compile
	if e.policy {
		compile = celenv.CompilePolicy
	}
	prog, err := compile(e.source)
	if len(e.source) <= celenv.MaxSource {
		ps.mu.Lock()
		defer ps.mu.Unlock()
		ps.kept.Most = maxPrograms
		ps.kept.Put(e, compiled{prog, err})
	}
	return prog, true, err
}
