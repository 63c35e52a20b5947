package planner

// Rules numbers the planner's rules. It grows with each change by which the same
// world is decided otherwise: a program that meets a higher number on the ledger
// does not plan, and replay does not decide again what other rules decided.
const Rules = 1
