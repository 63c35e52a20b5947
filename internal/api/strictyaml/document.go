package strictyaml

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	yaml "go.yaml.in/yaml/v3"

	"github.com/fleetbroker/fleetbroker/internal/api/strictyaml/plain"
)

// Bounds on what is read. They are far above what people write and far below
// what hurts.
const (
	// MaxSize of a file, in bytes.
	MaxSize = 1 << 20
	// MaxDocuments in a file.
	MaxDocuments = 100
	// maxAliased is how many nodes of a document may come through aliases and
	// merge keys, maxAliasedBytes how many bytes of text.
	maxAliased      = 10_000
	maxAliasedBytes = 64 << 10
	// maxKey of a map, in bytes as JSON writes it, quotes included: YAML reads no
	// longer one without a mark before it.
	maxKey = 1024
	// maxTyped is how long a quantity, a time, a number may be, in bytes: reading
	// one can cost more than its length.
	maxTyped = 256
	// maxDepth of nesting.
	maxDepth = 64
	// maxProblems reported for one document.
	maxProblems = 50
)

// Problem is one mistake. Line and Column count from 1 in the file.
type Problem struct {
	Line, Column int
	Message      string
}

func (p Problem) String() string { return fmt.Sprintf("%d:%d: %s", p.Line, p.Column, p.Message) }

// Source is one document of a file, not yet parsed.
type Source struct {
	Text []byte
	// Line of the file on which Text begins, counted from 0.
	Line int
}

var byteOrderMark = []byte("\xef\xbb\xbf")

// Split cuts a file into its documents, leaving out those with nothing but
// comments. Problems concern the file as a whole; there are then no documents.
func Split(file []byte) ([]Source, []Problem) {
	if len(file) > MaxSize {
		return nil, []Problem{{1, 1, fmt.Sprintf("the file is larger than %d KiB; split it", MaxSize>>10)}}
	}
	file = bytes.TrimPrefix(file, byteOrderMark)
	if p, bad := notText(file); bad {
		return nil, []Problem{p}
	}
	var out []Source
	start, startLine, line := 0, 0, 0
	flush := func(end int) {
		if text := file[start:end]; hasContent(text) {
			out = append(out, Source{text, startLine})
		}
	}
	for at := 0; at < len(file); line++ {
		next := len(file)
		if i := bytes.IndexByte(file[at:], '\n'); i >= 0 {
			next = at + i + 1
		}
		switch {
		case isMarker(file[at:next], "---"):
			flush(at)
			start, startLine = at, line
		case isMarker(file[at:next], "..."):
			flush(at)
			start, startLine = next, line+1
		}
		at = next
	}
	flush(len(file))
	if len(out) > MaxDocuments {
		return nil, []Problem{{out[MaxDocuments].Line + 1, 1, fmt.Sprintf("the file has more than %d documents; split it", MaxDocuments)}}
	}
	return out, nil
}

// isMarker: at column 0 and followed by white space, `---` and `...` end a
// document even within a scalar (YAML 1.2, c-forbidden).
func isMarker(line []byte, marker string) bool {
	rest, ok := bytes.CutPrefix(line, []byte(marker))
	return ok && (len(rest) == 0 || rest[0] == ' ' || rest[0] == '\t' || rest[0] == '\n' || rest[0] == '\r')
}

func hasContent(text []byte) bool {
	for line := range bytes.Lines(text) {
		l := bytes.TrimSpace(line)
		if isMarker(line, "---") {
			l = bytes.TrimSpace(l[3:])
		}
		if len(l) > 0 && l[0] != '#' {
			return true
		}
	}
	return false
}

// notText finds bytes that are not UTF-8 text.
func notText(file []byte) (Problem, bool) {
	if bytes.HasPrefix(file, []byte{0xff, 0xfe}) || bytes.HasPrefix(file, []byte{0xfe, 0xff}) {
		return Problem{1, 1, "the file is UTF-16; save it as UTF-8"}, true
	}
	if utf8.Valid(file) && bytes.IndexByte(file, 0) < 0 {
		return Problem{}, false
	}
	line, column := 1, 1
	for len(file) > 0 {
		r, n := utf8.DecodeRune(file)
		switch {
		case r == utf8.RuneError && n == 1, r == 0:
			return Problem{line, column, "the file is not UTF-8 text; save it as UTF-8"}, true
		case r == '\n':
			line, column = line+1, 1
		default:
			column++
		}
		file = file[n:]
	}
	return Problem{line, column, "the file is not UTF-8 text; save it as UTF-8"}, true
}

