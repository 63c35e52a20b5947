package labels_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/fleet/labels"
)

// Each mistake of a selector is shown where it is, with what to write instead.
func TestExpressions(t *testing.T) {
	e := func(key, operator string, values ...string) v1alpha1.LabelExpression {
		return v1alpha1.LabelExpression{Key: key, Operator: operator, Values: values}
	}
	for name, tc := range map[string]struct {
		in   []v1alpha1.LabelExpression
		want string
	}{
		"right":             {[]v1alpha1.LabelExpression{e("app", "In", "a", ""), e("example.org/tier", "NotIn", "b"), e("c", "Exists"), e("d", "DoesNotExist")}, ""},
		"no key":            {[]v1alpha1.LabelExpression{e("", "Exists")}, "[matchExpressions 0 key] is missing: write the key of a label of the pods"},
		"not a key":         {[]v1alpha1.LabelExpression{e("c", "Exists"), e("a b", "Exists")}, `[matchExpressions 1 key]: "a b" is not a label key: `},
		"no operator":       {[]v1alpha1.LabelExpression{e("a", "")}, "[matchExpressions 0 operator] is missing; write one of In, NotIn, Exists, DoesNotExist"},
		"case":              {[]v1alpha1.LabelExpression{e("a", "notin", "x")}, `[matchExpressions 0 operator]: unknown value "notin" (did you mean "NotIn"?)`},
		"unknown":           {[]v1alpha1.LabelExpression{e("a", "Evil")}, `[matchExpressions 0 operator]: unknown value "Evil"; write one of In, NotIn, Exists, DoesNotExist`},
		"no values":         {[]v1alpha1.LabelExpression{e("a", "NotIn")}, "[matchExpressions 0 values] is missing: NotIn needs the values to compare with"},
		"values":            {[]v1alpha1.LabelExpression{e("a", "Exists", "x")}, "[matchExpressions 0 values]: Exists takes none; take them out, or write operator: In"},
		"not a value":       {[]v1alpha1.LabelExpression{e("a", "In", "x", "y|z")}, `[matchExpressions 0 values 1]: "y|z" is not a label value`},
		"no pod":            {[]v1alpha1.LabelExpression{e("b", "Exists"), e("a", "In", "x"), e("a", "NotIn", "x", "y")}, "[matchExpressions 1]: no pod can have a label a that meets all"},
		"no pod, by labels": {[]v1alpha1.LabelExpression{e("app", "DoesNotExist")}, "[matchExpressions 0]: no pod can have a label app"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &v1alpha1.LabelSelector{MatchExpressions: tc.in}
			if strings.HasSuffix(name, "by labels") {
				s.MatchLabels = map[string]string{"app": "x"}
			}
			var got strings.Builder
			for _, p := range labels.Expressions(s) {
				fmt.Fprintf(&got, "%v%s", p.At, p.Text)
			}
			if !strings.HasPrefix(got.String(), tc.want) || tc.want == "" && got.Len() > 0 {
				t.Errorf("got %q, want %q", got.String(), tc.want)
			}
		})
	}
	if labels.Expressions(nil) != nil || labels.Lengths(nil) != nil {
		t.Error("a selector that is not there has problems")
	}
}
