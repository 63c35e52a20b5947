// Package clonedir opens the git repository of a directory that others may have
// filled, such as a cache of CI, for commands that read it.
//
// What go-git opens there is a regular file, of a size that such a file may have: a pipe or
// a device in its place would be waited for, and an endless file read, without end. Objects
// are taken from the repository itself alone: what it borrows from others
// (objects/info/alternates) is not followed, because a repository that borrows from itself
// never ends, and go-git looks for the others in the wrong place. Neither replaced objects
// nor grafts nor a commit-graph are read. What objects hold is for who reads them to compare
// with their names.
//
// Packs are read by package packs, with the bounds that what is fetched is held to: go-git
// holds all deltas on which an object stands in memory at once.
//
// Callers are commands (internal/cli). An opened repository is as safe for concurrent use as
// go-git's is: its objects are not.
package clonedir
