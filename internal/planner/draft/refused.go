package draft

import (
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
)

// A provider that denies what it advertised itself sells nothing new for a
// while, to nobody: renaming its flavors, or denying another intent each time,
// does not help it. Of a provider's denials one a tenant and hour counts, so that
// no tenant alone puts it out of the market; the second that counts within a day
// keeps it out for RefusalBackoff, each further one for twice as long, up to
// RefusalBackoffMax. All of it follows from the ledger.
const (
	RefusalWindow     = 24 * time.Hour
	RefusalBackoff    = 10 * time.Minute
	RefusalBackoffMax = time.Hour
)

// denialMemory is how long a denial can count: for its provider (RefusalWindow), and
// for the offer or provider that its intent avoids (DenialBackoffMax).
const denialMemory = max(RefusalWindow, DenialBackoffMax)

// After a flavor has denied an intent's slice the intent keeps away from it for
// DenialBackoff, twice as long after each further denial, a day at the most.
const (
	DenialBackoff    = 10 * time.Minute
	DenialBackoffMax = 24 * time.Hour
)

// KeepEnded is how long a contract that has ended stays in the tree: retention.ended,
// and where its provider denied it as long as that counts. A fleet that keeps less
// must not forget who denied what.
func (f *Facts) KeepEnded(c *v1alpha1.Contract) time.Duration {
	keep := ledger.Retention(f.Fleet.Retention.Ended.Duration)
	if keep >= denialMemory || !f.By(RulesDenialsKept) {
		return keep
	}
	_, refused := f.RefusalOf(c)
	if _, denied := f.DeniedAt(c); refused || denied {
		return denialMemory
	}
	return keep
}

// RefusalRecord is one contract that its provider denied.
type RefusalRecord struct {
	Provider, Flavor, Tenant string
	At                       v1alpha1.Time
}

// RefusalOf is the denial that a contract records, false when there is none. One that
// was denied when it was released, for whatever else, records that: only a provider that
// grants takes its denial back. It is of the time at which it began, also when it is released
// for it, so that what a round gives up changes nothing of who is out of the market.
func (f *Facts) RefusalOf(c *v1alpha1.Contract) (RefusalRecord, bool) {
	code, at := lifecycle.Trouble(c)
	if !refuses(code) && f.By(RulesDenialsSeen) {
		code, at = lifecycle.Last(c)
	} else if f.By(RulesAgain) && c.Status.Phase != v1alpha1.PhaseDegraded {
		if last, began := lifecycle.Last(c); refuses(last) {
			code, at = last, began
		}
	}
	rec := RefusalRecord{Provider: c.Spec.Provider, Flavor: c.Spec.Flavor, Tenant: c.Metadata.Namespace, At: at}
	return rec, refuses(code)
}

func refuses(code string) bool {
	return code == lifecycle.CodeRefused || code == lifecycle.CodeSliceDenied
}

// RefusalMark is of a provider that has denied what it advertised: how many of its
// denials counted, and until when it sells nothing new.
type RefusalMark struct {
	Count int
	Last  v1alpha1.Time
	Until v1alpha1.Time
}

// OutOfMarket is until when a provider sells nothing new because of its
// refusals; zero when it sells.
func (r *Draft) OutOfMarket(provider string) v1alpha1.Time {
	if m, marked := r.Marks[provider]; marked && m.Until.After(r.Now.Time) {
		return m.Until
	}
	return v1alpha1.Time{}
}

// DeniedAt is when a contract was last seen to be denied by its provider: now while it is
// Degraded for that, and else when it was released, for that or, while it was denied, for
// something else: that it gave way to another intent makes its flavor no better. (By older
// rules when the denial began, while it is Degraded, and only what was released for it.)
func (f *Facts) DeniedAt(c *v1alpha1.Contract) (v1alpha1.Time, bool) {
	code, at := lifecycle.Trouble(c)
	switch {
	case !f.By(RulesAgain) || code == lifecycle.CodeSLA:
	case c.Status.Phase == v1alpha1.PhaseDegraded:
		at = f.W.Now
	case !refuses(code):
		code, _ = lifecycle.Last(c)
	}
	switch code {
	case lifecycle.CodeSliceDenied, lifecycle.CodeRefused, lifecycle.CodeSLA:
		return at, true
	}
	return at, false
}
