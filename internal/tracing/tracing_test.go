package tracing

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	applogs "github.com/fleetbroker/fleetbroker/internal/api/logs"
)

// recording is a tracer with what it made.
func recording(t *testing.T, opts ...sdk.TracerProviderOption) (*Tracer, *tracetest.SpanRecorder) {
	t.Helper()
	rec := tracetest.NewSpanRecorder()
	return New(sdk.NewTracerProvider(append(opts, sdk.WithSpanProcessor(rec))...)), rec
}

var some = Parse("4bf92f3577b34da6a3ce929d0e0e4736 00f067aa0ba902b7")

func TestOrigin_ReadsWhatItWroteAndNothingElse(t *testing.T) {
	if some.IsZero() || Parse(some.String()) != some || ParseTraceparent(some.Traceparent()) != some {
		t.Fatalf("%q and %q are not read again", some.String(), some.Traceparent())
	}
	if got := some.Traceparent(); got != "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01" {
		t.Errorf("traceparent: got %s", got)
	}
	if got := ParseTexts(Texts(map[string]Origin{"a": some})); got["a"] != some {
		t.Errorf("got %v", got)
	}
	if got := ParseTexts(map[string]string{"a": "x", "b": some.Traceparent()}); len(got) != 1 {
		t.Errorf("got %v, want b alone", got)
	}
	for _, text := range []string{
		"", " ", some.Trace(), strings.ToUpper(some.String()), some.String() + " ", some.String() + "0",
		"00000000000000000000000000000000 00f067aa0ba902b7", "4bf92f3577b34da6a3ce929d0e0e4736 0000000000000000",
		"4bf92f3577b34da6a3ce929d0e0e473g 00f067aa0ba902b7", "../../4bf92f3577b34da6a3ce929d0e 00f067aa0ba902b7",
	} {
		if o := Parse(text); !o.IsZero() || o.String() != "" || o.Traceparent() != "" || o.Trace() != "" {
			t.Errorf("Parse(%q) = %q", text, o)
		}
	}
	tp := some.Traceparent()
	for _, text := range []string{"", "01" + tp[2:], tp[:53] + "00", tp + "-x", strings.ToUpper(tp), tp[:35] + "_" + tp[36:], strings.Repeat("0", 55)} {
		if o := ParseTraceparent(text); !o.IsZero() {
			t.Errorf("ParseTraceparent(%q) = %q", text, o)
		}
	}
}

func TestHandler_CallersAreLinkedAndReplicasGoOn(t *testing.T) {
	for name, c := range map[string]struct {
		trusted, parent, link bool
		header                string
	}{
		"a stranger's trace is linked": {header: some.Traceparent(), link: true},
		"a replica's goes on":          {header: some.Traceparent(), trusted: true, parent: true},
		"what is no trace is nothing":  {header: "00-ff-ff-01"},
		"nor from a replica":           {header: "00-ff-ff-01", trusted: true},
	} {
		t.Run(name, func(t *testing.T) {
			tracer, rec := recording(t)
			h := tracer.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), func(*http.Request) Route {
				return Route{Name: "report", Trigger: true, Trusted: c.trusted}
			})
			r := httptest.NewRequest(http.MethodPut, "/", nil)
			r.Header.Set("Traceparent", c.header)
			h.ServeHTTP(httptest.NewRecorder(), r)
			span := rec.Ended()[0]
			if got := span.Parent().SpanID() == some.span && span.SpanContext().TraceID() == some.trace; got != c.parent {
				t.Errorf("parent %v of trace %s, want it: %v", span.Parent().SpanID(), span.SpanContext().TraceID(), c.parent)
			}
			if got := len(span.Links()) == 1 && span.Links()[0].SpanContext.TraceID() == some.trace; got != c.link {
				t.Errorf("links %v, want one: %v", span.Links(), c.link)
			}
			if parent, _, _ := Led(tracer.Triggers()); parent.Trace() != span.SpanContext().TraceID().String() {
				t.Errorf("leads to a round in trace %q, want %s", parent.Trace(), span.SpanContext().TraceID())
			}
		})
	}
}

// What a caller sends must not make kept what this fleet does not keep.
func TestHandler_CallersForceNoSampling(t *testing.T) {
	tracer, rec := recording(t, sdk.WithSampler(sdk.ParentBased(sdk.NeverSample())))
	h := tracer.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), func(*http.Request) Route { return Route{Name: "webhook", Trigger: true} })
	r := httptest.NewRequest(http.MethodPost, "/", nil)
	r.Header.Set("Traceparent", some.Traceparent())
	h.ServeHTTP(httptest.NewRecorder(), r)
	if n := len(rec.Ended()); n != 0 {
		t.Errorf("%d spans are kept", n)
	}
	if parent, links, dropped := Led(tracer.Triggers()); !parent.IsZero() || len(links) != 0 || !dropped {
		t.Errorf("it leads to %v %v, dropped %v", parent, links, dropped)
	}
}

