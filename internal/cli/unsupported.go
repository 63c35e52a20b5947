package cli

import (
	"bytes"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/planner"
)

// notYet warns of fields that are well written and not acted on yet: the
// planner refuses such an intent, and the author should learn so before.
func notYet(src *source, f *fleet.Fleet) []finding {
	var out []finding
	for i := range f.Intents {
		it := &f.Intents[i]
		if it.Problem != "" {
			continue
		}
		for _, feature := range planner.Unsupported(it.ResourceIntent) {
			line, column := src.place(it.Path, it.Metadata.Name, feature.Field)
			out = append(out, finding{
				File: it.Path, Line: line, Column: column, Severity: string(fleet.Warning), Code: "NotSupported",
				Message: feature.Message() + ": the intent will be refused",
			})
		}
	}
	return out
}

// maxPlaced bounds the files in which a field's place is looked for.
const maxPlaced = 1 << 20

// place is where a field stands in the document of that name; the file's
// beginning when it cannot be found, as in the output of a kustomization.
func (s *source) place(file, name, field string) (line, column int) {
	content, err := s.inputs.ReadFile(file, maxPlaced)
	if err != nil {
		return 1, 1
	}
	field, _, _ = strings.Cut(field, ":")
	for d := yaml.NewDecoder(bytes.NewReader(content)); ; {
		var doc yaml.Node
		if err := d.Decode(&doc); err != nil {
			return 1, 1
		}
		if len(doc.Content) == 0 {
			continue
		}
		if n := descend(doc.Content[0], []string{"metadata", "name"}); n == nil || n.value.Value != name {
			continue
		}
		if n := descend(doc.Content[0], strings.Split(field, ".")); n != nil {
			return n.key.Line, n.key.Column
		}
		return doc.Content[0].Line, doc.Content[0].Column
	}
}

// yamlEntry is a key with its value.
type yamlEntry struct{ key, value *yaml.Node }

// descend follows keys through mappings, nil when one is missing.
func descend(n *yaml.Node, keys []string) *yamlEntry {
	if n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value != keys[0] {
			continue
		}
		if len(keys) == 1 {
			return &yamlEntry{n.Content[i], n.Content[i+1]}
		}
		return descend(n.Content[i+1], keys[1:])
	}
	return nil
}
