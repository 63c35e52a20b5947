// Package allowance bounds what a git server sends that is no pack: refs and words before it,
// and what a connection carries next to it, such as requests and new keys of ssh.
//
// Invariant: next to a pack comes at most Beside more than twice of what was taken of it.
//
// Callers: package gitrepo, whose watch of an operation has a lock; nothing here is safe for
// concurrent use.
package allowance

import "fmt"

// Beside is how much may come next to a pack before any of it is taken, in bytes: ssh takes in
// megabytes before they are read.
const Beside = 32 << 20

// Left is how much may still come, in bytes.
type Left struct {
	// Words may come before the pack: they are kept in memory.
	Words int64
	pack  bool
}

// Pack says that the pack has begun, and lets twice as much come as was taken of it.
func (l *Left) Pack(took int) {
	if !l.pack {
		l.pack, l.Words = true, Beside
	}
	l.Words += 2 * int64(took)
}

// Heard counts what came. It says why it is too much, "" while it is not.
func (l *Left) Heard(n int) (why string) {
	l.Words -= int64(n)
	switch {
	case l.Words >= 0:
		return ""
	case l.pack:
		return fmt.Sprintf("it sends %d bytes more than twice its pack", Beside)
	}
	return "it sends more refs or words than are taken (git ls-remote lists them: delete those that are not needed, and bound who may make them)"
}
