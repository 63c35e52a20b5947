// Package planner decides: from everything a round knows (World) it makes
// everything the round will do (Plan).
//
//	World ─► 1 observe ─► 2 guard ─► 3 settle ─► 4 serve ⇄ 5 batch ─► 6 consolidate ─► 7 conclude ─► 8 check ─► Plan
//
// decide.go is these eight steps; who calls may time each (Session.Step).
//
// # The layers
//
// What a round works on is made of layers, each of which knows those below it alone;
// a round embeds the uppermost, and so on down. The first five are values of their
// own:
//
//	quantity, inventory, match, account, lifecycle   sizes, offers, classes, accounts, phases
//	alike      which offers are alike to a condition in CEL, for match
//	lacking    which fact each offer fails, for all classes that demand the same
//	keys       what makes two requests one class, as bytes
//	tariff     exact prices, for match
//	batch      solves what came at once, in plain numbers; knows nothing of contracts
//	domain     which domains replicas share, and what those have room for
//	booking    what is free of an offer over time, in plain numbers
//	draft      the working state of a round, and how it is taken back
//	said       what offers fail, in words
//	rules      where other replicas and intents are, and what keeps one from a provider
//	place      finds places for what jobs want, and takes them
//	joint      moves those that belong together as one
//	formulate  makes what came at once a problem in plain numbers, for batch
//	ahead      books capacity for terms that have not begun
//	settle     decides what needs no offer, and makes tasks of what does
//	consolidate  moves what works to offers that have become better, or to make room
//	contend    serves those that wait, in turn; some make others give way
//	explain    writes what people read
//	beyond     counts what exists beyond what the fleet allows now
//	invariant  asks a finished plan by other means
//	planner    the eight steps; reads worlds, keeps a base for the next round
//
// Each package's comment lists what its files are and which invariants it holds.
// test/rooms holds their order, and that the files are there.
//
// What embedding costs: Explainer is a Contest, which is a Settler, a Placer and a
// Draft, so that a method of any layer reads as one of the round, and a new helper
// needs no handle to what is below. In exchange the compiler keeps a lower layer from
// calling an upper one and nothing else: a method of an upper layer can write every
// exported field of the lower ones, and round has, counted with what it embeds,
// 84 fields and some 340 methods. TestPlannerTypes bounds what one package
// declares on one type (25 fields, 60 methods), where an embedded struct is one field
// and what it brings is counted where it is declared; it does not bound what a round can
// reach. What of a lower layer belongs to it alone is unexported, and the rest is
// changed through its methods, by rule and not by force. Layers that hold those
// below as a field with an interface would be held by the compiler, and each call from
// one into another would need a forwarding method or a longer path.
//
// # Why not as drawn
//
// The picture by which the packages were made has eleven. It differs from these in
//
//   - settle, which is one of its own: what needs no offer is as much code as what
//     does, and is above place because limits of parts and of spreads are asked
//     of it.
//   - report, which is not a part of explain: explain works on a round and is paid from
//     its spare work; report draws finished plans and explanations, knows no round, and is
//     read by the commands. It is above planner, whose results it takes.
//   - World, Plan and Decision, which are declared in draft and named here
//     (types.go): a draft holds the world that it was given and the plan that it
//     makes, and every layer writes decisions.
//   - the base, to which a Session does not roll back (below).
//   - layers, which embed each other (above).
//
// # What the steps do here
//
// decide.go has the steps, step.go names them, round.go makes the round of a world;
// types.go are the names under which others know what goes in and comes out.
//
//   - observe: observe.go, refusals.go (providers that denied what they advertised; denials.go is which of them the
//     next round finds, conditions.go what people read of providers), excess.go
//     (contracts that a shrunken flavor no longer holds; excess_nodes.go: node by node; nodeslack.go: on one node), pools.go (warm pools as intents).
//   - guard: budget.go: budgets end what they no longer pay for. guard.go: where too
//     much would end at once nothing does.
//   - settle: sift.go: intents that are served as they ask cost a few lookups; the
//     others are package settle's.
//   - serve, batch: serve.go: those that wait have their turns, and what came at once is
//     solved as a batch (repair.go, package formulate), until nobody gives way. What places
//     are worth to others is found before (scarce.go).
//   - consolidate: package consolidate: better offers are proposed or moved to, by a rule
//     of savings against disruption.
//   - conclude: decision.go, states.go, ledger.go: decisions and what is written.
//     totals.go, notes.go: sums and remarks. explanation.go: one intent in full.
//   - check: invariants.go: the result is asked again by other means (package invariant).
//
// # From round to round
//
// Where one plan follows the other (Session: session.go), offers, classes, what the
// ledger holds and who is quick are kept (base.go) and brought up to date by what changed
// (session_update.go, session_intents.go). The plan is the same, word for word:
// TestMemoryPlansAsFromNothing. How an intent waits that demands a fact which no offer has
// is kept, too (known.go): it keeps its place in the order of turns, and its turn looks at
// nothing (TestKnownWaitsAsFromNothing). At 100,000 intents on as many flavors a round after
// one change is then a few milliseconds instead of a second.
//
// A Session does not roll the last round back to where that began. What the round took
// stays in the inventory, which knows the offers that were touched, and these are measured
// again, from the ledger and the reports, before the next one. A rollback would need
// the journal of the whole round, where now nothing is written down while nobody tries
// anything; and as most of what a round takes is committed, the next one would take the
// same again on top of what was brought back. Measuring costs as much as offers were
// touched, and a mistake in taking or giving back does not outlive its round. The price
// is that what is derived from offers keeps its own place in the list of those that
// were touched (Inventory.Touched) and of those that report something else
// (Inventory.Altered), and that session.go and session_update.go go by hand through what
// a change of the world means for the base: TestSessionWatchesEveryField asks for every
// field of a World.
//
// # Rules
//
// Where an intent's other replicas are (placement.spread), and where other
// intents of its tenant do (together, apart), is asked of each candidate after
// capacity and its money (package rules); a gang that is spread by
// several keys and finds too few places one by one is seated with all its replicas in
// view (package seating); intents that belong together and wait at once are placed as
// one (place/together.go). The rules hold for what is
// placed: what exists stays, as the world around it changes.
//
// Replicas of {min, max} follow the pods that wait on the consumer: more at
// once, fewer late and only those without pods (settle/demand.go).
//
// A share of a card lies on one card (package inventory): the ledger numbers the cards of
// flavors that sell parts of them, and contracts state on which they lie.
//
// A change that needs new contracts goes step by step where the intent bounds it
// (place/update.go).
//
// What an autoscaler could add to a flavor is sold after all that exists, and
// marked (package inventory).
//
// A replica that no flavor holds whole may be put together from several
// (place/split.go): its parts are placed at once, and each is then looked after like
// a replica that asks for that share.
//
// # Score
//
// By default 0.7 resources and 0.3 cost; what that is, and the other objectives, is in
// package match and its terms. `objective: cost` is more than a weight for what is first
// seen in one commit: such a batch is solved as a whole in plain numbers (repair.go,
// packages formulate and batch) from where it was filled to. test/quality measures it against
// an exact solver.
//
// # Invariants
//
//   - Equal worlds give equal plans, whatever the order of their slices and
//     maps: no clock, no I/O, no randomness (time zones come from the zone
//     database).
//   - A plan that was applied leaves nothing to do: planning again only keeps.
//   - No placement or enlargement oversells a flavor or its pool, or breaks a
//     quota or budget.
//   - Each offer is counted once, under the first requirement it fails: facts,
//     then capacity, then money.
//   - What cannot be read or is not reported changes nothing: frozen intents are
//     left alone, a round without enough reports (World.Deaf) moves, refuses and
//     queues nothing, nothing follows from missing reports of a cluster that reports
//     to another replica, and nothing is sold again that has not been seen gone.
//
// # Who calls it
//
// The reconciler each round (through a Session), `fleetbroker plan` and `explain`
// offline, and the simulation. Explain runs the very same decision. The result is a value; the
// caller commits and delivers it.
//
// # Concurrency
//
// Pure functions of their arguments: safe from any goroutine. A World must not
// change while a call runs; what a Plan shares with it must not be modified. A
// Session belongs to one goroutine at a time, and what it was handed must not be
// modified after that either.
//
// # Phases
//
// A contract's phases, as clusters are seen:
//
//	stateDiagram-v2
//	  [*] --> Reserved: committed
//	  [*] --> Booked: booked ahead
//	  Booked --> Reserved: its term begins
//	  Booked --> Released: cancelled
//	  Booked --> Expired: its term is over
//	  Booked --> Failed: not kept
//	  Reserved --> Peering: slice seen
//	  Reserved --> Active: all of it seen at once
//	  Peering --> Active: granted, Node ready, offloading ready
//	  Reserved --> Degraded: as an Active one
//	  Peering --> Degraded: as an Active one
//	  Active --> Degraded: no reports, shrunk, denied, not ready
//	  Degraded --> Degraded: for another reason
//	  Degraded --> Active: recovered
//	  Degraded --> Reserved: recovered, slice not seen
//	  Degraded --> Peering: recovered, not granted
//	  Reserved --> Releasing
//	  Peering --> Releasing
//	  Active --> Releasing: removed, changed, term over, lost
//	  Degraded --> Releasing
//	  Releasing --> Released: slice, Node and quota seen gone
//	  Releasing --> Expired
//	  Releasing --> Preempted
//	  Releasing --> Failed
//
// # Where else to look
//
//   - property_test.go tries to break what is promised here with random fleets.
//   - match/requirements.go lists every requirement an offer can fail, in order,
//     lifecycle/codes.go every code of a decision.
//   - Session makes plan after plan of a world that changes little in between, at the cost
//     of what changed: the daemon's rounds. What it keeps is in base.go; that the plans
//     are the same, in session_test.go.
//   - Replicas follow pods that wait in settle/demand.go, are replaced step by step in
//     place/update.go, and are sold on an autoscaler's word in inventory/growth.go.
//   - plantest builds worlds for tests, here and elsewhere.
//   - Ten thousand new intents against ten thousand flavors take about a second of one
//     core (go test -bench . ./internal/planner): intents that ask for the same share
//     their candidates, and a placement changes one offer of each.
package planner
