package gen

import (
	"reflect"

	"github.com/invopop/jsonschema"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// The written forms of the types that decode themselves. The patterns repeat
// what their UnmarshalJSON accepts.
const (
	decimalPattern  = `^-?[0-9]{1,18}(\.[0-9]{1,18})?$`
	durationPattern = `^([0-9]{1,5}w)?([0-9]{1,5}d)?([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))*$`
	quantityPattern = `^[+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)(([KMGTPE]i)|[numkMGTPE]|[eE][-+]?[0-9]+)?$`
	memoryPattern   = `^([0-9]{1,9}(\.[0-9]{1,3})? *([Gg][Bb]|[Gg][Ii]([Bb])?|[Gg]|[Mm][Bb]|[Mm][Ii]([Bb])?))?(\.\.)?([0-9]{1,9}(\.[0-9]{1,3})? *([Gg][Bb]|[Gg][Ii]([Bb])?|[Gg]|[Mm][Bb]|[Mm][Ii]([Bb])?))?$`
)

func text(pattern, description string, examples ...any) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "string", Pattern: pattern, Description: description, Examples: examples}
}

func quantity() *jsonschema.Schema {
	return &jsonschema.Schema{
		Description: "A Kubernetes quantity: a whole number, or text such as 500m, 16 or 128Gi.",
		OneOf:       []*jsonschema.Schema{{Type: "string", Pattern: quantityPattern}, {Type: "integer", Minimum: "0"}},
	}
}

func decimal() *jsonschema.Schema {
	return &jsonschema.Schema{
		Description: "An exact decimal number, with or without quotes, in plain digits.",
		OneOf:       []*jsonschema.Schema{{Type: "string", Pattern: decimalPattern}, {Type: "number"}}, Examples: []any{"12.50", 2.5},
	}
}

// mapper gives the schemas of types whose Go fields do not say how they are
// written; nil for all others.
func mapper(t reflect.Type) *jsonschema.Schema {
	switch {
	case is[v1alpha1.Decimal](t):
		return decimal()
	case is[v1alpha1.Duration](t):
		return text(durationPattern, "A length of time: numbers with units. A day (d) is 24 hours, a week (w) seven days.", "72h", "3d", "10m", "20ms")
	case is[v1alpha1.Time](t):
		return &jsonschema.Schema{Type: "string", Description: "An instant in RFC 3339.", AnyOf: []*jsonschema.Schema{{Format: "date-time"}, {Const: ""}}, Examples: []any{"2026-12-01T08:00:00Z"}}
	case is[v1alpha1.Date](t):
		return &jsonschema.Schema{Type: "string", Format: "date", Description: "A day.", Examples: []any{"2026-11-01"}}
	case is[v1alpha1.MemoryRange](t):
		return text(memoryPattern, "GPU memory, marketed size: a minimum (80Gi) or a range (40Gi..80Gi, 24GB.., ..80GB). GB and Gi mean the same.", "80Gi", "40GB..80GB")
	case is[v1alpha1.MemorySize](t):
		return text(memoryPattern, "GPU memory, marketed size. GB and Gi mean the same.", "80Gi")
	case is[v1alpha1.Quantity](t):
		return quantity()
	case is[v1alpha1.Resources](t):
		return resources(quantity())
	case is[v1alpha1.ResourceRequest](t):
		s := resources(gpuRequest())
		s.Properties.Set("perPod", podRequest())
		return s
	case is[v1alpha1.PodRequest](t):
		return podRequest()
	case is[v1alpha1.GPURequest](t):
		return gpuRequest()
	case is[v1alpha1.UnitPrices](t), is[v1alpha1.Overcommit](t):
		return &jsonschema.Schema{Type: "object", AdditionalProperties: decimal()}
	case is[v1alpha1.ReservedPrice](t):
		s := &jsonschema.Schema{Type: "object", AdditionalProperties: decimal(), Properties: jsonschema.NewProperties()}
		term := mapper(reflect.TypeFor[v1alpha1.Duration]())
		term.Description = "Term that must be committed to."
		s.Properties.Set("term", term)
		return s
	case is[v1alpha1.Replicas](t):
		s := &jsonschema.Schema{Type: "object", AdditionalProperties: jsonschema.FalseSchema, Required: []string{"min", "max"}, Properties: jsonschema.NewProperties()}
		s.Properties.Set("min", &jsonschema.Schema{Type: "integer", Minimum: "0"})
		s.Properties.Set("max", &jsonschema.Schema{Type: "integer", Minimum: "1"})
		return &jsonschema.Schema{OneOf: []*jsonschema.Schema{{Type: "integer", Minimum: "1"}, s}}
	case is[v1alpha1.SpreadList](t):
		one := nested(reflect.TypeFor[v1alpha1.Spread]())
		return &jsonschema.Schema{OneOf: []*jsonschema.Schema{one, {Type: "array", Items: one}}}
	case is[v1alpha1.PriceClasses](t):
		one := enum("on-demand", "spot", "reserved")
		return &jsonschema.Schema{OneOf: []*jsonschema.Schema{one, {Type: "array", Items: one}}}
	case is[v1alpha1.PriceClass](t):
		return enum("on-demand", "spot", "reserved")
	case is[v1alpha1.Objective](t):
		return enum("balanced", "cost", "performance", "latency", "energy")
	case is[v1alpha1.Enforcement](t):
		return enum("None", "Soft", "Hard")
	case is[v1alpha1.Stage](t):
		return enum("find", "reserve", "peer")
	}
	return nil
}

