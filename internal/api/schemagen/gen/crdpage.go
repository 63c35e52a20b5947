package gen

import (
	"fmt"
	"slices"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// crdPage is the reference page of one CustomResourceDefinition.
func crdPage(definition []byte) ([]byte, error) {
	var d apiextensions.CustomResourceDefinition
	if err := yaml.Unmarshal(definition, &d); err != nil {
		return nil, fmt.Errorf("read the definition: %w", err)
	}
	var b strings.Builder
	v := d.Spec.Versions[0]
	names := d.Spec.Names
	short := ""
	if len(names.ShortNames) > 0 {
		short = " (short: `" + strings.Join(names.ShortNames, ", ") + "`)"
	}
	b.WriteString("<!-- Generated from the Go types by `make generate`; do not edit. -->\n")
	fmt.Fprintf(&b, "# %s\n\n%s\n\n", names.Kind, oneLine(v.Schema.OpenAPIV3Schema.Description))
	fmt.Fprintf(&b, "In clusters: `kubectl get %s.%s`%s, %s.\n\n", names.Plural, d.Spec.Group, short, scopeText(d.Spec.Scope))
	b.WriteString("| field | type | meaning |\n|---|---|---|\n")
	for _, top := range []string{"spec", "status"} {
		s, ok := v.Schema.OpenAPIV3Schema.Properties[top]
		if ok {
			fields(&b, top, &s)
		}
	}
	var rules []string
	collectRules(v.Schema.OpenAPIV3Schema, &rules)
	if len(rules) > 0 {
		b.WriteString("\nWhat the API server refuses:\n\n")
		for _, r := range rules {
			fmt.Fprintf(&b, "- %s\n", r)
		}
	}
	return []byte(b.String()), nil
}

// fields are the rows of an object's fields, those of objects in it included.
func fields(b *strings.Builder, at string, s *apiextensions.JSONSchemaProps) {
	names := make([]string, 0, len(s.Properties))
	for name := range s.Properties {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		p := s.Properties[name]
		path := at + "." + name
		required := ""
		if slices.Contains(s.Required, name) {
			required = " (required)"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s%s |\n", path, crdType(&p), strings.ReplaceAll(described(name, p.Description), "|", `\|`), required)
		fields(b, path, &p)
		if p.Items != nil && p.Items.Schema != nil {
			fields(b, path+"[]", p.Items.Schema)
		}
	}
}

func crdType(p *apiextensions.JSONSchemaProps) string {
	switch {
	case p.XIntOrString:
		return "quantity"
	case len(p.Enum) > 0:
		values := make([]string, len(p.Enum))
		for i, v := range p.Enum {
			values[i] = strings.Trim(string(v.Raw), `"`)
		}
		return strings.Join(values, ", ")
	case p.Type == "array" && p.Items != nil && p.Items.Schema != nil:
		return "list of " + crdType(p.Items.Schema)
	case p.Type == "object" && p.AdditionalProperties != nil:
		return "map"
	case p.Format != "":
		return p.Format
	}
	return p.Type
}

func collectRules(s *apiextensions.JSONSchemaProps, out *[]string) {
	for _, v := range s.XValidations {
		if !slices.Contains(*out, v.Message) {
			*out = append(*out, v.Message)
		}
	}
	names := make([]string, 0, len(s.Properties))
	for name := range s.Properties {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		p := s.Properties[name]
		collectRules(&p, out)
	}
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// described is a description that names its field as it is written: Go comments
// begin with the Go name.
func described(field, text string) string {
	text = oneLine(text)
	word, rest, ok := strings.Cut(text, " ")
	if ok && strings.EqualFold(word, strings.ReplaceAll(field, "-", "")) {
		return field + " " + rest
	}
	return text
}

func scopeText(s apiextensions.ResourceScope) string {
	if s == apiextensions.ClusterScoped {
		return "of the whole cluster"
	}
	return "in a namespace"
}
