// Package attacks are what somebody who may push can do to the history of a
// signed ledger. Each is a step that changes a repository in memory and says by
// which rule of `audit verify` it is found. It needs no test: the simulation may
// take them as steps among others.
//
// Callers: the table test of internal/audit, test/sim. Not safe for concurrent use.
package attacks
