// Package judge holds the newest commits of the ledger to what `audit verify` holds them
// to, in the background, for who looks at the dashboard.
//
// Invariants:
//   - Nobody waits for it, and without who looks it does nothing: one run at a time, at
//     most one a minute, at half a processor at most, whoever asked first and however soon
//     they were answered: any reader of a tenant may, because more cannot come of it. A
//     long ledger takes as long as it takes, and State says how far it is; after a run that
//     failed the pause grows.
//   - The first run takes the oldest commit of the window as it stands; later ones go on
//     where the one before ended. A commit is judged once.
//   - It shows and never acts: what the daemon itself trusts is its own affair.
//
// internal/ui asks it for its page. A Judge is safe for concurrent use.
package judge
