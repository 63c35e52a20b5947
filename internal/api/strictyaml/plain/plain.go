package plain

import (
	"bytes"
	"strings"

	yaml "go.yaml.in/yaml/v3"
)

// Bounds beyond which the general parser reads.
const (
	maxDepth = 32
	maxKey   = 128
)

// Nodes for which room is made at once: a text of nothing but ends of lines has none.
const (
	minNodes = 64
	maxNodes = 4096
)

// Kinds of bytes.
const (
	inKey   = 1 << iota // may stand in a key
	inFlow              // may stand in a plain scalar within a flow collection
	inBlock             // may stand in one elsewhere
	first               // may begin one
)

var class = func() (out [256]uint8) {
	for _, of := range []struct {
		bytes string
		bits  uint8
	}{
		{"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_", inKey | inFlow | inBlock | first},
		{"./", inKey | inFlow | inBlock | first},
		{"-", inKey | inFlow | inBlock},
		{"~+", inFlow | inBlock | first},
		{" :,@%=*()<>", inBlock},
	} {
		for _, c := range []byte(of.bytes) {
			out[c] |= of.bits
		}
	}
	return out
}()

// Parse reads a document that holds one map. false: it is for the general parser.
func Parse(text []byte) (*yaml.Node, bool) {
	for _, c := range text {
		if c >= 0x7f || c < ' ' && c != '\n' {
			return nil, false
		}
	}
	p := &parser{text: string(text), expected: bytes.Count(text, []byte("\n"))*3 + 8}
	if !p.next() || p.indent != 0 {
		return nil, false
	}
	root := p.mapping(0, 0)
	if root == nil || !p.done {
		return nil, false
	}
	return root, true
}

// parser is at a line with content: rest is what is left of it, without comment and
// trailing spaces, and indent the column at which rest begins. A method that gives nil
// has met what is not plain.
type parser struct {
	text   string
	at     int // where the next line begins
	line   int // of rest, from 1
	indent int
	rest   string
	done   bool // there is no further line
	nodes  []yaml.Node
	// expected is how many nodes the text may have beside those that there is room for.
	expected int
}

// next goes to the next line with content; false: there is none.
func (p *parser) next() bool {
	for p.at < len(p.text) {
		line := p.text[p.at:]
		if i := strings.IndexByte(line, '\n'); i >= 0 {
			line = line[:i]
		}
		p.at += len(line) + 1
		p.line++
		p.rest = strings.TrimLeft(line, " ")
		p.indent = len(line) - len(p.rest)
		if p.rest != "" && p.rest[0] != '#' {
			return true
		}
	}
	p.done, p.rest, p.indent = true, "", -1
	return false
}

// node is a new node at a column, from 0, of the line.
func (p *parser) node(kind yaml.Kind, style yaml.Style, column int, value string) *yaml.Node {
	if len(p.nodes) == cap(p.nodes) {
		room := min(max(p.expected, minNodes), maxNodes)
		p.nodes, p.expected = make([]yaml.Node, 0, room), p.expected-room // those before stay where they are
	}
	p.nodes = append(p.nodes, yaml.Node{Kind: kind, Style: style, Line: p.line, Column: column + 1, Value: value})
	return &p.nodes[len(p.nodes)-1]
}

// key cuts a key and its colon off; false: the text does not begin with a plain one.
func key(text string) (name, rest string, ok bool) {
	n := 0
	for n < len(text) && class[text[n]]&inKey != 0 {
		n++
	}
	if n == 0 || n > maxKey || n == len(text) || text[n] != ':' || n+1 < len(text) && text[n+1] != ' ' || class[text[0]]&first == 0 {
		return "", "", false
	}
	return text[:n], text[n+1:], true
}

// mapping reads a block map whose keys stand at a column; the first is at the parser.
func (p *parser) mapping(column, depth int) *yaml.Node {
	if depth > maxDepth {
		return nil
	}
	out := p.node(yaml.MappingNode, 0, column, "")
	for !p.done && p.indent == column {
		if column == 0 && (strings.HasPrefix(p.rest, "---") || strings.HasPrefix(p.rest, "...")) {
			return nil
		}
		name, rest, ok := key(p.rest)
		if !ok {
			break // the caller finds that this line is not its own, unless it is
		}
		k := p.node(yaml.ScalarNode, 0, column, name)
		v := p.value(column, len(name)+1, rest, depth)
		if v == nil {
			return nil
		}
		out.Content = append(out.Content, k, v)
	}
	if !p.done && p.indent >= column {
		return nil
	}
	return out
}

// value reads what follows the key of a map at a column: rest begins so many columns
// further.
func (p *parser) value(column, further int, rest string, depth int) *yaml.Node {
	value := strings.TrimLeft(rest, " ")
	if value != "" && value[0] != '#' {
		return p.inline(column, column+further+len(rest)-len(value), value, depth)
	}
	if !p.next() {
		return nil
	}
	switch item := p.rest[0] == '-'; {
	case item && p.indent >= column:
		return p.sequence(p.indent, depth+1)
	case p.indent > column:
		return p.mapping(p.indent, depth+1)
	}
	return nil // no value
}

