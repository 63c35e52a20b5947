package strictjson

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of every document.
const (
	// MaxDepth of objects and lists in each other: ours have at most ten.
	MaxDepth = 32
	// MaxString in bytes, as decoded.
	MaxString = 16 << 10
	// MaxNumber in characters: an int64 has twenty.
	MaxNumber = 32
	// MaxElements of one list that are objects or lists, and MaxListed of all lists: a decoder
	// makes a struct of each, whatever it holds.
	MaxElements = 50_000
	MaxListed   = 400_000
	// MaxFlavors of one list of that name: no struct of ours is larger, and a report has at
	// most half as many.
	MaxFlavors = 4_000
)

// ErrRefused is what all refusals of Check wrap.
var ErrRefused = errors.New("refused")

// Decode checks the document and fills the value that into points to.
func Decode(data []byte, into any) error {
	if err := Check(data); err != nil {
		return err
	}
	return Words(json.Unmarshal(data, into))
}

// Words is an error of encoding/json as people read it: which field has what, and what it
// wants, where that is known. Other errors stay as they are, and nil stays nil.
func Words(err error) error {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return err
	}
	field := wrong.Field
	if field == "" {
		field = "the document"
	}
	is, _, _ := strings.Cut(wrong.Value, " ") // "number 1.5" has the value too
	return fmt.Errorf("%.120s: it is %s; write %s", field, cmp.Or(kinds[is], is), wants(wrong.Type, is))
}

// kinds are the words of encoding/json for what a document has.
var kinds = map[string]string{"string": "a string", "number": "a number", "bool": "true or false", "array": "a list", "object": "an object"}

// wants are the words for what a Go type is read from; is what the document has.
func wants(t reflect.Type, is string) string {
	text := "another value"
	switch t.Kind() {
	case reflect.Bool:
		text = "true or false"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		text = "a whole number"
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		text = "a whole number from 0"
	case reflect.Float32, reflect.Float64:
		text = "a number"
	case reflect.String:
		return "a string, in quotes"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Map, reflect.Struct:
		return "an object"
	}
	if is == "string" {
		text += ", without quotes"
	}
	return text
}

// Check says what a document does that no honest sender's does.
func Check(data []byte) error {
	if !utf8.Valid(data) {
		return fmt.Errorf("%w: the document is not UTF-8", ErrRefused)
	}
	if !json.Valid(data) {
		var none any
		err := json.Unmarshal(data, &none) // says where
		return fmt.Errorf("%w: not JSON: %.120w", ErrRefused, err)
	}
	s := &scanner{data: data}
	return s.run()
}

// freeKeys are fields whose objects have keys that are people's own, where two
// may differ in nothing but case.
var freeKeys = map[string]bool{"labels": true, "annotations": true, "nodeSelector": true, "podSelector": true, "matchLabels": true}

// level is an object or list that is open.
type level struct {
	object bool
	free   bool            // keys may differ in case alone
	keys   map[string]bool // seen in the object, folded unless free
	key    string          // the last one, whose value is read
	// elements of a list so far that are objects or lists, and how many it may have.
	elements, most int
}

// scanner walks a document that is known to be valid JSON.
type scanner struct {
	data []byte
	at   int
	open []level
	// listed are the objects and lists that are elements of lists.
	listed int
}

func (s *scanner) run() error {
	for s.at < len(s.data) {
		switch c := s.data[s.at]; {
		case c == '{' || c == '[':
			if err := s.begin(c == '{'); err != nil {
				return err
			}
		case c == '}' || c == ']':
			s.open = s.open[:len(s.open)-1]
			s.at++
		case c == '"':
			if err := s.text(); err != nil {
				return err
			}
		case c == '-' || (c >= '0' && c <= '9'):
			if err := s.number(); err != nil {
				return err
			}
		default: // white space, punctuation, true, false, null
			s.at++
		}
	}
	return nil
}

