// Package proposing puts one file of the inputs onto a branch of its own and opens a pull
// request for it, for a person to merge.
//
// Invariants: nothing is written where the inputs have the same content already; the branch
// is named by the content before and after, so that the same change is proposed once, however
// often it is asked for and whether it was merged or closed; a branch that exists is left as
// it is, and no other ref is moved. Open pull requests of the
// same account for the same file are closed when a newer one takes their place; those of
// other people stand.
//
// `fleetbroker prices import --propose` calls it, as a CronJob does once a day. It keeps
// nothing; calls on one remote may run at the same time.
package proposing
