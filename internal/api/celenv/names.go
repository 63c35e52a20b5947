package celenv

import (
	"slices"
	"strings"

	"github.com/google/cel-go/common/types"
	apicel "k8s.io/apiserver/pkg/cel"
)

// Name is something that an expression can look at.
type Name struct {
	// Path as it is written, such as flavor.gpu.model.
	Path string
	// Type in CEL's words.
	Type string
	// Example is an expression that looks at it.
	Example string
}

// examples are values that say more than any of their type.
var examples = map[string]string{
	"flavor.gpu.model": `"nvidia-h100"`, "flavor.gpu.vendor": `"nvidia"`, "flavor.gpu.interconnect": `"nvlink"`, "flavor.gpu.architecture": `"hopper"`,
	"flavor.gpu.tier": `"premium"`, "flavor.gpu.sharing": `"mig"`, "flavor.gpu.profile": `"1g.10gb"`, "flavor.gpu.computeCapability": `"9.0"`, "flavor.gpu.resourceName": `"nvidia.com/gpu"`,
	"flavor.provider": `"paris"`, "cluster.name": `"paris"`, "flavor.name": `"h100-pool"`, "flavor.architecture": `"amd64"`, "flavor.class": `"fleetbroker"`,
	"flavor.location.country": `"FR"`, "flavor.location.region": `"eu-west-3"`, "flavor.location.zone": `"eu-west-3a"`, "flavor.location.city": `"Paris"`, "flavor.location.network": `"eu-ib-1"`,
	"flavor.price.currency": `"EUR"`, "flavor.price.hourly": "30.0", "flavor.properties.carbon": "100", "flavor.properties.latencyMs": "20", "flavor.properties.reliability": "0.99",
	"flavor.properties.securityStandards": `"ISO27001"`, "cluster.properties.securityStandards": `"ISO27001"`, "cluster.roles": `"provider"`,
	"flavor.gpu.count": "8", "flavor.gpu.memoryGi": "80", "flavor.price.flat": "100.0", "intent.tenant": `"vision"`, "intent.name": `"train"`,
}

// most are numbers of which little is good.
var most = map[string]bool{"flavor.price.hourly": true, "flavor.price.flat": true, "flavor.properties.carbon": true, "flavor.properties.latencyMs": true}

// Names are all that expressions can look at, in order of their paths; each example
// compiles.
func Names() []Name {
	var out []Name
	for root, t := range map[string]*object{"intent": intentType, "flavor": flavorType, "cluster": clusterType} {
		out = t.names(out, root)
	}
	slices.SortFunc(out, func(a, b Name) int { return strings.Compare(a.Path, b.Path) })
	return out
}

// names adds the fields of an object, and of those in it.
func (o *object) names(out []Name, path string) []Name {
	for name, f := range o.fields {
		at := path + "." + name
		if inner := objects[f.conv.cel.TypeName()]; inner != nil {
			out = append(out, Name{at, "object", "has(" + at + ")"})
			out = inner.names(out, at)
			continue
		}
		out = append(out, Name{at, typeName(f.conv.cel), exampleOf(at, f.conv.cel)})
	}
	return out
}

// typeName is a type in the words of CEL's documentation.
func typeName(t *types.Type) string {
	switch t.Kind() {
	case types.ListKind:
		return "list of " + typeName(t.Parameters()[0])
	case types.MapKind:
		return "map of " + typeName(t.Parameters()[1])
	}
	if objects[t.TypeName()] != nil {
		return "object"
	}
	return strings.ToLower(strings.TrimPrefix(strings.TrimPrefix(t.TypeName(), "google.protobuf."), "kubernetes."))
}

// exampleOf is an expression that looks at a path.
func exampleOf(path string, t *types.Type) string {
	value, given := examples[path]
	number := func(other string) string {
		if !given {
			value = other
		}
		if most[path] {
			return path + " <= " + value
		}
		return path + " >= " + value
	}
	switch {
	case t == types.StringType && given:
		return path + " == " + value
	case t == types.StringType:
		return path + ` != ""`
	case t == types.BoolType:
		return "!" + path
	case t == types.IntType:
		return number("1")
	case t == types.DoubleType:
		return number("0.5")
	case t == types.DurationType:
		return path + ` <= duration("24h")`
	case t == types.TimestampType:
		return path + ` < timestamp("2027-01-01T00:00:00Z")`
	case t == apicel.QuantityType:
		return path + `.isGreaterThan(quantity("40Gi"))`
	case t.Kind() == types.MapKind && t.Parameters()[1] == apicel.QuantityType:
		return path + `["cpu"].isGreaterThan(quantity("16"))`
	case t.Kind() == types.MapKind && t.Parameters()[1] == types.StringType:
		return `"tier" in ` + path + " && " + path + `["tier"] == "gold"`
	case t.Kind() == types.MapKind && t.Parameters()[1] == types.DoubleType:
		return `"gpu" in ` + path + " && " + path + `["gpu"] <= 3.0`
	case t.Kind() == types.ListKind && given:
		return value + " in " + path
	}
	return "size(" + path + ") > 0"
}
