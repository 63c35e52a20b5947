package podselector_test

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	"github.com/fleetbroker/fleetbroker/internal/api/podselector"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

var (
	keys   = rapid.SampledFrom([]string{"app", "tier", "example.org/app"})
	values = rapid.SampledFrom([]string{"", "a", "b", "c", "true"})
)

// drawn is a selector without mistakes.
func drawn(t *rapid.T) *v1alpha1.LabelSelector {
	s := &v1alpha1.LabelSelector{MatchLabels: rapid.MapOfN(keys, values, 0, 2).Draw(t, "labels")}
	for range rapid.IntRange(0, 3).Draw(t, "expressions") {
		e := v1alpha1.LabelExpression{Key: keys.Draw(t, "key"), Operator: rapid.SampledFrom(podselector.Operators()).Draw(t, "operator")}
		if e.Operator == podselector.In || e.Operator == podselector.NotIn {
			e.Values = rapid.SliceOfN(values, 1, 3).Draw(t, "values")
		}
		s.MatchExpressions = append(s.MatchExpressions, e)
	}
	return s
}

func kubernetes(t rapid.TB, s *v1alpha1.LabelSelector) k8slabels.Selector {
	t.Helper()
	as := &metav1.LabelSelector{MatchLabels: s.MatchLabels}
	for _, e := range s.MatchExpressions {
		as.MatchExpressions = append(as.MatchExpressions, metav1.LabelSelectorRequirement{Key: e.Key, Operator: metav1.LabelSelectorOperator(e.Operator), Values: e.Values})
	}
	selector, err := metav1.LabelSelectorAsSelector(as)
	if err != nil {
		t.Fatal(err)
	}
	return selector
}

// Terms choose the pods that Kubernetes' own selector chooses; labels are found for each
// selector that any pod can meet, and for no other.
func TestTermsAreTheSelector(t *testing.T) {
	chosen, impossible := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		s := drawn(t)
		want, text := kubernetes(t, s), podselector.Annotation(s)
		for range 8 {
			pod := rapid.MapOfN(keys, values, 0, 3).Draw(t, "pod")
			got, err := podselector.Matches(text, pod)
			if err != nil || got != want.Matches(k8slabels.Set(pod)) {
				t.Fatalf("%q of %v: %t, %v", text, pod, got, err)
			}
			if got && len(podselector.Contradictions(s)) > 0 {
				t.Fatalf("%q is met by %v, and has contradictions: %v", text, pod, podselector.Contradictions(s))
			}
		}
		if len(podselector.Contradictions(s)) > 0 {
			impossible++
			return
		}
		labels := podselector.Labels(s, "train", "app", "intent")
		if !want.Matches(k8slabels.Set(labels)) {
			t.Fatalf("%q does not choose %v", text, labels)
		}
		if labels["app"] != "train" && labels["intent"] != "train" {
			t.Fatalf("%v do not name what they are of", labels)
		}
		chosen++
	})
	if chosen == 0 || impossible == 0 {
		t.Errorf("%d selectors with labels, %d without", chosen, impossible)
	}
}

func TestAnnotation(t *testing.T) {
	e := func(key, operator string, values ...string) v1alpha1.LabelExpression {
		return v1alpha1.LabelExpression{Key: key, Operator: operator, Values: values}
	}
	for name, tc := range map[string]struct {
		in   *v1alpha1.LabelSelector
		want string
	}{
		"none":              {nil, ""},
		"all":               {&v1alpha1.LabelSelector{}, ""},
		"labels":            {&v1alpha1.LabelSelector{MatchLabels: map[string]string{"b": "", "a": "x"}}, "a=x,b="},
		"values in order":   {&v1alpha1.LabelSelector{MatchExpressions: []v1alpha1.LabelExpression{e("z", "In", "y", "x", "y"), e("a", "NotIn", "", "x")}}, "!a=|x,z=x|y"},
		"presence":          {&v1alpha1.LabelSelector{MatchExpressions: []v1alpha1.LabelExpression{e("a", "Exists"), e("b", "DoesNotExist"), e("a", "Exists")}}, "!b=*,a=*"},
		"no such operator":  {&v1alpha1.LabelSelector{MatchExpressions: []v1alpha1.LabelExpression{e("a", "Gt", "1")}}, "="},
		"nothing to choose": {&v1alpha1.LabelSelector{MatchExpressions: []v1alpha1.LabelExpression{e("a", "In"), e("a", "NotIn")}}, "="},
	} {
		got := podselector.Annotation(tc.in)
		if got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
		if is, err := podselector.Matches(got, map[string]string{"a": "1"}); err != nil || is && tc.want == "=" {
			t.Errorf("%s: %t, %v", name, is, err)
		}
	}
	if got := podselector.Contradictions(&v1alpha1.LabelSelector{MatchLabels: map[string]string{"a": "x"}, MatchExpressions: []v1alpha1.LabelExpression{e("b", "In", "x"), e("b", "DoesNotExist"), e("a", "NotIn", "x")}}); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("contradictions of %v", got)
	}
}
