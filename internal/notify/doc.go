// Package notify tells tenants what becomes of their intents: to Slack, to
// webhooks as CloudEvents, by e-mail, as their `notify` asks.
//
//	newest ledger ──Since──► events ──outbox──► destinations
//	the clock     ──Due────►
//
// # What an event is
//
// Events are derived, never counted: Since compares the ledger at the head that
// was last told of with the newest one, Due looks at terms and budgets on the
// clock. So a daemon that was down tells what happened meanwhile, and one that
// restarts tells nothing twice. An event's id is a hash of what it tells; who
// gets it twice (an answer was lost, two daemons) can see that.
//
// # What is promised
//
//   - Nothing here holds up a round: Observe takes a pointer and returns.
//   - An event is in the state file before it is sent and leaves it when it was
//     taken, so that a crash may repeat one and loses none. Without a state
//     directory, what was not sent is lost with the process.
//   - A destination gets no more than its pace allows: chat and mail get what
//     came meanwhile as one message. One that fails is asked again with growing
//     pauses; it holds up no other. An outbox holds 1,000 events and a day: what
//     is older goes first, and is counted.
//   - A destination's address is a secret: it is read when it is needed, and
//     stands in no log, error or file.
//
// The first start of all tells nothing of what stands in the ledger already.
// Of several daemons on one fleet one speaks (Options.Speaks); the others derive
// the same events and drop them half a minute later. Who takes over may repeat
// what the other told in that time, and leaves nothing out.
//
// That a tenant's own repository is frozen stands in no ledger: it is told once the daemon
// has seen it so for two minutes, and once more when it is read again; which were told is
// in the state file.
//
// It sees the ledger and that alone, and no other room but api; cli joins it to the
// daemon. Observe may be called by any goroutine, Run by one.
package notify
