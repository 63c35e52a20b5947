package rule

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/cel/environment"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// policy is a MutatingAdmissionPolicy, as far as it is evaluated here.
type policy struct {
	variables []named
	programs  map[string]cel.Program
}

type named struct{ Name, Expression string }

func load(t *testing.T, file string) *policy {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var o struct {
		Spec struct{ MatchConditions, Variables []named }
	}
	first, _, _ := strings.Cut(string(text), "\n---\n")
	if err := yaml.Unmarshal([]byte(first), &o); err != nil || len(o.Spec.Variables) == 0 {
		t.Fatalf("%s: %v, %d variables", file, err, len(o.Spec.Variables))
	}
	env, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).Env(environment.StoredExpressions)
	if err != nil {
		t.Fatal(err)
	}
	if env, err = env.Extend(cel.Variable("object", cel.DynType), cel.Variable("oldObject", cel.DynType), cel.Variable("namespaceObject", cel.DynType), cel.Variable("request", cel.DynType), cel.Variable("variables", cel.DynType)); err != nil {
		t.Fatal(err)
	}
	p := &policy{variables: append(o.Spec.MatchConditions, o.Spec.Variables...), programs: map[string]cel.Program{}}
	for _, v := range p.variables {
		ast, issues := env.Compile(v.Expression)
		if issues.Err() != nil {
			t.Fatalf("%s: %v", v.Name, issues.Err())
		}
		if p.programs[v.Name], err = env.Program(ast); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// eval gives the values of conditions and variables, by name.
func (p *policy) eval(with map[string]any) (map[string]ref.Val, error) {
	values := map[string]ref.Val{}
	for _, v := range p.variables {
		with["variables"] = values
		out, _, err := p.programs[v.Name].Eval(with)
		if err != nil {
			return values, fmt.Errorf("%s: %w", v.Name, err)
		}
		values[v.Name] = out
		if out == types.False {
			return values, nil
		}
	}
	return values, nil
}

func object(t rapid.TB, of any) map[string]any {
	t.Helper()
	text, err := json.Marshal(of)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]any{}
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// Whatever namespace and pod, the policy's own expressions and this package add the same
// tolerations, and fail together.
func TestTolerationsAreThePolicys(t *testing.T) {
	p := load(t, "../../manifests/policies/intent-tolerations.yaml")
	intents := rapid.SampledFrom([]string{"vision.train", "vision.serve", "a", " a ", "", "\t"})
	words := rapid.SampledFrom([]string{"app", "tier", "llm", "gpu", ""})
	pairs := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.OneOf(words, rapid.Custom(func(t *rapid.T) string { return words.Draw(t, "key") + "=" + words.Draw(t, "value") }), rapid.SampledFrom([]string{"app=llm=gpu", "app=llm", "app=llm|gpu", "tier=|gpu", "app=*", "!app=llm", "!tier=llm|gpu", "!tier=*", "!app", "!", "!!app=llm", "a!pp=llm"})), 0, 3).Draw(t, "pairs"), ",")
	})
	added, failed := 0, 0
	property := func(t *rapid.T) {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{v1alpha1.LabelTenant: "vision"}, Annotations: map[string]string{}}}
		if rapid.IntRange(0, 9).Draw(t, "annotated") > 0 {
			ns.Annotations[v1alpha1.AnnotationIntents] = strings.Join(rapid.SliceOfN(intents, 0, 4).Draw(t, "intents"), ",")
		}
		for _, i := range []string{"vision.train", "a"} {
			if rapid.Bool().Draw(t, "selected") {
				ns.Annotations[v1alpha1.AnnotationPodsPrefix+i] = pairs.Draw(t, "pairs of "+i)
			}
		}
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: rapid.MapOfN(words, words, 0, 3).Draw(t, "labels")}}
		for range rapid.IntRange(0, 3).Draw(t, "tolerations") {
			pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{
				Key: rapid.SampledFrom([]string{v1alpha1.TaintIntent, "gpu", ""}).Draw(t, "key"), Operator: rapid.SampledFrom([]corev1.TolerationOperator{"", "Equal", "Exists"}).Draw(t, "operator"),
				Value: intents.Draw(t, "value"), Effect: rapid.SampledFrom([]corev1.TaintEffect{"", "NoSchedule", "NoExecute"}).Draw(t, "effect"),
			})
		}
		if kind := rapid.SampledFrom([]string{"", "", "", "DaemonSet", "ReplicaSet"}).Draw(t, "owner"); kind != "" {
			pod.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: "o"}}
		}
		values, errWant := p.eval(map[string]any{"object": object(t, pod), "namespaceObject": object(t, ns)})
		var want []string
		if list, is := values["missing"].(traits.Lister); is && errWant == nil {
			for it := list.Iterator(); it.HasNext() == types.True; {
				want = append(want, it.Next().Value().(string))
			}
		}
		operations, err := Tolerations(ns, pod)
		var got []string
		for i, o := range operations {
			if o.Path == "/spec/tolerations" && i == 0 && len(pod.Spec.Tolerations) == 0 {
				continue
			}
			got = append(got, o.Value.(corev1.Toleration).Value)
		}
		if (err != nil) != (errWant != nil) || strings.Join(got, ",") != strings.Join(want, ",") {
			t.Fatalf("got %q, %v; the policy says %q, %v", got, err, want, errWant)
		}
		added += len(got)
		if err != nil {
			failed++
		}
	}
	for range 10 { // few draws fail
		rapid.Check(t, property)
	}
	if added == 0 || failed == 0 {
		t.Errorf("%d tolerations, %d failures: the property was not tried", added, failed)
	}
}

func TestOwnerIsThePolicys(t *testing.T) {
	p := load(t, "../../../fleet-repo-template/install/agent/request-owner.yaml")
	users := rapid.SampledFrom([]string{"", "ada", "mallory"})
	annotated := rapid.Custom(func(t *rapid.T) *metav1.PartialObjectMetadata {
		o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "r"}}
		if rapid.Bool().Draw(t, "annotated") {
			o.Annotations = map[string]string{"a": "b"}
		}
		if rapid.Bool().Draw(t, "says") {
			metav1.SetMetaDataAnnotation(&o.ObjectMeta, v1alpha1.AnnotationOwner, users.Draw(t, "owner"))
		}
		return o
	})
	rapid.Check(t, func(t *rapid.T) {
		o, user := annotated.Draw(t, "object"), users.Draw(t, "user")
		var old *metav1.PartialObjectMetadata
		with := map[string]any{"object": object(t, o), "oldObject": nil, "request": map[string]any{"operation": "CREATE", "userInfo": map[string]any{"username": user}}}
		if rapid.Bool().Draw(t, "update") {
			old = annotated.Draw(t, "old")
			with["oldObject"], with["request"].(map[string]any)["operation"] = object(t, old), "UPDATE"
		}
		values, err := p.eval(with)
		if err != nil {
			t.Fatal(err)
		}
		want := values["owner"].Value().(string)
		got, has := o.Annotations[v1alpha1.AnnotationOwner]
		for i, op := range Owner(user, o, old) {
			switch {
			case op.Path == "/metadata/annotations" && i == 0 && len(o.Annotations) == 0:
			case op.Path == "/metadata/annotations/fleetbroker.io~1owner":
				got, has = op.Value.(string), true
			default:
				t.Fatalf("operation %+v", op)
			}
		}
		if got != want || !has {
			t.Fatalf("got %q, %t; the policy says %q", got, has, want)
		}
	})
}