// Who is refused leads to no round and fills no collector.
func TestHandler_RefusedLeaveNothing(t *testing.T) {
	for _, code := range []int{401, 403, 404, 429, 500} {
		tracer, rec := recording(t)
		h := tracer.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }), func(*http.Request) Route { return Route{Name: "webhook", Trigger: true} })
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", nil))
		if n, want := len(rec.Ended()), map[bool]int{true: 1}[code == 500]; n != want {
			t.Errorf("%d: %d spans, want %d", code, n, want)
		}
		if list := tracer.Triggers(); len(list) != 0 {
			t.Errorf("%d: leads to a round", code)
		}
	}
}

// What anybody may send leads to a round only once it was proven.
func TestHandler_NewsAreTold(t *testing.T) {
	for _, proven := range []bool{false, true} {
		tracer, _ := recording(t)
		seen := -1
		h := tracer.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if proven {
				News(r.Context())
			}
			seen = len(tracer.triggers.list)
		}), func(*http.Request) Route { return Route{Name: "webhook", Trigger: true, Told: true} })
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", nil))
		if want := map[bool]int{true: 1}[proven]; seen != want || len(tracer.Triggers()) != want {
			t.Errorf("proven %v: %d lead to a round, want %d", proven, seen, want)
		}
	}
	News(t.Context()) // without traces
}

func TestTriggers_AreBoundedAndGrowOld(t *testing.T) {
	tracer, _ := recording(t)
	h := tracer.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), func(*http.Request) Route { return Route{Name: "report", Trigger: true} })
	for range 10 * maxTriggers {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPut, "/", nil))
	}
	list := tracer.Triggers()
	if len(list) != maxTriggers {
		t.Fatalf("%d wait, want %d", len(list), maxTriggers)
	}
	if _, links, _ := Led(list); len(links) != maxTriggers-1 {
		t.Errorf("%d links, want %d", len(links), maxTriggers-1)
	}
	list[0].at = time.Now().Add(-2 * stale)
	tracer.PutBack(list, false)
	tracer.PutBack(list, false)
	if n := len(tracer.Triggers()); n != maxTriggers {
		t.Errorf("%d wait after they were put back twice, want %d", n, maxTriggers)
	}
	tracer.PutBack(list[:1], false)
	if n := len(tracer.Triggers()); n != 0 {
		t.Errorf("an old one waits again")
	}
	tracer.PutBack(list[:1], true)
	if n := len(tracer.Triggers()); n != 1 {
		t.Errorf("one whose plan is held does not wait again")
	}
	list[0].at = time.Now().Add(-2 * staleHeld)
	tracer.PutBack(list[:1], true)
	if n := len(tracer.Triggers()); n != 0 {
		t.Errorf("it waits without end")
	}
}

// What asks for something is a round's parent, and no number of reports displaces it.
func TestTriggers_ReportsComeLast(t *testing.T) {
	tracer, rec := recording(t)
	h := tracer.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), func(r *http.Request) Route {
		return Route{Name: r.URL.Path, Trigger: true, Market: r.URL.Path == "/report"}
	})
	call := func(path string) { h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPut, path, nil)) }
	call("/report")
	call("/webhook")
	call("/reserve")
	for range 2 * maxTriggers {
		call("/report")
	}
	list := tracer.Triggers()
	tracer.PutBack(list, true)
	call("/report")
	list = tracer.Triggers()
	of := func(o Origin) string {
		for _, s := range rec.Ended() {
			if originOf(s.SpanContext()) == o {
				return s.Name()
			}
		}
		return ""
	}
	parent, links, dropped := Led(list)
	if of(parent) != "/webhook" || len(links) != maxTriggers-1 || of(links[0]) != "/reserve" || dropped {
		t.Errorf("a round of %d is led to by %s, with %d links", len(list), of(parent), len(links))
	}
	if parent, _, _ := Led(list[2:]); of(parent) != "/report" {
		t.Errorf("a round of reports alone is led to by %q", of(parent))
	}
}

func TestSpan_AttributesAreBounded(t *testing.T) {
	tracer, rec := recording(t)
	_, span := tracer.Begin(t.Context(), "round", time.Time{}, Origin{}, nil)
	span.Set("long", strings.Repeat("ä", 10_000))
	span.Set("bytes", "a\xffb")
	span.Set("empty", "")
	span.End(errors.New("no\nway \x1b[31m" + strings.Repeat("x", 5000)))
	got := rec.Ended()[0]
	for _, kv := range got.Attributes() {
		if v := kv.Value.AsString(); len(v) > maxValue || kv.Key == "empty" || strings.ToValidUTF8(v, "") != v {
			t.Errorf("%s: %d bytes: %q", kv.Key, len(v), v)
		}
	}
	if d := got.Status().Description; len(d) > maxValue || strings.ContainsAny(d, "\n\x1b") {
		t.Errorf("status %q", d)
	}
}

