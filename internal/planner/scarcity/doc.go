// Package scarcity says what it is worth to leave a place to those who usually come.
//
// An intent that may go anywhere and takes the cheapest offer may take the last card of a
// model that others can use nothing else than. So a place counts for what it costs, and in
// addition for what is expected to be lost by others who then find none:
//
//	extra(offer) = Σ kinds  own ÷ rivals · penalty · Σ places that it takes from the kind P(more rivals than places)
//
// A kind is a request that holds capacity now, by the ledger: who came before is who comes
// again. A quarter of what is held of a kind is expected to ask while the place is taken
// (own), and as many of all kinds that can use mostly the same offers (rivals, in their sizes),
// by Poisson's distribution. A replica without a place counts ten times the most that a place
// for it comes to. Where there is plenty of places the extra is nothing.
//
// Extra is never more than the price of the place times what may be paid in addition, so that
// nobody is placed at that many times the price of the cheapest offer (Fleet.spec.scarcity).
//
// The figures were chosen by intents that come and go on real offers and prices (test/quality,
// TestOnlineArrivals_Seeds): a half in place of a quarter, and twenty times in place of ten,
// came to the same within the noise of 160 seeds; all of what is held was worse.
//
// It orders places and keeps nobody out: who chose by it and does not fit looks again by price
// alone (package place), before alternatives and minReplicas decide. What is left of a market
// differs from plan to plan, who fits must not.
//
// Invariants: a World decides all of it, whatever was asked before; no product is fused with a
// sum; what it costs does not grow with intents, but with kinds and offers, whose product is
// bounded.
//
// Called by the planner, which hands it to package place; asked there, and by consolidation and
// batches, for intents of objective cost alone. It is used by the goroutine of its round, and
// follows what is taken of offers meanwhile.
package scarcity
