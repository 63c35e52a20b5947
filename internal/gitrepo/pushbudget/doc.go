// Package pushbudget keeps the pushes to a fleet repository within what its forge
// allows: so many a minute, with a burst, and none while the forge asks to be left
// alone.
//
//	round ──At(class)──► may it push now, else when?   (it plans, and waits with the commit)
//	gitrepo ──Remote.Push──► counted, held back if need be ──► git server
//	git server ──403, 429, Retry-After──► Answered ──► held until then
//
// The budget is a token bucket of Limit.Burst tokens, filled at Limit.PerMinute, as
// golang.org/x/time/rate has it; its state is one instant, at which the bucket is full
// again, and not a number of tokens: time alone then needs no bookkeeping.
//
// # Invariants
//
//   - Every push counts, one that is refused, loses a race or gets no answer too, and
//     each session where a server updates one ref at a time. All pushes go through
//     Remote; nothing else counts them.
//   - Within any time t no more than Burst + PerMinute·t pushes are sent.
//   - The budget is the repository's: a replica that begins to decide has a burst that
//     counts as used (Spent), because nobody knows what the one before it pushed beside
//     the ledger, and commits of the fleet count that it did not push itself and that may
//     not be paid for yet, by their dates (Follow).
//   - What the ledger does not show, pushes of other refs and pushes of the ledger that
//     were refused, lost a race or got no answer, each replica counts (Unshown) and the
//     others hear with its next Heartbeat, ten seconds later at most (Elsewhere). What got
//     no answer and is on the ledger counts twice there: too much, never too little. Until
//     the next Heartbeat, and in daemons that share no store, such pushes count in their
//     own process alone; a replica that begins to decide has no burst for that reason.
//   - Status leaves the burst alone and Decision leaves half of it, so that Urgent
//     always finds what they have not used.
//   - What a forge asks for is obeyed: nothing is pushed before the time that it
//     named, an hour at most. Reads are held only by an answer to a read. Other replicas
//     hear of it with the next Heartbeat (Holds, HeldElsewhere) and leave the forge alone as
//     long, whoever decides; nobody hands on what it only heard. 503 is no limit of an
//     account: it holds this process alone, for five minutes at most.
//   - Held pushes were not sent: gitrepo.ErrHeld says so, and nobody has to find out
//     what became of them.
//
// A nil *Budget is one without limit: all its methods do nothing, and Remote gives
// back what it was given.
//
// Who calls it: cli makes it and joins it with the remote, reconciler asks it, server
// shows its Figures. Concurrency: all methods are safe for concurrent use; none but
// those that push waits.
package pushbudget
