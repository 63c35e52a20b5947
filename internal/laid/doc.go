// Package laid writes generated files into a directory in which people edit them, and
// knows by a lock file which of them they have edited.
//
//	files of this version ─┐
//	lock: digests written ─┼─► Write, Merge ─► files, lock, Outcome
//	files of the directory ┤
//	base: files written   ─┘ (Merge)
//
// Invariants:
//   - A file that people edited, or that was there before, is never overwritten and never
//     removed. Edited is what differs both from the lock's digest and from what is to be
//     written. What people deleted stays deleted.
//   - Where such a file has a new version, that goes next to it, as NAME.new, and is
//     reported as a conflict once: the lock then has the new version's digest. A NAME.new
//     that people edited is not overwritten either.
//   - Merge puts a new version into an edited file, where neither touched the other's lines
//     (package merge) and YAML stays YAML; else it does the same. Every line that people
//     changed is as they have it. What the file was made from is taken from base, and only
//     when it has the lock's digest. While a NAME.new of an earlier version is there, nothing
//     is merged: the newer version takes its place, as a conflict, and no change is lost.
//   - A file that is no longer generated is removed, unless it was edited.
//   - Nothing outside of the directory is read or written, whatever links are in it.
//   - What is to be done is found out, and each new file is written next to the one that it
//     replaces, before any takes its place: an error leaves every file as it was.
//   - The lock takes its place after all other files, and each file at once: after a crash the next run finds
//     files of the new version and an old lock, and takes them for unedited. (After a crash of
//     Merge what was merged already is reported as a conflict.)
//
// `fleetbroker install`, `install chart` and `init` call it, `init` Merge. Two writers of one directory at the same time
// are not supported.
package laid
