package strictyaml

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	yaml "go.yaml.in/yaml/v3"

	"github.com/fleetbroker/fleetbroker/internal/api/escape"
	"github.com/fleetbroker/fleetbroker/internal/api/nearest"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Decode reads the document into a pointer to a kind. On any problem the value
// is not usable.
func (d *Document) Decode(into any) []Problem {
	s := shapeOf(reflect.TypeOf(into).Elem())
	w := walker{doc: d}
	w.value(d.root, s)
	var err error
	if len(w.problems) == 0 {
		if err = json.Unmarshal(w.out, into); err == nil {
			return nil
		}
	}
	// Something is wrong: walk again and let every scalar's own type judge it,
	// which costs too much for documents without a mistake.
	w = walker{doc: d, deep: true}
	w.value(d.root, s)
	if len(w.problems) == 0 {
		w.problem(d.root, "%s", strings.TrimPrefix(err.Error(), "json: "))
	}
	return w.problems
}

// JSON is the document as JSON: as YAML it reads the same everywhere, and it has
// no aliases. Nulls are kept: in a patch they delete.
func (d *Document) JSON() ([]byte, []Problem) {
	w := walker{doc: d, nulls: true, quiet: true}
	w.value(d.root, shapeOf(reflect.TypeFor[json.RawMessage]()))
	if len(w.problems) > 0 {
		return nil, w.problems
	}
	return w.out, nil
}

// walker goes through a node tree beside a shape and writes JSON.
type walker struct {
	doc      *Document
	deep     bool // scalars are read by their own type
	nulls    bool // nulls of untyped values are written
	quiet    bool // plain scalars that YAML 1.1 reads in an odd way are taken as the parser reads them
	out      []byte
	problems []Problem
	path     path
	depth    int
	aliased  int // nodes seen through aliases and merge keys
	bytes    int // of scalars seen through them
	inAlias  int
	stopped  bool
}

func (w *walker) problem(n *yaml.Node, format string, args ...any) {
	if len(w.problems) >= maxProblems {
		w.stopped = true
		return
	}
	w.problems = append(w.problems, Problem{w.doc.lineOf(n.Line), n.Column, escape.Reason(fmt.Sprintf(format, args...))})
}

// stop reports a bound that was passed and ends the walk.
func (w *walker) stop(n *yaml.Node, format string, args ...any) {
	w.problem(n, format, args...)
	w.stopped = true
}

// enter follows an alias and counts; false means that the walk is over.
func (w *walker) enter(n *yaml.Node) (*yaml.Node, bool) {
	if w.stopped {
		return n, false
	}
	if w.depth++; w.depth > maxDepth {
		w.stop(n, "nested deeper than %d levels", maxDepth)
		return n, false
	}
	at := n
	if n.Kind == yaml.AliasNode {
		w.inAlias++
		n = n.Alias
	}
	return n, w.inAlias == 0 || w.expand(at, 1, len(n.Value))
}

// expand counts what an alias or a merge key brings once more; false means that
// it is too much. The problem is placed where the alias stands.
func (w *walker) expand(at *yaml.Node, values, bytes int) bool {
	w.aliased += values
	w.bytes += bytes
	switch {
	case w.stopped:
	case w.aliased > maxAliased:
		w.stop(at, "aliases expand to more than %d values; write them out", maxAliased)
	case w.bytes > maxAliasedBytes:
		w.stop(at, "aliases expand to more than %d KiB; write them out", maxAliasedBytes>>10)
	}
	return !w.stopped
}

// value writes the JSON of a node.
func (w *walker) value(n *yaml.Node, s *shape) {
	was := w.inAlias
	n, ok := w.enter(n)
	defer func() { w.depth--; w.inAlias = was }()
	if !ok {
		return
	}
	if n.Style&yaml.TaggedStyle != 0 && n.Tag != "!!str" && n.Tag != "!!map" && n.Tag != "!!seq" {
		w.problem(n, "%s has the tag %s; tags are not supported", w.path, clip(n.Tag))
		return
	}
	switch n.Kind {
	case yaml.MappingNode:
		at, before := len(w.out), len(w.problems)
		w.mapping(n, s)
		if w.deep && s.parse != nil && len(w.problems) == before { // its fields are right, one by one
			if err := s.parse(w.out[at:]); err != nil {
				w.problem(n, "%s: %s", w.path, reason(err))
			}
		}
	case yaml.SequenceNode:
		w.sequence(n, s)
	default:
		w.scalar(n, s)
	}
}

