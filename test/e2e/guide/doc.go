// Package guide runs the install guide, fleet-repo-template/docs/install.md, from its own
// text: its commands are taken from the page, its stand-ins filled in, and run in the page's
// order against the API servers of three clusters, once with kustomize and once with Helm.
// Daemon and agents run with what the commands applied (package test/env/pod).
//
// Every command of the page is run, or named with its reason by a comment of the page:
// <!-- not run: COMMAND because REASON -->, where COMMAND is how it begins. The test prints
// these, fails for a command that is neither, and for a comment that names none.
package guide
