package tracing

import (
	"context"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/fleetbroker/fleetbroker/internal/api/escape"
)

// scope is the instrumentation scope of all spans.
const scope = "github.com/fleetbroker/fleetbroker"

// maxValue bounds the value of an attribute, in bytes.
const maxValue = 256

// maxLinks bounds what a span says it came of besides its parent.
const maxLinks = 16

// Tracer makes the first spans of traces. Nil makes none. Make it with New.
type Tracer struct {
	tracer   trace.Tracer
	triggers triggers
	round    atomic.Pointer[string] // the trace of the round under way
}

// New makes a Tracer of whatever keeps spans; nil gives nil: tracing is off.
func New(provider trace.TracerProvider) *Tracer {
	if provider == nil {
		return nil
	}
	return &Tracer{tracer: provider.Tracer(scope)}
}

// InRound notes the trace of the round that is under way; none: there is no round.
func (t *Tracer) InRound(o Origin) {
	if t == nil {
		return
	}
	id := o.Trace()
	t.round.Store(&id)
}

// Round is the trace of the round that is under way, "" for none.
func (t *Tracer) Round() string {
	if t == nil {
		return ""
	}
	if id := t.round.Load(); id != nil {
		return *id
	}
	return ""
}

// Span is one that is under way; the zero value is none, and its methods do nothing.
type Span struct{ of trace.Span }

// Begin begins a span at a time (zero: now): of the trace of its parent, or where that
// is none a trace of its own, with links to what else led to it.
func (t *Tracer) Begin(ctx context.Context, name string, at time.Time, parent Origin, links []Origin) (context.Context, Span) {
	if t == nil {
		return ctx, Span{}
	}
	opts := make([]trace.SpanStartOption, 0, 3)
	if parent.IsZero() {
		opts = append(opts, trace.WithNewRoot())
	} else {
		ctx = trace.ContextWithRemoteSpanContext(ctx, parent.context())
	}
	if !at.IsZero() {
		opts = append(opts, trace.WithTimestamp(at))
	}
	if len(links) > 0 {
		list := make([]trace.Link, 0, min(len(links), maxLinks))
		for _, o := range links[:min(len(links), maxLinks)] {
			list = append(list, trace.Link{SpanContext: o.context()})
		}
		opts = append(opts, trace.WithLinks(list...))
	}
	ctx, span := t.tracer.Start(ctx, name, opts...)
	return ctx, Span{span}
}

// Each begins a span in each trace of several (16 at most): what is done once for all of
// them. The context is that of the first; end ends all.
func (t *Tracer) Each(ctx context.Context, name string, of []Origin) (_ context.Context, all Spans) {
	if t == nil || len(of) == 0 {
		return ctx, nil
	}
	first := ctx
	for i, o := range of[:min(len(of), maxLinks)] {
		c, span := t.Begin(ctx, name, time.Time{}, o, nil)
		if all = append(all, span); i == 0 {
			first = c
		}
	}
	return first, all
}

// Spans are several with one fate.
type Spans []Span

// Set gives all an attribute.
func (s Spans) Set(key, value string) {
	for _, one := range s {
		one.Set(key, value)
	}
}

// End ends all.
func (s Spans) End(err error) {
	for _, one := range s {
		one.End(err)
	}
}

// Start begins a span below the one that the context has; where it has none, none.
func Start(ctx context.Context, name string) (context.Context, Span) {
	above := trace.SpanFromContext(ctx)
	if !above.IsRecording() {
		return ctx, Span{}
	}
	ctx, span := above.TracerProvider().Tracer(scope).Start(ctx, name)
	return ctx, Span{span}
}

// Add adds a span below this one that has ended.
func (s Span) Add(name string, began, ended time.Time) {
	if s.of == nil || !s.of.IsRecording() {
		return
	}
	_, span := s.of.TracerProvider().Tracer(scope).Start(trace.ContextWithSpan(context.Background(), s.of), name, trace.WithTimestamp(began))
	span.End(trace.WithTimestamp(ended))
}

// Origin is the span as what leads to something else; none where its trace is not kept.
func (s Span) Origin() Origin {
	if s.of == nil {
		return Origin{}
	}
	return originOf(s.of.SpanContext())
}

// In is a context whose log lines name the span's trace.
func (s Span) In(ctx context.Context) context.Context {
	if s.of == nil {
		return ctx
	}
	return trace.ContextWithSpan(ctx, s.of)
}

// Set gives an attribute; the value is cut where it is too long. Empty ones are left out.
func (s Span) Set(key, value string) {
	if s.of == nil || value == "" {
		return
	}
	s.of.SetAttributes(attribute.String(key, bounded(value)))
}

// SetInt gives an attribute that is a number.
func (s Span) SetInt(key string, n int) {
	if s.of != nil {
		s.of.SetAttributes(attribute.Int(key, n))
	}
}

// SetBool gives an attribute that is so or not.
func (s Span) SetBool(key string, is bool) {
	if s.of != nil {
		s.of.SetAttributes(attribute.Bool(key, is))
	}
}

// End ends the span, with an error if there is one.
func (s Span) End(err error) { s.EndAt(err, time.Time{}) }

// EndAt is End at a time; zero: now.
func (s Span) EndAt(err error, at time.Time) {
	if s.of == nil {
		return
	}
	if err != nil {
		s.of.SetStatus(codes.Error, bounded(escape.Reason(err.Error())))
	}
	if at.IsZero() {
		s.of.End()
		return
	}
	s.of.End(trace.WithTimestamp(at))
}

// Of is the origin that a context has; none where there is no span, or its trace is not
// kept.
func Of(ctx context.Context) Origin { return originOf(trace.SpanContextFromContext(ctx)) }

// bounded is a value that is short enough, of whole characters.
func bounded(value string) string {
	if len(value) <= maxValue {
		return strings.ToValidUTF8(value, "\uFFFD")
	}
	cut := maxValue
	for cut > 0 && !utf8.RuneStart(value[cut]) {
		cut--
	}
	return strings.ToValidUTF8(value[:cut], "\uFFFD")
}
