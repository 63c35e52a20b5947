// Package account is the books that a round keeps of its tenants: what is on
// whose account, how much of quota and budget that leaves, and who holds which
// share of the fleet.
//
//	money.go	prices of contracts in the fleet's currency at an instant
//	standing.go	the ledger's charged contracts by tenant, kept from round to round
//	accounts.go	Accounts: opened on first use, charged and taken back
//	tenant.go	Tenant: one account, its quota and its budget, and the Size that counts there
//	limits.go	Limits: what one more contract may take, and whether one does
//	ahead.go	what bookings leave, at the instants of their terms
//	borrow.go	quota that others leave unused
//	share.go	dominant resource fairness
//	text.go		limits and loans as people read them
//
// The package knows contracts and tenants, but neither intents nor offers nor how
// a round proceeds: it is handed sizes, and whether a contract that is being
// released still counts.
//
//   - The sum of an account is what the ledger's charged contracts of its tenant
//     come to, and what has been charged since. Of budgets only what has a limit
//     is summed.
//   - Charge(before, after) and then Charge(after, before) at one instant is the
//     identity; so is Undo of a Change, at any instant, as long as the changes
//     after it were undone before.
//   - Whether and in which order accounts are opened changes nothing: each is
//     opened as of the instant of its Source.
//   - Version of a Tenant differs after each change of its account, also after one
//     that took another back: what was derived from an account holds while the
//     version does.
//
// Callers are internal/planner and its packages above. Accounts belong to one
// round and its goroutine; a Standing is handed on from one round to the next.
package account
