package planner

import (
	"reflect"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
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
	of := reflect.TypeFor[base]()
	for i := range of.NumField() {
		if f, _ := reflect.TypeFor[round]().FieldByName(of.Field(i).Name); len(f.Index) < 2 {
			t.Errorf("round.%s hides that of its base: which of them is handed over?", f.Name)
		}
	}

	w := World{Ledger: ledger.Empty(), Fleet: &v1alpha1.FleetSpec{}, Now: v1alpha1.TimeOf(time.Unix(1_800_000_000, 0))}
	first := newRound(&w)
	first.decide()
	left := first.handOver()
	again := w
	next := updated(left, &again)
	if next == nil {
		t.Fatal("a world that has not changed is read from nothing")
	}
	a, b := reflect.ValueOf(first).Elem(), reflect.ValueOf(next).Elem()
	for i := range a.NumField() {
		f := a.Type().Field(i)
		switch a.Field(i).Kind() {
		case reflect.Map, reflect.Pointer, reflect.Slice:
			if x, y := a.Field(i), b.Field(i); f.Name != "fleet" && x.Pointer() != 0 && x.Pointer() == y.Pointer() {
				t.Errorf("round.%s is that of the round before: what the next needs belongs to base", f.Name)
			}
		}
	}
	was, is := reflect.ValueOf(left).Elem(), b.FieldByName("base")
	for i := range of.NumField() {
		switch f := of.Field(i); was.Field(i).Kind() {
		case reflect.Map, reflect.Pointer:
			if was.Field(i).Pointer() != is.Field(i).Pointer() {
				t.Errorf("base.%s is not the one that the round before left", f.Name)
			}
		}
	}
}
