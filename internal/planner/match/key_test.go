package match

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/celenv"
	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// elsewhere are the fields of an intent that no class depends on: they are
// looked at apart from offers, or are in the key as what is made of them.
var elsewhere = []string{
	"Consumer",                        // the job's
	"Replicas", "MinReplicas", "Gang", // how many are wanted at once
	"Alternatives", // each has a class of its own
	"Budget",       // the money to spend
	"Schedule",     // the seconds until the end
	"Priority", "Preemption", "Queue", "Update", "Offload", "VirtualNode", "Stage", "Suspend",
	"SLA.MaxTimeToActive",
}

// empty is a matcher of an empty market.
func empty() *Matcher {
	n := quantity.NewNames(ReqCapacity)
	in := inventory.New(inventory.Facts{Names: n}, nil, func(func(*v1alpha1.Contract) bool) {})
	return New(Facts{Names: n, Fleet: &v1alpha1.FleetSpec{}, Now: v1alpha1.TimeOf(time.Unix(1_800_000_000, 0))}, in)
}

// Every field of an intent that is not looked at elsewhere makes another class.
func TestKey_AsksForEveryField(t *testing.T) {
	m := empty()
	key := func(s v1alpha1.IntentSpec) string {
		in := &model.Intent{ResourceIntent: &v1alpha1.ResourceIntent{Metadata: v1alpha1.Metadata{Namespace: "vision", Name: "train"}, Spec: s}}
		return string(m.Key(&Ask{Intent: in, Request: &in.Spec.Resources, Spending: Spending{Replicas: 1}}))
	}
	plain := key(v1alpha1.IntentSpec{Resources: v1alpha1.ResourceRequest{GPU: &v1alpha1.GPURequest{}}})
	n := 0
	leaves(reflect.TypeFor[v1alpha1.IntentSpec](), "", nil, func(path string, index [][]int) {
		for _, e := range elsewhere {
			if path == e || strings.HasPrefix(path, e+".") {
				return
			}
		}
		s := v1alpha1.IntentSpec{Resources: v1alpha1.ResourceRequest{GPU: &v1alpha1.GPURequest{}}}
		v := reflect.ValueOf(&s).Elem()
		for _, i := range index {
			if v.Kind() == reflect.Pointer {
				if v.IsNil() {
					v.Set(reflect.New(v.Type().Elem()))
				}
				v = v.Elem()
			}
			v = v.FieldByIndex(i)
		}
		v.Set(something(t, path, v.Type()))
		n++
		if key(s) == plain {
			t.Errorf("spec.%s is not in the key: intents that differ in it would share a class; add it in key.go, or to this test's list if no offer is ever compared with it", path)
		}
	})
	if n < 25 {
		t.Fatalf("only %d fields were tried", n)
	}
}

// Intents that differ in a label alone share no class where a policy is for one of them.
func TestKey_AsksForLabelsOfPolicies(t *testing.T) {
	prog, err := celenv.CompilePolicy("flavor.gpu.count > 1")
	if err != nil {
		t.Fatal(err)
	}
	key := func(match v1alpha1.PolicyMatch, labels map[string]string) string {
		m := empty()
		m.facts.Policies = []model.Policy{{Predicate: prog}, {Policy: v1alpha1.Policy{Match: match}, Predicate: prog}}
		in := &model.Intent{ResourceIntent: &v1alpha1.ResourceIntent{Metadata: v1alpha1.Metadata{Namespace: "vision", Name: "train", Labels: labels}}}
		return string(m.Key(&Ask{Intent: in, Consumer: "rome", Request: &in.Spec.Resources, Spending: Spending{Replicas: 1}}))
	}
	gold := map[string]string{"tier": "gold"}
	if key(v1alpha1.PolicyMatch{Labels: gold}, gold) == key(v1alpha1.PolicyMatch{Labels: gold}, nil) {
		t.Error("the intent that the policy is for has the class of one that it is not for")
	}
	if key(v1alpha1.PolicyMatch{Tenants: []string{"vision"}}, gold) != key(v1alpha1.PolicyMatch{Tenants: []string{"vision"}}, nil) {
		t.Error("labels that no policy asks for make another class")
	}
}

// leaves calls f with each field that is no plain struct.
func leaves(typ reflect.Type, path string, index [][]int, f func(string, [][]int)) {
	for i := range typ.NumField() {
		field := typ.Field(i)
		name := strings.TrimPrefix(path+"."+field.Name, ".")
		at := append(append([][]int(nil), index...), field.Index)
		inner := field.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct && inner.NumField() > 0 && inner.Field(0).IsExported() && inner != reflect.TypeFor[v1alpha1.Duration]() {
			leaves(inner, name, at, f)
			continue
		}
		f(name, at)
	}
}

// something is a value of a type that is not its zero.
func something(t *testing.T, path string, typ reflect.Type) reflect.Value {
	t.Helper()
	switch typ {
	case reflect.TypeFor[v1alpha1.Amount]():
		return reflect.ValueOf(v1alpha1.AmountOf(7))
	case reflect.TypeFor[*v1alpha1.Decimal]():
		d := v1alpha1.MustDecimal("0.5")
		return reflect.ValueOf(&d)
	case reflect.TypeFor[v1alpha1.Duration]():
		return reflect.ValueOf(v1alpha1.Duration{Duration: time.Minute})
	case reflect.TypeFor[time.Time]():
		return reflect.ValueOf(time.Unix(1_900_000_000, 0))
	case reflect.TypeFor[v1alpha1.Resources]():
		return reflect.ValueOf(v1alpha1.Resources{"rdma/hca": v1alpha1.AmountOf(1)})
	}
	v := reflect.New(typ).Elem()
	switch typ.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Int32, reflect.Int64:
		v.SetInt(3)
	case reflect.Float64:
		v.SetFloat(0.25)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(typ, 1, 1))
	case reflect.Map:
		v.Set(reflect.MakeMap(typ))
		value := reflect.ValueOf("v")
		if typ.Elem().Kind() != reflect.String {
			value = something(t, path, typ.Elem())
		}
		v.SetMapIndex(reflect.ValueOf("k"), value)
	case reflect.Pointer:
		v.Set(reflect.New(typ.Elem()))
	default:
		t.Fatalf("spec.%s is a %s, of which this test makes none", path, typ)
	}
	return v
}

// Each entry of the table has all that is asked of one, under a name of its own.
func TestRequirements_AreWhole(t *testing.T) {
	names := map[string]bool{}
	for i := range requirements {
		r := &requirements[i]
		if r.name == "" || names[r.name] || r.words == "" || r.asked == nil || r.fails == nil || r.why == nil || r.key == nil {
			t.Errorf("entry %d, %q, lacks a name of its own, words, asked, fails, why or key", i, r.name)
		}
		if _, known := wordings[r.name]; known {
			t.Errorf("%s has words in wordings too", r.name)
		}
		names[r.name] = true
	}
}
