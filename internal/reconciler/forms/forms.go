package forms

import (
	"fmt"
	"maps"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
)

// Code is the reason of a refusal.
const Code = "AdmissionNotServed"

// Refuser remembers what it refused. The zero value is ready.
type Refuser struct {
	fleet   *fleet.Fleet // as handed in last
	made    *fleet.Fleet
	refused map[*model.Intent]*model.Intent
}

// Fleet is a fleet with such intents as ones that cannot be acted on, or the fleet itself
// where there are none. Served is, by consumer, the version of MutatingAdmissionPolicy that
// it serves, wire.AdmissionNone for no version; one that is missing is not known.
func (r *Refuser) Fleet(f *fleet.Fleet, l *ledger.Ledger, served map[string]string) *fleet.Fleet {
	now := map[*model.Intent]*model.Intent{}
	if without := lacking(f, served); len(without) > 0 {
		for _, it := range f.Intents {
			consumer := ""
			if t := f.Tenants[it.Metadata.Namespace]; t != nil {
				consumer = t.Spec.ConsumerOf(&it.Spec)
			}
			if it.Problem != "" || !without[consumer] || holds(l, it) {
				continue
			}
			if now[it] = r.refused[it]; now[it] == nil {
				now[it] = refuse(it, consumer)
			}
		}
	}
	if len(now) == 0 {
		*r = Refuser{}
		return f
	}
	if f == r.fleet && maps.Equal(now, r.refused) {
		return r.made
	}
	made := *f
	made.Intents = slices.Clone(f.Intents)
	for i, it := range made.Intents {
		if refused := now[it]; refused != nil {
			made.Intents[i] = refused
		}
	}
	r.fleet, r.made, r.refused = f, &made, now
	return r.made
}

// Served is what a delivery that knows of the admission of consumers reports of it
// (spread.Deliverer.Admission), nil for one that does not.
func Served(delivery any) map[string]string {
	if d, ok := delivery.(interface{ Admission() map[string]string }); ok {
		return d.Admission()
	}
	return nil
}

// lacking are the consumers whose file asks for a policy that they cannot have.
func lacking(f *fleet.Fleet, served map[string]string) map[string]bool {
	out := map[string]bool{}
	for name, version := range served {
		c := f.Clusters[name]
		if version == wire.AdmissionNone && c != nil && c.AdmissionForm() != v1alpha1.AdmissionWebhook {
			out[name] = true
		}
	}
	return out
}

// holds reports whether an intent has a contract that has not ended.
func holds(l *ledger.Ledger, it *model.Intent) bool {
	return slices.ContainsFunc(l.ByIntent(it.Metadata.Namespace, it.Metadata.Name), func(c *v1alpha1.Contract) bool { return c.Status.Phase.Held() })
}

func refuse(it *model.Intent, consumer string) *model.Intent {
	out := *it
	out.ProblemCode = Code
	out.Problem = fmt.Sprintf("pods would get no tolerations in consumer %s: its API server does not serve MutatingAdmissionPolicy (v1 since Kubernetes 1.36, v1beta1 where it is switched on in 1.34 and 1.35); write `admission: webhook` into clusters/%[1]s.yaml and apply what `fleetbroker install %[1]s` writes then, which has the agent", consumer)
	return &out
}
