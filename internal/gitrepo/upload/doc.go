// Package upload words what is asked of a git server's upload-pack: which commits, from
// where on, and without files that nobody would read.
//
// A file that is left out is missing from the pack, and from each later one: who asks so
// must not take a missing file for damage. Servers that know no filter send everything.
//
// It asks for multi_ack, without which Azure DevOps refuses, and has the library let it pass
// (a variable of it, set once at the start of the program).
//
// An answer's words next to its pack are bounded: a server that says more than it sends is
// given up.
//
// gitrepo calls it for each fetch. It is pure.
package upload
