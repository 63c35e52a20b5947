package genyaml

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"

	"sigs.k8s.io/yaml"
)

// UnmarshalStrict reads YAML into what v points to, which it overwrites; an
// unknown field and a repeated key are errors.
func UnmarshalStrict(b []byte, v any) error {
	if text, ok := toJSON(b); ok {
		d := json.NewDecoder(bytes.NewReader(text))
		d.DisallowUnknownFields()
		if err := d.Decode(v); err == nil {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				return nil
			}
		}
		reflect.ValueOf(v).Elem().SetZero() // of what was read before the mistake
	}
	return yaml.UnmarshalStrict(b, v)
}

// maxKeys bounds the mappings that are read here, because repeated keys are
// looked for one by one; larger ones are the library's.
const maxKeys = 64

// maxDepth bounds nesting.
const maxDepth = 32

// toJSON turns the form that Marshal writes into JSON; false means that it is
// another form, or not YAML at all.
func toJSON(b []byte) ([]byte, bool) {
	r := &reader{in: b, out: make([]byte, 0, len(b)+len(b)/4)}
	r.next()
	if r.done || r.indent != 0 {
		return nil, false
	}
	if !r.block(0, 0) || !r.done {
		return nil, false
	}
	return r.out, true
}

// reader goes through lines. The current line is rest at indent; a dash at its
// beginning is taken off by counting it as indentation.
type reader struct {
	in     []byte
	at     int
	out    []byte
	rest   []byte
	indent int
	done   bool
}

// next goes to the next line that is neither empty nor a comment.
func (r *reader) next() {
	for {
		if r.at >= len(r.in) {
			r.done, r.rest = true, nil
			return
		}
		line := r.in[r.at:]
		if end := bytes.IndexByte(line, '\n'); end >= 0 {
			line = line[:end]
		}
		r.at += len(line) + 1
		r.indent = 0
		for r.indent < len(line) && line[r.indent] == ' ' {
			r.indent++
		}
		r.rest = line[r.indent:]
		if len(r.rest) > 0 && r.rest[0] != '#' {
			return
		}
	}
}

// block reads the mapping or sequence that the current line begins.
func (r *reader) block(indent, depth int) bool {
	if depth > maxDepth {
		return false
	}
	if dashed(r.rest) {
		return r.sequence(indent, depth)
	}
	return r.mapping(indent, depth)
}

func dashed(line []byte) bool { return len(line) > 1 && line[0] == '-' && line[1] == ' ' }

func (r *reader) sequence(indent, depth int) bool {
	r.out = append(r.out, '[')
	for first := true; !r.done && r.indent == indent && dashed(r.rest); first = false {
		if !first {
			r.out = append(r.out, ',')
		}
		r.rest = r.rest[2:]
		r.indent += 2
		if len(r.rest) == 0 || r.rest[0] == ' ' || r.rest[0] == '-' && dashed(r.rest) {
			return false
		}
		if _, _, isKey := splitKey(r.rest); isKey {
			if !r.mapping(indent+2, depth+1) {
				return false
			}
			continue
		}
		if !r.scalar(r.rest) {
			return false
		}
		r.next()
	}
	r.out = append(r.out, ']')
	return r.done || r.indent <= indent
}

func (r *reader) mapping(indent, depth int) bool {
	var seen [maxKeys][]byte
	n := 0
	r.out = append(r.out, '{')
	for ; !r.done && r.indent == indent && !dashed(r.rest); n++ {
		key, value, ok := splitKey(r.rest)
		if !ok || n == maxKeys {
			return false
		}
		for _, k := range seen[:n] {
			if bytes.Equal(k, key) {
				return false
			}
		}
		seen[n] = key
		if n > 0 {
			r.out = append(r.out, ',')
		}
		if key[0] == '"' {
			r.out = append(r.out, key...)
		} else {
			r.out = append(append(append(r.out, '"'), key...), '"')
		}
		r.out = append(r.out, ':')
		if len(value) > 0 {
			if !r.scalar(value) {
				return false
			}
			r.next()
			continue
		}
		r.next()
		child := r.indent
		if r.done || child < indent || child == indent && !dashed(r.rest) || !r.block(child, depth+1) {
			return false
		}
	}
	if n == 0 {
		return false
	}
	r.out = append(r.out, '}')
	return r.done || r.indent < indent || r.indent == indent && dashed(r.rest)
}

// splitKey takes "key: value" or "key:" apart. The key is plain, or a quoted
// string without escapes.
func splitKey(line []byte) (key, value []byte, ok bool) {
	end := 0
	if line[0] == '"' {
		close := bytes.IndexByte(line[1:], '"')
		if close < 0 {
			return nil, nil, false
		}
		end = close + 2
		if !simple(line[1 : end-1]) {
			return nil, nil, false
		}
	} else {
		end = bytes.IndexByte(line, ':')
		for end >= 0 && end+1 < len(line) && line[end+1] != ' ' {
			next := bytes.IndexByte(line[end+1:], ':')
			if next < 0 {
				return nil, nil, false
			}
			end += 1 + next
		}
		if end < 0 || !plain(line[:end]) {
			return nil, nil, false
		}
	}
	switch {
	case end >= len(line) || line[end] != ':':
		return nil, nil, false
	case end+1 == len(line):
		return line[:end], nil, true
	case line[end+1] != ' ' || end+2 == len(line) || line[end+2] == ' ':
		return nil, nil, false
	}
	return line[:end], line[end+2:], true
}

// simple reports whether a text means itself between JSON's quotes and YAML's.
func simple(s []byte) bool {
	for _, c := range s {
		if c < 0x20 || c > 0x7e || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// scalar writes a value that stands on one line.
func (r *reader) scalar(s []byte) bool {
	switch {
	case s[0] == '"':
		if len(s) < 2 || s[len(s)-1] != '"' || !simple(s[1:len(s)-1]) {
			return false
		}
		r.out = append(r.out, s...)
	case string(s) == "{}", string(s) == "[]", string(s) == "true", string(s) == "false", string(s) == "null", number(s):
		r.out = append(r.out, s...)
	case plain(s):
		r.out = append(append(append(r.out, '"'), s...), '"')
	default:
		return false
	}
	return true
}

// number is a decimal number that JSON and YAML read alike: no leading zeros,
// no exponent, no sign but minus.
func number(s []byte) bool {
	if len(s) > 0 && s[0] == '-' {
		s = s[1:]
	}
	whole := 0
	for whole < len(s) && digit(s[whole]) {
		whole++
	}
	if whole == 0 || whole > 15 || whole > 1 && s[0] == '0' {
		return false
	}
	if whole == len(s) {
		return true
	}
	if s[whole] != '.' || whole+1 == len(s) || len(s) > 20 {
		return false
	}
	for _, c := range s[whole+1:] {
		if !digit(c) {
			return false
		}
	}
	return true
}
