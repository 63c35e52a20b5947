package draft

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner/account"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
)

// Tally sorts the ledger's contracts by what a round asks of them. It can be
// brought up to date by what changed; all of it is as the ledger shows, whatever
// the round has decided since.
type Tally struct {
	// Charged are the charged contracts by tenant.
	Charged *account.Standing
	// Displaced, Releasing and Borrowed are contracts of which that is so, by
	// name; Ending those that are charged and have an end or notice.
	Displaced, Releasing, Borrowed, Ending map[string]*v1alpha1.Contract
	// givenUp are those of Releasing that their tenant gave up, by tenant and name.
	givenUp map[string]map[string]*v1alpha1.Contract
	// Leave is when contracts that have ended leave the tree; Next the earliest.
	Leave map[string]v1alpha1.Time
	Next  v1alpha1.Time
}

// NewTally is a tally of an empty ledger.
func NewTally() *Tally {
	return &Tally{
		Charged:   account.NewStanding(),
		Displaced: map[string]*v1alpha1.Contract{}, Releasing: map[string]*v1alpha1.Contract{},
		givenUp: map[string]map[string]*v1alpha1.Contract{}, Borrowed: map[string]*v1alpha1.Contract{}, Ending: map[string]*v1alpha1.Contract{}, Leave: map[string]v1alpha1.Time{},
	}
}

// Add counts a contract in.
func (t *Tally) Add(f *Moment, c *v1alpha1.Contract) {
	m, name, tenant := f.money(), c.Metadata.Name, c.Metadata.Namespace
	if d := c.Status.Displaced; d != nil && d.By != "" {
		t.Displaced[name] = c
	}
	switch {
	case c.Status.Phase == v1alpha1.PhaseReleasing:
		t.Releasing[name] = c
		if gaveUp(c) {
			if t.givenUp[tenant] == nil {
				t.givenUp[tenant] = map[string]*v1alpha1.Contract{}
			}
			t.givenUp[tenant][name] = c
		}
	case c.Status.Phase.Charged():
		t.Charged.Add(c, &m)
		if len(c.Spec.Borrowed) > 0 {
			t.Borrowed[name] = c
		}
		if !c.Spec.Term.End.IsZero() || c.Status.Displaced != nil {
			t.Ending[name] = c
		}
	case ledger.Ended(c.Status.Phase):
		keep := f.KeepEnded(c)
		// One second past its retention, because then it is older.
		leaves := v1alpha1.TimeOf(c.Status.Since.Add(keep + time.Second))
		t.Leave[name] = leaves
		t.Next = lifecycle.Earlier(t.Next, leaves)
	}
}

// Remove counts a contract out that was counted in as it is.
func (t *Tally) Remove(f *Moment, c *v1alpha1.Contract) {
	name, tenant := c.Metadata.Name, c.Metadata.Namespace
	delete(t.Displaced, name)
	delete(t.Releasing, name)
	delete(t.givenUp[tenant], name)
	delete(t.Borrowed, name)
	delete(t.Ending, name)
	m := f.money()
	t.Charged.Remove(c, &m)
	if leaves, ended := t.Leave[name]; ended {
		delete(t.Leave, name)
		if leaves == t.Next {
			t.Next = v1alpha1.Time{}
			for _, l := range t.Leave {
				t.Next = lifecycle.Earlier(t.Next, l)
			}
		}
	}
}

// ByName lists contracts by name.
func ByName(m map[string]*v1alpha1.Contract) []*v1alpha1.Contract {
	out := slices.Collect(maps.Values(m))
	slices.SortFunc(out, func(a, b *v1alpha1.Contract) int { return strings.Compare(a.Metadata.Name, b.Metadata.Name) })
	return out
}
