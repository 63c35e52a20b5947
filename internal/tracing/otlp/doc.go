// Package otlp sends spans to a collector (OpenTelemetry's OTLP, over HTTP or gRPC), where
// that was asked for.
//
//	flags.go  what is asked for: flags, and the standard OTEL_* variables
//	queue.go  what waits to be sent
//
// # Invariants
//
//   - Off by default: without an address, by --tracing-endpoint or
//     OTEL_EXPORTER_OTLP_(TRACES_)ENDPOINT, Open gives nil and starts nothing. The
//     variables do not count where OTEL_SDK_DISABLED is true, or OTEL_TRACES_EXPORTER none.
//   - Who ends a span never waits: the queue is bounded (OTEL_BSP_MAX_QUEUE_SIZE), and what
//     it has no room for is dropped and counted. A collector that does not answer costs no
//     round anything, and Close ends within its deadline.
//   - What is kept is decided at a trace's first span, in this fleet: by --tracing-ratio, or
//     OTEL_TRACES_SAMPLER.
//   - Secrets for the collector come from the environment (OTEL_EXPORTER_OTLP_HEADERS) or
//     files, and no address may hold one.
//
// cli and cmd/fleet-agent open it. All is safe for concurrent use.
package otlp
