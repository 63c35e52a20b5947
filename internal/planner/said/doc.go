// Package said is what offers fail, in words: a requirement or a limit of the tenant, one
// by one and counted.
//
// Each offer is counted once, under the first requirement that it fails, so that the
// counts of a sentence add up to the offers that were looked at.
//
// Packages place, ahead and explain call it, and the planner for its reports. Pure
// functions of values.
package said
