// Package model is what the rooms around the planner tell each other: one form
// of each thing, made by the room that knows it and read by all others.
//
//	change.go	a contract or an intent's state before and after
//	offer.go	a flavor as the market knows it, and what is known of its provider
//	inputs.go	what the files of the inputs say: intents, policies, and what is frozen because it cannot be read
//
// Its values are plain data. Whoever makes one
// hands it on and never writes it again, so that all of them are safe for
// concurrent reading. A document or value that is handed on at the same address
// is the same: the planner's memory and the ledger's indexes rely on it.
package model
