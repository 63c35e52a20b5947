// Package demo is the story that both demos tell: a team's commit becomes a reserved,
// versioned, applied slice of GPUs, and is given back.
//
//	story (this package) ─► Stage ─► test/demo: real clusters, git, agents, daemon
//	                             └─► internal/cli/quick: all of it in memory, in one process
//
// Both print the same lines in the same order, because the lines are made here; a Stage
// only does what is asked and shows what it has. What a stage simulates it says itself
// (Stage.Opening), in the first line.
//
// Tell runs in one goroutine and calls its Stage from there alone.
package demo
