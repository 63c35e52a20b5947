// Package laid writes generated files into a directory in which people edit them, and
// knows by a lock file which of them they have edited.
//
//	files of this version ─┐
//	lock: digests written ─┼─► Write ─► files, lock, Outcome
//	files of the directory ┘
//
// Invariants:
//   - A file that people edited, or that was there before, is never overwritten and never
//     removed. Edited is what differs both from the lock's digest and from what is to be
//     written. What people deleted stays deleted.
//   - Where such a file has a new version, that goes next to it, as NAME.new, and is
//     reported as a conflict once: the lock then has the new version's digest. A NAME.new
//     that people edited is not overwritten either.
//   - A file that is no longer generated is removed, unless it was edited.
//   - Nothing outside of the directory is read or written, whatever links are in it.
//   - The lock is written last, and each file at once: after a crash the next run finds
//     files of the new version and an old lock, and takes them for unedited.
//
// `fleetbroker install` and `init` call it. Two writers of one directory at the same time
// are not supported.
package laid
