package notify

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
)

// namedFrozen is how many intents an event of frozen ones names.
const namedFrozen = 5

// freezes are the events of intents whose files cannot be read while they hold
// contracts: at once when one freezes, then once a day for each tenant, however
// many of its intents are frozen, counted from the one that is so for the
// longest. It follows from what two ledgers record. bound is safety.frozenFor.
func freezes(fleet string, before, now *ledger.Ledger, bound time.Duration) []Event {
	tenants := map[string]v1alpha1.Time{} // with the newest intent that froze
	for tenant, intent := range now.Differs(before) {
		is, was := frozenOf(now, tenant, intent), frozenOf(before, tenant, intent)
		if is == nil || was != nil && was.Since.Equal(is.Since.Time) && was.Told.Equal(is.Told.Time) {
			continue
		}
		at := tenants[tenant]
		if (was == nil || !was.Since.Equal(is.Since.Time)) && is.Since.After(at.Time) {
			at = is.Since
		}
		tenants[tenant] = at
	}
	var out []Event
	for tenant, at := range tenants {
		var all []*v1alpha1.IntentState
		for _, s := range now.StatesOf(tenant) {
			if s.Status.Frozen != nil {
				all = append(all, s)
			}
		}
		slices.SortStableFunc(all, func(a, b *v1alpha1.IntentState) int { return a.Status.Frozen.Since.Compare(b.Status.Frozen.Since.Time) })
		if at.IsZero() { // none that froze: is it the day's instant of the tenant?
			first := all[0]
			at = first.Status.Frozen.Told
			if was := frozenOf(before, tenant, first.Metadata.Name); was != nil && was.Told.Equal(at.Time) {
				continue
			}
		}
		out = append(out, frozenEvent(fleet, tenant, all, now, at, bound))
	}
	slices.SortFunc(out, func(a, b Event) int { return strings.Compare(a.Tenant, b.Tenant) })
	return out
}

func frozenOf(l *ledger.Ledger, tenant, intent string) *v1alpha1.Frozen {
	if s := l.State(tenant, intent); s != nil {
		return s.Status.Frozen
	}
	return nil
}

// frozenEvent tells a tenant which of its intents are frozen, since when and why.
func frozenEvent(fleet, tenant string, all []*v1alpha1.IntentState, l *ledger.Ledger, at v1alpha1.Time, bound time.Duration) Event {
	e := Event{Kind: "frozen", At: at, Fleet: fleet, Tenant: tenant, Reason: "Frozen"}
	each := make([]string, 0, namedFrozen)
	for _, s := range all[:min(len(all), namedFrozen)] {
		f := s.Status.Frozen
		text := "since " + stamp(f.Since) + because(f.Reason)
		if ages := v1alpha1.TimeOf(f.Since.Add(bound)); ages.After(at.Time) && endless(l.ByIntent(tenant, s.Metadata.Name)) {
			text += "; from " + stamp(ages) + " on what has no end counts as preemptible at priority 0"
		}
		each = append(each, s.Metadata.Name+" "+text)
	}
	if len(all) == 1 {
		e.Intent = all[0].Metadata.Name
		e.Text = tenant + "/" + strings.Replace(each[0], " ", " is frozen ", 1)
	} else {
		e.Text = fmt.Sprintf("%s has %d intents that are frozen: %s", tenant, len(all), strings.Join(each, "; "))
	}
	if more := len(all) - namedFrozen; more > 0 {
		e.Text += fmt.Sprintf("; and %d more", more)
	}
	e.Text += ". Contracts stay on their own terms; fix or delete the file"
	return named(e, stamp(at))
}

// endless reports whether a contract among them stands without an end.
func endless(list []*v1alpha1.Contract) bool {
	return slices.ContainsFunc(list, func(c *v1alpha1.Contract) bool { return c.Status.Phase.Charged() && c.Spec.Term.End.IsZero() })
}
