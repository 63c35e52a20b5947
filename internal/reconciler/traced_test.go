package reconciler

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/tracing"
)

// seeded draws ids from a seed, as the simulation does.
type seeded struct{ r *rand.Rand }

func (s seeded) NewIDs(ctx context.Context) (id trace.TraceID, span trace.SpanID) {
	for i := range id {
		id[i] = byte(s.r.Uint32())
	}
	return id, s.NewSpanID(ctx, id)
}

func (s seeded) NewSpanID(context.Context, trace.TraceID) (id trace.SpanID) {
	for i := range id {
		id[i] = byte(s.r.Uint32())
	}
	return id
}

// outside is what a fleet looks like from outside after an intent was placed.
type outside struct {
	tree                 tree.Hash
	plan, round, version string
	trace                tracing.Origin
	spans                []string
}

// A trace is in the trailer and nowhere else: with it, with another one and without, the
// plan, its digest and record, every file, and the versions of what agents are told are
// the same, so that two replicas plan alike.
func TestTraceIsNoPartOfAPlan(t *testing.T) {
	run := func(seed uint64) (out outside) {
		rec := tracetest.NewSpanRecorder()
		s := newStory(t, "ledger")
		if seed != 0 {
			s.tracer = tracing.New(sdk.NewTracerProvider(sdk.WithSpanProcessor(rec), sdk.WithIDGenerator(seeded{rand.New(rand.NewPCG(seed, 1))})))
		}
		s.start()
		s.push(map[string]string{"intents/vision/train.yaml": intentOf("train", "4")})
		s.r.Reread()
		o, err := s.r.Round(t.Context())
		if err != nil || len(o.Committed) != 1 {
			t.Fatalf("%+v, %v", o, err)
		}
		c := o.Committed[0].Commit
		out.tree, out.plan, out.round, out.trace = c.Tree, c.Trailer("Plan"), c.Trailer("Round"), tracing.Parse(c.Trailer(tracing.Trailer))
		if c.Trailer(tracing.Trailer) != out.trace.String() {
			t.Errorf("trailer %q is read as %q", c.Trailer(tracing.Trailer), out.trace)
		}
		s.r.Reread()
		if _, err := s.r.Round(t.Context()); err != nil { // delivers
			t.Fatal(err)
		}
		rome := s.clusters.desired["rome"]
		var name string
		for _, ct := range rome.Contracts {
			name = ct.Metadata.Name
		}
		if got := rome.Traces[name]; got != out.trace {
			t.Errorf("rome is told of trace %q, want %q", got, out.trace)
		}
		in, _ := s.r.Instructions("paris")
		if got := tracing.ParseTraceparent(in.Traces[name]); got != out.trace {
			t.Errorf("paris is told of trace %q, want %q", got, out.trace)
		}
		out.version = in.Version
		for _, span := range rec.Ended() {
			if span.SpanContext().TraceID().String() == out.trace.Trace() {
				out.spans = append(out.spans, span.Name())
			}
		}
		return out
	}
	off, one, same, other := run(0), run(7), run(7), run(8)
	if !off.trace.IsZero() || one.trace.IsZero() || one.trace != same.trace || one.trace == other.trace {
		t.Errorf("traces: off %q, seed 7 %q and %q, seed 8 %q", off.trace, one.trace, same.trace, other.trace)
	}
	if off.plan == "" || off.round == "" || off.version == "" {
		t.Fatalf("nothing is compared: %+v", off)
	}
	for name, with := range map[string]outside{"a trace": one, "another trace": other} {
		if with.tree != off.tree || with.plan != off.plan || with.round != off.round || with.version != off.version {
			t.Errorf("with %s:\n%+v\nwithout:\n%+v", name, with, off)
		}
	}
	for _, want := range []string{"ask the fleet repo", "read", "plan", "commit", "round"} {
		if !slices.Contains(one.spans, want) {
			t.Errorf("spans of the round: %q, want %s among them", one.spans, want)
		}
	}
}

// A round without news leaves nothing in the collector.
func TestRoundWithoutNews_MakesNoSpan(t *testing.T) {
	rec := tracetest.NewSpanRecorder()
	s := newStory(t, "ledger")
	s.tracer = tracing.New(sdk.NewTracerProvider(sdk.WithSpanProcessor(rec)))
	s.start()
	s.rest()
	before := len(rec.Ended())
	for range 3 {
		if _, err := s.r.Round(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(rec.Ended()); n != before {
		t.Errorf("%d spans of rounds that had nothing to do", n-before)
	}
}
