// Package bench measures the whole of fleetbroker on large fleets, against the
// targets that the project set itself, and holds the cheap ones by a test.
//
//	make bench
//
// prints each figure beside its target; RESULTS.md keeps what was printed, with
// the machine. Fleets come from package gen; git is served by git's own
// http-backend and kube-apiservers are real, as in the end-to-end tests.
//
// A benchmark here runs once (-benchtime 1x) and repeats inside what it
// measures, because a fleet of 100,000 intents takes longer to make than to
// measure. It reports medians. A ratio is between two things measured in turn in
// the same run, so that it means the same on another machine.
package bench
