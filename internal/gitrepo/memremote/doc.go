// Package memremote is the in-memory twin of a git server, for tests, the simulation
// and `demo --quick`: a gitrepo.Remote that any number of gitrepo.Repos share.
//
// It is deterministic: it reads no clock, uses no randomness and its answers
// do not depend on map order. Faults come from one callback, in two kinds: not
// persisted, and persisted though it failed. Like a well-behaved server it
// compares and swaps all refs of a push or none, checks that every object
// below a new ref is there, and refuses to move a branch other than forward;
// Rewrite goes around that, as a force push does.
//
// A Remote is safe for concurrent use.
package memremote
