package watching

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// Changed is what of a picture differs from the one before: rows of a table in a pipe,
// sections of a page under their titles, objects of a JSON or YAML list, fields of a JSON
// or YAML object. form is that of -o. gone are the rows or objects whose name, the first
// key cells, is no longer there. Without a picture before, all of it is new.
func Changed(form string, before, now []byte, key int) (changed []byte, gone []string, err error) {
	switch {
	case len(before) == 0:
		return now, nil, nil
	case bytes.Equal(before, now):
		return nil, nil, nil
	case form == "json":
		return changedData(before, now)
	case form == "yaml":
		if before, err = yaml.YAMLToJSON(before); err == nil {
			now, err = yaml.YAMLToJSON(now)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("compare with the list before: %w", err)
		}
		if changed, gone, err = changedData(before, now); err == nil && len(changed) > 0 {
			changed, err = yaml.JSONToYAML(changed)
		}
		return changed, gone, err
	}
	changed, gone = changedText(string(before), string(now), key)
	return changed, gone, nil
}

// changedText compares lines. A page has blocks with an empty line between them; the title
// of a block that has changed is repeated.
func changedText(before, now string, key int) (changed []byte, gone []string) {
	was, names := map[string]bool{}, map[string]bool{}
	for line := range strings.Lines(before) {
		was[line] = true
	}
	blocks := strings.Split(now, "\n\n")
	var out bytes.Buffer
	for _, block := range blocks {
		var fresh []string
		lines := slices.Collect(strings.Lines(strings.Trim(block, "\n") + "\n"))
		for _, line := range lines {
			names[nameOf(line, key)] = true
			if !was[line] {
				fresh = append(fresh, line)
			}
		}
		if title := lines[0]; len(fresh) > 0 && len(blocks) > 1 && title != fresh[0] && !strings.Contains(title, ":") {
			out.WriteString(title)
		}
		for _, line := range fresh {
			out.WriteString(line)
		}
	}
	if len(blocks) > 1 {
		return out.Bytes(), nil
	}
	for line := range strings.Lines(before) {
		if name := nameOf(line, key); !names[name] && !slices.Contains(gone, name) {
			gone = append(gone, name)
		}
	}
	return out.Bytes(), gone
}

// nameOf are the first cells of a row.
func nameOf(line string, key int) string {
	cells := strings.Split(strings.TrimRight(line, "\n"), "\t")
	return strings.Join(cells[:min(max(key, 1), len(cells))], "/")
}

// changedData compares the objects of a list, or the fields of an object.
func changedData(before, now []byte) (changed []byte, gone []string, err error) {
	var was, are []json.RawMessage
	if json.Unmarshal(before, &was) == nil && json.Unmarshal(now, &are) == nil {
		old, names := map[string]bool{}, map[string]bool{}
		for _, o := range was {
			old[string(o)] = true
		}
		var fresh []json.RawMessage
		for _, o := range are {
			names[objectName(o)] = true
			if !old[string(o)] {
				fresh = append(fresh, o)
			}
		}
		for _, o := range was {
			if name := objectName(o); !names[name] {
				gone = append(gone, name)
			}
		}
		if len(fresh) == 0 {
			return nil, gone, nil
		}
		changed, err = indented(fresh)
		return changed, gone, err
	}
	var old, fields map[string]json.RawMessage
	if err := json.Unmarshal(before, &old); err != nil {
		return nil, nil, fmt.Errorf("compare with the picture before: %w", err)
	}
	if err := json.Unmarshal(now, &fields); err != nil {
		return nil, nil, fmt.Errorf("compare with the picture before: %w", err)
	}
	for name, value := range fields {
		if bytes.Equal(old[name], value) {
			delete(fields, name)
		}
	}
	if len(fields) == 0 {
		return nil, nil, nil
	}
	changed, err = indented(fields)
	return changed, nil, err
}

func indented(v any) ([]byte, error) {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write what has changed: %w", err)
	}
	return append(b, '\n'), nil
}

// objectName is an object's namespace and name, or what else tells it: the clusters of a
// peering.
func objectName(o json.RawMessage) string {
	var names struct {
		Metadata struct{ Namespace, Name string }
		Consumer string
		Provider string
	}
	_ = json.Unmarshal(o, &names) // what has no name is told by its content alone
	parts := []string{names.Metadata.Namespace, names.Metadata.Name, names.Consumer, names.Provider}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "/")
}