// Document is a parsed document.
type Document struct {
	root *yaml.Node
	src  Source
	last int // line of src.Text, from 1: counted once, as each place asks for it
}

func newDocument(root *yaml.Node, src Source) *Document {
	return &Document{root, src, bytes.Count(src.Text, []byte("\n")) + 1}
}

// lineOf is the line in the file of a line of the document, from 1. (The parser
// sometimes places an absent value behind the end.)
func (d *Document) lineOf(line int) int { return d.src.Line + min(line, d.last) }

var parserLine = regexp.MustCompile(`^(?:yaml: )?(?:line (\d+): )?(.*)$`)

// large is the size of a document from which on one is parsed at a time: nodes
// take a hundred times the memory of dense text.
const large = 128 << 10

var oneLarge sync.Mutex

// Parse reads a document into its node tree.
func Parse(src Source) (doc *Document, problems []Problem) {
	if len(src.Text) > large {
		oneLarge.Lock()
		defer oneLarge.Unlock()
	}
	defer func() {
		if r := recover(); r != nil { // the parser has panicked on fuzzed input before
			doc, problems = nil, []Problem{{src.Line + 1, 1, fmt.Sprintf("the YAML cannot be read: %v", r)}}
		}
	}()
	if root, ok := plain.Parse(src.Text); ok {
		return newDocument(root, src), nil
	}
	var root yaml.Node
	err := yaml.NewDecoder(bytes.NewReader(src.Text)).Decode(&root)
	if errors.Is(err, io.EOF) || err == nil && len(root.Content) == 0 {
		return nil, []Problem{{src.Line + 1, 1, "the document is empty"}}
	}
	if err != nil {
		return nil, []Problem{parserProblem(src, err)}
	}
	return newDocument(root.Content[0], src), nil
}

func parserProblem(src Source, err error) Problem {
	if n, ok := tabbed(src.Text); ok {
		return Problem{src.Line + n + 1, 1, "the line is indented with a tab; YAML allows spaces only"}
	}
	if n, ok := conflicted(src.Text); ok {
		return Problem{src.Line + n + 1, 1, "a merge left its conflict marks (<<<<<<<) here: keep one side, and remove the marks"}
	}
	m := parserLine.FindStringSubmatch(strings.SplitN(err.Error(), "\n", 2)[0])
	line := 1
	if m[1] != "" {
		line, _ = strconv.Atoi(m[1])
	}
	line = min(max(line, 1), bytes.Count(src.Text, []byte("\n"))+1)
	if n, ok := glued(src.Text, line); ok {
		return Problem{src.Line + n, 1, "a no-break space (U+00A0) is in this line, which looks like a space and is none: type a space in its place"}
	}
	if m[2] == "found unexpected end of stream" {
		m[2] = "a quote that opens here or below is not closed"
	}
	if strings.HasPrefix(m[2], "did not find expected ',' or ") {
		if o, ok := unclosed(src.Text, line+1); ok {
			return Problem{src.Line + o.line, o.column, fmt.Sprintf("the YAML cannot be read: the %q that opens here is not closed, or a comma is missing in it", string(o.bracket))}
		}
	}
	if p, ok := misread(src.Text, m[2], line); ok {
		return Problem{src.Line + p.Line, p.Column, "the YAML cannot be read: " + p.Message}
	}
	return Problem{src.Line + line, 1, "the YAML cannot be read: " + m[2] + "; " + lookAt(m[2])}
}

// conflicted is the first line, from 0, that git marks as a conflict.
func conflicted(text []byte) (int, bool) {
	n := 0
	for line := range bytes.Lines(text) {
		if bytes.HasPrefix(line, []byte("<<<<<<< ")) {
			return n, true
		}
		n++
	}
	return 0, false
}

