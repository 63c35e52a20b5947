// Package cachedir keeps the local copies of a repository in a state directory: any number
// of cache-* directories.
//
// A cache directory is a bare repository's objects in packs, heads.json (what it is known
// to hold whole) and a lock held for as long as a process uses it. A second process on the
// same state directory (`reconcile --once` next to a daemon) makes a cache of its own. Caches
// that no process holds are removed.
//
// Invariants:
//   - No two processes use one cache.
//   - A damaged cache is set aside for a person to look at, and the newest of those alone.
//
// gitrepo calls it, under its lock.
package cachedir
