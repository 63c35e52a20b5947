// Package scenario has the words of a simulation that somebody asks the daemon for: what
// is changed (Change), on what (Input), how far it is and what came of it (Job, Figures).
//
// Invariants: a Change that Check accepts is bounded in every part; a Job has no pointer
// into the daemon's state, and is never changed once it was handed out.
//
// The dashboard (internal/ui) shows them, package simulate/jobs runs them. It imports no
// package that touches the world, so that the dashboard may know it. All of it is values;
// nothing is safe for writing while others read.
package scenario
