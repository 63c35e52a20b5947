// Package versions finds out which versions of a kind an API server serves, and puts
// objects into one of them.
//
// MutatingAdmissionPolicy is v1 since Kubernetes 1.36 and v1beta1 in 1.34 and 1.35, where
// an administrator switches that version on; both have the same fields. What is rendered
// names one version (v1alpha1.ClusterSpec.Admission). Who applies it applies the same
// object in the version that is served, so that an upgrade of the cluster needs no commit
// at the same moment.
//
// Invariants: a version counts as served only where discovery lists the resource in it;
// the object that is given is never modified. Package delivery calls it for each
// connection. Functions are pure but for the calls of Served, and safe for concurrent use.
package versions
