// Package simulated reads the tables of `simulate` and prints what it found as tables;
// charts are package simulate's.
//
// Only internal/cli calls it. A result is read and not changed.
package simulated
