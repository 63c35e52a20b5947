// Package hook is the agent's mutating webhook: the form of admission of clusters whose
// API server serves no MutatingAdmissionPolicy.
//
//	API server ──AdmissionReview──► Server ──► rule.Tolerations, rule.Owner
//	                                   ▲ leaf
//	Secret fleet-agent-webhook ◄──► Keeper ──caBundle──► MutatingWebhookConfiguration
//
// Every replica of the agent serves; none has to hold the Lease. They share one
// authority and one certificate in a Secret, which the Keeper of any of them makes and
// renews: compare-and-swap by the Secret's resource version. The Keeper writes the
// authorities into caBundle and nothing else of the configuration. Which requests
// reach the webhook is decided by the configuration, which the install base makes: pods
// created in namespaces that have a tenant, and ResourceRequests.
//
// # Invariants
//
//   - A certificate of a new authority is made only after the configuration trusts that
//     authority, and former authorities are trusted until they end: at no step of a
//     rotation does the API server meet a certificate that it does not trust. A property
//     test takes the steps of several replicas in any order.
//   - The answer to a review is the rule's alone; what cannot be read is refused, and no
//     object is made, changed or deleted to answer one.
//   - Whoever reaches the port may ask. Reviews are bounded in size (3 MiB), time (4 s) and
//     number (4 at once, of 16 that are held, 12 of one address; a body that does not come in
//     100 ms gives way to one that waits), and so are connections: one address keeps no
//     other out (package fair). Of an object only what the rule goes by is
//     read, and its lists are counted before room is made for them.
//   - Private keys are in the Secret and in memory, never in a log.
//
// The agent makes a Server and a Keeper for --webhook-bind-address. Both may be used from
// several goroutines.
package hook
