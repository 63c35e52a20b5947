package wire

import (
	"crypto/sha256"
	"encoding/base32"
	"net/url"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// HeaderIdempotencyKey makes a retry of a reservation safe: the same key of
// the same cluster is the same reservation, however often it is sent and to
// whichever daemon.
const HeaderIdempotencyKey = "Idempotency-Key"

// ReservationsPath is the route on which clusters ask for capacity.
const ReservationsPath = "/api/v1/reservations"

// ReservationPath is the route of one reservation, for its release.
func ReservationPath(id string) string { return "/api/v2/reservations/" + url.PathEscape(id) }

// ReservationID is the name of the reservation that a cluster asks for with an
// idempotency key: it follows from the two alone, so that a retry finds it
// whoever answers.
func ReservationID(cluster, key string) string { return NameReservation("key", cluster, key) }

// NameReservation makes a name of what tells a reservation apart.
func NameReservation(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return "rq-" + strings.ToLower(idDigits.EncodeToString(sum[:10]))
}

var idDigits = base32.HexEncoding.WithPadding(base32.NoPadding)

// ReservationRequest asks for capacity in the cluster that sends it. It is the
// Liqo resource agent's form (RequestedResources, Priority, Duration), to which
// Queue, Spec and Requester are added; those who know more than CPU and memory
// give a Spec instead of RequestedResources.
type ReservationRequest struct {
	// RequestedResources in the first form's words; cpu and memory above zero.
	RequestedResources *Quantities `json:"requestedResources,omitempty"`
	// Priority from 0 to 1000, capped by the tenant.
	Priority *int32 `json:"priority,omitempty"`
	// Duration such as "1h"; empty takes the cluster's reservations.defaultDuration.
	Duration string `json:"duration,omitempty"`
	// Queue with policy wait is answered 202 when nothing fits now; default fail: 409.
	Queue *v1alpha1.Queue `json:"queue,omitempty"`
	// Spec is the whole request of a ResourceIntent. Its consumer is the sender.
	Spec *v1alpha1.IntentSpec `json:"spec,omitempty"`
	// Requester says on whose behalf the cluster asks, for the audit trail.
	Requester *Requester `json:"requester,omitempty"`
}

// Ask is a request with who sent it.
type Ask struct {
	// Cluster by its certificate.
	Cluster string
	// Key is the idempotency key, "" for none.
	Key string
	// ID is the reservation's name where it was given already; "" where it is to be.
	ID string
	// Handed: another replica took the request, and knows what its client was told.
	Handed  bool
	Request ReservationRequest
}

// Requester is the object in a cluster on whose behalf its agent asks.
type Requester struct {
	// Namespace and Name of the object.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	// UID of the object.
	UID string `json:"uid,omitempty"`
	// Owner is who made it, as the cluster's API server knows him.
	Owner string `json:"owner,omitempty"`
}

// The phases that the first form knows.
const (
	PhasePending  = "Pending"
	PhaseReserved = "Reserved"
	PhaseActive   = "Active"
	PhaseReleased = "Released"
	PhaseFailed   = "Failed"
)

// ReservationStatus is where a reservation stands.
type ReservationStatus struct {
	// Phase is Pending, Reserved, Active, Released or Failed.
	Phase   string `json:"phase"`
	Message string `json:"message"`
	// ReservedAt and ExpiresAt are RFC 3339.
	ReservedAt *time.Time `json:"reservedAt,omitempty"`
	ExpiresAt  *time.Time `json:"expiresAt,omitempty"`
}

// Reservation answers a request, and tells providers of the first form what
// they owe. What follows CreatedAt is not known to the first form.
type Reservation struct {
	// ID names the reservation; it is the name of its intent.
	ID string `json:"id"`
	// RequesterID and TargetClusterID are the consumer and the provider.
	RequesterID     string            `json:"requesterID"`
	TargetClusterID string            `json:"targetClusterID"`
	Requested       Quantities        `json:"requestedResources"`
	Status          ReservationStatus `json:"status"`
	CreatedAt       time.Time         `json:"createdAt"`

	// Tenant that the reservation is charged to.
	Tenant string `json:"tenant,omitempty"`
	// Commit on the ledger that holds the reservation.
	Commit string `json:"commit,omitempty"`
	// Contract is the first of Contracts.
	Contract string `json:"contract,omitempty"`
	// Contracts that serve it, one a replica.
	Contracts []ReservedContract `json:"contracts,omitempty"`
	// Path of the request's file on the ledger branch.
	Path string `json:"path,omitempty"`
	// Trace in which this answer was given, as W3C's traceparent; "" where none is kept.
	Trace string `json:"trace,omitempty"`
}

// ReservedContract is one contract of a reservation, with why it was made.
type ReservedContract struct {
	Name      string                 `json:"name"`
	Provider  string                 `json:"provider"`
	Flavor    string                 `json:"flavor"`
	Endpoint  string                 `json:"endpoint,omitempty"` // the provider's API server
	Slice     string                 `json:"slice"`
	Resources v1alpha1.Resources     `json:"resources"`
	Price     v1alpha1.ContractPrice `json:"price"`
	Term      v1alpha1.Term          `json:"term"`
	Phase     v1alpha1.Phase         `json:"phase"`
	Decision  *v1alpha1.Decision     `json:"decision,omitempty"`
}
