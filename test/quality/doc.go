// Package quality measures how far from the optimum the planner's batches are.
//
// An instance is real prices (testdata/offers.csv) by real demand
// (testdata/pods.csv), drawn with a seed: so many offers of one to four
// machines of a kind, so many intents first seen in one commit, `objective:
// cost`. What stays unplaced counts 100 a GPU and hour. The planner decides it
// through planner.Decide; the optimum comes from coinor-cbc, which is given the
// same instance as an integer program written here (lp.go), with sums of its
// own. Requests that are equal are one integer variable per offer, which
// changes no optimum.
//
// The demand of a trace would hardly need a choice: nearly all pods ask for one
// GPU. A third of the intents is therefore drawn from the pods that ask for two
// to eight, which makes 2.7 GPUs an intent. Models that the trace names are
// replaced by models that the clouds of the price lists sell, one by one
// (models), so that the structure of who accepts what stays.
//
// Online (online_test.go): the requests come one by one and go again, through the
// simulation; the optimum is that of somebody who knows beforehand who comes and
// goes, and moves nobody.
//
// Families (families_test.go): batches that ask for more than one replica on one offer in
// whole cards, each with an exact model (families_lp_test.go) and sums of its own for what
// a plan costs and breaks (families_check_test.go). Their price lists are drawn from the
// real ones; what has no place counts 20 times the most expensive card, or core, that is
// sold. The best known result of each mix is in testdata/references.json with the digest
// of its program, its bound and who found it: -solve 1m asks cbc again, for -seeds, -sizes
// and -family, and keeps what is better. Without cbc the stored ones are compared with.
//
// Shares of cards (shares_test.go): pods of the 17 mixes with which fragmentation gradient
// descent was published (testdata/openb_mixes.csv), one by one, through the simulation; the
// reference is what is published. Lines (backfill_test.go): intents of several tenants come
// faster than they leave, with the lives of two traces (testdata/lives.csv); what turns and
// reservations cost of allocation is measured beside best fit and the descent.
//
// The instances that take cbc more than a few seconds are solved with -full
// (make test-full); test/bench/RESULTS.md holds their results.
package quality
