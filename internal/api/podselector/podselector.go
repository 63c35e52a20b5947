package podselector

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Operators of an expression.
const (
	In           = "In"
	NotIn        = "NotIn"
	Exists       = "Exists"
	DoesNotExist = "DoesNotExist"
)

// Operators are all of them, as they are listed to people.
func Operators() []string { return []string{In, NotIn, Exists, DoesNotExist} }

// nothing is a term that holds for no labels: no label has an empty key.
const nothing = "="

// anyValue is the value that stands for all.
const anyValue = "*"

// Annotation is a selector in terms, "" where it selects all pods.
func Annotation(s *v1alpha1.LabelSelector) string {
	if s == nil {
		return ""
	}
	var out []string
	for _, k := range slices.Sorted(maps.Keys(s.MatchLabels)) {
		out = append(out, k+"="+s.MatchLabels[k])
	}
	var more []string
	for _, e := range s.MatchExpressions {
		more = append(more, term(e))
	}
	slices.Sort(more)
	return strings.Join(append(out, slices.Compact(more)...), ",")
}

func term(e v1alpha1.LabelExpression) string {
	values := strings.Join(slices.Compact(slices.Sorted(slices.Values(e.Values))), "|")
	switch {
	case e.Operator == In && len(e.Values) > 0:
		return e.Key + "=" + values
	case e.Operator == NotIn && len(e.Values) > 0:
		return "!" + e.Key + "=" + values
	case e.Operator == Exists:
		return e.Key + "=" + anyValue
	case e.Operator == DoesNotExist:
		return "!" + e.Key + "=" + anyValue
	}
	return nothing
}

// Matches reports whether all terms of an annotation hold for labels. A term without "="
// is an error where its label is there and all other terms hold.
func Matches(annotation string, labels map[string]string) (bool, error) {
	var broken error
	for term := range strings.SplitSeq(annotation, ",") {
		if term == "" {
			continue
		}
		parts := strings.Split(term, "=")
		value, has := labels[strings.ReplaceAll(parts[0], "!", "")]
		if has && len(parts) < 2 {
			broken = fmt.Errorf("%q has no value; write label=value", term)
			continue
		}
		if holds := has && (parts[1] == anyValue || slices.Contains(strings.Split(parts[1], "|"), value)); holds == strings.HasPrefix(term, "!") {
			return false, nil
		}
	}
	return broken == nil, broken
}

// wanted is what a selector demands of one label.
type wanted struct {
	absent, present bool
	among           []string // one of them; nil: any
	not             []string
}

func (w *wanted) oneOf(values []string) {
	w.present = true
	if w.among == nil {
		w.among = slices.Clone(values)
		return
	}
	w.among = slices.DeleteFunc(w.among, func(v string) bool { return !slices.Contains(values, v) })
}

// allows reports whether a label may have a value.
func (w *wanted) allows(value string) bool {
	return !w.absent && (w.among == nil || slices.Contains(w.among, value)) && !slices.Contains(w.not, value)
}

// wants are a selector's demands by key.
func wants(s *v1alpha1.LabelSelector) map[string]*wanted {
	out := map[string]*wanted{}
	if s == nil {
		return out
	}
	of := func(key string) *wanted {
		if out[key] == nil {
			out[key] = &wanted{}
		}
		return out[key]
	}
	for k, v := range s.MatchLabels {
		of(k).oneOf([]string{v})
	}
	for _, e := range s.MatchExpressions {
		switch w := of(e.Key); e.Operator {
		case In:
			w.oneOf(e.Values)
		case NotIn:
			w.not = append(w.not, e.Values...)
		case Exists:
			w.present = true
		case DoesNotExist:
			w.absent = true
		}
	}
	return out
}

// Contradictions are the keys of labels of which a selector demands what no pod can have,
// sorted.
func Contradictions(s *v1alpha1.LabelSelector) []string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(wants(s))) {
		w := wants(s)[key]
		if w.present && (w.absent || w.among != nil && !slices.ContainsFunc(w.among, w.allows)) {
			out = append(out, key)
		}
	}
	return out
}

// Labels are labels that a selector chooses, with one that names what they are of: the
// first of the keys that the selector lets have this name. The selector has no
// contradictions.
func Labels(s *v1alpha1.LabelSelector, name string, keys ...string) map[string]string {
	out, demands := map[string]string{}, wants(s)
	for key, w := range demands {
		if !w.present {
			continue
		}
		out[key] = "true"
		if i := slices.IndexFunc(w.among, w.allows); i >= 0 {
			out[key] = w.among[i]
		}
		for w.among == nil && !w.allows(out[key]) {
			out[key] += "-1"
		}
	}
	for _, key := range keys {
		if w := demands[key]; w == nil || w.allows(name) {
			out[key] = name
			break
		}
	}
	return out
}
