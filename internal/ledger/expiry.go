package ledger

import (
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// maxLead is the longest time before its end at which a contract is said to be
// expiring.
const maxLead = 24 * time.Hour

// LeadTime is how long before its end a contract is said to be expiring: a tenth
// of its term, a day at the most; 0 for one without an end.
func LeadTime(t v1alpha1.Term) time.Duration {
	if t.End.IsZero() {
		return 0
	}
	return min(max(t.End.Sub(t.Start.Time)/10, 0), maxLead)
}

// Expiring reports whether a contract ends within its lead time, so that who
// needs it longer should extend its intent's duration now.
func Expiring(c *v1alpha1.Contract, now v1alpha1.Time) bool {
	end := c.Spec.Term.End
	return c.Status.Phase.Charged() && !end.IsZero() && !end.After(now.Add(LeadTime(c.Spec.Term)))
}
