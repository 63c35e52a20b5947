// Package match finds which offers do for what is asked for, at what size, price and
// score, and keeps the best in order.
//
//	Ask ─► Request ─► Class: facts ─► candidates: size, price, score ─► Best
//
//	request.go       an alternative of an intent, made ready for comparing
//	key.go           what makes two requests one class
//	class.go         a Class: what a request comes to on every offer, kept up to date
//	making.go        making one: what many offers have in common is asked once
//	kept.go          the memory that all of them may take
//	requirements.go  what an offer can fail; the table of those that are its own
//	answers.go       … of conditions in CEL: once for all offers that are alike to them
//	words.go         how the others read
//	match.go         facts, and whether a size fits
//	where.go         an offer's labels, domains and latency
//	cards.go         … on the cards of an offer that sells parts of them
//	nodes.go         … on the nodes of an offer that tells them
//	accelerators.go  … and who is kept off accelerators
//	price.go, pricing.go, transfer.go   what a candidate costs (package tariff), and what an intent affords
//	score.go, objective.go, fragments.go   the terms of a score
//	ranking.go       the order of the candidates
//	matcher.go       what is remembered from round to round
//
// # Invariants
//
//   - Each offer is counted once, under the first requirement that it fails: facts, then
//     capacity, then money (requirements.go).
//   - Requests with equal keys have equal classes: what newly decides which offers fit, at
//     what size, price or score, is in the key (TestKey_AsksForEveryField asks for every field).
//   - A class that was refreshed has of each offer what that offer alone yields
//     (TestClasses_HoldWhatEachOfferYields).
//   - Prices are integers, exact to a millionth; floats are in scores alone, and no
//     product is fused with a sum.
//   - Classes that demand the same facts share which offer fails which (package lacking);
//     what sharedFact newly looks at is in factsKey (making.go; TestFactsKey_AsksForEveryFieldOfRequests).
//   - What is evicted from memory (Trim) changes no answer: a class that is asked again
//     finds what it had.
//   - Equal inventories and requests give equal orders: ties go by price, then by the
//     offer's reference.
//
// It knows offers, prices and requests; nothing of jobs, contracts, tenants' accounts or
// where replicas are to each other. Who may be given a candidate is decided by the caller
// (Best's admit), at whom a class is kept by his memo.
//
// # Score
//
// A score is the weighted sum of terms from 0 to 1, by default 0.7 resources
// and 0.3 cost; an intent's own weights go before its objective, that before
// the fleet's. The table of terms (score.go) names what defines each. Equal scores:
// the cheaper, then the first by reference.
//
// The weights are those of the FLUIDOS broker's design (0.7 availability of
// CPU and memory, 0.3 cost). Its formula had no GPU term, punished offers for
// having a price, and gave NaN for empty clusters; ours has none of the three.
// Of flavors that sell parts of cards the resources term is another one: how
// little a placement strands of what is typically asked for (fragments.go).
// As it prefers what has most left, it spreads: on real offers it places more
// intents than the cheapest-first rule and costs more; `objective: cost` is that rule, but for
// places that others need more (package scarcity).
// Objectives latency, energy and performance weigh a term of their own with
// 0.7 and cost with 0.3, the same proportion; what the terms of energy and
// performance are, and where their figures come from, is at performanceOf
// (objective.go). Prices compared are those of moving the intent's data too
// (transfer.go).
//
// # How one adds
//
//   - a requirement on the offer ("its label X must be Y"): its name (requirements.go:
//     the constant, and Requirements),
//     and one entry of requirements: which intents ask for it, what fails it, how that
//     is said in general and with values, what of the intent it looks at, for the key
//     (package keys); where it applies that it looks at use, and when time changes the
//     answer. Plans,
//     explanations, classes, the plan's due time and Tier follow from that; the example
//     in export_test.go, a label by weekday, is tried by TestRequirement_IsOneEntry. A
//     field that is new in an intent is asked for by TestKey_AsksForEveryField.
//     What fails by provider, place or kind of card alone is quicker in sharedNature
//     (match.go): asked once for all offers that have these in common. It then needs what
//     it looks at of offers in trait, of requests in factsKey (both making.go) and in Key,
//     and its wording in words.go.
//     The change of an intent that would meet it is suggested by explain/relax.go.
//   - a score term: its weight as a field of v1alpha1.Weights, which is checked where
//     files are read (fleet.checker.weights; TestWeights_AreAllChecked asks for each), a
//     constant and one entry of terms
//     (score.go): its name, how its weight is stated, and its value, from 0 to 1 and
//     never not a number. Score, Record, weights, the key of a class, whether each
//     candidate is priced for itself, and the columns of `explain` follow from that.
//     A value that compares candidates with each other takes what it compares from
//     scale (objective.go) and is marked so. TestTerms asks each weight for its term and each
//     term for a value. An objective that weighs it is an entry of objectives. The weight is
//     part of what people write: `make generate` brings it into schemas and reference, `go
//     test ./schemas/v1alpha1 -run TestCompatible -update` into the public types.
//   - a phase, or a limit that depends on what this round has decided, is not of this
//     package: a phase is added as the comment of package lifecycle lists, limits go into
//     admit.
//
// # Who calls it
//
// internal/planner: a Matcher a round, kept with its inventory from one to the next.
//
// # Concurrency
//
// None: a Matcher belongs to the goroutine of its round. Fields of a Class, Candidate
// and Request are read by all; a Candidate is valid until its class is refreshed, and its
// memory until the next Trim.
package match
