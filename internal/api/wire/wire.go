// Package wire is what agents and the daemon say to each other over HTTP: the
// names of routes and headers, the report of flavors, the advertisement of
// agents of the first form, reservations, instructions, and the answer to a
// mistake.
//
// It holds values and their text forms only. The agent writes what the server
// reads, so both import it and neither imports the other.
package wire

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// HeaderGeneration carries a report's Generation.
const HeaderGeneration = "Fleetbroker-Generation"

// HeaderHonoured carries FlavorReport.Honoured with a full report: a field of the body
// would be refused by daemons that do not know it.
const HeaderHonoured = "Fleetbroker-Honoured"

// ParseHonoured reads what HeaderHonoured carries, 0 where it is missing.
func ParseHonoured(s string) (uint64, error) {
	if s == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(s, 10, 63)
	if err != nil {
		return 0, fmt.Errorf("%.40q is no number of a commit: write a whole number below 2^63", s)
	}
	return n, nil
}

// HeaderMarket carries the tree hash of the market that an answer shows.
const HeaderMarket = "Fleetbroker-Market"

// FlavorsPath is the route of a cluster's report.
func FlavorsPath(cluster string) string { return "/api/v2/clusters/" + cluster + "/flavors" }

// Generation numbers an agent's reports, "<epoch>.<n>". The epoch grows with
// each start of the agent, n with each change of its list.
type Generation struct {
	// Epoch of the agent's life: nanoseconds since 1970 at its start.
	Epoch uint64
	// N counts the changes within the epoch, from 1.
	N uint64
}

// ParseGeneration reads "<epoch>.<n>".
func ParseGeneration(s string) (Generation, error) {
	epoch, n, ok := strings.Cut(s, ".")
	var g Generation
	var errE, errN error
	g.Epoch, errE = strconv.ParseUint(epoch, 10, 63)
	g.N, errN = strconv.ParseUint(n, 10, 63)
	if !ok || errE != nil || errN != nil || g.Epoch == 0 || g.N == 0 {
		return Generation{}, fmt.Errorf("%q is not a generation: write <epoch>.<n>, two whole numbers from 1", s)
	}
	return g, nil
}

// String is "<epoch>.<n>".
func (g Generation) String() string {
	return strconv.FormatUint(g.Epoch, 10) + "." + strconv.FormatUint(g.N, 10)
}

// Cmp is −1, 0 or 1 as g is older than, the same as or newer than o.
func (g Generation) Cmp(o Generation) int {
	switch {
	case g == o:
		return 0
	case g.Epoch < o.Epoch, g.Epoch == o.Epoch && g.N < o.N:
		return -1
	}
	return 1
}

// StaleEpochError says that a newer report is known (409): of a later life of
// the agent, or of a later change.
type StaleEpochError struct {
	// Last is the newest generation that is known.
	Last Generation
}

// Error says what to do.
func (e *StaleEpochError) Error() string {
	return "a newer report is known, " + e.Last.String() + ": use an epoch above it"
}

// FlavorReport is the body of a full report. A report without a body says that
// the list of its generation still holds.
type FlavorReport struct {
	// Flavors are all that the cluster offers: one that is missing is withdrawn.
	Flavors []v1alpha1.Flavor `json:"flavors"`
	// Demand is what the cluster's pods ask of the contracts it consumes; nil when nothing is known of it.
	Demand *v1alpha1.Demand `json:"demand,omitempty"`
	// Honoured is the number on the ledger (Instructions.Seq) of the newest instructions
	// with an ending contract that the agent had carried out when it collected the
	// flavors: what ends there gets nothing any more, and has what the flavors show as
	// held. 0: it does not say, as one that leaves slices to Liqo. Agents send it as
	// HeaderHonoured.
	Honoured uint64 `json:"honoured,omitempty"`
}

// Reasons of errors that an agent acts on.
const (
	// ReasonUnknownBase asks for the full list (412).
	ReasonUnknownBase = "UnknownBase"
	// ReasonStaleEpoch asks for an epoch above Error.Last (409).
	ReasonStaleEpoch = "StaleEpoch"
	// ReasonPaced: what changed is written at most so often; the former list holds,
	// and the newest is to come again after Retry-After (429).
	ReasonPaced = "Paced"
	// ReasonDeaf: the daemon hears too few providers to decide; try again (503).
	ReasonDeaf = "Deaf"
	// ReasonUnavailable: the daemon cannot commit now; try again with the same key (503).
	ReasonUnavailable = "Unavailable"
	// ReasonStandby: another replica decides; ask it, or ask again (503).
	ReasonStandby = "Standby"
	// ReasonNotAReplica: who hands a request on shows no certificate of a replica of the
	// daemon, or one of another fleet's (403).
	ReasonNotAReplica = "NotAReplica"
	// ReasonNotEnabled: clusters/<id>.yaml has no reservations (403).
	ReasonNotEnabled = "ReservationsNotEnabled"
	// ReasonKeyReused: the idempotency key stands for another request (409).
	ReasonKeyReused = "IdempotencyKeyReused"
	// ReasonNotFound: no such reservation of this cluster (404).
	ReasonNotFound = "NotFound"
)

// Error is the body of every answer that is not a success.
type Error struct {
	// Error is for people.
	Error string `json:"error"`
	// Reason is for programs.
	Reason string `json:"reason"`
	// Last is the newest generation the daemon knows, with StaleEpoch.
	Last string `json:"last,omitempty"`
	// Rejected counts the offers that a reservation looked at by the first
	// requirement they fail, with NothingFits and the like; Considered is their number.
	Rejected   map[string]int `json:"rejected,omitempty"`
	Considered int            `json:"considered,omitempty"`
	// Near are offers that fail one requirement only, best first.
	Near []string `json:"near,omitempty"`
}

// Refusal is an error that an answer will carry: the status of HTTP, the body,
// and after how long to try again (zero: not).
type Refusal struct {
	Status     int
	Body       Error
	RetryAfter time.Duration
}

// Error implements error.
func (r *Refusal) Error() string { return r.Body.Error }

// Quantities of an Advertisement, as strings in Kubernetes' form.
type Quantities struct {
	CPU     string `json:"cpu"`
	Memory  string `json:"memory"`
	GPU     string `json:"gpu,omitempty"`
	Storage string `json:"storage,omitempty"`
}

// AdvertisedResources of an Advertisement.
type AdvertisedResources struct {
	Capacity    Quantities  `json:"capacity"`
	Allocatable Quantities  `json:"allocatable"`
	Allocated   Quantities  `json:"allocated"`
	Reserved    *Quantities `json:"reserved,omitempty"`
	Available   Quantities  `json:"available"`
}

// Advertisement is the report of the Liqo resource agent
// (POST /api/v1/advertisements), a cluster in one sum.
type Advertisement struct {
	ClusterID   string              `json:"clusterID"`
	ClusterName string              `json:"clusterName"`
	Resources   AdvertisedResources `json:"resources"`
	Timestamp   string              `json:"timestamp"`
}

// AdvertisementAnswer answers an Advertisement.
type AdvertisementAnswer struct {
	Advertisement Advertisement `json:"advertisement"`
	// ProviderInstructions are what the cluster owes.
	ProviderInstructions []Reservation `json:"providerInstructions,omitempty"`
}
