// Package packs keeps git's packs in a directory: it takes a pack in as it
// comes from a server, indexes it, and reads objects of it by name. The files
// are git's own (pack-<checksum>.pack and .idx, version 2), so that git and
// go-git can read the directory.
//
// Taking in uses every core: one goroutine inflates what arrives while others
// hash it, and deltas are resolved from their bases up, many bases at once.
// go-git does the same with one core, and reads one object at a time under its
// caller's lock; on a fleet of 100,000 intents (310,000 objects) that was a
// third of a cold start.
//
// # Invariants
//
//   - A pack is either whole, indexed and named after its checksum, or not
//     there: an interrupted intake leaves a file called tmp-…, which the next
//     Open removes.
//   - What Read returns hashes to the name it was asked for, and does not depend on what
//     the object stands on in which pack.
//   - Nothing is inflated beyond the size that its header declares, nor into
//     memory beyond MaxInMemory; a chain of deltas has at most maxChain links, and
//     what deltas make is bounded before it is made (maxMade, maxTotal, maxLarge,
//     maxStand, maxBeyond). Of packs that were not taken in (Local) the last two bound
//     what is made while they are read. The objects of a pack are as many as the process has memory for.
//   - A damaged or hostile pack is an error, never a panic.
//
// gitrepo calls it, and cli/clonedir for clones that others keep. A Dir is safe for concurrent use.
package packs
