// Package install runs the programs with the rights that the install base of
// the fleet repo's template gives them and no others: the bases are applied to
// real API servers, daemon and agents use tokens of the ServiceAccounts made
// there, and the audit log shows whether anything was denied. Admission by Pod
// Security is tried with the pods that the Deployments and the StatefulSet would make.
//
// Not tried here, because nothing on this machine can run a container: the
// images, the kubelet's probes and the NetworkPolicies.
package install
