package planner_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// movedFor are the intents of which a contract moves in a plan, so that another finds a place.
func movedFor(p *planner.Plan) (refs []string) {
	for _, d := range p.Intents {
		if strings.HasPrefix(d.Reason, "makes room for ") {
			refs = append(refs, d.Tenant+"/"+d.Name)
		}
	}
	return refs
}

// Two wait, and their tenant may have one of them: one contract moves.
func TestMakesRoom_WithinTenant(t *testing.T) {
	for name, limit := range map[string]func(s *v1alpha1.TenantSpec){
		"quota":  func(s *v1alpha1.TenantSpec) { s.Quota = &v1alpha1.TenantQuota{GPU: Ptr(int64(3))} },
		"hourly": func(s *v1alpha1.TenantSpec) { s.Budget = &v1alpha1.TenantBudget{Hourly: Money("4.2")} },
	} {
		t.Run(name, func(t *testing.T) {
			b := New().Consumer("rome").Provider("paris", "lyon").Tenant("nlp", "rome", limit).
				Fleet(consolidating("apply", "0.5", 30*time.Minute)).
				Offer("paris/t4", Cards("nvidia-t4", 2, "16Gi"), Costs("1")).
				Offer("lyon/l4", Cards("nvidia-l4", 8, "24Gi"), Costs("1.4")).
				Intent("nlp/a", Wants(1, "T4", "L4"), cheapest).
				Intent("nlp/b", Wants(1, "T4", "L4"), cheapest)
			settled(b).Tick(28*time.Minute).Intent("nlp/one", Wants(1, "T4"), cheapest).Intent("nlp/two", Wants(1, "T4"), cheapest)
			p := b.Round()
			if moved := movedFor(p); !slices.Equal(moved, []string{"nlp/a"}) {
				t.Fatalf("%s move, want nlp/a alone\n%s", moved, describe(p))
			}
			wantOnlyKeeps(t, b)
		})
	}
}

// Where the pods of what moved never leave, the rest of the place is kept for as long as
// nothing else would move, and is for others then.
func TestMakesRoom_NeverGone(t *testing.T) {
	b := New().Consumer("rome").Provider("paris", "lyon").Tenant("vision", "rome").Tenant("nlp", "rome").
		Fleet(consolidating("apply", "0.5", 30*time.Minute)).
		Offer("paris/t4", Cards("nvidia-t4", 8, "16Gi"), Costs("1")).
		Offer("lyon/l4", Cards("nvidia-l4", 8, "24Gi"), Costs("1.4")).
		Intent("nlp/a", Wants(1, "T4", "L4"), cheapest)
	settled(b).Tick(28*time.Minute).Intent("nlp/one", Wants(8, "T4"), cheapest)
	if p := b.Round(); !slices.Equal(movedFor(p), []string{"nlp/a"}) {
		t.Fatalf("nlp/a does not move\n%s", describe(p))
	}
	b.Tick(29*time.Minute).Intent("vision/late", Wants(1, "T4"), cheapest)
	p := b.Round()
	if Of(p, "vision/late").Action != planner.Queued || Of(p, "nlp/one").Code != lifecycle.CodeMakingRoom || p.Due.Sub(b.W.Now.Time) != time.Minute {
		t.Fatalf("29 minutes later it is kept:\n%s", describe(p))
	}
	wantOnlyKeeps(t, b)
	b.Tick(time.Minute)
	if p := b.Round(); Of(p, "vision/late").Action != planner.Place || Of(p, "nlp/one").Action != planner.Queued || len(movedFor(p)) > 0 {
		t.Fatalf("half an hour later it is not kept any more:\n%s", describe(p))
	}
	wantOnlyKeeps(t, b)
}

// Who was made room for has its turn whatever it costs until that is seen gone, and then as
// any other.
func TestMakesRoom_TurnsAsOthers(t *testing.T) {
	b := inTheWay(func(*model.Intent) {}, func(b *Builder) {
		b.Fleet(func(s *v1alpha1.FleetSpec) { s.Limits.Work = 700 })
	})
	b.Round()
	b.Tick(time.Minute).Intent("nlp/first", Wants(9, "T4"), Priority(10)).Intent("nlp/second", Wants(9, "T4"), Priority(10))
	if p := b.Round(); Of(p, "nlp/one").Code != lifecycle.CodeMakingRoom {
		t.Fatalf("while it is made room for:\n%s", describe(p))
	}
	b.Tick(time.Minute).Deliver().Round()
	b.Tick(time.Minute).Deliver().Round()
	b.Tick(time.Minute).Intent("nlp/one", Wants(9, "T4")).Intent("nlp/first", Wants(8, "T4")).Intent("nlp/second", Wants(8, "T4"))
	if p := b.Round(); Of(p, "nlp/one").Code != lifecycle.CodeWork {
		t.Fatalf("after it was served, and changes:\n%s", describe(p))
	}
}

// All tenants together look for room no longer than limits.work, whatever waits, and each has
// its turn.
func TestMakesRoom_Work(t *testing.T) {
	const work = 5000
	b := New().Consumer("rome").Provider("paris", "lyon").Tenant("owner", "rome").Tenant("t07", "rome").
		Fleet(consolidating("apply", "0.5", 30*time.Minute))
	for i := range 20 {
		b.Offer(fmt.Sprintf("paris/t4-%d", i), Cards("nvidia-t4", 2, "16Gi"), Costs("1"))
		b.Offer(fmt.Sprintf("lyon/l4-%d", i), Cards("nvidia-l4", 2, "24Gi"), Costs("1.4"))
	}
	b.Intent("t07/either", Wants(1, "T4", "L4"), cheapest)
	for i := range 39 {
		b.Intent(fmt.Sprintf("owner/m%d", i), Wants(1, "T4", "L4"), cheapest)
	}
	settled(b).Tick(40 * time.Minute).Fleet(func(s *v1alpha1.FleetSpec) { s.Limits.Work = work })
	for i := range 40 {
		b.Tenant(fmt.Sprintf("t%02d", i), "rome")
		b.Intent(fmt.Sprintf("t%02d/w", i), Wants(1, "T4"), With(func(s *v1alpha1.IntentSpec) {
			s.Resources.Named[v1alpha1.CPU] = v1alpha1.AmountOf(int64(i + 1))
		}))
	}
	for minute := range 15 {
		p, did := planner.CountWork(b.W)
		if did.Parts > work*5/4 {
			t.Fatalf("%d looks for room, want %d at most\n%s", did.Parts, work, describe(p))
		}
		if slices.Equal(movedFor(p), []string{"t07/either"}) {
			return
		}
		if due := p.Due.Sub(b.W.Now.Time); due <= 0 || due > time.Minute {
			t.Fatalf("minute %d: due in %s\n%s", minute, due, describe(p))
		}
		b.Apply(p).Tick(time.Minute)
	}
	t.Fatal("nothing moves for the one that can be helped")
}

// Another tenant that comes and goes under other names has a contract move less and less.
func TestMakesRoom_OtherNames(t *testing.T) {
	b := New().Consumer("rome").Provider("paris", "lyon").Tenant("vision", "rome").Tenant("nlp", "rome").
		Fleet(consolidating("apply", "0.5", 30*time.Minute)).
		Offer("paris/t4", Cards("nvidia-t4", 1, "16Gi"), Costs("1")).
		Offer("lyon/l4", Cards("nvidia-l4", 1, "24Gi"), Costs("1")).
		Intent("nlp/either", Wants(1, "T4", "L4"), cheapest)
	settled(b)
	var moves []time.Duration
	for n := range 200 { // every five minutes another intent wants what nlp/either has
		model := "T4"
		for _, c := range b.Contracts("nlp/either") {
			if c.Status.Phase.Charged() && c.Spec.Provider == "lyon" {
				model = "L4"
			}
		}
		if n > 0 {
			b.Remove(fmt.Sprintf("vision/x%d", n-1))
		}
		b.Tick(5*time.Minute).Deliver().Intent(fmt.Sprintf("vision/x%d", n), Wants(1, model))
		if len(movedFor(b.Round())) > 0 {
			moves = append(moves, b.W.Now.Sub(Start.Time))
		}
	}
	for i := 2; i < len(moves); i++ {
		if last, before := moves[i]-moves[i-1], moves[i-1]-moves[i-2]; last < 2*before-10*time.Minute {
			t.Fatalf("it moves after %s, and before that after %s: %v", last, before, moves)
		}
	}
	if len(moves) < 3 {
		t.Fatalf("it moves after %v", moves)
	}
}
