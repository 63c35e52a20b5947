// Package lacking remembers of a market which fact each offer fails, for all who demand
// the same facts.
//
//	Table    which offers are candidates, and which fact each of the others fails first
//	Tables   those that somebody uses, by what is demanded
//
// Ten thousand requests that differ in size, money or tenant demand a few dozen
// combinations of facts: where each kept a list of a hundred thousand offers for itself,
// the lists would exceed any memory, and each change of an offer would be looked at once
// for every request.
//
// # Invariants
//
//   - A table has of each offer what was last answered for it, and Counts adds up to the
//     offers that are no candidates.
//   - Which offers are candidates never changes in a table: where it would, the table is
//     Dead, and who uses it begins again with another.
//   - Version is another one whenever Counts may be, and no two states of any tables have
//     the same.
//
// # Who calls it
//
// Package match, for classes whose facts depend on no offer's own (Request.factsKey), and
// with a table of its own for each of the others.
//
// # Concurrency
//
// None: tables belong to the goroutine of their round.
package lacking
