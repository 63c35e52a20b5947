// Package github is GitHub's API as a forge.Forge, through
// google/go-github; Enterprise by its own URL.
//
// Comments on lines are single review comments, so that one that lies outside
// of the diff (422) does not take the others with it.
//
// The token needs, as a fine-grained one or a GitHub App's: pull requests
// read and write, commit statuses read and write, contents read (write to
// merge). An App's token may not ask who it is: name its login in
// forge.Config.User. Everything else is said in package forge.
package github