// inline reads a value that stands on one line, at a column, and goes to the next line,
// which must not belong to it: it is not further in than column of.
func (p *parser) inline(of, column int, value string, depth int) *yaml.Node {
	out, rest := p.scalar(column, value, depth)
	if out == nil {
		return nil
	}
	if tail := strings.TrimLeft(rest, " "); tail != "" && (tail[0] != '#' || len(tail) == len(rest)) {
		return nil
	}
	p.next()
	if p.indent > of {
		return nil
	}
	return out
}

// scalar reads a value that begins the text, and gives what follows it.
func (p *parser) scalar(column int, text string, depth int) (*yaml.Node, string) {
	switch c := text[0]; {
	case c == '{' || c == '[':
		return p.flow(column, text, depth+1)
	case c == '"' || c == '\'':
		return p.quoted(column, text)
	case class[c]&first == 0 && (c != '-' || len(text) == 1 || class[text[1]]&first == 0):
		return nil, ""
	}
	n := 0
	for n < len(text) && class[text[n]]&inBlock != 0 {
		if text[n] == ':' && (n+1 == len(text) || text[n+1] == ' ') {
			return nil, ""
		}
		n++
	}
	value := strings.TrimRight(text[:n], " ")
	if strings.Contains(value, "  ") {
		return nil, ""
	}
	return p.node(yaml.ScalarNode, 0, column, value), text[len(value):]
}

func (p *parser) quoted(column int, text string) (*yaml.Node, string) {
	quote := text[0]
	end := strings.IndexByte(text[1:], quote)
	if end < 0 {
		return nil, ""
	}
	value, rest := text[1:1+end], text[2+end:]
	style := yaml.DoubleQuotedStyle
	if quote == '\'' {
		style = yaml.SingleQuotedStyle
	}
	if rest != "" && rest[0] == quote || strings.IndexByte(value, '\\') >= 0 {
		return nil, ""
	}
	return p.node(yaml.ScalarNode, style, column, value), rest
}

// sequence reads a block list whose dashes stand at a column; the first is at the parser.
func (p *parser) sequence(column, depth int) *yaml.Node {
	if depth > maxDepth {
		return nil
	}
	out := p.node(yaml.SequenceNode, 0, column, "")
	for !p.done && p.indent == column && p.rest[0] == '-' {
		if len(p.rest) < 3 || p.rest[1] != ' ' || p.rest[2] == ' ' || p.rest[2] == '#' || column == 0 && strings.HasPrefix(p.rest, "---") {
			return nil
		}
		p.rest, p.indent = p.rest[2:], column+2
		var item *yaml.Node
		if _, _, is := key(p.rest); is {
			item = p.mapping(column+2, depth+1)
		} else {
			item = p.inline(column, column+2, p.rest, depth)
		}
		if item == nil {
			return nil
		}
		out.Content = append(out.Content, item)
	}
	if !p.done && p.indent > column {
		return nil
	}
	return out
}

// flow reads a map or list in brackets, which begins the text, and gives what follows it.
func (p *parser) flow(column int, text string, depth int) (*yaml.Node, string) {
	if depth > maxDepth {
		return nil, ""
	}
	kind, end := yaml.SequenceNode, byte(']')
	if text[0] == '{' {
		kind, end = yaml.MappingNode, '}'
	}
	out := p.node(kind, yaml.FlowStyle, column, "")
	skip := func(n int) {
		text, column = text[n:], column+n
		spaces := len(text) - len(strings.TrimLeft(text, " "))
		text, column = text[spaces:], column+spaces
	}
	if skip(1); text != "" && text[0] == end {
		return out, text[1:]
	}
	for text != "" {
		if kind == yaml.MappingNode {
			name, _, ok := key(text)
			if !ok {
				return nil, ""
			}
			out.Content = append(out.Content, p.node(yaml.ScalarNode, 0, column, name))
			skip(len(name) + 1)
		}
		item, rest := p.entry(column, text, depth)
		if item == nil {
			return nil, ""
		}
		out.Content = append(out.Content, item)
		skip(len(text) - len(rest))
		switch {
		case text == "":
			return nil, ""
		case text[0] == end:
			return out, text[1:]
		case text[0] != ',':
			return nil, ""
		}
		skip(1)
	}
	return nil, ""
}

// entry reads a value within brackets, which begins the text.
func (p *parser) entry(column int, text string, depth int) (*yaml.Node, string) {
	if text == "" {
		return nil, ""
	}
	switch c := text[0]; {
	case c == '{' || c == '[':
		return p.flow(column, text, depth+1)
	case c == '"' || c == '\'':
		return p.quoted(column, text)
	case class[c]&first == 0 && (c != '-' || len(text) == 1 || class[text[1]]&first == 0):
		return nil, ""
	}
	n := 0
	for n < len(text) && class[text[n]]&inFlow != 0 {
		n++
	}
	return p.node(yaml.ScalarNode, 0, column, text[:n]), text[n:]
}
