package planner

import (
	"reflect"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
)

// A round is made of its base, which is handed over whole, and of fields that
// each round makes for itself: nothing can be in neither list, because there is
// no list. What a Session keeps is the base and nothing else of a round.
func TestRoundsShareTheirBaseAlone(t *testing.T) {
	keeps := map[string]bool{"Fault": true, "Step": true, "base": true, "number": true, "scratch": true}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Session]()) {
		if !keeps[f.Name] {
			t.Errorf("Session.%s: what one round leaves to the next belongs to base", f.Name)
		}
	}

	w := draft.World{Ledger: ledger.Empty(), Fleet: &v1alpha1.FleetSpec{}, Now: v1alpha1.TimeOf(time.Unix(1_800_000_000, 0))}
	first := newRound(&w)
	first.decide()
	left := first.handOver()
	again := w
	next := updated(left, &again)
	if next == nil {
		t.Fatal("a world that has not changed is read from nothing")
	}
	kept := map[uintptr]string{} // what the base refers to
	eachField(reflect.ValueOf(left).Elem(), func(name string, v reflect.Value) {
		if v.Pointer() != 0 {
			kept[v.Pointer()] = name
		}
	})
	after := map[string]uintptr{}
	eachField(reflect.ValueOf(next).Elem(), func(name string, v reflect.Value) {
		if _, twice := after[name]; twice {
			t.Errorf("two layers have a field %s: the upper one hides the other", name)
		}
		after[name] = v.Pointer()
	})
	found := map[string]bool{}
	eachField(reflect.ValueOf(first).Elem(), func(name string, v reflect.Value) {
		of, isKept := kept[v.Pointer()]
		found[of] = true
		if shared := v.Pointer() != 0 && v.Pointer() == after[name]; shared && !isKept && name != "Fleet" {
			t.Errorf("round.%s is that of the round before: what the next needs belongs to base", name)
		} else if isKept && !shared {
			t.Errorf("round.%s is not the one that the round before left", name)
		}
	})
	for _, name := range kept {
		if !found[name] {
			t.Errorf("base.%s is nothing that a round has", name)
		}
	}
}

// eachField calls f with each map, pointer and slice of a struct and of the structs
// in it that are layers or their bases.
func eachField(v reflect.Value, f func(name string, v reflect.Value)) {
	for i := range v.NumField() {
		field, x := v.Type().Field(i), v.Field(i)
		layer := field.Anonymous || v.Type() == reflect.TypeFor[base]()
		switch x.Kind() {
		case reflect.Map, reflect.Pointer, reflect.Slice:
			f(field.Name, x)
		case reflect.Struct:
			if layer {
				eachField(x, f)
			}
		}
	}
}

// Names of layers are never hidden by a layer above: what a promoted name means does
// not depend on where it is written.
func TestLayersHideNothing(t *testing.T) {
	seen := map[string]reflect.Type{}
	var walk func(of reflect.Type)
	walk = func(of reflect.Type) {
		for i := range of.NumField() {
			f := of.Field(i)
			if was, known := seen[f.Name]; known {
				t.Errorf("%s and %s both have %s", was, of, f.Name)
			}
			seen[f.Name] = of
			if f.Anonymous && f.Type.Kind() == reflect.Struct {
				walk(f.Type)
			}
		}
	}
	walk(reflect.TypeFor[round]())
}
