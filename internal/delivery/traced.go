package delivery

import (
	"context"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/tracing"
)

// traced begins the span of a pass in each trace whose contracts it is for.
func (w *worker) traced(ctx context.Context, todo []work) (context.Context, tracing.Spans) {
	if w.options.Tracer == nil {
		return ctx, nil
	}
	w.mu.Lock()
	by := w.target.Traces
	w.mu.Unlock()
	var of []tracing.Origin
	for _, t := range todo {
		if o := by[t.unit.Name]; t.unit.Kind == kindContract && !o.IsZero() && !slices.Contains(of, o) {
			of = append(of, o)
		}
	}
	ctx, spans := w.options.Tracer.Each(ctx, "apply", of)
	spans.Set("fleetbroker.cluster", w.name)
	return ctx, spans
}
