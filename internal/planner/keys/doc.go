// Package keys writes values as bytes, so that different sequences of values have different
// bytes. What has equal keys is asked for once: package match numbers requests by them.
//
// Invariant: of two sequences of calls, the bytes are equal only if calls and values are.
//
// A Buffer belongs to one goroutine.
package keys
