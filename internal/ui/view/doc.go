// Package view is the read model of a fleet: what `get`, `status` and `cost` print and
// what the dashboard shows, computed in one place from what was read.
//
//	facts.go      prices, free capacity, spend and peerings of a fleet at one moment
//	words.go      requests, sizes and replicas in a few words
//	snapshot.go   what the daemon knew after a round, and who looks at it
//	model.go      the rows of all lists, made once for a snapshot
//	query.go      which part of a list is wanted
//	fleet.go, intents.go, contracts.go, providers.go, flavors.go,
//	tenants.go, queue.go, cost.go, commits.go, calendar.go   one page each
//	blocked.go    who holds what the queue waits for
//	levels.go     figures of the whole fleet, for metrics
//	sla.go        which contracts break their intent's sla now
//
// Invariants:
//   - Nothing is invented: a figure that is not known is absent in JSON and empty on a
//     page, never zero.
//   - A viewer who does not see all tenants gets rows of their own tenants only, and of
//     all others nothing but totals (Viewer).
//   - Reading changes nothing: a Snapshot shares the values of the daemon's round.
//
// A Model is immutable once made and safe for concurrent use. Callers are internal/ui
// and internal/cli.
package view
