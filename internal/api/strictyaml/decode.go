package strictyaml

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	yaml "go.yaml.in/yaml/v3"

	"github.com/fleetbroker/fleetbroker/internal/api/nearest"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Decode reads the document into a pointer to a kind. On any problem the value
// is not usable.
func (d *Document) Decode(into any) []Problem {
	s := shapeOf(reflect.TypeOf(into).Elem())
	w := walker{src: d.src}
	w.value(d.root, s, "")
	var err error
	if len(w.problems) == 0 {
		if err = json.Unmarshal(w.out, into); err == nil {
			return nil
		}
	}
	// Something is wrong: walk again and let every scalar's own type judge it,
	// which is too dear to do for documents without a mistake.
	w = walker{src: d.src, deep: true}
	w.value(d.root, s, "")
	if len(w.problems) == 0 {
		w.problem(d.root, "%s", strings.TrimPrefix(err.Error(), "json: "))
	}
	return w.problems
}

// walker goes through a node tree beside a shape and writes JSON.
type walker struct {
	src      Source
	deep     bool
	out      []byte
	problems []Problem
	depth    int
	aliased  int // nodes seen through aliases
	inAlias  int
	stopped  bool
}

func (w *walker) problem(n *yaml.Node, format string, args ...any) {
	if len(w.problems) >= maxProblems {
		w.stopped = true
		return
	}
	w.problems = append(w.problems, Problem{w.src.lineOf(n.Line), n.Column, fmt.Sprintf(format, args...)})
}

// enter follows an alias and counts; false means that the walk is over.
func (w *walker) enter(n *yaml.Node) (*yaml.Node, bool) {
	if w.stopped {
		return n, false
	}
	if w.depth++; w.depth > maxDepth {
		w.problem(n, "nested deeper than %d levels", maxDepth)
		w.stopped = true
		return n, false
	}
	if n.Kind == yaml.AliasNode {
		w.inAlias++
		n = n.Alias
	}
	if w.inAlias > 0 {
		if w.aliased++; w.aliased > maxAliased {
			w.problem(n, "aliases expand to more than %d values; write them out", maxAliased)
			w.stopped = true
			return n, false
		}
	}
	return n, true
}

// value writes the JSON of a node; path is for messages.
func (w *walker) value(n *yaml.Node, s *shape, path string) {
	was := w.inAlias
	n, ok := w.enter(n)
	defer func() { w.depth--; w.inAlias = was }()
	if !ok {
		return
	}
	if n.Style&yaml.TaggedStyle != 0 && n.Tag != "!!str" && n.Tag != "!!map" && n.Tag != "!!seq" {
		w.problem(n, "%s has the tag %s; tags are not supported", named(path), n.Tag)
		return
	}
	switch n.Kind {
	case yaml.MappingNode:
		at, before := len(w.out), len(w.problems)
		w.mapping(n, s, path)
		if w.deep && s.parse != nil && len(w.problems) == before { // its fields are right, one by one
			if err := s.parse(w.out[at:]); err != nil {
				w.problem(n, "%s: %s", named(path), reason(err))
			}
		}
	case yaml.SequenceNode:
		w.sequence(n, s, path)
	default:
		w.scalar(n, s, path)
	}
}

func (w *walker) mapping(n *yaml.Node, s *shape, path string) {
	switch s.form {
	case fObject, fObjectOrText, fMap, fAny:
	case fListOrOne:
		w.out = append(w.out, '[')
		w.mapping(n, s.elem, path)
		w.out = append(w.out, ']')
		return
	default:
		w.problem(n, "%s is a map; %s", named(path), s.want())
		return
	}
	pairs, ok := w.pairs(n, path)
	if !ok {
		return
	}
	w.out = append(w.out, '{')
	first := true
	for _, kv := range pairs {
		name := kv.key.Value
		fs, known := s.fields[name]
		switch {
		case known:
		case s.form == fMap && slips(name, s):
			w.unknown(kv.key, s)
			continue
		case s.form == fMap:
			fs = s.elem
		case s.form == fAny:
			fs = s
		default:
			w.unknown(kv.key, s)
			continue
		}
		if isNull(resolve(kv.value)) {
			if s.form == fMap {
				w.problem(kv.value, "%s has no value; write \"\" for an empty one or leave the key out", named(join(path, name)))
			}
			continue
		}
		if !first {
			w.out = append(w.out, ',')
		}
		first = false
		w.out = appendString(w.out, name)
		w.out = append(w.out, ':')
		w.value(kv.value, fs, join(path, name))
		if w.deep && s.form == fMap && fs.form == fQuantity && fs.parse == nil {
			w.amount(kv, join(path, name))
		}
	}
	w.out = append(w.out, '}')
	if s.form == fObject || s.form == fObjectOrText {
		w.missing(n, s, pairs, path)
	}
}

