package tracing

import (
	"context"
	"log/slog"
	"maps"
	"slices"
)

// LogKey is the key of a log line's trace.
const LogKey = "trace"

// Logs adds the trace's id to lines that are written with a context that has one. It goes
// below what leaves out lines that are equal: lines that differ in it alone are equal.
func Logs(to slog.Handler) slog.Handler { return &logs{to} }

// LineOf is the context of a log line that says a text, in the trace of the first thing, by
// name, of which it is said; without a trace where that has none.
func LineOf(text string, said map[string]string, of map[string]Origin) context.Context {
	ctx := context.Background()
	if len(of) == 0 {
		return ctx
	}
	for _, name := range slices.Sorted(maps.Keys(said)) {
		if said[name] == text {
			if o := of[name]; !o.IsZero() {
				return o.In(ctx)
			}
		}
	}
	return ctx
}

type logs struct{ slog.Handler }

// Handle implements slog.Handler.
func (h *logs) Handle(ctx context.Context, r slog.Record) error {
	if o := Of(ctx); !o.IsZero() {
		r = r.Clone()
		r.AddAttrs(slog.String(LogKey, o.Trace()))
	}
	return h.Handler.Handle(ctx, r) //nolint:wrapcheck // of the writer
}

// WithAttrs implements slog.Handler.
func (h *logs) WithAttrs(attrs []slog.Attr) slog.Handler { return &logs{h.Handler.WithAttrs(attrs)} }

// WithGroup implements slog.Handler.
func (h *logs) WithGroup(name string) slog.Handler { return &logs{h.Handler.WithGroup(name)} }
