// Package proofs remembers whose signatures over commits were found good, because
// verifying one costs a hundred times as much as looking it up.
//
// Invariant: what is remembered is true of the bytes alone. Whether a key is listed
// and in force is the caller's to ask, each time.
//
// gitrepo calls it. A Memory is safe for concurrent use; its zero value is empty.
package proofs
