package genyaml

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Marshal is v as YAML: what its JSON form says.
func Marshal(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode %T: %w", v, err)
	}
	p := &parser{in: buf.Bytes()}
	root := p.value()
	w := &writer{out: make([]byte, 0, 2*buf.Len())}
	switch {
	case root.block() && root.kind == object:
		w.object(root, 0)
	case root.block():
		w.array(root, 0)
	default:
		w.out = append(w.out, p.in[root.from:root.to]...)
		w.out = append(w.out, '\n')
	}
	return w.out, nil
}

type kind uint8

const (
	scalar kind = iota
	object
	array
)

// node is a value of the JSON text, from and to being its bounds there.
type node struct {
	kind     kind
	from, to int
	text     []byte
	members  []member
	items    []node
}

type member struct {
	key   string
	raw   []byte
	value node
}

// block reports whether a value is written over several lines.
func (n *node) block() bool {
	return n.kind == object && len(n.members) > 0 || n.kind == array && len(n.items) > 0
}

// parser reads JSON that encoding/json has just written, and so is valid.
type parser struct {
	in []byte
	at int
}

func (p *parser) value() node {
	n := node{from: p.at}
	switch p.in[p.at] {
	case '{':
		n.kind = object
		p.list('}', func() {
			from := p.at
			p.skipString()
			m := member{raw: p.in[from:p.at]}
			m.key = unquote(m.raw)
			p.at++ // the colon
			m.value = p.value()
			n.members = append(n.members, m)
		})
		slices.SortFunc(n.members, func(a, b member) int { return strings.Compare(a.key, b.key) })
	case '[':
		n.kind = array
		p.list(']', func() { n.items = append(n.items, p.value()) })
	case '"':
		p.skipString()
	default:
		for p.at < len(p.in) && !strings.ContainsRune(",]}\n", rune(p.in[p.at])) {
			p.at++
		}
	}
	n.to = p.at
	n.text = p.in[n.from:n.to]
	return n
}

// list reads elements up to the closing bracket.
func (p *parser) list(end byte, element func()) {
	p.at++
	for p.in[p.at] != end {
		if p.in[p.at] == ',' {
			p.at++
		}
		element()
	}
	p.at++
}

func (p *parser) skipString() {
	for p.at++; p.in[p.at] != '"'; p.at++ {
		if p.in[p.at] == '\\' {
			p.at++
		}
	}
	p.at++
}

func unquote(raw []byte) string {
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1])
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		panic("genyaml: encoding/json wrote a string that it cannot read: " + err.Error())
	}
	return s
}

type writer struct{ out []byte }

func (w *writer) indent(n int) {
	for range n {
		w.out = append(w.out, ' ')
	}
}

// object writes members; the first goes where the writer stands, behind a
// dash or at the line's beginning.
func (w *writer) object(n node, indent int) {
	for i := range n.members {
		m := &n.members[i]
		if i > 0 {
			w.indent(indent)
		}
		if plain([]byte(m.key)) {
			w.out = append(w.out, m.key...)
		} else {
			w.quoted(m.raw)
		}
		w.out = append(w.out, ':')
		switch {
		case !m.value.block():
			w.out = append(w.out, ' ')
			w.scalar(m.value)
			w.out = append(w.out, '\n')
		case m.value.kind == object:
			w.out = append(w.out, '\n')
			w.indent(indent + 2)
			w.object(m.value, indent+2)
		default:
			w.out = append(w.out, '\n')
			w.indent(indent)
			w.array(m.value, indent)
		}
	}
}

func (w *writer) array(n node, indent int) {
	for i, item := range n.items {
		if i > 0 {
			w.indent(indent)
		}
		w.out = append(w.out, '-', ' ')
		if item.block() && item.kind == object {
			w.object(item, indent+2)
			continue
		}
		w.scalar(item)
		w.out = append(w.out, '\n')
	}
}

// scalar writes a value on one line. A list in a list stands as JSON, which is
// YAML.
func (w *writer) scalar(n node) {
	if n.kind == scalar && n.text[0] == '"' {
		if s := n.text[1 : len(n.text)-1]; bytes.IndexByte(s, '\\') < 0 && plain(s) {
			w.out = append(w.out, s...)
			return
		}
	}
	w.quoted(n.text)
}

// quoted writes a JSON string as YAML's double-quoted scalar. They mean the
// same but for what YAML does not print, which encoding/json leaves as it is.
func (w *writer) quoted(raw []byte) {
	for _, r := range string(raw) {
		switch {
		case r >= 0x20 && r < 0x7f, r >= 0xa0 && r <= 0xd7ff && r != 0x2028 && r != 0x2029, r >= 0xe000 && r < 0xfeff, r > 0xfeff && r <= 0xfffd:
			w.out = append(w.out, string(r)...)
		case r > 0xffff:
			w.out = fmt.Appendf(w.out, "\\U%08x", r)
		default:
			w.out = fmt.Appendf(w.out, "\\u%04x", r)
		}
	}
}

// plain reports whether a string may stand without quotes, being a string to
// every reader: it begins with a letter or slash, is made of characters that
// mean nothing to YAML, and is not a word of YAML 1.1. Quantities and durations
// (128Gi, 72h) may begin with digits.
func plain(s []byte) bool {
	if len(s) == 0 || s[len(s)-1] == ' ' || s[len(s)-1] == ':' {
		return false
	}
	if c := s[0]; !letter(c) && c != '/' {
		return quantity(s)
	}
	for i, c := range s {
		switch {
		case letter(c), digit(c):
		case c == ' ':
			if s[i+1] == '#' {
				return false
			}
		case c == ':':
			if s[i+1] == ' ' {
				return false
			}
		case bytes.IndexByte([]byte("/._-@<>+=,;()%"), c) < 0:
			return false
		}
	}
	return len(s) > 5 || !words[strings.ToLower(string(s))]
}

// quantity is digits and a unit that makes it a string.
func quantity(s []byte) bool {
	i := 0
	for i < len(s) && digit(s[i]) {
		i++
	}
	if i == 0 {
		return false
	}
	switch string(s[i:]) {
	case "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "m", "h", "s":
		return true
	}
	return false
}

func letter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
func digit(c byte) bool  { return c >= '0' && c <= '9' }

// words are what YAML 1.1 reads as a boolean or nothing.
var words = map[string]bool{
	"y": true, "n": true, "yes": true, "no": true, "on": true, "off": true, "true": true, "false": true, "null": true,
}
