package tracing

import (
	"context"
	"encoding/hex"
	"strings"

	"go.opentelemetry.io/otel/trace"
)

// Trailer is the commit trailer that names the trace which led to a commit:
// "Trace: <trace> <span>", in hexadecimal.
const Trailer = "Trace"

// Origin is the span that led to something, in this process or another: its trace is
// kept (sampled). The zero value is none. It can be compared.
type Origin struct {
	trace trace.TraceID
	span  trace.SpanID
}

// originOf is a span's, none where the trace is not kept.
func originOf(c trace.SpanContext) Origin {
	if !c.IsValid() || !c.IsSampled() {
		return Origin{}
	}
	return Origin{c.TraceID(), c.SpanID()}
}

// IsZero reports whether there is none.
func (o Origin) IsZero() bool { return !o.trace.IsValid() || !o.span.IsValid() }

// Trace is the trace's id in hexadecimal, "" for none.
func (o Origin) Trace() string {
	if o.IsZero() {
		return ""
	}
	return o.trace.String()
}

// String is "<trace> <span>", as the trailer has it; "" for none.
func (o Origin) String() string {
	if o.IsZero() {
		return ""
	}
	return o.trace.String() + " " + o.span.String()
}

// Parse reads what String wrote. Whatever has another form is none.
func Parse(text string) Origin {
	first, second, ok := strings.Cut(text, " ")
	if !ok {
		return Origin{}
	}
	return parsed(first, second)
}

// Traceparent is the header's value (W3C Trace Context), "" for none.
func (o Origin) Traceparent() string {
	if o.IsZero() {
		return ""
	}
	return "00-" + o.trace.String() + "-" + o.span.String() + "-01"
}

// ParseTraceparent reads what Traceparent wrote: version 00, of a trace that is kept.
func ParseTraceparent(text string) Origin {
	if len(text) != 55 || text[:3] != "00-" || text[35] != '-' || text[52:] != "-01" {
		return Origin{}
	}
	return parsed(text[3:35], text[36:52])
}

// parsed reads ids, which are lower case.
func parsed(traceID, spanID string) Origin {
	var o Origin
	if len(traceID) != 2*len(o.trace) || len(spanID) != 2*len(o.span) || strings.ToLower(traceID) != traceID || strings.ToLower(spanID) != spanID {
		return Origin{}
	}
	if _, err := hex.Decode(o.trace[:], []byte(traceID)); err != nil {
		return Origin{}
	}
	if _, err := hex.Decode(o.span[:], []byte(spanID)); err != nil || o.IsZero() {
		return Origin{}
	}
	return o
}

// context is the origin as a parent in another process.
func (o Origin) context() trace.SpanContext {
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: o.trace, SpanID: o.span, TraceFlags: trace.FlagsSampled, Remote: true})
}

// In is a context in which log lines name the origin's trace; the same where it is none.
func (o Origin) In(ctx context.Context) context.Context {
	if o.IsZero() {
		return ctx
	}
	return trace.ContextWithRemoteSpanContext(ctx, o.context())
}

// Texts are origins as Traceparent writes them, nil for none: what is sent to agents.
func Texts(of map[string]Origin) map[string]string {
	if len(of) == 0 {
		return nil
	}
	out := make(map[string]string, len(of))
	for name, o := range of {
		out[name] = o.Traceparent()
	}
	return out
}

// maxRead bounds the origins that are read of one message.
const maxRead = 10_000

// ParseTexts reads what Texts wrote; what has another form is left out.
func ParseTexts(of map[string]string) map[string]Origin {
	if len(of) == 0 || len(of) > maxRead {
		return nil
	}
	out := make(map[string]Origin, len(of))
	for name, text := range of {
		if o := ParseTraceparent(text); !o.IsZero() {
			out[name] = o
		}
	}
	return out
}
