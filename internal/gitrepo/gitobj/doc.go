// Package gitobj is git's object format and nothing else: it encodes and reads
// commits and trees, builds a new tree out of an old one and a change, and
// packs objects for the wire.
//
// It is pure: no repository, no network, no clock. gitrepo and its in-memory
// twin of a remote (memremote) both stand on it, so that they agree on every
// byte. Equal inputs give equal objects.
//
// A Set is not safe for concurrent use while it is being added to; everything
// else is values.
package gitobj
