// Package hands says by whose hand a commit of the ledger can be: which keys count, and why
// none speaks for it.
//
// Invariants: no text states more than a signature proves. A name and an address prove
// nothing; a commit that says a trailer twice proves nothing either, since two programs read
// it in two ways.
//
// Callers: package audit. It is pure, and safe for concurrent use.
package hands
