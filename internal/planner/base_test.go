package planner

import (
	"reflect"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
)

// A round is made of its base, which is handed over whole, and of fields that
// each round makes for itself: nothing can be in neither list, because there is
// no list. What a Session keeps is the base and nothing else of a round.
func TestRoundsShareTheirBaseAlone(t *testing.T) {
	keeps := map[string]bool{"Fault": true, "Step": true, "Disputed": true, "base": true, "number": true, "scratch": true}
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

// What a Session does about another value of each field of a World is known: it plans
// from nothing, brings the base up to date, or reads it again in each round anyway.
func TestSessionWatchesEveryField(t *testing.T) {
	updated := map[string]string{ // by what
		"Now": "rates here, prices in remeasure, cached decisions by until", "Intents": "intentsChanged", "Offers": "offersChanged",
		"Tenants": "tenantsChanged", "Clusters": "clustersChanged", "Ledger": "ledgerChanged", "Observed": "observedChanged",
	}
	anew := map[string]string{ // who reads it
		"FleetName": "nobody: it is for people", "Inputs": "the plan's heading and new contracts", "Market": "the plan's heading and new contracts",
		"Demand": "sizing of intents that follow it, which are never quick", "RemovedBy": "the guard and reasons", "AllowEnds": "the guard", "Brief": "conclude",
	}
	given := draft.World{Fleet: &v1alpha1.FleetSpec{}}
	b := &base{own: ownBase{given: given}}
	if !b.holdsFor(&given) {
		t.Fatal("a base does not hold for its own world")
	}
	fields := reflect.TypeFor[draft.World]()
	for i := range fields.NumField() {
		name := fields.Field(i).Name
		_, isUpdated := updated[name]
		_, isAnew := anew[name]
		delete(updated, name)
		delete(anew, name)
		if isUpdated || isAnew {
			continue
		}
		w := given
		another(t, "World."+name, reflect.ValueOf(&w).Elem().Field(i))
		if b.holdsFor(&w) {
			t.Errorf("World.%s: a Session goes on with its base when it changes; ask for it in holdsFor, or bring what depends on it up to date and list it here", name)
		}
	}
	if len(updated)+len(anew) > 0 {
		t.Errorf("no fields of a World: %v %v", updated, anew)
	}
}

// Intents that differ in any field are two.
func TestSameIntent_LooksAtEveryField(t *testing.T) {
	fields := reflect.TypeFor[model.Intent]()
	doc := &v1alpha1.ResourceIntent{}
	for i := range fields.NumField() {
		a, b := model.Intent{ResourceIntent: doc}, model.Intent{ResourceIntent: doc}
		if !sameIntent(&a, &b) {
			t.Fatal("equal intents differ")
		}
		another(t, "Intent."+fields.Field(i).Name, reflect.ValueOf(&b).Elem().Field(i))
		if sameIntent(&a, &b) {
			t.Errorf("Intent.%s: a Session takes intents for the same that differ in it: ask for it in sameIntent", fields.Field(i).Name)
		}
	}
}

// yes is a condition that all offers meet.
type yes struct{}

func (yes) Eval(*v1alpha1.ResourceIntent, *v1alpha1.Flavor, *v1alpha1.Cluster) (bool, error) {
	return true, nil
}

// another sets a field to a value that is not its zero, and at no address that was there.
func another(t *testing.T, name string, v reflect.Value) {
	t.Helper()
	switch x := v.Addr().Interface().(type) {
	case *v1alpha1.Time:
		*x = v1alpha1.TimeOf(time.Unix(1_800_000_000, 0))
		return
	case *model.Predicate:
		*x = yes{}
		return
	}
	switch v.Kind() {
	case reflect.Int:
		v.SetInt(3)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString("x")
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("x"), reflect.Zero(v.Type().Elem()))
	default:
		t.Fatalf("%s is a %s, of which this test makes none", name, v.Type())
	}
}
