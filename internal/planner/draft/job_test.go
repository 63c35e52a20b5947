package draft

import (
	"reflect"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// What a copy of a job has of each of the job's fields: the same value; one of its own
// (Copy) or none (bare); or none, because it comes of trying the copy. A new field has
// to be put among these.
var copied = map[string][]string{
	"same": {
		"In", "TenantName", "Name", "Tenant", "Consumer", "State", "FirstSeen", "Priority", "All",
		"Releasing", "Started", "End", "Seconds", "Target", "Sizing", "Grows", "Later", "Alts", "Avoid",
		"Why", "WhyCode", "Phase", "Code", "Text", "Since", "Proposals", "Refused", "Displaced", "Displacing", "Noticed", "Silent", "Frozen",
		"Batched", "Seated", "Shared", "Gone", "Senior", "TurnAt", "Far",
	},
	"own":  {"Live", "Ordinals", "Tasks"},
	"none": {"Booked", "News", "Open", "Classes", "Dec", "Known", "written"},
}

func TestJob_CopiesHaveEachFieldOrNot(t *testing.T) {
	class := map[string]string{}
	for kind, names := range copied {
		for _, name := range names {
			class[name] = kind
		}
	}
	j := &Job{written: 1}
	fill(t, reflect.ValueOf(j).Elem())
	tasks := []Task{{Replica: 7}}
	bare, whole := leaves(reflect.ValueOf(j.bare()).Elem()), leaves(reflect.ValueOf(j.Copy(tasks)).Elem())
	for name, v := range leaves(reflect.ValueOf(j).Elem()) {
		kind := class[name]
		delete(class, name)
		if v.IsZero() {
			t.Errorf("%s is not filled by this test", name)
		}
		same := func(of map[string]reflect.Value) bool { return sameValue(v, of[name]) }
		switch {
		case kind == "":
			t.Errorf("%s is not classified: say what a copy of a job has of it", name)
		case kind == "same" && !(same(bare) && same(whole)):
			t.Errorf("%s is another in a copy, want the same", name)
		case kind != "same" && !bare[name].IsZero():
			t.Errorf("%s is in a bare copy, want none", name)
		case kind == "none" && !whole[name].IsZero():
			t.Errorf("%s is in a copy, want none", name)
		case kind == "own" && (whole[name].Len() != v.Len() || whole[name].Pointer() == v.Pointer()):
			t.Errorf("%s of a copy is shared or of another length, want one of its own", name)
		}
	}
	for name := range class {
		t.Errorf("a job has no field %s", name)
	}
}

// sameValue reports whether two values are equal; what they point to is the same.
func sameValue(a, b reflect.Value) bool {
	switch a.Kind() {
	case reflect.Slice, reflect.Map, reflect.Pointer:
		return a.Pointer() == b.Pointer()
	}
	return a.Equal(b)
}

// leaves are the fields of a job's parts by name.
func leaves(v reflect.Value) map[string]reflect.Value {
	out := map[string]reflect.Value{}
	for i := range v.NumField() {
		if f := v.Type().Field(i); f.Anonymous {
			for name, x := range leaves(v.Field(i)) {
				out[name] = x
			}
		} else {
			out[f.Name] = v.Field(i)
		}
	}
	return out
}

// fill gives each exported field a value that is not zero.
func fill(t *testing.T, v reflect.Value) {
	t.Helper()
	for _, x := range leaves(v) {
		if !x.CanSet() {
			continue
		}
		switch x.Kind() {
		case reflect.Slice:
			x.Set(reflect.MakeSlice(x.Type(), 1, 1))
		case reflect.Map:
			x.Set(reflect.MakeMap(x.Type()))
			x.SetMapIndex(reflect.Zero(x.Type().Key()), reflect.Zero(x.Type().Elem()))
		case reflect.Pointer:
			x.Set(reflect.New(x.Type().Elem()))
		case reflect.String:
			x.SetString("x")
		case reflect.Bool:
			x.SetBool(true)
		case reflect.Struct:
			for _, value := range []any{v1alpha1.Time{Time: time.Unix(1, 0)}, v1alpha1.FirstSeen{Commit: "x"}, Classes{Replayed: true}} {
				if reflect.TypeOf(value) == x.Type() {
					x.Set(reflect.ValueOf(value))
				}
			}
			if d, is := x.Addr().Interface().(*Decision); is {
				d.Name = "x"
			}
		default:
			x.Set(reflect.ValueOf(1).Convert(x.Type()))
		}
	}
}
