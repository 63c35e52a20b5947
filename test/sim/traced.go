package sim

import (
	"context"
	"math/rand/v2"

	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/fleetbroker/fleetbroker/internal/reconciler"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/traced"
	"github.com/fleetbroker/fleetbroker/internal/tracing"
)

// ids draws a trace's ids from the seed, and from a stream of their own: with traces a
// schedule is what it is without.
type ids struct{ rng *rand.Rand }

func newIDs(seed uint64) *ids { return &ids{rand.New(rand.NewPCG(seed, 0x7472616365))} }

func (i *ids) fill(to []byte) {
	for n := range to {
		to[n] = byte(i.rng.Uint32())
	}
}

// NewIDs implements sdk.IDGenerator.
func (i *ids) NewIDs(ctx context.Context) (id trace.TraceID, span trace.SpanID) {
	i.fill(id[:])
	return id, i.NewSpanID(ctx, id)
}

// NewSpanID implements sdk.IDGenerator.
func (i *ids) NewSpanID(context.Context, trace.TraceID) (id trace.SpanID) {
	i.fill(id[:])
	return id
}

// trace has a life of a daemon make traces, in every other seed: nobody collects them, and
// what they leave on the ledger must harm nothing that looks at it.
func (d *daemon) trace(o *reconciler.Options) {
	if d.s.seed%2 != 0 {
		return
	}
	o.Tracer = tracing.New(sdk.NewTracerProvider(sdk.WithIDGenerator(d.s.ids), sdk.WithResource(resource.Empty())))
	o.Traces = traced.NewKeeper(o.Tracer, d.name)
}
