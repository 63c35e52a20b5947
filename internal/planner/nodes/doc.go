// Package nodes is how pods are packed into the nodes behind an offer: numbers alone,
// without flavors, contracts or intents.
//
//	ask.go    what a size comes to as pods: pieces that each lie on one node
//	levels.go nodes that are alike, found by what is free of them
//	map.go    what is free of each node, taken and given back
//	below.go  of which nodes more is held than there is
//	hosts.go  whether pods fit into given parts
//	pack.go   on which nodes pieces lie, where all that is held is on some, and no part without
//	          cores or memory
//	loose.go  what is held nobody knows where: it is taken to lie where it packs best
//	free.go   what is left next to that
//	fits.go   … and whether, where and how often a size fits there
//
// Each file knows those above it alone.
//
// # Invariants
//
//   - A piece lies on one node with all that it asks for: GPUs, cores, memory, storage and
//     devices. How many pods a slice may have is a quota, which no node bounds.
//   - Each part of a size with cores and memory has some of both.
//   - What a packing takes adds up to the size that was packed, resource by resource, and
//     is on MaxParts nodes at the most.
//   - Nodes of which something is taken come before those that are whole, and of these that
//     on which least is left; a replica bigger than a node takes whole nodes.
//   - Book with 1 and then -1 of the same brings back what was, in any number and order.
//   - Equal maps and asks give equal packings: ties go by the node's name.
//
// # Who calls it
//
// Package inventory keeps a Map of each offer that tells its nodes; package match asks
// whether a request fits and where, the packages above it count with it.
//
// # Concurrency
//
// None: a Map belongs to the goroutine of its round. Vectors that are handed in or out are
// shared and must not be modified.
package nodes
