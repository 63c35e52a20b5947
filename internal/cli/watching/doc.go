// Package watching is what a command needs that goes on: what has changed between two
// pictures of a list (Changed), what has to be said that was not said before (Notes), and the
// newest ledger of a clone (Fetch).
//
// A pipe gets changed rows, objects and fields alone; the first picture is whole. What is
// gone is named by the first cells of its row. Fetch runs git in the user's clone, with
// the user's own credentials, and never asks for any: it moves the remote-tracking ref of
// the ledger, and nothing else.
//
// Only internal/cli calls it. Both functions are safe for concurrent use, Notes are one
// goroutine's; two Fetches of one clone wait for git's own locks.
package watching
