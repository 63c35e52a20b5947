// Package layout is on which nodes of an offer contracts lie: what package match asks of
// an offer's nodes, asked of contracts, and of how many replicas fit.
//
// Invariants:
//   - What a contract names of nodes adds up to its resources, key by key.
//   - A contract stays on its nodes for as long as they hold it as its pods are.
//
// Called by package place and those above it. Functions of their arguments, on the
// goroutine of the round whose offers they are handed.
package layout
