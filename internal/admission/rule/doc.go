// Package rule is what the admission policies that change objects do, in Go: pods of
// tenants' namespaces get the tolerations of their intents (Tolerations), and a
// ResourceRequest bears who made it (Owner). The agent's webhook answers by it where a
// cluster serves no MutatingAdmissionPolicy.
//
// The rule has three forms: internal/manifests/policies/intent-tolerations.yaml and
// install/agent/request-owner.yaml as MutatingAdmissionPolicy v1 and v1beta1, and this
// package. Invariants:
//
//   - All forms make the same of an object. Tests evaluate the policies' own CEL beside
//     this package on objects made at random, and test/e2e/policies runs one table of
//     cases against each form on a real API server.
//   - Where the CEL fails, so does this: a webhook whose failurePolicy is Fail refuses
//     then, as the policy does.
//   - Functions are pure, change nothing that they are given, and may be called from
//     several goroutines.
//
// What comes in is a stranger's: annotations and labels of any content.
package rule
