// Package jobs runs simulations on what the daemon knows, for people who plan capacity.
//
//	demand.go  the ledger's past as a table of demand
//	offers.go  the market as a table of offers, with what a scenario changes of it
//	work.go    what runs in the child process
//	jobs.go    who may run how many, how far they are, how long results are kept
//
// Invariants:
//   - A simulation runs in a process of its own with bounds of memory, processor time and
//     time (api/child), on one processor at the lowest priority: the daemon's rounds do not
//     wait for it. Where the kernel ends single processes it is the first to end; a
//     container with memory.oom.group (Kubernetes sets it with cgroup v2) ends as a whole,
//     the daemon with it, so that its limit has room for Most simulations.
//   - The replica has Most at a time, of which one person has one, and so many make their
//     request: a place is taken before the work begins. A request has at most maxRows rows,
//     which tenants share, and maxText bytes. Results are kept for Keep, and no more than
//     kept of one person; only who asked for a job sees it.
//   - What a job works on is copied before Start returns; the daemon's own values are read
//     then and never after.
//   - Nothing is drawn at random: equal fleets and changes give equal results.
//
// The dashboard calls it (cli connects them). Jobs is safe for concurrent use.
package jobs
