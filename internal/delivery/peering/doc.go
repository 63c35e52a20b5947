// Package peering lets a consumer cluster ask a provider cluster for slices:
// Liqo's authentication between the two, made the declarative way, with no
// liqoctl and no handshake.
//
//	provider: Namespace, ServiceAccount, RoleBinding, Tenant ──┐ a token of the ServiceAccount
//	consumer: Namespace, Secret with a kubeconfig  ◄───────────┘
//
// Liqo on the consumer (crd-replicator) starts from that Secret, and the
// provider's Tenant says TolerateNoHandshake, so that it does without the
// exchange of nonces. Tried on Liqo v1.2.0.
//
// # Invariants
//
//   - Everything is named by the two clusters alone, so that doing it again, or
//     after a crash at any step, changes nothing and leaves nothing behind.
//   - A credential goes from the provider's API server to the consumer's, and
//     nowhere else: neither to git nor to a log.
//   - A token is renewed when two thirds of its life are over, and when its
//     ServiceAccount or the provider's address is another one. A certificate
//     that nobody trusts goes with it, by which Liqo sees that it is another.
//   - What somebody else made (liqoctl, a platform team) is left alone: a
//     peering that exists is used as it is.
//   - Undoing removes the credential on the consumer and the account behind it
//     on the provider, so that it ends everywhere at once. Namespaces stay.
//
// internal/delivery calls it for each consumer that it serves. The functions
// keep no state and may be called from any goroutine.
package peering
