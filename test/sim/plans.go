package sim

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"hash"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
)

// planned is what the daemons of a run have decided, round by round: a digest of every
// plan, each with the digest of those before it. Left out is by which commits of inputs and
// market a plan was made; those are of git, and what they name is decided upon anyway.
type planned struct {
	sum   hash.Hash
	plans int
}

func newPlanned() *planned { return &planned{sum: sha256.New()} }

// add takes a plan of a daemon's in. All of a plan is values of its world, so that its form
// in JSON, in which maps are in order, is the same in each run.
func (p *planned) add(daemon string, plan *planner.Plan) {
	p.plans++
	err := json.NewEncoder(p.sum).Encode(struct {
		Daemon    string
		Now, Due  v1alpha1.Time
		Unsettled []*planner.Decision
		Contracts []model.Change
		States    []model.StateChange
		Spends    []*v1alpha1.Spend
		HeldBack  string
	}{daemon, plan.Now, plan.Due, plan.Unsettled, plan.Contracts, plan.States, plan.Spends, plan.HeldBack})
	if err != nil {
		panic(err) // values of kinds that are written as YAML every day
	}
}

// digest is that of all plans so far; the first twelve bytes of it do.
func (p *planned) digest() string { return hex.EncodeToString(p.sum.Sum(nil)[:12]) }
