// Package top is the picture that `fleetbroker top` shows: what is free, held, queued and
// spent, in the words of the dashboard's first page (view.FleetPage).
//
// It comes from a daemon's JSON (Read) or from a fleet repo and its ledger (Of), and says
// from which. Everything in it is untrusted text, and printed as one line without control
// characters. Nothing that is not known is drawn as 0: without a daemon nobody has heard
// providers, and what is free is by their files and the ledger.
//
// Only internal/cli calls it. A Picture is not changed once it was made.
package top
