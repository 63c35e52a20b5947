// Package tree is the vocabulary in which rooms read git trees without knowing
// git: a Tree is a root hash and a Store that answers for directories and
// files by hash.
//
// It lies under api because both fleet (inputs) and ledger (contracts) read
// trees and neither may import gitrepo. Hashes are git's own SHA-1 object
// names, so equal hashes mean equal content, and callers cache parsed results
// by hash.
//
// A Tree is a value and immutable. A Store must be safe for concurrent use.
// Memory is the deterministic in-memory Store that tests, `validate` on a
// plain directory and the simulator use; gitrepo has the one on a repository.
package tree
