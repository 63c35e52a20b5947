// Package notes reads the FLUIDOS annotations of nodes (<domain>.fluidos.eu/<key>), from
// which an agent takes what no device plugin tells: memory and sharing of GPUs, prices,
// location, and facts that administrators know.
//
// Invariants:
//   - Each value is read by its kind and within bounds; what cannot be read is a problem in
//     words and otherwise not there, so that one annotation never costs a whole report.
//   - What nothing else was made of becomes a label.
//
// Package agent calls it, for each node of a report. A Notes is for one goroutine.
package notes
