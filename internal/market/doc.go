// Package market is every flavor of the fleet and what is known of it now: what
// agents report, what files under flavors/ say, which price and place hold,
// and whether the provider is heard.
//
//	reports ──┐              ┌─► offers, by provider, class and region (go-memdb)
//	          ├─► listings ──────┤
//	inputs ───┘                  └─► a git tree, one blob a provider
//
// # Layout
//
// The market is one table of go-memdb: a row is a listing, what is known of one
// provider and all that it offers, as one report says it. Rows are found by
// provider, by the classes (model of GPU, or cpu) and by the regions of what they
// offer; Snapshot.Select asks by any of them, and its watch channel is closed when
// that part changes: GET /market waits on it. A snapshot is a read transaction; what
// costs a walk over all (the list of offers, the tree) is made on first use.
//
// A report or new inputs make the listings of the providers they speak of
// anew; an offer that says what it said keeps its address, and so do its view
// when all its offers do and its listing when nothing at all is different. All else
// is carried over from the snapshot before. There is one copy of a flavor: what the
// provider reported is what its offer shows. What offers have in common that
// intents choose by is the planner's to know: it keeps an order of them for each
// shape of request.
//
// Rows are providers and not offers because reports are: a row an offer, with one
// index alone, took 330 bytes a flavor more (of 1,940), and 800 allocations more a
// report of 100 flavors (BenchmarkHeap, BenchmarkReport).
//
// # Invariants
//
//   - A report is taken whole or not at all; no snapshot
//     ever shows half of one.
//
//   - A snapshot never changes. Equal generations mean equal snapshots, and a
//     report that says nothing new makes no new generation.
//
//   - Held means held: what was made smaller is shown as it was until its provider
//     is heard again (lingering.go).
//
//   - Age is measured by our clock at receipt, never by the agent's.
//
//   - What agents say is bounded and checked before it is kept: it comes from
//     clusters that others administer.
//
//   - What is reviewed goes before what is reported: location and price that files
//     state hold (stated.go), unless the Cluster file trusts its agent with them. Facts
//     that no agent knows are added from files (facts.go).
//
// # Freshness
//
// A provider that has not been heard for three report intervals is Silent: it
// sells nothing new. Past its grace (Cluster.agent.gracePeriod, else the
// fleet's) it is Lost. The next report makes it Fresh, without anybody's help.
// One that a store told of, and that was not heard since the market listens
// (Restore, Listen, Vouch), is Elsewhere: it sells nothing and nobody blames it,
// before as much time has passed as makes another one Silent. While nobody can be
// heard (Cut) the market is deaf, and no state changes by time.
//
// Offers from files never age. A flavor that is missing from a newer list is
// Withdrawn: it sells nothing, and what it holds stays. Silence is not loss,
// and deafness, hearing too few of all, is not silence: see Snapshot.Deaf.
//
// # Who calls it
//
// Reports come by package store, from the agents' port or from other replicas; the
// reconciler sets the inputs and takes snapshots,
// the CLI reads market files. It imports only the API.
//
// # Concurrency
//
// There is one writer at a time (a mutex), readers take the published snapshot.
// All methods are safe for concurrent use. Nothing that is handed out may be
// modified, and what is handed in belongs to the market from then on.
//
// # States of a provider
//
// What is known of a provider, by our own clock:
//
//	stateDiagram-v2
//	  [*] --> Fresh: reported
//	  [*] --> Elsewhere: known from the store
//	  Fresh --> Elsewhere: the store was out of reach
//	  Elsewhere --> Fresh: reported, to any replica
//	  Elsewhere --> Silent: three intervals unheard
//	  Fresh --> Silent: three intervals unheard
//	  Silent --> Fresh: reported
//	  Silent --> Lost: past its grace
//	  Lost --> Fresh: reported
//
// Elsewhere is a provider whose list the store had before this replica listened, and of
// which no report has come since: its offers are shown and sell nothing. Silent sells
// nothing new, Lost fails over, and hearing fewer than half of the holders is the daemon's
// own deafness and no loss at all. While the store of reports cannot be reached (Cut)
// nobody becomes Silent or Lost, and Listen begins every grace again. Replicas share
// reports by store: Memory is this market alone, Shared stands on objects of the
// Kubernetes API.
package market
