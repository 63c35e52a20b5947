// Package statefile handles the files of a state directory that a start must
// survive: a damaged one is set aside under a name that the log gives, and the
// program begins without it.
//
// Invariants: nothing is deleted that a person may want to look at, except the
// oldest of more than Kept files set aside under one name; a file that cannot
// be renamed stays where it is and is an error.
//
// Replace writes a file that a crash leaves as it was or whole.
//
// Health knows which of these files cannot be written at present, for /readyz and a
// metric.
//
// Who calls it: notify, gitrepo and the poison rule's notes, at their start; whoever
// replaces a file of the state directory, of pki, or a witness. The
// functions hold no state; two processes on one directory do no more harm than one.
package statefile
