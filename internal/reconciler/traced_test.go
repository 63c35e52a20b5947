package reconciler

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/memremote"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/pushbudget"
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

// webhook is a call that leads to a round; it gives its trace.
func webhook(s *story) (id string) {
	s.tracer.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { id = tracing.Of(r.Context()).Trace() }), func(*http.Request) tracing.Route {
		return tracing.Route{Name: "webhook", Trigger: true}
	}).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", nil))
	return id
}

// What is committed later is in the trace of what led to it: when the remote answers again,
// when a push may go, when news of the market were gathered.
func TestTraceOfWhatIsCommittedLater(t *testing.T) {
	tracer := tracing.New(sdk.NewTracerProvider())
	committed := func(s *story, out Outcome, id string) {
		t.Helper()
		if len(out.Committed) == 0 {
			t.Fatal("nothing was committed")
		}
		if got := tracing.Parse(out.Committed[0].Commit.Trailer(tracing.Trailer)).Trace(); got != id {
			s.t.Errorf("the commit is in trace %q, want %q", got, id)
		}
	}
	t.Run("a round failed", func(t *testing.T) {
		s := newStory(t, "ledger")
		s.tracer = tracer
		s.start()
		s.rest()
		s.push(map[string]string{"intents/vision/train.yaml": intentOf("train", "4")})
		s.remote.Fault = func(memremote.Op) (bool, error) { return false, errors.New("away") }
		id := webhook(s)
		s.r.Reread()
		if _, err := s.r.Round(t.Context()); err == nil {
			t.Fatal("a round without the remote")
		}
		s.remote.Fault = nil
		s.r.Reread()
		committed(s, s.round(), id)
	})
	t.Run("the budget of pushes", func(t *testing.T) {
		s := pacedDesk(t, pushbudget.Limit{PerMinute: 6, Burst: 1})
		s.tracer = tracer
		s.start()
		s.at = s.at.Add(time.Hour)
		s.round()
		a := s.ask(t.Context(), "rome", "a", wants("4", "16Gi", "1"))
		s.round()
		<-a
		id := webhook(s)
		b := s.ask(t.Context(), "rome", "b", wants("4", "16Gi", "1"))
		out := s.round()
		if len(out.Committed) != 0 || out.Due.IsZero() {
			t.Fatalf("%d commits past the budget", len(out.Committed))
		}
		s.at = out.Due
		committed(s, s.round(), id)
		<-b
	})
	t.Run("gathered", func(t *testing.T) {
		s, busy, idle := newMarket(t)
		s.push(map[string]string{"intents/vision/more.yaml": "apiVersion: fleetbroker.io/v1alpha1\nkind: ResourceIntent\nmetadata: {name: more, namespace: vision}\nspec: {resources: {cpu: \"3\", memory: 3Gi}, placement: {providers: {allow: [idle]}}}\n"})
		_ = busy
		s.tracer = tracer
		s.r.traced.Tracer = tracer
		s.at = s.at.Add(time.Second)
		idle.report(func(f *v1alpha1.FlavorSpec) { f.Used = cores(5) })
		id := webhook(s)
		if planned, _ := s.plans(); planned {
			t.Fatal("planned at once")
		}
		s.at = s.at.Add(gathering)
		s.r.Reread()
		committed(s, s.round(), id)
	})
}

// Why a round failed is logged in its trace.
func TestRoundFailedNamesItsTrace(t *testing.T) {
	var log strings.Builder
	s := newStory(t, "ledger")
	s.tracer = tracing.New(sdk.NewTracerProvider())
	s.start()
	s.rest()
	s.r.opts.Log = slog.New(tracing.Logs(slog.NewTextHandler(&log, nil)))
	ctx, stop := context.WithCancel(t.Context())
	asked := 0
	s.remote.Fault = func(memremote.Op) (bool, error) {
		if asked++; asked > 1 {
			stop()
		}
		return false, errors.New("away")
	}
	id := webhook(s)
	s.r.Reread()
	if err := s.r.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if line, _, _ := strings.Cut(log.String(), "\n"); !strings.Contains(line, "round failed") || !strings.Contains(line, "trace="+id) {
		t.Errorf("got %s, want trace %s", log.String(), id)
	}
}
