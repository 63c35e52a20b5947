package view

import (
	"slices"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner"
)

// Snapshot is what the daemon knew after a round. Its values are shared with the daemon
// and never changed.
type Snapshot struct {
	// Notices are what keeps the daemon from deciding, writing or knowing everything.
	Notices []Notice
	// Inputs and Ledger are the commits that the round read.
	Inputs, Ledger tree.Hash
	Fleet          *fleet.Fleet
	Contracts      *ledger.Ledger
	World          *planner.World
	Plan           *planner.Plan
	// States are the held contracts as they are seen now, by name.
	States []wire.ContractState
	// Heard is when a provider's agent last reported; zero when it has not since the
	// start.
	Heard func(provider string) time.Time
	// Sources are the tenants' own repositories as the daemon reads them.
	Sources []wire.SourceStatus
	// Ended counts the rounds before this one, so that a page knows whether it is current.
	Version string
}

// Notice is a sentence that everybody has to see first.
type Notice struct {
	// Level is error, warning or info.
	Level string `json:"level"`
	Text  string `json:"text"`
	// Link of more, "" for none.
	Link string `json:"link,omitempty"`
}

// Viewer is who looks. The zero Viewer sees totals only.
type Viewer struct {
	// Name as the page shows it.
	Name string
	// Identity is nobody else's: streams and jobs are counted by it.
	Identity string
	// SignedIn: by a session, which the page offers to end.
	SignedIn bool
	// All: every tenant is seen.
	All bool
	// Groups that the viewer is a member of. Tenants list groups as members.
	Groups []string
}

// Listed reports whether any tenant of a fleet lists a group; nil lists none.
func Listed(f *fleet.Fleet, group string) bool {
	if f == nil {
		return false
	}
	for _, t := range f.Tenants {
		if slices.Contains(t.Spec.Members, group) {
			return true
		}
	}
	return false
}

// Sight is what a viewer sees of one fleet.
type Sight struct {
	all     bool
	tenants map[string]bool
}

// Sight of a fleet: all tenants, or those that list one of the viewer's groups.
func (v Viewer) Sight(f *fleet.Fleet) Sight {
	s := Sight{all: v.All, tenants: map[string]bool{}}
	if v.All || f == nil {
		return s
	}
	for name, t := range f.Tenants {
		for _, g := range t.Spec.Members {
			if slices.Contains(v.Groups, g) {
				s.tenants[name] = true
			}
		}
	}
	return s
}

// All reports whether every tenant is seen.
func (s Sight) All() bool { return s.all }

// None reports whether no tenant is.
func (s Sight) None() bool { return !s.all && len(s.tenants) == 0 }

// Of reports whether a tenant is seen.
func (s Sight) Of(tenant string) bool { return s.all || s.tenants[tenant] }

// Tenants that are seen, by name; nil for all.
func (s Sight) Tenants() []string {
	if s.all {
		return nil
	}
	return sortedNames(s.tenants)
}
