package bench

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/world"
	"github.com/fleetbroker/fleetbroker/test/bench/gen"
)

// BenchmarkVastPlan plans BenchmarkVast's fleet, whose intents come one by one, without
// reading, writing and git, so that what a decision costs can be told from the rest and
// profiled at a tenth of the fleet: processor time a decision, garbage collection included.
func BenchmarkVastPlan(b *testing.B) {
	o := vast()
	s := &planner.Session{}
	w, came := vastWorld(b, o)
	all := w.Intents
	hidden := map[*model.Intent]bool{}
	for _, in := range came {
		hidden[in] = true
	}
	show := func() {
		w.Intents = slices.DeleteFunc(slices.Clone(all), func(in *model.Intent) bool { return hidden[in] })
		w.Inputs += "+"
	}
	settle := func() {
		for range 5 {
			p := s.Decide(w)
			if !p.Changes() {
				return
			}
			w.Ledger = w.Ledger.With(p.LedgerChanges())
		}
		b.Fatal("5 plans did not come to rest")
	}
	show()
	settle()
	fleet := fmt.Sprintf("%d x 1,000 with %d flavors", o.Tenants, o.Providers*o.Flavors)
	for b.Loop() {
		var clock, used []time.Duration
		for _, in := range came {
			delete(hidden, in)
			show()
			cpu, begin := cpuTime(b), time.Now()
			p := s.Decide(w)
			clock, used = append(clock, time.Since(begin)), append(used, cpuTime(b)-cpu)
			if n := p.Summary()[planner.Place]; n != 1 {
				b.Fatalf("placed %d: %v", n, p.Summary())
			}
			if in == came[len(came)-1] {
				if want := planner.Decide(w); !reflect.DeepEqual(p, want) {
					b.Fatal("the plan is not the one from nothing")
				}
			}
			w.Ledger = w.Ledger.With(p.LedgerChanges())
			settle()
		}
		results.note(fleet+": planning after one change, median", fmt.Sprintf("%.4g ms", ms(median(clock))))
		results.note(fleet+": its processor time, median", fmt.Sprintf("%.4g ms", ms(median(used))))
	}
}

// vastWorld is a fleet with its ledger, and among its intents some that are to come.
func vastWorld(b *testing.B, o gen.Options) (w planner.World, came []*model.Intent) {
	b.Helper()
	files := o.Inputs()
	more := map[string][]byte{}
	for i := range repetitions {
		path, content := gen.NewIntent(i%o.Tenants, 90_000+i)
		more[path] = content
	}
	maps.Copy(files, more)
	read, err := fleet.NewReader().Read(b.Context(), tree.NewMemory().Build(files), nil)
	if err != nil {
		b.Fatal(err)
	}
	w = world.Build(world.Input{
		Now: v1alpha1.TimeOf(made), Fleet: read, Inputs: "0", Ledger: ledger.Empty(), Market: gen.Market(read, made).Snapshot(),
		Author: func(*model.Intent) (string, string) { return "0", "Ada" },
	})
	for _, in := range w.Intents {
		if strings.HasPrefix(in.Metadata.Name, "new-") {
			came = append(came, in)
		}
	}
	return w, came
}