// slips reports whether a key of a map of quantities is nearly the one that is
// no quantity: `gpus` is a slip for gpu, whatever stands there.
func slips(name string, s *shape) bool {
	_, object := s.fields[v1alpha1.GPU]
	return object && len(s.names) > 0 && !slices.Contains(s.names, name) && nearest.Of(name, s.names) == v1alpha1.GPU
}

// amount lets a quantity be read under its resource's name.
func (w *walker) amount(kv pair, path string) {
	v := resolve(kv.value)
	if v.Kind != yaml.ScalarNode {
		return
	}
	if _, err := v1alpha1.ParseAmount(kv.key.Value, v.Value); err != nil {
		w.problem(v, "%s: %s", path, strings.TrimPrefix(err.Error(), kv.key.Value+": "))
	}
}

func (w *walker) unknown(key *yaml.Node, s *shape) {
	if near := nearest.Of(key.Value, s.names); near != "" {
		w.problem(key, "unknown field %q (did you mean %q?)", key.Value, near)
		return
	}
	w.problem(key, "unknown field %q (known here: %s)", key.Value, list(s.names))
}

func (w *walker) missing(n *yaml.Node, s *shape, pairs []pair, path string) {
	for _, name := range s.required {
		found := false
		for _, kv := range pairs {
			found = found || kv.key.Value == name && !isNull(resolve(kv.value))
		}
		if !found {
			w.problem(n, "%s is missing", join(path, name))
		}
	}
}

type pair struct{ key, value *yaml.Node }

// pairs lists a mapping's entries, those merged by `<<` after its own, and
// refuses duplicates.
func (w *walker) pairs(n *yaml.Node, path string) ([]pair, bool) {
	own := make([]pair, 0, len(n.Content)/2)
	var merged []pair
	good := true
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		if key.Kind != yaml.ScalarNode {
			w.problem(key, "a key of %s is not text", named(path))
			return nil, false
		}
		if key.Value == "<<" && key.Style == 0 {
			m, ok := w.merge(value, path, 0)
			if !ok {
				return nil, false
			}
			merged = append(merged, m...)
			continue
		}
		if k := classify(key); k == kBool || k == kNull {
			w.problem(key, "the key %s is a boolean or null in YAML; write %q in quotes", key.Value, key.Value)
			good = false
		}
		if at := indexOf(own, key.Value); at >= 0 {
			w.problem(key, "duplicate key %q (first on line %d)", key.Value, w.src.lineOf(own[at].key.Line))
			good = false
			continue
		}
		own = append(own, pair{key, value})
	}
	for _, kv := range merged {
		if indexOf(own, kv.key.Value) < 0 {
			own = append(own, kv)
		}
	}
	return own, good || w.deep
}

func (w *walker) merge(n *yaml.Node, path string, depth int) ([]pair, bool) {
	n = resolve(n)
	if w.aliased += len(n.Content); w.aliased > maxAliased || depth > 4 {
		w.problem(n, "merge keys expand to too many values; write them out")
		w.stopped = true
		return nil, false
	}
	switch n.Kind {
	case yaml.MappingNode:
		var out []pair
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == "<<" && n.Content[i].Style == 0 {
				m, ok := w.merge(n.Content[i+1], path, depth+1)
				if !ok {
					return nil, false
				}
				out = append(out, m...)
				continue
			}
			out = append(out, pair{n.Content[i], n.Content[i+1]})
		}
		return out, true
	case yaml.SequenceNode:
		var out []pair
		for _, c := range n.Content {
			m, ok := w.merge(c, path, depth+1)
			if !ok {
				return nil, false
			}
			out = append(out, m...)
		}
		return out, true
	}
	w.problem(n, "what << merges into %s is not a map", named(path))
	return nil, false
}

// indexOf is linear up to the size at which people stop writing by hand.
func indexOf(pairs []pair, name string) int {
	for i := range pairs {
		if pairs[i].key.Value == name {
			return i
		}
	}
	return -1
}

func (w *walker) sequence(n *yaml.Node, s *shape, path string) {
	elem := s.elem
	switch s.form {
	case fList, fListOrOne:
	case fAny:
		elem = s
	default:
		w.problem(n, "%s is a list; %s", named(path), s.want())
		return
	}
	w.out = append(w.out, '[')
	for i, c := range n.Content {
		if i > 0 {
			w.out = append(w.out, ',')
		}
		at := fmt.Sprintf("%s[%d]", path, i)
		if isNull(resolve(c)) {
			w.problem(c, "%s has no value", at)
			continue
		}
		w.value(c, elem, at)
	}
	w.out = append(w.out, ']')
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func named(path string) string {
	if path == "" {
		return "the document"
	}
	return path
}

func list(names []string) string {
	const most = 12
	if len(names) > most {
		return strings.Join(names[:most], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}
