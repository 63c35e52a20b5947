// Package seating finds places for all replicas of a gang that is spread by several keys, by
// counts alone.
//
// A gang that is spread by several keys may fit, and yet the best place of one
// replica leave none for another: of two that must differ in region and in
// provider, one with the only provider that is in both regions. So when such a
// gang found too few places one by one, its replicas are seated with all in
// view: first by counts alone, here, then in earnest (package place).
//
// One key needs none of this. There a replica finds no place only when every
// domain is full or maxSkew ahead of one that is, and no other order of places
// gets further.
//
// # Invariants
//
//   - What is found keeps each rule at each step, and takes no more than a cell has room for.
//   - Nothing is found that contains what did not fit in earnest (Fail).
//   - A search ends after a number of looks, which does not depend on the clock.
//
// Called by package place. A Search belongs to one goroutine.
package seating
