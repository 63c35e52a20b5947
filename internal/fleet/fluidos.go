package fleet

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/strictyaml"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/fleet/fluidos"
)

// FLUIDOS's kinds are read as ours: a Solver as a ResourceIntent, a Flavor as
// a Flavor. Facts are of fluidos-project/node (apis/nodecore/v1alpha1) and, for
// GPU filters, of its fork in clastix/flare.
type foreign struct {
	apiVersion, kind string
	sec              section
}

// converter turns a document of another system into one of ours, nil when it
// cannot; the owner is the tenant or provider whose directory it lies in.
type converter func(c *checker, doc *strictyaml.Document, owner string) any

var foreignKinds = map[foreign]converter{
	{fluidos.API, "Solver", secIntents}: convertSolver,
	{fluidos.API, "Solver", secSources}: convertSolver,
	{fluidos.API, "Flavor", secFlavors}: convertFlavor,
}

// convert adds a converted document. Places of what is found in the converted
// object are those of the nearest field that the document has.
func (f *file) convert(index int, doc *strictyaml.Document, convert converter, programs *programs) {
	c := &checker{file: f.path, doc: doc}
	object := convert(c, doc, owner(f.path))
	if object == nil {
		f.broken = true
		f.diags = append(f.diags, c.diags...)
		f.nameFrom(doc)
		return
	}
	before := len(f.diags)
	f.diags = append(f.diags, c.diags...)
	f.add(index, doc, object, programs)
	if in, ok := object.(*v1alpha1.ResourceIntent); ok && !f.broken {
		for i := range f.diags[before:] {
			f.diags[before+i].Intent = in.Metadata.Namespace + "/" + in.Metadata.Name
		}
		d := &f.docs[len(f.docs)-1]
		if problem, code := firstError(c.diags); problem != "" && d.problem == "" {
			d.problem, d.code = problem, code
		}
	}
}

// decodeForeign reads a document, reporting its problems.
func decodeForeign[T any](c *checker, doc *strictyaml.Document) *T {
	v := new(T)
	problems := doc.Decode(v)
	for _, p := range problems {
		c.diags = append(c.diags, Diagnostic{File: c.file, Line: p.Line, Column: p.Column, Message: p.Message, Severity: Error, Code: "Unreadable"})
	}
	if len(problems) > 0 {
		return nil
	}
	return v
}

// convertSolver: the furthest phase asked for is the stage; a quantity's Match
// value or Range minimum is what FLUIDOS would buy, and becomes the request.
// What a filter bounds and an intent cannot say is refused and not dropped.
func convertSolver(c *checker, doc *strictyaml.Document, tenant string) any {
	s := decodeForeign[fluidos.Solver](c, doc)
	if s == nil {
		return nil
	}
	in := &v1alpha1.ResourceIntent{Metadata: v1alpha1.Metadata{
		Name: fluidos.Name(s.Metadata.Name), Namespace: tenant, Labels: s.Metadata.Labels,
		Annotations: map[string]string{"nodecore.fluidos.eu/intent-id": s.Spec.IntentID},
	}}
	in.Spec.Stage = v1alpha1.StageFind
	switch {
	case s.Spec.EstablishPeering:
		in.Spec.Stage = v1alpha1.StagePeer
	case s.Spec.ReserveAndBuy:
		in.Spec.Stage = v1alpha1.StageReserve
	case !s.Spec.FindCandidate:
		in.Spec.Suspend = true
	}
	sel := s.Spec.Selector
	if sel == nil || sel.Filters == nil {
		c.errorf(at("spec", "selector"), "NotConvertible", "a Solver without filters buys a whole flavor, which an intent cannot ask for; name what you need in spec.selector.filters")
		return in
	}
	in.Spec.FlavorType = sel.FlavorType
	p := at("spec", "selector", "filters")
	fl := sel.Filters
	if len(fl.Category) > 0 || len(fl.Tags) > 0 {
		c.errorf(p, "NotConvertible", "filters of services are not supported")
	}
	in.Spec.Resources.Named = v1alpha1.Resources{}
	for _, q := range []struct {
		field, name string
		filter      *fluidos.Filter
	}{
		{"cpuFilter", v1alpha1.CPU, fl.CPU}, {"memoryFilter", v1alpha1.Memory, fl.Memory},
		{"podsFilter", v1alpha1.Pods, fl.Pods}, {"storageFilter", v1alpha1.EphemeralStorage, fl.Storage},
	} {
		if q.filter != nil {
			c.quantityFilter(p.in(q.field), q.name, q.filter.Name, q.filter.Data, in.Spec.Resources.Named)
		}
	}
	if fl.Architecture != nil {
		in.Spec.Placement.Architectures = c.architectures(p.in("architectureFilter"), fl.Architecture)
	}
	for i, g := range fl.GPU {
		if in.Spec.Resources.GPU == nil {
			in.Spec.Resources.GPU = &v1alpha1.GPURequest{}
		}
		c.gpuFilter(p.in("gpuFilters", i), g, in.Spec.Resources.GPU)
	}
	return in
}

