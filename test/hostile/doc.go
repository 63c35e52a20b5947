// Package hostile holds input that was made to do harm, and tests that run it
// through the real programs: texts through every place that shows text, files,
// trees, packs and histories through what reads them, reports, requests and
// webhooks through a daemon's ports, answers of brokers and clusters through
// what asks them.
//
// Each input has the bound that it must keep (5 s of processor time, 1 GiB of
// resident memory) and what becomes of it: refused with a reason of one line
// (testdata/reasons.txt), or taken, where it does no harm. What orderly people
// ask for beside it is decided all the same.
//
// The corpus is data: who finds a new attack adds a line to it and runs
// the tests with -update. Only tests import the package; its functions are pure
// and may be called from any goroutine.
package hostile
