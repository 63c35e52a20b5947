// Package stranded measures how much of idle cards that are sold in parts is of no use to
// those who usually ask.
//
// Of a card's free part, used is what the next ten requests of the usual mix would take
// of it, one after the other, each if it fits; the rest is stranded. An offer's cards
// share its cores: each is counted with three times its part of them by what is free of it,
// or with all where that is less.
//
//	stranded = Σ cards (free − used(free, min(cores, 3 · cores · free ÷ idle)))
//	used(r)  = Σ p(k) · (k fits r: k + used of r − k by one request less; else used of r by one less)
//
// Fragmentation gradient descent (Weng et al., "Beware of Fragmentation", USENIX ATC 2023)
// asks for the next request alone and counts all that is free where that fits. Where many ask
// for shares that fill a card only in some ways (0.81 and 0.16; 0.47 twice) that keeps cards
// open for what leaves most of them idle. test/quality measures both on the mixes of the
// trace that the descent was published with (TestSharesOfCards).
//
// Invariants: equal mixes give equal figures, whatever was asked before; no product is fused
// with a sum. Cards that have more than a hundred units are counted in hundredths, so that a
// mix costs as much to make.
//
// Called by package match, for the resources term of offers that sell parts of cards. A Mix
// is used by one goroutine at a time.
package stranded
