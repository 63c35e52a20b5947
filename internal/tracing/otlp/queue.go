package otlp

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	"github.com/fleetbroker/fleetbroker/internal/api/logs"
)

// limits of the queue.
type limits struct {
	// waiting is how many spans may wait, batch how many are sent at once.
	waiting, batch int
	// delay is how long a span waits for others, timeout how long sending may take.
	delay, timeout time.Duration
}

// queue is the SpanProcessor: spans wait here and are sent by one goroutine.
type queue struct {
	to     sdk.SpanExporter
	limits limits
	log    *slog.Logger

	spans chan sdk.ReadOnlySpan
	flush chan chan struct{}
	stop  chan struct{}
	ended chan struct{}
	once  sync.Once

	sent, dropped, failed atomic.Uint64
}

func newQueue(to sdk.SpanExporter, l limits, log *slog.Logger) *queue {
	q := &queue{to: to, limits: l, log: log, spans: make(chan sdk.ReadOnlySpan, l.waiting), flush: make(chan chan struct{}), stop: make(chan struct{}), ended: make(chan struct{})}
	go q.run()
	return q
}

// OnStart implements sdk.SpanProcessor.
func (q *queue) OnStart(context.Context, sdk.ReadWriteSpan) {}

// OnEnd implements sdk.SpanProcessor. It never waits.
func (q *queue) OnEnd(s sdk.ReadOnlySpan) {
	if !s.SpanContext().IsSampled() {
		return
	}
	select {
	case <-q.stop:
		q.dropped.Add(1)
		return
	default:
	}
	select {
	case q.spans <- s:
	default:
		q.dropped.Add(1)
	}
}

// run sends what waits, until the queue is stopped.
func (q *queue) run() {
	defer close(q.ended)
	tick := time.NewTicker(q.limits.delay)
	defer tick.Stop()
	batch := make([]sdk.ReadOnlySpan, 0, q.limits.batch)
	for {
		select {
		case s := <-q.spans:
			if batch = append(batch, s); len(batch) < q.limits.batch {
				continue
			}
			batch = q.send(context.Background(), batch)
		case <-tick.C:
			batch = q.send(context.Background(), batch)
		case done := <-q.flush:
			batch = q.rest(context.Background(), batch)
			close(done)
		case <-q.stop:
			q.leave(batch)
			return
		}
	}
}

// rest sends the batch and all that waits.
func (q *queue) rest(ctx context.Context, batch []sdk.ReadOnlySpan) []sdk.ReadOnlySpan {
	for {
		select {
		case s := <-q.spans:
			if batch = append(batch, s); len(batch) >= q.limits.batch {
				batch = q.send(ctx, batch)
			}
		default:
			return q.send(ctx, batch)
		}
	}
}

// leave sends what is left, unless that takes too long.
func (q *queue) leave(batch []sdk.ReadOnlySpan) {
	ctx, cancel := context.WithTimeout(context.Background(), closing)
	defer cancel()
	q.rest(ctx, batch)
}

// send sends a batch, and gives it back empty.
func (q *queue) send(ctx context.Context, batch []sdk.ReadOnlySpan) []sdk.ReadOnlySpan {
	if len(batch) == 0 {
		return batch
	}
	ctx, cancel := context.WithTimeout(ctx, q.limits.timeout)
	defer cancel()
	n := uint64(len(batch))
	if err := q.to.ExportSpans(ctx, batch); err != nil {
		q.failed.Add(n)
		q.log.Warn("traces cannot be sent to the collector", "error", logs.Cause(err))
	} else {
		q.sent.Add(n)
	}
	clear(batch)
	return batch[:0]
}

// Shutdown implements sdk.SpanProcessor: it sends what waits, until the context ends.
func (q *queue) Shutdown(ctx context.Context) error {
	q.once.Do(func() { close(q.stop) })
	select {
	case <-q.ended:
	case <-ctx.Done():
	}
	return q.to.Shutdown(ctx) //nolint:wrapcheck // says what it is
}

// ForceFlush implements sdk.SpanProcessor.
func (q *queue) ForceFlush(ctx context.Context) error {
	done := make(chan struct{})
	select {
	case q.flush <- done:
	case <-q.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err() //nolint:wrapcheck // the caller's
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err() //nolint:wrapcheck // the caller's
	}
}

// counts is the queue's metric.
type counts struct {
	desc *prometheus.Desc
	of   *queue
}

// Describe implements prometheus.Collector.
func (c *counts) Describe(ch chan<- *prometheus.Desc) { ch <- c.desc }

// Collect implements prometheus.Collector.
func (c *counts) Collect(ch chan<- prometheus.Metric) {
	for result, n := range map[string]uint64{"sent": c.of.sent.Load(), "dropped": c.of.dropped.Load(), "failed": c.of.failed.Load()} {
		ch <- prometheus.MustNewConstMetric(c.desc, prometheus.CounterValue, float64(n), result)
	}
}