// glued is the line, from 1, with a no-break space before any comment: the one that the parser
// names, or the one before it. Editors and web pages put such spaces where people copy them.
func glued(text []byte, line int) (int, bool) {
	lines := bytes.Split(text, []byte("\n"))
	for _, n := range []int{line, line - 1} {
		if n < 1 || n > len(lines) {
			continue
		}
		if code, _, _ := bytes.Cut(lines[n-1], []byte(" #")); bytes.ContainsRune(code, '\u00a0') {
			return n, true
		}
	}
	return 0, false
}

func tabbed(text []byte) (int, bool) {
	n := 0
	for line := range bytes.Lines(text) {
		indent := line[:len(line)-len(bytes.TrimLeft(line, " \t"))]
		if bytes.IndexByte(indent, '\t') >= 0 && len(indent) < len(bytes.TrimRight(line, "\r\n")) {
			return n, true
		}
		n++
	}
	return 0, false
}

// Text is the scalar at a path, "" when there is none.
func (d *Document) Text(path ...any) string {
	if n, ok := find(d.root, path); ok && n.Kind == yaml.ScalarNode {
		return n.Value
	}
	return ""
}

// At is where the value at a path stands (field names and list indexes); where
// the path ends early, its last part that exists.
func (d *Document) At(path ...any) (line, column int) {
	n, _ := find(d.root, path)
	return d.lineOf(n.Line), n.Column
}

// KeyAt is where the field named by the last element of a path stands.
func (d *Document) KeyAt(path ...any) (line, column int) {
	parent, ok := find(d.root, path[:len(path)-1])
	name, isName := path[len(path)-1].(string)
	if parent = resolve(parent); ok && isName && parent.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(parent.Content); i += 2 {
			if parent.Content[i].Value == name {
				return d.src.Line + parent.Content[i].Line, parent.Content[i].Column
			}
		}
	}
	return d.At(path...)
}

// Within is where line and column (both from 1) of the text of the scalar at a
// path stand in the file.
func (d *Document) Within(line, column int, path ...any) (int, int) {
	n, ok := find(d.root, path)
	if !ok || n.Kind != yaml.ScalarNode {
		return d.lineOf(n.Line), n.Column
	}
	switch {
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		return d.src.Line + n.Line + line, blockIndent(d.src.Text, n.Line) + column
	case n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0:
		return d.src.Line + n.Line, n.Column + 1 + quotedWidth(n, column-1)
	}
	return d.src.Line + n.Line, n.Column + column - 1
}

// blockIndent is the indentation of a block scalar whose header is on a line.
func blockIndent(text []byte, header int) int {
	n := 0
	for line := range bytes.Lines(text) {
		if n++; n > header && len(bytes.TrimSpace(line)) > 0 {
			return len(line) - len(bytes.TrimLeft(line, " "))
		}
	}
	return 0
}

// quotedWidth is how many columns the first characters of a quoted scalar take
// in the file: a quote within single quotes, and a quote or backslash within
// double quotes, takes two.
func quotedWidth(n *yaml.Node, characters int) int {
	width := 0
	for i, r := range []rune(n.Value) {
		if i >= characters {
			break
		}
		width++
		if n.Style&yaml.SingleQuotedStyle != 0 && r == '\'' || n.Style&yaml.DoubleQuotedStyle != 0 && (r == '"' || r == '\\') {
			width++
		}
	}
	return width + max(0, characters-len([]rune(n.Value)))
}

// find follows a path; ok says whether it goes all the way.
func find(n *yaml.Node, path []any) (found *yaml.Node, ok bool) {
	for _, step := range path {
		next := child(resolve(n), step)
		if next == nil {
			return n, false
		}
		n = next
	}
	return resolve(n), true
}

func child(n *yaml.Node, step any) *yaml.Node {
	switch s := step.(type) {
	case string:
		if n.Kind != yaml.MappingNode {
			return nil
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == s {
				return n.Content[i+1]
			}
		}
	case int:
		if n.Kind == yaml.SequenceNode && s >= 0 && s < len(n.Content) {
			return n.Content[s]
		}
	}
	return nil
}

func resolve(n *yaml.Node) *yaml.Node {
	for range maxDepth {
		if n.Kind != yaml.AliasNode || n.Alias == nil {
			return n
		}
		n = n.Alias
	}
	return n
}
