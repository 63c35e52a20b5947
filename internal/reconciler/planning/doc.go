// Package planning makes the plans of a reconciler's rounds: it keeps a
// planner.Session from round to round, times the steps of each plan, and checks
// the session from time to time.
//
// # The check
//
// A session goes by the rule that a value at the same address is the same value.
// Fleet, market, world, ledger and planner keep that rule by convention: one write
// in place in any of them, and rounds would decide on the past, legally and in
// silence. So the plans of some rounds are made from nothing as well, on the same
// World, before anything of them is committed. Where the two differ, that is
// counted and logged, and the plan from nothing is the one that is returned; the
// session begins anew.
//
// Which plans are checked is known by their number alone (Options.Every), never
// by the clock or by chance. One that was made from nothing needs no check.
//
// # Memory
//
// A plan from nothing takes about what the session holds once more, until it is
// compared; then it is dropped. Where more than Options.Budget would be needed the
// check is left out, and counted as that. What is needed is taken from what the
// newest check allocated, by the size of the world then and now; before the first
// it is what the process holds.
//
// # Who calls it
//
// The reconciler alone, once or more each round, and the simulation through it.
//
// # Concurrency
//
// A Planner belongs to one goroutine, so that there is one check at a time.
package planning
