// Package accepted keeps in a state directory up to which heads a daemon has accepted
// a repository's branches.
//
// Invariants:
//   - What is written is the old or the new file, also after a crash.
//   - A damaged file is an error, never "nothing was accepted".
//
// gitrepo calls it, under its lock, and who looks at another process's state. Nothing is
// kept between calls.
package accepted
