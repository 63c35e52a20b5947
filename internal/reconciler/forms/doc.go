// Package forms refuses intents on consumers that cannot admit their pods: the cluster's
// file asks for a MutatingAdmissionPolicy (v1alpha1.ClusterSpec.Admission), and its API
// server serves that kind in no version. Pods would get no tolerations there, so that a
// contract would be paid for and used by nobody. The remedy is the agent's webhook.
//
// Invariants: an intent that has a contract which has not ended keeps it and is not refused;
// a consumer that has not been reached yet, or reports nothing, refuses nothing; the fleet
// that is handed in is never modified; the same fleet, contracts and reports give the very
// same fleet again, because who plans compares addresses.
//
// Package reconciler calls it for each world. A Refuser is used by one goroutine.
package forms
