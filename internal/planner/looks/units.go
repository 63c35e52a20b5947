package looks

import (
	"slices"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
)

// What looking for one provider for intents that belong together may cost a round is counted
// in looks, too: one for each offer and alternative of each of them, OfMember for each intent
// that is tried on a provider, and OfMade for each contract that is made for it there, on
// trial or not. A tenant's units have limits.work of them in a round together, but each has
// at least what one search costs that places all of it on the first provider, once a round.
// Where what is left is not enough for all providers, each minute begins with others of them,
// so that every one has its turn.
const (
	OfMember = 100 // settle.unitsOfIntent
	OfMade   = 400 // settle.UnitsOfReplica
)

// UnsearchedText is why those of a unit wait that was not looked for on all providers.
const UnsearchedText = "the work of this round is used up (spec.limits.work of the fleet): what is left of the search for a provider with room for all that belong together has its turn in one of the next rounds"

// ForUnit are the looks that one search for jobs that belong together may spend, on so many
// offers: the first of the round at least what it takes to place all of it on one provider.
func ForUnit(spent map[string]int64, jobs []*draft.Job, most int64, offers int, first, trial bool) *Looks {
	l := &Looks{Spent: spent, Of: jobs[0].TenantName, Most: most, Trial: trial}
	if first && !trial {
		l.Most = max(l.Most, spent[l.Of]+Listing(jobs, offers)+Trying(jobs))
	}
	return l
}

// Listing is what it takes to find the providers that may have room for all of a unit, of so
// many offers.
func Listing(jobs []*draft.Job, offers int) (n int64) {
	for _, m := range jobs {
		n += int64(len(m.Alternatives()))
	}
	return n * int64(offers)
}

// Trying is what it takes to place all of a unit on one provider.
func Trying(jobs []*draft.Job) (n int64) {
	for _, m := range jobs {
		n += OfMember + OfMade*int64(len(m.Tasks))
	}
	return n
}

// InTurn are the providers of a unit in the order in which they are tried: the best first,
// unless what is left is not enough for all.
func (l *Looks) InTurn(jobs []*draft.Job, providers []string, now time.Time) []string {
	if l == nil || len(providers) == 0 {
		return providers
	}
	all := int64(len(providers))
	enough := max(1, (l.Most-l.Spent[l.Of])/Trying(jobs))
	if enough >= all {
		return providers
	}
	at := now.Unix() / 60 % all * enough % all
	return slices.Concat(providers[at:], providers[:at])
}

// At is under what something was found to fit nowhere.
type At struct{ touches, state, pass int }

// Now is At as it is.
func Now(r *draft.Draft) At { return At{r.Inventory.Touches(), r.State(), r.Turns} }

// Touched reports whether offers were touched between two.
func (a At) Touched(b At) bool { return a.touches != b.touches }

// Moved reports whether what is held, lent or charged is another, or the pass: what was
// touched may all have been taken back.
func (a At) Moved(b At) bool { return a.state != b.state || a.pass != b.pass }