func enum(values ...any) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "string", Enum: values}
}

// resources is a map of quantities with the well-known names for completion.
func resources(gpu *jsonschema.Schema) *jsonschema.Schema {
	s := &jsonschema.Schema{
		Type: "object", Properties: jsonschema.NewProperties(),
		PatternProperties:    map[string]*jsonschema.Schema{"/|^hugepages-": quantity()},
		AdditionalProperties: jsonschema.FalseSchema,
	}
	for _, r := range []struct{ name, description string }{
		{v1alpha1.CPU, "CPU cores."}, {v1alpha1.Memory, "Memory."}, {v1alpha1.Pods, "Pods."}, {v1alpha1.EphemeralStorage, "Ephemeral storage."},
	} {
		q := quantity()
		q.Description = r.description + " " + q.Description
		s.Properties.Set(r.name, q)
	}
	s.Properties.Set(v1alpha1.GPU, gpu)
	return s
}

// podRequest is what one pod asks for: quantities, and a count of GPUs.
func podRequest() *jsonschema.Schema {
	s := resources(&jsonschema.Schema{Type: "integer", Minimum: "1", Description: "GPUs of the biggest pod; which GPUs they are is written under resources."})
	s.Description = "What the biggest pod of a replica asks for: it must fit on one node."
	s.Properties.Delete(v1alpha1.Pods)
	return s
}

// gpuRequest is the object form, the short form, or a count.
func gpuRequest() *jsonschema.Schema {
	return &jsonschema.Schema{
		Description: "GPUs for each replica: a count, the short form \"A100:8:40GB..\", or an object.",
		OneOf: []*jsonschema.Schema{
			{Type: "integer", Minimum: "0"},
			text(`^[^:\s]+( +[x×] *[0-9]+)?(:[^:\s]+)*$|^[0-9]+ *[x×] *[^:\s]+(:[^:\s]+)*$`, "Vendor or models, count and memory per GPU, separated by colons in any order; 8xH100 is H100:8.", "H100:8", "A100:4:40GB..", "8xH100"),
			nested(reflect.TypeFor[gpuFields]()),
		},
	}
}

// gpuFields is a GPURequest without its own decoding.
type gpuFields v1alpha1.GPURequest

// sources are the types whose comments a nested schema has.
var sources = map[reflect.Type]reflect.Type{reflect.TypeFor[gpuFields](): reflect.TypeFor[v1alpha1.GPURequest]()}

// descriptions are the kinds' comments, for nested schemas.
var descriptions map[string]string

// nested is the schema of a struct within a mapped type, written out where it
// stands: a mapper cannot add definitions.
func nested(t reflect.Type) *jsonschema.Schema {
	r := &jsonschema.Reflector{Mapper: mapper, DoNotReference: true, ExpandedStruct: true, Anonymous: true}
	r.LookupComment = func(owner reflect.Type, field string) string {
		if src, ok := sources[owner]; ok {
			owner = src
		}
		key := owner.PkgPath() + "." + owner.Name()
		if field != "" {
			key += "." + field
		}
		return descriptions[key]
	}
	s := r.ReflectFromType(t)
	s.Version = ""
	bound(s, v1alpha1.MaxItems[t.Name()])
	for field, values := range enums[t.Name()] {
		if p, ok := s.Properties.Get(field); ok {
			p.Enum = values
		}
	}
	return s
}

// enums are the known values of fields whose Go type is text, by type and
// field. The reader of fleet repos checks the same values.
var enums = map[string]map[string][]any{
	"IntentSpec":          {"flavorType": {"K8Slice", "VM", "Service", "Sensor"}},
	"FlavorSpec":          {"type": {"K8Slice", "VM", "Service", "Sensor"}},
	"SliceClass":          {"grants": {"agent", "others"}},
	"gpuFields":           {"sharing": {"mig", "time-slicing", "mps"}},
	"FlavorGPU":           {"sharing": {"none", "mig", "time-slicing", "mps"}},
	"Queue":               {"policy": {"wait", "fail"}},
	"Preemption":          {"preempts": {"never", "lower"}, "yields": {"never", "booked"}},
	"Spread":              {"by": domains},
	"Within":              {"by": domains, "policy": {"Required", "Preferred", "None"}},
	"OffloadNamespace":    {"podOffloadingStrategy": {"Local", "Remote", "LocalAndRemote"}, "namespaceMappingStrategy": {"DefaultName", "EnforceSameName", "SelectedName"}},
	"LabelExpression":     {"operator": {"In", "NotIn", "Exists", "DoesNotExist"}},
	"Taint":               {"effect": {"NoSchedule", "PreferNoSchedule", "NoExecute"}},
	"Window":              {"days": weekdays},
	"PriceWindow":         {"days": weekdays},
	"ContractPriceWindow": {"days": weekdays},
	"TenantBudget":        {"atLimit": {"warn", "stop", "end"}},
	"ClusterSpec":         {"roles": {"provider", "consumer"}, "delivery": deliveries},
	"FleetDefaults":       {"delivery": deliveries},
	"FleetSpec":           {"enrollment": {"closed", "open"}},
	"WriteBack":           {"mode": {"push", "pull-request", "none"}},
	"Verification":        {"mode": {"none", "signed"}, "intents": {"signed"}},
	"Consolidation":       {"mode": {"off", "propose", "apply"}},
}

var (
	weekdays   = []any{"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"}
	domains    = []any{"provider", "zone", "region", "network", "label"}
	deliveries = []any{"direct", "flux", "argocd", "agent", "none"}
)