// begin opens an object or a list.
func (s *scanner) begin(object bool) error {
	n := len(s.open)
	if n == MaxDepth {
		return s.refuse("nested deeper than %d levels", MaxDepth)
	}
	l := level{object: object, most: MaxElements}
	switch {
	case n > 0 && s.open[n-1].object:
		key := s.open[n-1].key
		if l.free = freeKeys[key]; strings.EqualFold(key, "flavors") {
			l.most = MaxFlavors
		}
	case n > 0:
		in := &s.open[n-1]
		if in.elements++; in.elements > in.most {
			return s.refuse("a list of more than %d elements", in.most)
		}
		if s.listed++; s.listed > MaxListed {
			return s.refuse("lists of more than %d elements together", MaxListed)
		}
	}
	s.open = append(s.open, l)
	s.at++
	return nil
}

func (s *scanner) refuse(format string, args ...any) error {
	return fmt.Errorf("%w: at byte %d: %s", ErrRefused, s.at, fmt.Sprintf(format, args...))
}

func (s *scanner) number() error {
	end := s.at
	for end < len(s.data) {
		c := s.data[end]
		if (c < '0' || c > '9') && c != '.' && c != '-' && c != '+' && c != 'e' && c != 'E' {
			break
		}
		end++
	}
	if end-s.at > MaxNumber {
		return s.refuse("a number of %d characters, at most %d", end-s.at, MaxNumber)
	}
	s.at = end
	return nil
}

// text reads a string, which is a key when a colon follows.
func (s *scanner) text() error {
	end, escaped := s.at+1, false
	for s.data[end] != '"' {
		if s.data[end] == '\\' {
			escaped = true
			end++
		}
		end++
	}
	raw := s.data[s.at+1 : end]
	if escaped {
		var plain string
		if err := json.Unmarshal(s.data[s.at:end+1], &plain); err != nil {
			return s.refuse("%v", err) // cannot be: the document is valid
		}
		raw = []byte(plain)
	}
	if len(raw) > MaxString {
		return s.refuse("a string of %d bytes, at most %d", len(raw), MaxString)
	}
	if err := s.harmless(raw); err != nil {
		return err
	}
	next := end + 1
	for next < len(s.data) && isSpace(s.data[next]) {
		next++
	}
	if next < len(s.data) && s.data[next] == ':' {
		if err := s.key(string(raw)); err != nil {
			return err
		}
	}
	s.at = end + 1
	return nil
}

// harmless refuses characters that a reader does not see, or that move what he
// sees: controls but white space, formats (bidirectional ones, zero width),
// private use, halves of a surrogate pair and what stands for bytes lost.
func (s *scanner) harmless(text []byte) error {
	for i := 0; i < len(text); {
		if c := text[i]; c < utf8.RuneSelf {
			if (c < ' ' && c != '\n' && c != '\t' && c != '\r') || c == 0x7f {
				return s.refuse("a string holds the control character %U", rune(c))
			}
			i++
			continue
		}
		r, size := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp, unicode.Noncharacter_Code_Point) {
			return s.refuse("a string holds %U, which nobody sees or which is no character", r)
		}
		i += size
	}
	return nil
}

// key refuses one that stands twice, or that a decoder which folds case would
// take for another.
func (s *scanner) key(name string) error {
	l := &s.open[len(s.open)-1]
	folded := []byte(name)
	for i, c := range folded {
		if c >= utf8.RuneSelf {
			return s.refuse("the key %+.60q is not plain ASCII", name)
		}
		if !l.free && c >= 'A' && c <= 'Z' {
			folded[i] = c - 'A' + 'a'
		}
	}
	if l.keys[string(folded)] {
		return s.refuse("the key %+.60q is there twice", name)
	}
	if l.keys == nil {
		l.keys = map[string]bool{}
	}
	l.keys[string(folded)], l.key = true, name
	return nil
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }
