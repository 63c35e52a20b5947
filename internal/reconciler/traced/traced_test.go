package traced

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/tracing"
)

var at = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

func recording() (*tracing.Tracer, *tracetest.SpanRecorder) {
	rec := tracetest.NewSpanRecorder()
	return tracing.New(sdk.NewTracerProvider(sdk.WithSpanProcessor(rec))), rec
}

// history is a ledger's, one commit after the other.
type history struct {
	commits map[tree.Hash]gitrepo.Commit
	head    tree.Hash
	foreign map[tree.Hash]bool
	read    int
}

func (h *history) Info(x tree.Hash) (gitrepo.Commit, error) {
	h.read++
	c, ok := h.commits[x]
	if !ok {
		return c, errors.New("no such commit")
	}
	return c, nil
}

func (h *history) MadeByUs(x tree.Hash) (bool, error) { return !h.foreign[x], nil }

// add writes a commit; led is its trace, "" for none.
func (h *history) add(led, replica string, lines ...string) tree.Hash {
	if h.commits == nil {
		h.commits, h.foreign = map[tree.Hash]gitrepo.Commit{}, map[tree.Hash]bool{}
	}
	n := len(h.commits) + 1
	text := "subject\n\n"
	for _, line := range lines {
		text += "Contract: " + line + "\n"
	}
	text += "Replica: " + replica + "\n"
	if led != "" {
		text += "Trace: " + led + "\n"
	}
	c := gitrepo.Commit{Hash: tree.Hash{byte(n), byte(n >> 8), 1}, Message: text, Committer: gitobj.Person{When: at.Add(time.Duration(n) * time.Minute)}}
	if !h.head.IsZero() {
		c.Parents = []tree.Hash{h.head}
	}
	h.commits[c.Hash], h.head = c, c.Hash
	return c.Hash
}

func led(n int) string { return fmt.Sprintf("%032x %016x", n, n) }

func contract(name string, phase v1alpha1.Phase) *v1alpha1.Contract {
	return &v1alpha1.Contract{Metadata: v1alpha1.Metadata{Name: name}, Status: v1alpha1.ContractStatus{Phase: phase}}
}

// One replica places, another one finishes: the trace goes on by the trailer, and the one
// that writes Active ends it.
func TestKeeper_AnotherReplicaFinishes(t *testing.T) {
	var h history
	h.add(led(1), "a", "x - -> Reserved")
	tracerA, recA := recording()
	tracerB, recB := recording()
	a := NewKeeper(tracerA, "a")
	a.Follow(&h, h.head, slices.Values([]*v1alpha1.Contract{contract("x", v1alpha1.PhaseReserved)}))
	h.add(led(2), "a", "x Reserved -> Peering")
	b := NewKeeper(tracerB, "b") // starts here
	held := slices.Values([]*v1alpha1.Contract{contract("x", v1alpha1.PhasePeering)})
	for _, k := range []*Keeper{a, b} {
		k.Follow(&h, h.head, held)
		if got := k.Of("x").String(); got != led(1) {
			t.Errorf("%s: x is on its way in %q, want %q", k.Replica, got, led(1))
		}
	}
	if got := b.Among([]*v1alpha1.Contract{contract("x", ""), contract("y", "")}, func(c *v1alpha1.Contract) string { return "slice-" + c.Metadata.Name }); len(got) != 1 || got["slice-x"].String() != led(1) {
		t.Errorf("among: %v", got)
	}
	h.add(led(3), "b", "x Peering -> Active")
	for _, k := range []*Keeper{a, b} {
		k.Follow(&h, h.head, held)
		if !k.Of("x").IsZero() {
			t.Errorf("%s: x is still on its way", k.Replica)
		}
		if got := k.Came("x").String(); got != led(1) {
			t.Errorf("%s: x came in %q, want %q", k.Replica, got, led(1))
		}
	}
	if n := len(recA.Ended()); n != 0 {
		t.Errorf("a, which did not write it, made %d spans", n)
	}
	if n := len(recB.Ended()); n != 1 {
		t.Fatalf("b made %d spans, want 1", n)
	}
	span := recB.Ended()[0]
	if span.Name() != "contract active" || span.SpanContext().TraceID().String() != fmt.Sprintf("%032x", 1) || len(span.Links()) != 1 ||
		!span.StartTime().Equal(at.Add(time.Minute)) || !span.EndTime().Equal(at.Add(3*time.Minute)) {
		t.Errorf("%s in %s from %s to %s, links %v", span.Name(), span.SpanContext().TraceID(), span.StartTime(), span.EndTime(), span.Links())
	}
}

// That a contract was Degraded for a while is not told as its placing.
func TestKeeper_ActiveAgain(t *testing.T) {
	tracer, rec := recording()
	var h history
	h.add("", "a")
	k := NewKeeper(tracer, "a")
	k.Follow(&h, h.head, slices.Values([]*v1alpha1.Contract(nil)))
	h.add(led(1), "a", "x - -> Reserved")
	h.add(led(2), "a", "x Reserved -> Active")
	h.add(led(3), "a", "x Active -> Degraded")
	h.add(led(4), "a", "x Degraded -> Active")
	k.Follow(&h, h.head, slices.Values([]*v1alpha1.Contract(nil)))
	var got []string
	for _, s := range rec.Ended() {
		got = append(got, s.Name())
	}
	if want := []string{"contract active", "contract active again"}; !slices.Equal(got, want) {
		t.Errorf("spans %v, want %v", got, want)
	}
}

func TestKeeper_WhatCounts(t *testing.T) {
	tracer, _ := recording()
	for name, c := range map[string]struct {
		write func(h *history)
		want  string
	}{
		"the first since it was Active": {func(h *history) {
			h.add(led(1), "a", "x - -> Reserved")
			h.add(led(2), "a", "x Reserved -> Active")
			h.add(led(3), "a", "x Active -> Releasing")
			h.add(led(4), "a", "x Releasing -> Releasing")
		}, led(3)},
		"what was booked begins again":      {func(h *history) { h.add(led(1), "a", "x - -> Booked"); h.add(led(2), "a", "x Booked -> Reserved") }, led(2)},
		"another hand's commit does not":    {func(h *history) { h.foreign[h.add(led(1), "a", "x - -> Reserved")] = true }, ""},
		"a trailer of another form is none": {func(h *history) { h.add("$(reboot) "+led(1), "a", "x - -> Reserved") }, ""},
		"ended is on no way":                {func(h *history) { h.add(led(1), "a", "x - -> Reserved"); h.add(led(2), "a", "x Reserved -> Failed") }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var h history
			h.add("", "a")
			k := NewKeeper(tracer, "a")
			k.Follow(&h, h.head, slices.Values([]*v1alpha1.Contract(nil)))
			c.write(&h)
			k.Follow(&h, h.head, slices.Values([]*v1alpha1.Contract(nil)))
			if got := k.Of("x").String(); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// However long history is, a start looks at a bounded part of it, and no further than
// what it seeks.
func TestKeeper_StartIsBounded(t *testing.T) {
	tracer, _ := recording()
	var h history
	for i := range maxSeek + 500 {
		h.add("", "a", fmt.Sprintf("c%d - -> Reserved", i))
	}
	h.add(led(1), "a", "x - -> Reserved")
	for name, c := range map[string]struct {
		held *v1alpha1.Contract
		most int
	}{"found at once": {contract("x", v1alpha1.PhaseReserved), 1}, "never found": {contract("gone", v1alpha1.PhaseReserved), maxSeek + 1}, "nothing sought": {contract("x", v1alpha1.PhaseActive), 0}} {
		h.read = 0
		NewKeeper(tracer, "a").Follow(&h, h.head, slices.Values([]*v1alpha1.Contract{c.held}))
		if h.read > c.most {
			t.Errorf("%s: %d commits were read, want at most %d", name, h.read, c.most)
		}
	}
}

// History that cannot be read is no reason for a round to fail.
func TestKeeper_HistoryThatCannotBeRead(t *testing.T) {
	tracer, _ := recording()
	var h history
	first := h.add(led(1), "a", "x - -> Reserved")
	h.add(led(2), "a", "y - -> Reserved")
	delete(h.commits, first)
	k := NewKeeper(tracer, "a")
	k.Follow(&h, h.head, slices.Values([]*v1alpha1.Contract{contract("x", v1alpha1.PhaseReserved), contract("y", v1alpha1.PhaseReserved)}))
	if !k.Of("x").IsZero() || k.Of("y").String() != led(2) {
		t.Errorf("x is in %q, y in %q", k.Of("x"), k.Of("y"))
	}
}

func clock() (func() time.Time, func(time.Duration)) {
	now := at
	return func() time.Time { return now }, func(d time.Duration) { now = now.Add(d) }
}

func TestRound_LeavesASpanOnlyWhereItDidSomething(t *testing.T) {
	for name, c := range map[string]struct {
		is   Ended
		want []string
	}{
		"nothing to do": {Ended{Outcome: Unchanged}, nil},
		"committed":     {Ended{Outcome: "committed", Commits: 1}, []string{"plan", "round"}},
		"failed":        {Ended{Outcome: "error", Err: errors.New("no way")}, []string{"plan", "round"}},
	} {
		t.Run(name, func(t *testing.T) {
			tracer, rec := recording()
			now, pass := clock()
			r := Round{Now: now, Tracer: tracer}
			ctx := r.Begin(context.Background())
			if len(r.Trailers()) != 1 || r.Trailers()[0] != "Trace: "+tracing.Of(ctx).String() || tracer.Round() != tracing.Of(ctx).Trace() {
				t.Errorf("trailers %v, context %s, round %s", r.Trailers(), tracing.Of(ctx), tracer.Round())
			}
			done := r.Time(Plan)
			pass(time.Second)
			done()
			r.End(c.is)
			var got []string
			for _, s := range rec.Ended() {
				got = append(got, s.Name())
			}
			if !slices.Equal(got, c.want) || r.Took.Plan != time.Second || tracer.Round() != "" {
				t.Errorf("spans %v, want %v; the plan took %s; in round %q", got, c.want, r.Took.Plan, tracer.Round())
			}
		})
	}
}

// webhook is a call that leads to a round; it gives its trace.
func webhook(tracer *tracing.Tracer) (trace string) {
	tracer.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { trace = tracing.Of(r.Context()).Trace() }), func(*http.Request) tracing.Route {
		return tracing.Route{Name: "webhook", Trigger: true}
	}).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", nil))
	return trace
}

// What led to a round of which nothing came leads to the next one.
func TestRound_WhatComesLaterIsOfWhatLedToIt(t *testing.T) {
	for name, c := range map[string]struct {
		is           Ended
		asked, waits bool
		spans        int
		next         bool
	}{
		"committed":                       {is: Ended{Outcome: "committed", Commits: 1}, asked: true, spans: 1},
		"committed, and another follows":  {is: Ended{Outcome: "committed", Commits: 1, Held: true}, spans: 1},
		"asked, and nothing to do":        {is: Ended{Outcome: Unchanged}, asked: true, spans: 1},
		"planned, and nothing to do":      {is: Ended{Outcome: "planned"}, spans: 1},
		"not asked":                       {is: Ended{Outcome: Unchanged}, next: true},
		"failed":                          {is: Ended{Outcome: "error", Err: errors.New("no way")}, asked: true, spans: 1, next: true},
		"planned again":                   {is: Ended{Outcome: Again}, asked: true, spans: 1, next: true},
		"the plan waits":                  {is: Ended{Outcome: "planned", Held: true}, asked: true, spans: 1, next: true},
		"the plan of before waits":        {is: Ended{Outcome: Unchanged, Held: true}, asked: true, next: true},
		"news of the market are gathered": {is: Ended{Outcome: Unchanged}, asked: true, waits: true, next: true},
		"another replica decides":         {is: Ended{Outcome: "planned", Standby: true}, spans: 1},
	} {
		t.Run(name, func(t *testing.T) {
			tracer, rec := recording()
			now, pass := clock()
			r := Round{Now: now, Tracer: tracer}
			trace := webhook(tracer)
			r.Begin(context.Background())
			if c.asked {
				done := r.Time(Ask)
				pass(time.Second)
				done()
			}
			if c.waits {
				r.Wait()
			}
			r.End(c.is)
			rounds := 0
			for _, s := range rec.Ended() {
				if s.Name() != "round" {
					continue
				}
				rounds++
				if is := slices.Contains(s.Attributes(), attribute.Bool("fleetbroker.round.standby", true)); is != c.is.Standby {
					t.Errorf("attributes %v", s.Attributes())
				}
			}
			if next := tracing.Of(r.Begin(context.Background())).Trace() == trace; next != c.next || rounds != c.spans {
				t.Errorf("leads to the next round: %v, want %v; %d spans, want %d", next, c.next, rounds, c.spans)
			}
		})
	}
}

func TestOffCostsNothing(t *testing.T) {
	now, _ := clock()
	ctx := context.Background()
	r := Round{Now: now}
	var k *Keeper
	contracts := []*v1alpha1.Contract{contract("x", v1alpha1.PhaseReserved)}
	name := func(c *v1alpha1.Contract) string { return c.Metadata.Name }
	all := slices.Values(contracts)
	if n := testing.AllocsPerRun(1000, func() {
		r.Begin(ctx)
		r.Add("x", at, at)
		r.Trailers()
		r.End(Ended{Outcome: Unchanged})
		k.Follow(nil, tree.Hash{1}, all)
		_ = k.Of("x")
		_ = k.Among(contracts, name)
	}); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
	if NewKeeper(nil, "a") != nil {
		t.Error("without a tracer there is a keeper")
	}
}
