package strictyaml

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	yaml "go.yaml.in/yaml/v3"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// kind is what YAML 1.1 makes of a scalar.
type kind uint8

const (
	kText kind = iota
	kNull
	kBool
	kInt
	kFloat
	kOddNumber // a number that does not mean what it looks like: 010, 0x1f, 1_000, 1e3, .5, .inf
)

// YAML 1.1's booleans and nulls, as Kubernetes' YAML resolves plain scalars.
var words = map[string]kind{
	"": kNull, "~": kNull, "null": kNull, "Null": kNull, "NULL": kNull,
	"y": kBool, "Y": kBool, "yes": kBool, "Yes": kBool, "YES": kBool, "true": kBool, "True": kBool, "TRUE": kBool, "on": kBool, "On": kBool, "ON": kBool,
	"n": kBool, "N": kBool, "no": kBool, "No": kBool, "NO": kBool, "false": kBool, "False": kBool, "FALSE": kBool, "off": kBool, "Off": kBool, "OFF": kBool,
}

var (
	plainInt   = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)
	plainFloat = regexp.MustCompile(`^-?(0|[1-9][0-9]*)\.[0-9]+$`)
	oddNumber  = regexp.MustCompile(`^[-+]?(0b[01_]+|0o?[0-7_]+|0x[0-9a-fA-F_]+|[0-9][0-9_]*(\.[0-9_]*)?([eE][-+]?[0-9]+)?|\.[0-9_]+([eE][-+]?[0-9]+)?|\.(inf|Inf|INF))$|^\.(nan|NaN|NAN)$`)
)

func classify(n *yaml.Node) kind {
	if n.Style != 0 { // quoted, a block, or tagged !!str
		return kText
	}
	return classifyPlain(n.Value)
}

func classifyPlain(v string) kind {
	if len(v) <= 5 {
		if k, ok := words[v]; ok {
			return k
		}
	}
	switch c := v[0]; {
	case c >= '0' && c <= '9', c == '-', c == '+', c == '.':
		switch {
		case plainInt.MatchString(v):
			return kInt
		case plainFloat.MatchString(v):
			return kFloat
		case oddNumber.MatchString(v):
			return kOddNumber
		}
	}
	return kText
}

func isNull(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.Style == 0 && words[n.Value] == kNull
}

// accepted says which kinds of scalar a form takes.
var accepted = map[form]map[kind]bool{
	fText:         {kText: true},
	fBool:         {kBool: true},
	fInt:          {kInt: true},
	fFloat:        {kInt: true, kFloat: true},
	fScalar:       {kText: true},
	fQuantity:     {kText: true, kInt: true},
	fDecimal:      {kText: true, kInt: true, kFloat: true},
	fObjectOrText: {kText: true, kInt: true},
	fAny:          {kText: true, kBool: true, kInt: true, kFloat: true, kNull: true},
}

// scalar writes a scalar's JSON, or says why it is not what is due.
func (w *walker) scalar(n *yaml.Node, s *shape) {
	if s.form == fListOrOne && s.elem.form == fText { // a list of one, written without brackets
		w.out = append(w.out, '[')
		w.scalar(n, s.elem)
		w.out = append(w.out, ']')
		return
	}
	k := classify(n)
	if w.quiet && (k == kBool || k == kOddNumber) {
		w.resolved(n)
		return
	}
	if !accepted[s.form][k] {
		w.problem(n, "%s", wrongKind(n, k, s, w.path))
		return
	}
	if s.parse != nil && len(n.Value) > maxTyped {
		w.problem(n, "%s: a value of %d bytes; at most %d are read here", w.path, len(n.Value), maxTyped)
		return
	}
	at := len(w.out)
	switch k {
	case kNull:
		w.out = append(w.out, "null"...)
	case kBool:
		if c := n.Value[0] | 0x20; c == 'y' || c == 't' || c == 'o' && (n.Value[1]|0x20) == 'n' {
			w.out = append(w.out, "true"...)
		} else {
			w.out = append(w.out, "false"...)
		}
	case kInt, kFloat:
		if s.form == fDecimal { // as it is written: JSON's numbers are binary fractions
			w.out = appendString(w.out, n.Value)
			break
		}
		if n.Value == "-0" {
			w.out = append(w.out, '0')
			break
		}
		w.out = append(w.out, n.Value...)
	default:
		w.out = appendString(w.out, n.Value)
	}
	if w.deep && s.parse != nil {
		if err := s.parse(w.out[at:]); err != nil {
			w.problem(n, "%s: %s", w.path, reason(err))
		}
	}
}

