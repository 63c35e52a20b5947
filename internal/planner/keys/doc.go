// Package keys makes keys of maps from sequences of values: equal sequences give equal
// bytes, and different ones different bytes, whatever texts they are of.
//
// Package match makes the keys of its request classes so. A Buffer belongs to one
// goroutine.
package keys
