// Package store is where the replicas of a daemon share what agents report, so
// that all of them have one market whichever of them an agent reaches.
//
//	agent ──report──► a replica ──Put──► Advertisement ──watch──► market of every replica
//	                      │
//	                      └──Beat, every 10 s──► Heartbeat ──watch──► who is heard
//
// There are two. Memory is the market itself, for one daemon without Kubernetes.
// Shared stands on objects of the daemon's own namespace (package marketcrd),
// which it reaches by an API: Kubernetes (package kube), or a twin in memory for
// simulation (package storetest).
//
// # Invariants
//
//   - A report is acknowledged when the store has it; its generation never goes
//     back, whichever replicas take an agent's reports. A refusal because of a
//     generation (stale, or not known) is made by the object itself, read at that
//     moment, never by what a watch told of it.
//
//   - A report is whole by itself: one object, or parts under a head that is written
//     after them. No reader ever has half of one.
//
//   - Objects of the store are hostile input: readers hold them to the bounds of a
//     report, and what fails is named, left out, and harms nothing else. Nothing in
//     them is a root of trust, a head or a reservation.
//
//   - Silence is measured by the judge's own clock since it saw a provider's entry
//     in a Heartbeat change, never by a time that another machine wrote; and only
//     while somebody could hear. After a start, and after the store was out of reach
//     for ten seconds, every grace begins anew (Market.Listen): an outage of store
//     or replicas fails nothing over.
//
//   - An object whose last writer is another account than the daemon's, by its managed
//     fields, is ignored, logged and counted (ForeignError), and written again. That is a
//     diagnosis, not a defence: who may write chooses the name. The defence is the admission
//     policy of install/broker/market.yaml.
//
//   - An object that is gone withdraws nothing: a deleted namespace is an outage
//     and no provider's word. Only a report withdraws. What the store has of a cluster
//     that has left the fleet is deleted, and then forgotten (Prune).
//
//   - A store that refuses a write is none that is out of reach: the object and the cause
//     are named (Status.Refused), and the provider whose list is refused sells nothing and is
//     not silent, in every replica.
//
//   - A store that was set back to an older state is noticed by the replica's own
//     Heartbeat, which is then gone, or gets a version that comes before a known one: all
//     is read again, what was known to be newer stays, and is written again with the next
//     reports. Where versions go on instead, what is found to be older than it was known
//     to be is looked at again, and written again too.
//
//   - A word of what is seen in a cluster that is older than the known one is a conflict
//     that names that one's generation (StaleEpochError), so that whoever tells the truth goes
//     above it with the next exchange, also above one that was forged or made by a clock
//     ahead. An epoch more than a year ahead of this replica's clock is no word. What was seen
//     is forgotten with its object.
//
//   - A replica that stops says so (Withdraw); one that misses a beat is got ready to be
//     replaced (Beats) before it counts as gone.
//
//   - What is seen in a cluster fits into one object, and what is left out is said.
//
//   - What a provider may write, and what all may, has a budget of writes and one of bytes
//     (pace.go), over all replicas, so that the market never starves the cluster it stands in.
//
// # Who calls it
//
// The agents' port hands reports to it, the daemon's main runs it, the market is
// told. It imports the API, the wire's values and the market.
//
// # Concurrency
//
// All methods are safe for concurrent use. No lock is held while the API is asked.
package store