// resolved writes a plain scalar as the parser itself reads it: of a document
// that another program reads nothing may change its meaning.
func (w *walker) resolved(n *yaml.Node) {
	var v any
	err := n.Decode(&v)
	if v == 0.0 { // -.0 too, which JSON's readers tell apart
		v = 0
	}
	text, jsonErr := json.Marshal(v)
	if err = errors.Join(err, jsonErr); err != nil {
		w.problem(n, "%s: %s cannot be written as JSON", w.path, clip(n.Value))
		return
	}
	w.out = append(w.out, text...)
}

// yesOrNo are fields that a boolean is written to, with the words that they have for it.
var yesOrNo = map[string]string{"yields": "booked, or never", "preempts": "lower, or never"}

// wrongKind is the message for a scalar of the wrong kind, with what to write.
func wrongKind(n *yaml.Node, k kind, s *shape, p path) string {
	wantsText := s.form == fText || s.form == fScalar || s.form == fQuantity || s.form == fObjectOrText || s.form == fDecimal
	last, value := p.last(), clip(n.Value)
	switch {
	case wantsText && k == kBool && yesOrNo[last] != "":
		return fmt.Sprintf("%s: %s is a boolean; write %s", p, value, yesOrNo[last])
	case wantsText && k == kBool && last == v1alpha1.GPU:
		return fmt.Sprintf("%s: %s is a boolean; %s", p, value, s.some(last))
	case wantsText && k == kBool && s.form != fText:
		if s.parse != nil {
			if err := s.parse(appendString(nil, n.Value)); err != nil {
				return fmt.Sprintf("%s: %s", p, reason(err))
			}
		}
		return fmt.Sprintf("%s: %s is a boolean; %s", p, value, s.want())
	case wantsText && k == kBool:
		return fmt.Sprintf("%s: %s is a boolean in YAML; write \"%s\" in quotes", last, value, value)
	case wantsText && k == kNull:
		return fmt.Sprintf("%s: %s is nothing in YAML; write \"%s\" in quotes", last, value, value)
	case s.form == fQuantity && k == kFloat && s.parse == nil:
		return fraction(last, value)
	case wantsText && (k == kInt || k == kFloat):
		if s.parse != nil { // quotes alone may not do: a size or a duration has a unit
			if err := s.parse(appendString(nil, n.Value)); err != nil {
				return fmt.Sprintf("%s: %s", p, reason(err))
			}
		}
		return fmt.Sprintf("%s: %s is a number in YAML; write \"%s\" in quotes", last, value, value)
	case k == kOddNumber && s.form == fText:
		return fmt.Sprintf("%s: %s is a number in YAML; write \"%s\" in quotes", last, value, value)
	case k == kOddNumber && s.form == fDecimal:
		return fmt.Sprintf("%s: %s is not a plain decimal number; write its digits, such as 12.5 or \"12.50\"", last, value)
	case k == kOddNumber && s.parse != nil && s.form == fScalar:
		if err := s.parse(appendString(nil, n.Value)); err != nil {
			return fmt.Sprintf("%s: %s", p, reason(err))
		}
		return fmt.Sprintf("%s: %s is a number in YAML; write \"%s\" in quotes", last, value, value)
	case k == kOddNumber:
		return fmt.Sprintf("%s: %s is not what it looks like in YAML (an octal, hexadecimal or floating number); %s", last, value, oddly(n.Value, s))
	case s.form == fBool && k == kText:
		return fmt.Sprintf("%s: %q is text; write true or false without quotes", p, value)
	case s.form == fInt && k == kFloat && strings.HasSuffix(p.String(), ".gpu.count"):
		return fmt.Sprintf("%s: %s is not a whole number; write share: \"%s\" for a part of one GPU", p, value, value)
	case s.form == fInt && k == kFloat:
		return fmt.Sprintf("%s: %s is not a whole number", p, value)
	case s.form == fObject && k == kText && slices.Equal(s.required, []string{"name"}):
		return fmt.Sprintf("%s: %q is text; write {name: %s}", p, value, value)
	case s.form == fInt && k == kText && strings.HasSuffix(last, "Gi") && strings.Trim(strings.TrimSuffix(value, "Gi"), "0123456789") == "":
		return fmt.Sprintf("%s: %q has a unit, and the field counts GiB; write %s", p, value, strings.TrimSuffix(value, "Gi"))
	case s.form == fInt && k == kText:
		return fmt.Sprintf("%s: %q is text; write a whole number without quotes", p, value)
	}
	if s.form == fList && s.elem != nil && s.elem.form == fObject {
		return fmt.Sprintf("%s: %q is text; write a list of maps: [{%s: ...}]", p, value, strings.Join(slices.Concat(s.elem.required, s.elem.names)[:max(len(s.elem.required), 1)], ": ..., "))
	}
	if s.form == fList {
		return fmt.Sprintf("%s: %q is not expected here; a list is due: write [%s]", p, value, value)
	}
	return fmt.Sprintf("%s: %q is not expected here; %s", p, value, s.want())
}