func (w *walker) mapping(n *yaml.Node, s *shape) {
	switch s.form {
	case fObject, fObjectOrText, fMap, fAny:
	case fListOrOne:
		if s.elem.form == fText {
			w.problem(n, "%s is a map; %s", w.path, s.want())
			return
		}
		w.out = append(w.out, '[')
		w.mapping(n, s.elem)
		w.out = append(w.out, ']')
		return
	default:
		want := s.want()
		if strings.HasSuffix(fmt.Sprint(w.path), ".reserved.perHour") { // as on-demand prices are written
			want = `the prices of a term are reserved's own: write reserved: {term: 8760h, gpu: "1.90"}`
		}
		if last := w.path.last(); s.form == fQuantity && (last == "requests" || last == "limits") { // as pods have them
			want = "there are no requests and limits here: write what is in it directly under resources, such as resources: {cpu: 4, memory: 16Gi}"
		}
		w.problem(n, "%s is a map; %s", w.path, want)
		return
	}
	pairs, ok := w.pairs(n)
	if !ok {
		return
	}
	w.out = append(w.out, '{')
	first := true
	for _, kv := range pairs {
		if w.stopped {
			return
		}
		name := kv.key.Value
		fs, known := s.fields[name]
		switch {
		case known:
		case s.form == fMap && (slips(name, s) || s.elem.form == fQuantity && spaced(name)):
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
		w.path.into(name)
		if isNull(resolve(kv.value)) && !(w.nulls && s.form == fAny) {
			if s.form == fMap {
				w.problem(kv.value, "%s has no value; %s", w.path, fs.some(name))
			}
			w.path.out()
			continue
		}
		if !first {
			w.out = append(w.out, ',')
		}
		first = false
		w.out = appendString(w.out, name)
		w.out = append(w.out, ':')
		before := len(w.problems)
		w.entry(kv, fs)
		if w.deep && s.form == fMap && fs.form == fQuantity && fs.parse == nil && len(w.problems) == before {
			w.amount(kv)
		}
		w.path.out()
	}
	w.out = append(w.out, '}')
	if s.form == fObject || s.form == fObjectOrText {
		w.missing(n, s, pairs)
	}
}

// entry writes the value of a pair; what a merge key brought counts as an alias
// does.
func (w *walker) entry(kv pair, s *shape) {
	if kv.merged {
		w.inAlias++
		defer func() { w.inAlias-- }()
	}
	w.value(kv.value, s)
}

// slips reports whether a key of a map of quantities is nearly the one that is
// no quantity: `gpus` is a slip for gpu, whatever stands there.
func slips(name string, s *shape) bool {
	_, object := s.fields[v1alpha1.GPU]
	return object && len(s.names) > 0 && !slices.Contains(s.names, name) && nearest.Of(name, s.names) == v1alpha1.GPU
}

func (w *walker) unknown(key *yaml.Node, s *shape) {
	if spaced(key.Value) {
		what := "field"
		if s.form == fMap {
			what = "resource"
		}
		w.problem(key, "unknown %s %q: a no-break space (U+00A0) is next to %s, as web pages have it; write a plain space", what, clip(key.Value), clip(strings.Trim(key.Value, noBreakSpace)))
		return
	}
	if near := meant(key.Value, s); howTo(key.Value, near) != "" {
		w.problem(key, "unknown field %q; %s", clip(key.Value), howTo(key.Value, near))
		return
	} else if near != "" {
		w.problem(key, "unknown field %q (did you mean %q?)", clip(key.Value), near)
		return
	}
	if parent, field := under(key.Value, s); parent != "" {
		w.problem(key, "unknown field %q; it belongs under %s: write %[2]s: {%[3]s: ...}", clip(key.Value), parent, field)
		return
	}
	w.problem(key, "unknown field %q (known here: %s)", clip(key.Value), list(s.names))
}

// missing names the required fields that are not there, but for those that an unknown
// one was meant for: one mistake, one message.
func (w *walker) missing(n *yaml.Node, s *shape, pairs []pair) {
	for _, name := range s.required {
		found := false
		for _, kv := range pairs {
			_, known := s.fields[kv.key.Value]
			found = found || kv.key.Value == name && !isNull(resolve(kv.value)) || !known && meant(kv.key.Value, s) == name
		}
		if !found {
			w.path.into(name)
			w.problem(n, "%s is missing", w.path)
			w.path.out()
		}
	}
}

// pair is an entry of a map; merged says that a merge key brought it.
type pair struct {
	key, value *yaml.Node
	merged     bool
}

// pairs lists a mapping's entries, those merged by `<<` after its own, and
// refuses duplicates.
func (w *walker) pairs(n *yaml.Node) ([]pair, bool) {
	own := keyed{list: make([]pair, 0, len(n.Content)/2)}
	var merged []pair
	good := true
	for i := 0; i+1 < len(n.Content) && !w.stopped; i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind == yaml.AliasNode {
			if !w.expand(key, 1, len(key.Alias.Value)) {
				return nil, false
			}
			key = key.Alias
		}
		if key.Kind != yaml.ScalarNode {
			w.problem(key, "a key of %s is not text", w.path)
			return nil, false
		}
		if longKey(key.Value) {
			w.problem(key, "a key of %s is longer than %d bytes as JSON writes it; shorten it", w.path, maxKey)
			return nil, false
		}
		if key.Value == "<<" && key.Style == 0 {
			m, ok := w.merge(value, 0)
			if !ok {
				return nil, false
			}
			merged = append(merged, m...)
			continue
		}
		if k := classify(key); !w.quiet && (k == kBool || k == kNull) {
			w.problem(key, "the key %s is a boolean or null in YAML; write %q in quotes", key.Value, key.Value)
			good = false
		}
		if was, ok := own.find(key.Value); ok {
			w.problem(key, "duplicate key %q (first on line %d)", clip(key.Value), w.doc.lineOf(was.key.Line))
			good = false
			continue
		}
		own.add(pair{key: key, value: value})
	}
	for _, kv := range merged {
		if _, ok := own.find(kv.key.Value); !ok {
			own.add(kv)
		}
	}
	return own.list, (good || w.deep) && !w.stopped
}

