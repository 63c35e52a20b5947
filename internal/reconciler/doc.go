// Package reconciler is the loop that joins the rooms, and the only place that
// knows their order:
//
//	read ──► plan ──► commit ──► deliver
//	  ▲                             │
//	  └────────── observe ◄─────────┘
//
// Round is one pass and reads like the four verbs. Everything it decides comes
// from the planner (through its Memory: planner.Decide at the cost of what
// changed), everything it may claim comes from gitrepo.Commit: no manifest is
// handed to delivery, and no waiter is answered, for a commit that the remote
// has not been seen to hold (invariant 1).
//
// # When a round plans
//
// A round is keyed by what a plan depends on: input trees, ledger tree, market
// and observation generations, and whether the earliest due time has passed. A
// round with the key of the last one stops there: our own commit is a no-op.
//
// News of the market alone is gathered for up to five seconds when nothing
// depends on it (gather.go): a thousand agents always have some. It is planned
// with at once when
//   - a request waits for its answer;
//   - an intent waits for capacity, and anything but the provider's own use grew;
//   - contracts are held there, and anything but that use changed: what is
//     granted or refused, capacity, cordon, a flavor gone, the provider heard or
//     not; or a flavor has, or had, less than it sold.
//
// Whatever else makes a round plan takes all of it along.
//
// Asking the remote is needed only when somebody may have moved it (poll,
// webhook, a lost race); a market report or an observation plans on the heads
// at hand, and compare-and-swap guards the push.
//
// # What stops it
//
//   - Rewritten history: nothing is written, applied or corrected until an
//     operator accepts it (invariant 12).
//   - A ledger that cannot be read whole: nothing is decided.
//   - Deafness: decided by the market, obeyed by the planner (invariant 6).
//   - Another replica that decides: by an election where they share a store, else by
//     the ledger's newest commits (package writers). Then it reads, plans, delivers
//     and serves, and writes nothing.
//   - A refusal by the remote: what stands is delivered, the refusal is shown,
//     and tried again with a growing pause.
//
// # Concurrency
//
// Run and Round are called by one goroutine. Wake, Reread, View and Confirm may
// be called by any.
//
// # One round, and its files
//
//	sequenceDiagram
//	  participant R as reconciler
//	  participant G as gitrepo
//	  participant P as planner
//	  participant D as delivery
//	  R->>G: Fetch (poll, webhook, a lost race)
//	  G-->>R: heads: inputs, ledger
//	  R->>R: foreign edits? undo them, and begin again
//	  R->>D: what each consumer shall have, as the remote has it
//	  R->>P: World: inputs, ledger, market, observations, now
//	  P-->>R: Plan
//	  R->>G: Commit: contracts and their manifests, compare-and-swap
//	  alt acknowledged, or found at the remote
//	    G-->>R: landed: the next round delivers it
//	  else moved
//	    G-->>R: plan again
//	  else refused
//	    G-->>R: in halves, until the culprit stands alone
//	  end
//
//	  - reconciler.go: Run, and who wakes it
//	  - round.go: one round, from top to bottom
//	  - read.go, authors.go: inputs and ledger, and who wrote what
//	  - key.go: when a round needs no plan
//	  - write.go, groups.go, message.go: a plan becomes a commit
//	  - deliver.go, undo.go, withhold.go, housekeeping.go: what their names say
//	  - view.go: what the daemon knows, for readiness and people
//	  - withhold.go, pacing/: when what is decided may be pushed, by the repository's budget
//	    (gitrepo/pushbudget)
//	  - world/: parts become the planner's World; shared with the CLI
package reconciler
