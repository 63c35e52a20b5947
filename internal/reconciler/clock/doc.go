// Package clock compares this machine's clock with those of the servers that the
// daemon talks to anyway: the git server's and the API server's `Date`. A clock
// that is a day ahead would end every term of that day, and commit times before
// which no other replica may write.
//
// Invariants: the clock is wrong when every server that answered lately shows a
// time more than Bound away, and not as long as one agrees; a jump of the clock
// after an answer counts at once, measured by the monotonic clock; with no
// answer nothing is known, which is no error, but a jump is remembered until a
// server confirms the new time.
//
// Who calls it: gitrepo's round trips and the cli's look at the API server tell
// it dates, the reconciler asks it in every round and the cli for readiness and
// leadership. It is safe for concurrent use.
package clock
