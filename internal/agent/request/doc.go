// Package request makes reservations of the ResourceRequests in a cluster.
//
//	ResourceRequest ──POST, key = UID──► broker ──commit──► ledger
//	      ▲                                                    │
//	      └───────────── status ◄── instructions ◄─────────────┘
//
// The key makes a retry safe: however often an agent is killed between asking
// and writing the answer down, one request is one reservation, and its name
// follows from cluster and key alone. Deleting the object releases what it got;
// its finalizer goes when the release is on the ledger. A request that was
// refused for good is Failed and not tried again.
//
// Who asks is carried into the audit trail: namespace, name and UID of the
// object, and its owner: the user whom the admission policy of install/agent
// writes down as the annotation fleetbroker.io/owner, else the controller
// that owns the object. Without that policy the annotation is what its author
// says of himself, and is passed on as such.
//
// What becomes of a request (queued, reserved, degraded, failed, …) is told as an
// Event on it too.
//
// # Concurrency
//
// A Reconciler may be used from several goroutines; its work is done by several
// workers, because each waits for a commit.
package request
