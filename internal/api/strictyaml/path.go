package strictyaml

import (
	"strconv"
	"strings"
)

// path is where a walk stands. It is put into words only for a problem: joining
// it at every value would cost the length of all keys above, each time.
type path []step

// step is a field's name, or an index in a list.
type step struct {
	name  string
	index int // −1 for a name
}

func (p *path) into(name string) { *p = append(*p, step{name, -1}) }
func (p *path) at(index int)     { *p = append(*p, step{"", index}) }
func (p *path) out()             { *p = (*p)[:len(*p)-1] }

// String is the path as people write it: spec.placement.spread[0].by.
func (p path) String() string {
	if len(p) == 0 {
		return "the document"
	}
	var b strings.Builder
	for _, s := range p {
		switch {
		case s.index >= 0:
			b.WriteString("[" + strconv.Itoa(s.index) + "]")
		case b.Len() > 0:
			b.WriteString("." + clip(s.name))
		default:
			b.WriteString(clip(s.name))
		}
	}
	return b.String()
}

// last is the end of the path, from its last name on.
func (p path) last() string {
	for i := len(p) - 1; i >= 0; i-- {
		if p[i].index < 0 {
			return p[i:].String()
		}
	}
	return p.String()
}

// maxQuoted bounds what a message repeats of a document, in bytes.
const maxQuoted = 200

// clip shortens a text of the document for a message.
func clip(text string) string {
	if len(text) <= maxQuoted {
		return text
	}
	return strings.ToValidUTF8(text[:maxQuoted], "") + "…"
}

// keyed is a map's entries in their order, found by key in constant time.
type keyed struct {
	list   []pair
	byName map[string]int // once there are many
}

// few is up to how many entries a search in order is the faster one.
const few = 16

func (k *keyed) add(p pair) {
	k.list = append(k.list, p)
	if k.byName != nil {
		k.byName[p.key.Value] = len(k.list) - 1
	}
}

func (k *keyed) find(name string) (pair, bool) {
	if k.byName == nil && len(k.list) > few {
		k.byName = make(map[string]int, cap(k.list))
		for i := range k.list {
			k.byName[k.list[i].key.Value] = i
		}
	}
	if k.byName != nil {
		i, ok := k.byName[name]
		if !ok {
			return pair{}, false
		}
		return k.list[i], true
	}
	for i := range k.list {
		if k.list[i].key.Value == name {
			return k.list[i], true
		}
	}
	return pair{}, false
}
