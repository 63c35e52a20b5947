// Package parts is the arithmetic of a replica that is put together from parts
// (spec.split): what one part asks for, for how many units each offer has room, and which
// offer can take the next part so that the rest stays within reach of the others.
//
// # Invariants
//
//   - What an offer has room for is looked for once until it or its pool changes: the caller
//     reports each change, and each that is rolled back.
//   - A part is judged against all other offers at the same cost, however many there are.
//
// The planner's place and settle call it. A Sizes belongs to one goroutine; the rest is pure.
package parts