// bounds are the data of any filter of a quantity or number.
type bounds struct {
	Value, Min, Max json.RawMessage
}

func (c *checker) bounds(p place, data json.RawMessage) (value, low, high string, ok bool) {
	var b bounds
	if err := json.Unmarshal(data, &b); err != nil {
		c.errorf(p, "NotConvertible", "%s is not a filter: write {value: …} or {min: …, max: …}", p)
		return "", "", "", false
	}
	text := func(raw json.RawMessage) string { return strings.Trim(string(raw), `"`) }
	return text(b.Value), text(b.Min), text(b.Max), true
}

func (c *checker) quantityFilter(p place, name, kind string, data json.RawMessage, into v1alpha1.Resources) {
	value, low, high, ok := c.bounds(p.in("data"), data)
	if !ok {
		return
	}
	want := value
	switch {
	case kind == "Match" && value == "":
		c.errorf(p.in("data"), "NotConvertible", "%s: a Match filter has a value", p)
		return
	case kind == "Match":
	case kind == "Range" && low != "":
		want = low
		if high != "" {
			c.warnf(p.in("data", "max"), "NotConvertible", "%s: an intent asks for a minimum; the maximum is left out", p)
		}
	case kind == "Range":
		c.errorf(p.in("data"), "NotConvertible", "%s: a Range without min buys nothing; write the least you need as min", p)
		return
	default:
		c.errorf(p.in("name"), "NotConvertible", "%s: unknown filter %q; write Match or Range", p, kind)
		return
	}
	a, err := v1alpha1.ParseAmount(name, want)
	if err != nil {
		c.errorf(p.in("data"), "BadValue", "%s: %s", p, err)
		return
	}
	into[name] = a
}

func (c *checker) architectures(p place, f *fluidos.Filter) []string {
	var data struct{ Value, Regex string }
	if err := json.Unmarshal(f.Data, &data); err != nil || f.Name == "Match" && data.Value == "" || f.Name == "Range" && data.Regex == "" {
		c.errorf(p.in("data"), "NotConvertible", "%s: write {value: amd64} for Match or {regex: …} for Range", p)
		return nil
	}
	if f.Name == "Match" {
		return []string{data.Value}
	}
	re, err := regexp.Compile(data.Regex)
	if err != nil {
		c.errorf(p.in("data", "regex"), "BadValue", "%s: %q is not a regular expression", p, data.Regex)
		return nil
	}
	var out []string
	for _, a := range fluidos.Architectures {
		if re.MatchString(a) {
			out = append(out, a)
		}
	}
	if out == nil {
		c.errorf(p.in("data", "regex"), "NotConvertible", "%s: %q matches none of %s", p, data.Regex, strings.Join(fluidos.Architectures, ", "))
	}
	return out
}

// gpuFilter: what a GPU request can say is taken, anything else is refused.
func (c *checker) gpuFilter(p place, g fluidos.GPUFilter, into *v1alpha1.GPURequest) {
	value, low, high, ok := c.bounds(p.in("data"), g.Data)
	if !ok {
		return
	}
	if value == "" {
		value = low
		if high != "" {
			c.warnf(p.in("data", "max"), "NotConvertible", "%s: an intent asks for a minimum; the maximum is left out", p)
		}
	}
	if value == "" {
		c.errorf(p.in("data"), "NotConvertible", "%s: the filter has neither value nor min", p)
		return
	}
	switch g.Field {
	case "model":
		into.Models = []string{value}
	case "vendor":
		into.Vendor = value
	case "tier":
		into.Tier = value
	case "architecture":
		into.Architecture = value
	case "interconnect":
		into.Interconnect = value
	case "compute_capability":
		into.ComputeCapability = value
	case "count":
		if err := json.Unmarshal([]byte(value), &into.Count); err != nil {
			c.errorf(p.in("data"), "BadValue", "%s: %q is not a count", p, value)
		}
	case "memory":
		m, err := v1alpha1.ParseMemoryRange(value)
		if err != nil {
			c.errorf(p.in("data"), "BadValue", "%s: %s", p, err)
			return
		}
		into.Memory = m
	default:
		c.errorf(p.in("field"), "NotConvertible", "%s: an intent cannot filter GPUs by %q; use placement.where of a ResourceIntent", p, g.Field)
	}
}
