package planner

// request is how a job is to be served: what may be taken for it, and what its
// placement is for. It is handed down by value: who narrows it narrows a copy, and
// what a function does depends on the one that it is handed.
type request struct {
	// mayBorrow: its tenant may go beyond its quota, by what others leave of theirs.
	mayBorrow bool
}
