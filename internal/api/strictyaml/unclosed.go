package strictyaml

import (
	"bytes"
	"regexp"
)

// opened is a bracket of a flow collection, with its place from 1.
type opened struct {
	bracket      byte
	line, column int
}

// blockScalar is the end of a line after which text follows that is indented deeper.
var blockScalar = regexp.MustCompile(`(?:^|[:-])\s*[|>][+-]?[0-9]?[+-]?\s*(?:#.*)?$`)

// unclosed is the last bracket that is still open at the end of a line, from 1, or where none
// is, of the text. The parser names another line, and not the bracket.
func unclosed(text []byte, line int) (opened, bool) {
	var s brackets
	deeper := -1 // indentation of what a block scalar belongs to
	for i, row := range bytes.Split(text, []byte("\n")) {
		row = bytes.TrimRight(row, "\r")
		indent := len(row) - len(bytes.TrimLeft(row, " "))
		if deeper >= 0 && (indent > deeper || indent == len(row)) {
			continue
		}
		deeper = -1
		s.read(i+1, row)
		if len(s.open) == 0 && s.quote == 0 && blockScalar.Match(row) {
			deeper = indent
		}
		if i+1 >= line && len(s.open) > 0 {
			break
		}
	}
	if len(s.open) == 0 {
		return opened{}, false
	}
	return s.open[len(s.open)-1], true
}

// brackets are those that are open at some place of a text.
type brackets struct {
	open  []opened
	quote byte // the one that is open, else 0
}

// read goes over a line. Quotes and brackets count where a value may begin, and brackets
// within a flow collection everywhere.
func (s *brackets) read(line int, row []byte) {
	begins := true
	for at := 0; at < len(row); at++ {
		c := row[at]
		switch {
		case s.quote == '"' && c == '\\':
			at++
		case s.quote != 0:
			if c == s.quote {
				s.quote = 0
			}
		case c == '#' && (at == 0 || row[at-1] == ' '):
			return
		case c == ' ':
		case (c == '"' || c == '\'') && begins:
			s.quote, begins = c, false
		case (c == '[' || c == '{') && (begins || len(s.open) > 0):
			s.open, begins = append(s.open, opened{c, line, at + 1}), true
		case (c == ']' || c == '}') && len(s.open) > 0:
			s.open, begins = s.open[:len(s.open)-1], false
		case c == ',' && len(s.open) > 0, (c == ':' || c == '-' && begins) && (at+1 == len(row) || row[at+1] == ' '):
			begins = true
		default:
			begins = false
		}
	}
}