// some is what to write where the entry of a map has no value, or none that is any.
func (s *shape) some(name string) string {
	switch {
	case name == v1alpha1.GPU && s.form != fText:
		return `write how many, and which if only some will do, such as gpu: 1 or gpu: H100:1; leave gpu out for none`
	case name == "perPod":
		return "write what the biggest pod asks for, such as {gpu: 1, cpu: 8}, or leave it out"
	case s.form == fText:
		return `write "" for an empty one, or leave the key out`
	}
	return "write one, or leave the key out"
}

func (s *shape) want() string {
	switch s.form {
	case fObject:
		return "a map is due: " + list(s.names)
	case fMap:
		return "a map is due"
	case fList:
		return "a list is due"
	case fListOrOne:
		return "one entry or a list of them is due"
	case fBool:
		return "true or false is due"
	case fInt:
		return "a whole number is due"
	case fFloat:
		return "a number is due"
	case fQuantity:
		return "a quantity such as \"16\" or 128Gi is due"
	case fObjectOrText:
		return "a value or a map is due: " + list(s.names)
	}
	return "text is due"
}

// reason is an error in the words meant for people: the JSON decoder's own are
// about Go.
func reason(err error) string {
	var te *json.UnmarshalTypeError
	if errors.As(err, &te) {
		return te.Value + " is out of range; write a smaller one"
	}
	return clip(strings.TrimPrefix(err.Error(), "json: "))
}

const hexDigits = "0123456789abcdef"

// appendString appends s as a JSON string. (json.Marshal of a string allocates
// and escapes for HTML, and this is the hot path.)
func appendString(out []byte, s string) []byte {
	out = append(out, '"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			out = append(out, '\\', c)
		case c < 0x20:
			out = append(out, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		default:
			out = append(out, c)
		}
	}
	return append(out, '"')
}

// longKey reports whether a key passes its bound. Nothing is written for one that
// is far from it either way.
func longKey(key string) bool {
	const escaped = len(`\u0000`)
	if len(key) > maxKey || len(key)*escaped+len(`""`) <= maxKey {
		return len(key) > maxKey
	}
	return len(appendString(nil, key)) > maxKey
}
