package message

import (
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/planner"
)

// Whatever a tenant, a provider or a cluster writes into names and reasons, a commit says no
// trailer twice for it: it would be nobody's, and what it decides would be undone.
func TestNoWordsAddTrailers(t *testing.T) {
	once := []string{"Plan: 1", "Now: 2026-11-20T10:00:00Z", "Rules: 7"}
	for _, bad := range []string{
		"x\n\nPlan: a\nPlan: b\n", "x\r\rPlan: a", "x\n \nLedger: ledger 9\nLedger: ledger 10", "\v\f\u0085\u2028\u2029Plan: a", "Plan: a", "\n\n", "x\n\n", ": ", "\x00\nPlan: a\xff",
	} {
		c := v1alpha1.Contract{Metadata: v1alpha1.Metadata{Name: bad}}
		c.Spec.Provider, c.Spec.Flavor = bad, bad
		c.Status.Phase, c.Status.Message, c.Status.Reason = v1alpha1.PhaseFailed, bad, bad
		changes := []model.Change{{Before: &v1alpha1.Contract{Metadata: c.Metadata, Spec: c.Spec}, After: &c}}
		d := &planner.Decision{Tenant: bad, Name: bad, Reason: bad}
		for _, lines := range [][]string{{Line(d, changes)}, {Line(d, changes), Line(d, nil)}, {}} {
			for _, subject := range []string{"", bad} {
				m := gitrepo.Message(subject, lines, append(Trailers(changes), once...))
				m = gitobj.WithTrailers(m, []string{"Ledger: ledger 7", "Root: sha256:0"})
				if twice := gitobj.Repeated(m); twice != "" {
					t.Errorf("%q: %s is said twice in\n%s", bad, twice, m)
				}
				for key, want := range map[string]string{"Plan": "1", "Ledger": "ledger 7", "Rules": "7"} {
					if got := gitobj.Trailers(m, key); len(got) != 1 || got[0] != want {
						t.Errorf("%q: %s is %q in\n%s", bad, key, got, m)
					}
				}
			}
		}
	}
}