func (w *walker) merge(n *yaml.Node, depth int) ([]pair, bool) {
	at := n
	n = resolve(n)
	if w.aliased+len(n.Content) > maxAliased || depth > 4 {
		w.stop(at, "merge keys expand to too many values; write them out")
		return nil, false
	}
	switch n.Kind {
	case yaml.MappingNode:
		var out []pair
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := resolve(n.Content[i])
			if key.Kind != yaml.ScalarNode || longKey(key.Value) {
				w.problem(at, "a key of %s is not text of at most %d bytes", w.path, maxKey)
				return nil, false
			}
			if key.Value == "<<" && key.Style == 0 {
				m, ok := w.merge(n.Content[i+1], depth+1)
				if !ok {
					return nil, false
				}
				out = append(out, m...)
				continue
			}
			if !w.expand(at, 1, len(key.Value)) {
				return nil, false
			}
			out = append(out, pair{key, n.Content[i+1], true})
		}
		return out, true
	case yaml.SequenceNode:
		var out []pair
		for _, c := range n.Content {
			w.aliased++
			m, ok := w.merge(c, depth+1)
			if !ok {
				return nil, false
			}
			out = append(out, m...)
		}
		return out, true
	}
	w.problem(n, "what << merges into %s is not a map", w.path)
	return nil, false
}

func (w *walker) sequence(n *yaml.Node, s *shape) {
	elem := s.elem
	switch s.form {
	case fList, fListOrOne:
	case fAny:
		elem = s
	default:
		w.problem(n, "%s is a list; %s", w.path, s.want())
		return
	}
	w.out = append(w.out, '[')
	for i, c := range n.Content {
		if w.stopped {
			return
		}
		if i > 0 {
			w.out = append(w.out, ',')
		}
		w.path.at(i)
		if isNull(resolve(c)) && !w.nulls {
			w.problem(c, "%s has no value", w.path)
		} else {
			w.value(c, elem)
		}
		w.path.out()
	}
	w.out = append(w.out, ']')
}

func list(names []string) string {
	const most = 12
	if len(names) > most {
		return strings.Join(names[:most], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}
