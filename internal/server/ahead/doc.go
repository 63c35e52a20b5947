// Package ahead judges what agents say of the ledger's number, where it is above what this
// replica has read.
//
// Invariants:
//   - What an agent says is not to be believed: each has a certificate. It makes the remote
//     be asked, paced for all together and for each, and else concerns its own cluster alone.
//   - A number that nobody finds for SetBack counts no more: the ledger was set back, and
//     the agent is answered what it says now. It has a wait of its own, from when it last
//     heard of that number, before it takes a lower one.
//
// The agents' port calls it. Safe for concurrent use.
package ahead
