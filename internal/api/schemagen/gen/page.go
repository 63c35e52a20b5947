package gen

import (
	"bytes"
	"fmt"
	"path"
	"strings"

	"github.com/invopop/jsonschema"

	"github.com/fleetbroker/fleetbroker/internal/api/celenv"
)

// celPage lists what expressions can look at.
func celPage() []byte {
	var b bytes.Buffer
	b.WriteString(`<!-- Generated from the Go types by ` + "`make generate`" + `; do not edit. -->
# Expressions

` + "`placement.where` of an intent and `require` of a fleet's policy are [CEL](https://cel.dev) expressions that must be true" + `
of an offer. They see the intent, the flavor with the price and place that hold for it, and the cluster of its provider.

- A number that nobody stated (the carbon intensity of a flavor, a limit of a budget) is neither small nor large: what
  compares it has no answer, and the offer is not taken. ` + "`!(x > 5)`" + ` has none either; ` + "`x > 5 || y`" + ` is true where y alone decides, and
  ` + "`x > 5 && y`" + ` is false where y is. Who wants such offers writes ` + "`!has(x) || x > 5`" + `. Text that is not stated is "", a list
  or map empty, and an absent amount of a resource 0.
- Quantities are compared by isGreaterThan, isLessThan and compareTo.
- ` + "`flavor.price.hourly`" + ` is the on-demand price an hour of one replica of the intent's resources.

| name | type | example |
|---|---|---|
`)
	for _, n := range celenv.Names() {
		fmt.Fprintf(&b, "| `%s` | %s | `%s` |\n", n.Path, n.Type, cell(n.Example))
	}
	return b.Bytes()
}

// page is a kind's reference page: its fields, then those of everything it is
// made of, in the order of first mention.
func page(k *kind) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "<!-- Generated from the Go types by `make generate`; do not edit. -->\n# %s\n\n%s\n\nFiles: `%s`. Schema: [%s](../%s).\n", k.name, k.schema.Description, k.where, k.file(), k.file())
	table(&b, k.schema)
	seen := map[string]bool{}
	queue := references(k.schema)
	for i := 0; i < len(queue); i++ {
		name := queue[i]
		def, ok := k.schema.Definitions[name]
		if seen[name] || !ok {
			continue
		}
		seen[name] = true
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", name, def.Description)
		table(&b, def)
		queue = append(queue, references(def)...)
	}
	return b.Bytes()
}

func table(b *bytes.Buffer, s *jsonschema.Schema) {
	if s.Properties == nil || s.Properties.Len() == 0 {
		return
	}
	b.WriteString("\n| field | type | meaning |\n|---|---|---|\n")
	rows(b, s, "")
}

// rows writes a line a field; objects without a name of their own are written
// under their field.
func rows(b *bytes.Buffer, s *jsonschema.Schema, prefix string) {
	required := map[string]bool{}
	for _, r := range s.Required {
		required[r] = true
	}
	for p := s.Properties.Oldest(); p != nil; p = p.Next() {
		name := "`" + prefix + p.Key + "`"
		if required[p.Key] {
			name += " (required)"
		}
		fmt.Fprintf(b, "| %s | %s | %s |\n", name, cell(typeOf(p.Value)), cell(p.Value.Description))
		for _, o := range p.Value.OneOf {
			if o.Properties != nil {
				rows(b, o, prefix+p.Key+".")
			}
		}
		if p.Value.Properties != nil {
			rows(b, p.Value, prefix+p.Key+".")
		}
	}
}

func cell(s string) string { return strings.ReplaceAll(s, "|", "\\|") }

// typeOf says how a value is written.
func typeOf(s *jsonschema.Schema) string {
	switch {
	case s.Ref != "":
		name := path.Base(s.Ref)
		return fmt.Sprintf("[%s](#%s)", name, strings.ToLower(name))
	case len(s.AllOf) > 0:
		return typeOf(s.AllOf[0])
	case s.Const != nil:
		return fmt.Sprintf("`%v`", s.Const)
	case len(s.Enum) > 0:
		var values []string
		for _, v := range s.Enum {
			values = append(values, fmt.Sprintf("`%v`", v))
		}
		return strings.Join(values, ", ")
	case len(s.OneOf) > 0:
		var forms []string
		for _, o := range s.OneOf {
			forms = append(forms, typeOf(o))
		}
		return strings.Join(forms, " or ")
	case s.Type == "array" && s.Items != nil:
		if s.MaxItems != nil {
			return fmt.Sprintf("list of at most %d: %s", *s.MaxItems, typeOf(s.Items))
		}
		return "list of " + typeOf(s.Items)
	case s.Type == "object" && s.Properties == nil && s.AdditionalProperties != nil:
		return "map of " + typeOf(s.AdditionalProperties)
	case s.Type == "string" && len(s.Examples) > 0:
		return fmt.Sprintf("text, such as `%v`", s.Examples[0])
	case s.Type == "string":
		return "text"
	}
	return s.Type
}

// references are the definitions that a schema mentions, in its order.
func references(s *jsonschema.Schema) []string {
	var out []string
	var visit func(*jsonschema.Schema)
	visit = func(s *jsonschema.Schema) {
		if s == nil {
			return
		}
		if s.Ref != "" {
			out = append(out, path.Base(s.Ref))
		}
		for _, sub := range append(append([]*jsonschema.Schema{s.Items, s.AdditionalProperties}, s.AllOf...), s.OneOf...) {
			visit(sub)
		}
		if s.Properties != nil {
			for p := s.Properties.Oldest(); p != nil; p = p.Next() {
				visit(p.Value)
			}
		}
	}
	visit(s)
	return out
}

func index(all []*kind) []byte {
	var b bytes.Buffer
	b.WriteString("<!-- Generated from the Go types by `make generate`; do not edit. -->\n# Kinds of fleetbroker.io/v1alpha1\n\n| kind | files | meaning |\n|---|---|---|\n")
	for _, k := range all {
		fmt.Fprintf(&b, "| [%s](%s.md) | `%s` | %s |\n", k.name, strings.ToLower(k.name), k.where, cell(k.schema.Description))
	}
	b.WriteString("\nKinds that agents serve in clusters: [ResourceRequest](resourcerequests.md), [Advertisement](advertisements.md),\n" +
		"[ReservationInstruction](reservationinstructions.md), [ProviderInstruction](providerinstructions.md).\n" +
		"Kinds in which the daemon's replicas share one market: [Advertisement](market-advertisements.md),\n" +
		"[AdvertisementPart](market-advertisementparts.md), [Observation](market-observations.md),\n" +
		"[Heartbeat](market-heartbeats.md). The definitions of both are in [crds/](../crds).\n" +
		"What expressions can look at: [CEL](cel.md).\n")
	return b.Bytes()
}
