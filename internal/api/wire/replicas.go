package wire

// Routes by which replicas of a daemon hand on what they are asked for, on the
// agents' port, for certificates of the role server alone.
const (
	// HandedReservationsPath takes a HandedReservation and answers as
	// ReservationsPath does.
	HandedReservationsPath = "/api/replicas/v1/reservations"
	// HandedReleasesPath takes a HandedRelease and answers 204.
	HandedReleasesPath = "/api/replicas/v1/releases"
	// ToldPath takes a Told and answers 204.
	ToldPath = "/api/replicas/v1/told"
	// HandedSimulationsPath takes what is asked of the dashboard's simulations there
	// (internal/simulate/handed).
	HandedSimulationsPath = "/api/replicas/v1/simulations"
)

// HandedReservation is a request that another replica took.
type HandedReservation struct {
	// Cluster that asks, by the certificate that it showed to the other replica.
	Cluster string `json:"cluster"`
	// Key is the idempotency key, "" for none.
	Key string `json:"key,omitempty"`
	// ID is the reservation's name, given once by the replica that took it; it
	// counts where there is no key.
	ID      string             `json:"id"`
	Request ReservationRequest `json:"request"`
}

// HandedRelease is the release of a reservation.
type HandedRelease struct {
	Cluster string `json:"cluster"`
	// ID of the reservation.
	ID string `json:"id"`
}

// Told says what the client of a reservation was told.
type Told struct {
	ID string `json:"id"`
	// Told is 2xx; else it was told nothing of it.
	Told bool `json:"told"`
}
