package fleet

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/fleetbroker/fleetbroker/internal/api/strictyaml"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// FLUIDOS's kinds are read as ours: a Solver as a ResourceIntent, a Flavor as
// a Flavor. Facts are of fluidos-project/node (apis/nodecore/v1alpha1) and, for
// GPU filters, of its fork in clastix/flare.
const fluidosAPI = "nodecore.fluidos.eu/v1alpha1"

type foreign struct {
	apiVersion, kind string
	sec              section
}

// converter turns a document of another system into one of ours, nil when it
// cannot; the owner is the tenant or provider whose directory it lies in.
type converter func(c *checker, doc *strictyaml.Document, owner string) any

var foreignKinds = map[foreign]converter{
	{fluidosAPI, "Solver", secIntents}: convertSolver,
	{fluidosAPI, "Solver", secSources}: convertSolver,
	{fluidosAPI, "Flavor", secFlavors}: convertFlavor,
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

// fluidosMeta allows what Kubernetes writes into an exported object.
type fluidosMeta struct {
	v1alpha1.Metadata `json:",inline"`
	UID               string          `json:"uid,omitempty"`
	ResourceVersion   string          `json:"resourceVersion,omitempty"`
	Generation        int64           `json:"generation,omitempty"`
	CreationTimestamp v1alpha1.Time   `json:"creationTimestamp,omitzero"`
	ManagedFields     json.RawMessage `json:"managedFields,omitempty"`
	OwnerReferences   json.RawMessage `json:"ownerReferences,omitempty"`
	Finalizers        []string        `json:"finalizers,omitempty"`
}

type fluidosSolver struct {
	v1alpha1.TypeMeta `json:",inline"`
	Metadata          fluidosMeta     `json:"metadata"`
	Status            json.RawMessage `json:"status,omitempty"`
	Spec              struct {
		Selector         *fluidosSelector `json:"selector,omitempty"`
		IntentID         string           `json:"intentID"`
		FindCandidate    bool             `json:"findCandidate,omitempty"`
		ReserveAndBuy    bool             `json:"reserveAndBuy,omitempty"`
		EstablishPeering bool             `json:"establishPeering,omitempty"`
	} `json:"spec"`
}

type fluidosSelector struct {
	FlavorType string          `json:"flavorType"`
	Filters    *fluidosFilters `json:"filters,omitempty"`
}

type fluidosFilters struct {
	Architecture *fluidosFilter  `json:"architectureFilter,omitempty"`
	CPU          *fluidosFilter  `json:"cpuFilter,omitempty"`
	Memory       *fluidosFilter  `json:"memoryFilter,omitempty"`
	Pods         *fluidosFilter  `json:"podsFilter,omitempty"`
	Storage      *fluidosFilter  `json:"storageFilter,omitempty"`
	GPU          []fluidosGPU    `json:"gpuFilters,omitempty"`
	Category     json.RawMessage `json:"categoryFilter,omitempty"`
	Tags         json.RawMessage `json:"tagsFilter,omitempty"`
}

// fluidosFilter: Match has value, Range has min and max (of a quantity) or
// regex (of a string).
type fluidosFilter struct {
	Name string          `json:"name"`
	Data json.RawMessage `json:"data"`
}

type fluidosGPU struct {
	Field  string          `json:"field"`
	Filter string          `json:"filter"`
	Data   json.RawMessage `json:"data"`
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
	s := decodeForeign[fluidosSolver](c, doc)
	if s == nil {
		return nil
	}
	in := &v1alpha1.ResourceIntent{Metadata: v1alpha1.Metadata{
		Name: dnsName(s.Metadata.Name), Namespace: tenant, Labels: s.Metadata.Labels,
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
		filter      *fluidosFilter
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

// architectures that Go and Kubernetes know; a Range is a regular expression
// over them.
var architectures = []string{"386", "amd64", "arm", "arm64", "ppc64le", "riscv64", "s390x"}

func (c *checker) architectures(p place, f *fluidosFilter) []string {
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
	for _, a := range architectures {
		if re.MatchString(a) {
			out = append(out, a)
		}
	}
	if out == nil {
		c.errorf(p.in("data", "regex"), "NotConvertible", "%s: %q matches none of %s", p, data.Regex, strings.Join(architectures, ", "))
	}
	return out
}

// gpuFilter: what a GPU request can say is taken, anything else is refused.
func (c *checker) gpuFilter(p place, g fluidosGPU, into *v1alpha1.GPURequest) {
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

// dnsName makes a name of FLUIDOS's (which may have dots) one of ours.
func dnsName(name string) string { return strings.ReplaceAll(strings.ToLower(name), ".", "-") }

// floorCPU reads a CPU capacity down to milli-CPU: FLUIDOS writes nano-CPU,
// and what is offered must not be rounded up.
func floorAmount(name, text string) (v1alpha1.Amount, error) {
	a, err := v1alpha1.ParseAmount(name, text)
	if err != nil || name != v1alpha1.CPU {
		return a, err
	}
	q, err := v1alpha1.ParseQuantity(text)
	if err != nil {
		return a, fmt.Errorf("%s: %w", name, err)
	}
	if whole := resource.NewMilliQuantity(a.Int64(), resource.DecimalSI); whole.Cmp(q) > 0 {
		return a.Sub(v1alpha1.AmountOf(1)), nil
	}
	return a, nil
}