func TestEach_OneSpanInEachTrace(t *testing.T) {
	tracer, rec := recording(t)
	other := Parse("aaaa2f3577b34da6a3ce929d0e0e4736 00f067aa0ba902b7")
	ctx, spans := tracer.Each(t.Context(), "apply", []Origin{some, other})
	spans.Set("cluster", "rome")
	spans.End(nil)
	if Of(ctx).Trace() != some.Trace() || len(rec.Ended()) != 2 || rec.Ended()[0].Parent().SpanID() != some.span || rec.Ended()[1].SpanContext().TraceID() != other.trace {
		t.Errorf("context in %s, spans %v", Of(ctx).Trace(), rec.Ended())
	}
}

// The trace stands in lines that are written with its context, and does not make lines
// differ that are left out as equal.
func TestLogs(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(applogs.Handler(Logs(slog.NewTextHandler(&out, nil))))
	tracer, _ := recording(t)
	for range 3 {
		ctx, _ := tracer.Begin(t.Context(), "round", time.Time{}, Origin{}, nil)
		log.With("cluster", "rome").InfoContext(ctx, "hello")
		if out.Len() > 0 && !strings.Contains(out.String(), "trace="+Of(ctx).Trace()) && strings.Count(out.String(), "\n") != 1 {
			t.Error(out.String())
		}
	}
	log.Info("other")
	if got := out.String(); strings.Count(got, "trace=") != 1 || strings.Count(got, "hello") != 1 || !strings.Contains(got, "cluster=rome trace=") {
		t.Errorf("got %s", got)
	}
}

// off does all that the hot paths do, without a tracer.
func off(ctx context.Context, tracer *Tracer) {
	ctx, span := tracer.Begin(ctx, "round", time.Time{}, some, nil)
	ctx, below := Start(ctx, "push")
	below.Set("kind", "ledger")
	below.SetInt("n", 1)
	below.End(nil)
	span.Add("plan", time.Time{}, time.Time{})
	_ = span.Origin()
	span.EndAt(nil, time.Time{})
	ctx, all := tracer.Each(ctx, "apply", nil)
	all.Set("cluster", "rome")
	all.End(nil)
	tracer.InRound(Of(ctx))
	_ = tracer.Round()
	tracer.PutBack(tracer.Triggers(), false)
}

func TestOffCostsNothing(t *testing.T) {
	ctx := t.Context()
	if n := testing.AllocsPerRun(1000, func() { off(ctx, nil) }); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
	next := http.NewServeMux()
	if h := (*Tracer)(nil).Handler(next, nil); h != http.Handler(next) {
		t.Error("a handler is wrapped though there is no tracer")
	}
	if New(nil) != nil {
		t.Error("without a provider there is a tracer")
	}
}

func BenchmarkOff(b *testing.B) {
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		off(ctx, nil)
	}
}

// A provider that keeps nothing makes no origin, and nothing that a commit would name.
func TestNotKeptIsNoOrigin(t *testing.T) {
	for name, p := range map[string]trace.TracerProvider{"noop": noop.NewTracerProvider(), "never": sdk.NewTracerProvider(sdk.WithSampler(sdk.NeverSample()))} {
		ctx, span := New(p).Begin(t.Context(), "round", time.Time{}, Origin{}, nil)
		if !span.Origin().IsZero() || !Of(ctx).IsZero() {
			t.Errorf("%s: %v", name, span.Origin())
		}
	}
}

// TestLineOf: a line about a contract names the trace that it is on its way in.
func TestLineOf(t *testing.T) {
	a, b := ParseTraceparent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"), ParseTraceparent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	said := map[string]string{"x": "refused", "y": "refused", "z": "other", "w": "without"}
	of := map[string]Origin{"y": b, "z": a}
	for text, want := range map[string]string{"refused": b.Trace(), "other": a.Trace(), "without": "", "unsaid": ""} {
		var out strings.Builder
		slog.New(Logs(slog.NewTextHandler(&out, nil))).WarnContext(LineOf(text, said, of), "not delivered", "reason", text)
		if got := out.String(); want == "" && strings.Contains(got, "trace=") || want != "" && !strings.Contains(got, "trace="+want) {
			t.Errorf("%s: %s, want %q", text, got, want)
		}
	}
	if LineOf("refused", said, nil) != context.Background() || (Origin{}).In(t.Context()) != t.Context() {
		t.Error("without traces there is no more than a context")
	}
}
