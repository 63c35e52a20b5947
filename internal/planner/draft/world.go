package draft

import (
	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
)

// World is everything a round knows, as values. Decide reads nothing else: no
// clock, no random source, no environment. Nothing in it is modified, and what
// changes comes as a new value: a document, list or map that is handed in again
// at the same address is taken to be as it was (Session).
type World struct {
	// Rules number by which to decide, as a commit of the past names them; 0 is this program's.
	Rules int
	// Now is the round's time, UTC, to the second, never before the ledger's newest commit.
	Now v1alpha1.Time
	// Fleet is the policy with its defaults filled in.
	Fleet *v1alpha1.FleetSpec
	// FleetName is for people.
	FleetName string
	// Clusters and Tenants by name.
	Clusters map[string]*v1alpha1.Cluster
	Tenants  map[string]*v1alpha1.Tenant
	// Intents are all intents that could be read, in any order.
	Intents []*model.Intent
	// Frozen names what could not be read; what it touches is kept as it is.
	Frozen []model.Freeze
	// Inputs is the commit of the inputs.
	Inputs string
	// Ledger is the contracts as committed.
	Ledger *ledger.Ledger
	// Offers are all flavors of the market, in any order.
	Offers []*model.Offer
	// Market is the tree hash of the market snapshot that Offers were taken from.
	Market string
	// Observed is what clusters report, by contract name.
	Observed Observations
	// Demand is what the agents that are connected report of the pods that use contracts or wait for them, by consumer cluster.
	Demand map[string]*v1alpha1.DemandSeen
	// RemovedBy is who deleted files of intents, by path, as "Ada L. in 4f1c2ab"; for people, and to see whether one commit removed those of several tenants (guard.go).
	RemovedBy map[string]string
	// Deaf means that too few providers report to move, refuse or queue anything.
	Deaf bool
	// AllowEnds lets this one round end more contracts than Fleet.safety.maxEnds.
	AllowEnds bool
	// ForceRelease names contracts whose provider or consumer is lost for good: they end without being seen gone.
	ForceRelease map[string]bool
	// Policies are Fleet.policies, compiled.
	Policies []model.Policy
	// Workload is what is typically asked for, so that shares leave cards as it can use them; empty is as the intents ask.
	Workload []match.Typical
	// Brief leaves out what only people read (Near and Try of those that wait): a simulation asks thousands of times. Nothing is decided otherwise.
	Brief bool
	// InOrder gives turns among intents of equal priority by age alone, and not by what their tenants hold: a simulation shows what fairness costs. No daemon sets it.
	InOrder bool
}
