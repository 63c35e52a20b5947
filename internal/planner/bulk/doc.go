// Package bulk ranks the providers for jobs that are placed together, and leaves out those that
// have too little for all of them, before anybody tries one task after the other.
//
// Invariant: what it says cannot be held is never placed, whatever is displaced, released or
// lent for it: it compares with all that the provider has, and not with what is free.
//
// Callers: packages place and joint, for intents that belong together. It keeps nothing, and
// is used by one goroutine as the draft of its jobs is.
package bulk
