// Package labels checks the keys and values of labels and taints that intents write, and
// the selectors made of them.
//
// It judges values; package fleet knows where they are written and reports them with
// file and line. Each problem states what to write instead.
//
// Pure functions; safe for concurrent use.
package labels

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/fleetbroker/fleetbroker/internal/api/podselector"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/fleet/domains"
)

var labelValue = regexp.MustCompile(`^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$`)

// Value reports whether a text can be the value of a label or taint.
func Value(v string) bool { return len(v) <= 63 && labelValue.MatchString(v) }

// BadKey says why a key of a label or taint is none, "" when it is one.
func BadKey(key string) string {
	if list := validation.IsQualifiedName(key); len(list) > 0 {
		return list[0]
	}
	return ""
}

// Ours reports keys that the daemon and Liqo alone write on nodes.
func Ours(key string) bool {
	domain, _, ok := strings.Cut(key, "/")
	return ok && (domain == "fleetbroker.io" || strings.HasSuffix(domain, ".fleetbroker.io") || domain == "liqo.io" || strings.HasSuffix(domain, ".liqo.io"))
}

// systemDomains are those under which Kubernetes, Liqo's and the vendors' tools
// describe nodes, subdomains included: operators' selectors go by them.
var systemDomains = []string{"kubernetes.io", "k8s.io", "fluidos.eu", "nvidia.com", "amd.com", "intel.com", "openshift.io", "kwok.x-k8s.io"}

// System reports keys by which others know what a node is.
func System(key string) bool {
	domain, _, prefixed := strings.Cut(key, "/")
	return prefixed && slices.ContainsFunc(systemDomains, func(d string) bool { return domain == d || strings.HasSuffix(domain, "."+d) })
}

// Lengths are how many entries the lists of a selector have and may have, by their place
// below it; nil has none.
func Lengths(s *v1alpha1.LabelSelector) []Length {
	if s == nil {
		return nil
	}
	out := []Length{{[]any{"matchLabels"}, len(s.MatchLabels), v1alpha1.MaxLabels}, {[]any{"matchExpressions"}, len(s.MatchExpressions), v1alpha1.MaxExpressions}}
	for i, e := range s.MatchExpressions {
		out = append(out, Length{[]any{"matchExpressions", i, "values"}, len(e.Values), v1alpha1.MaxValues})
	}
	return out
}

// MostBytes is how many bytes the selectors of an intent's namespaces may have together: each
// of its contracts has them all.
const MostBytes = 16 << 10

// Bytes are those of a selector's keys and values; nil has none.
func Bytes(s *v1alpha1.LabelSelector) (n int) {
	if s == nil {
		return 0
	}
	for k, v := range s.MatchLabels {
		n += len(k) + len(v)
	}
	for _, e := range s.MatchExpressions {
		n += len(e.Key) + len(e.Operator)
		for _, v := range e.Values {
			n += len(v)
		}
	}
	return n
}

// Length is how long a list is, and may be.
type Length struct {
	At      []any
	N, Most int
}

// Expressions are the problems of a selector's matchExpressions, below the selector.
func Expressions(s *v1alpha1.LabelSelector) []domains.Problem {
	if s == nil {
		return nil
	}
	var out []domains.Problem
	for i, e := range s.MatchExpressions {
		out = append(out, expression([]any{"matchExpressions", i}, e)...)
	}
	if len(out) > 0 {
		return out
	}
	for _, key := range podselector.Contradictions(s) {
		i := slices.IndexFunc(s.MatchExpressions, func(e v1alpha1.LabelExpression) bool { return e.Key == key })
		out = append(out, domains.Problem{At: []any{"matchExpressions", i}, Text: fmt.Sprintf(
			": no pod can have a label %s that meets all that the selector demands of it; take out what contradicts", key)})
	}
	return out
}

func expression(at []any, e v1alpha1.LabelExpression) (out []domains.Problem) {
	problem := func(field, text string, args ...any) {
		out = append(out, domains.Problem{At: append(slices.Clone(at), field), Text: fmt.Sprintf(text, args...)})
	}
	if why := BadKey(e.Key); e.Key == "" {
		problem("key", " is missing: write the key of a label of the pods")
	} else if why != "" {
		problem("key", ": %q is not a label key: %s", e.Key, why)
	}
	switch {
	case e.Operator == "":
		problem("operator", " is missing; write one of %s", strings.Join(podselector.Operators(), ", "))
	case !slices.Contains(podselector.Operators(), e.Operator):
		problem("operator", "%s", domains.Unknown(e.Operator, podselector.Operators()))
	case (e.Operator == podselector.In || e.Operator == podselector.NotIn) && len(e.Values) == 0:
		problem("values", " is missing: %s needs the values to compare with, such as values: [gpu]", e.Operator)
	case (e.Operator == podselector.Exists || e.Operator == podselector.DoesNotExist) && len(e.Values) > 0:
		problem("values", ": %s takes none; take them out, or write operator: In", e.Operator)
	}
	for i, v := range e.Values {
		if !Value(v) {
			out = append(out, domains.Problem{At: append(slices.Clone(at), "values", i), Text: fmt.Sprintf(": %q is not a label value", v)})
		}
	}
	return out
}
