// Package tracing makes the spans of traces (OpenTelemetry), and carries a trace from one
// process to the next. Whether any are made, and where they go, is package otlp's.
//
//	webhook, report, reservation ──► round ──► commit ──► push
//	                                             │ trailer "Trace: <trace> <span>"
//	      instructions, manifests of agents ◄────┴────► apply, in each cluster ──► active
//
// # Invariants
//
//   - Off is nothing: a nil *Tracer makes no span, its Handler is the one it was given, and
//     nothing of this package allocates (TestOffCostsNothing).
//   - Nothing that is decided depends on a trace: ids are in no contract's file and under no
//     plan's digest. They are in commit trailers, in logs, and in Traces of instructions and
//     manifests, outside of their versions.
//   - Who decides on ids and on what is kept is the daemon. What callers send of their own
//     traces (the header traceparent) becomes a link, never a parent: it neither forces
//     sampling nor chooses an id that the ledger will name. Only another replica of the
//     daemon, by its certificate, hands a parent on.
//   - An Origin that is read from elsewhere has the exact form, or is none.
//   - Values of attributes are bounded (256 bytes) and their keys are fixed. Errors are those
//     that are logged, which have no secrets.
//
// cli, cmd/fleet-agent, reconciler, delivery, daemon and agent call it. All is safe for
// concurrent use.
package tracing
