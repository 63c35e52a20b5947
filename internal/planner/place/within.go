package place

import (
	"cmp"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/domain"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/rules"
)

// The replicas of an intent share a domain (placement.within): a provider, a zone, a
// region, a network or a value of a label.
//
//   - Where nothing of it stays anywhere, the domain is chosen by all replicas that are
//     placed at once: domains with room for all by the sum of their scores, then of
//     their prices, counted offer by offer; then in earnest, until one holds all.
//   - Where something stays, its domain is the one: a replica that is lost is replaced
//     there or waits. What stays in several domains, because it was placed under other
//     rules, counts as where most of it is.
//   - All move together when nothing stays where it is, or the intent changed so that
//     its domain no longer holds all. Then one domain takes all, or none moves.
//
// Preferred is the same as long as a domain has room, and none is kept to otherwise.
// Intents that are together count as one. package batch keeps what it moves in one
// domain too (package formulate).

// WithinOf is the kind of domain that an intent's replicas share; false where they may be
// anywhere.
func WithinOf(r *Placer, in *model.Intent) (w domain.Kind, ok bool) {
	if !r.By(draft.RulesWithin) {
		return w, false
	}
	return domain.Of(r.Fleet, in)
}

// Shares is WithinOf for a job of which several replicas, parts or intents share a domain.
func Shares(r *Placer, j *draft.Job) (w domain.Kind, ok bool) {
	if w, ok = WithinOf(r, j.In); !ok {
		return w, false
	}
	return w, j.Replicas() > 1 || w.By == "label" && OnNodes(r, w) || len(j.Live) > 1 || j.In.Spec.Split != nil || len(r.Relations().Together[draft.KeyOfJob(j)]) > 0
}

// OnNodes reports whether domains of a kind are of the nodes of some offer.
func OnNodes(r *Placer, w domain.Kind) bool {
	return w.By == "label" && slices.ContainsFunc(r.Inventory.Offers(), func(o *inventory.Offer) bool { return match.ByNode(o, w.By, w.Label) })
}

// domainChoice is which domain a request keeps to.
type domainChoice struct {
	how    keeping
	domain string
	said   string // why there is none
}

// keeping is how a request keeps to a domain.
type keeping uint8

const (
	keepsHome keeping = iota // to that of what stays, and else to one for all
	keepsOne                 // to the one that is named
	keepsNone                // to none
	isNowhere                // nothing is placed: there is none for all
)

// withinRules are the rules on the domain of one more replica of a job.
func withinRules(r *Placer, j *draft.Job, q Request, s *match.Class, placed, except []*v1alpha1.Contract) (out []domain.Rule) {
	own, ok := WithinOf(r, j.In)
	own.Pooled = rules.Pooled(&r.Draft, s)
	switch {
	case !ok:
	case q.in.how == isNowhere:
		out = append(out, domain.Rule{Kind: own, Nowhere: true, Said: q.in.said})
	case q.in.how == keepsOne:
		out = append(out, domain.Rule{Kind: own, Domain: q.in.domain})
	case q.in.how == keepsHome && own.Required:
		rule := domain.Rule{Kind: own}
		if _, shares := Shares(r, j); shares {
			rule.Domain = home(r, j, own, placed, except)
		}
		if rule.Domain != "" || own.By != "provider" {
			out = append(out, rule)
		}
	}
	if q.shared != nil {
		out = append(out, *q.shared)
	}
	for _, w := range r.Relations().Kinds(j.TenantName, j.Name, func(name string) (domain.Kind, bool) { return WithinOf(r, r.Find(j.TenantName, name)) }) {
		if ok && own.Required && w.By == own.By && w.Label == own.Label {
			continue
		}
		if at := home(r, j, w, placed, except); at != "" {
			out = append(out, domain.Rule{Kind: w, Domain: at})
		}
	}
	return out
}

// home is the domain in which most of what stays of a job and of those that it is
// together with is, the first by name of several; "" for none.
func home(r *Placer, j *draft.Job, w domain.Kind, placed, except []*v1alpha1.Contract) string {
	count, gone := map[string]int{}, ""
	add := func(c *v1alpha1.Contract) {
		count[rules.DomainOf(&r.Draft, c, w.By, w.Label)]++
		if gone == "" && w.Required && r.By(draft.RulesGangsLeaveWhole) && rules.OnGoneNode(&r.Draft, c, w.By) {
			gone = c.Spec.Provider + "/(of a node that is gone)"
		}
	}
	stays := func(k *draft.Job, list []*v1alpha1.Contract) {
		leaves := Leaving(r, k)
		for _, c := range list {
			if !leaves[c] && !slices.Contains(except, c) {
				add(c)
			}
		}
	}
	stays(j, j.Live)
	for _, c := range placed {
		add(c)
	}
	for _, name := range r.Relations().Together[draft.KeyOfJob(j)] {
		var list []*v1alpha1.Contract
		k := r.JobOf(j.TenantName, name)
		if k != nil {
			list = k.Live
		} else {
			list = r.W.Ledger.ByIntent(j.TenantName, name)
		}
		list = slices.DeleteFunc(slices.Clone(list), func(c *v1alpha1.Contract) bool {
			o := r.OfferOf(c)
			return !c.Status.Phase.Charged() || o != nil && o.State == model.Lost
		})
		stays(k, list)
	}
	return cmp.Or(domain.Home(count), gone)
}

// Leaving are the contracts of a job that go elsewhere if they can; nil has none.
func Leaving(r *Placer, j *draft.Job) map[*v1alpha1.Contract]bool {
	if j == nil || r.IsNothing(j.Tasks) {
		return nil
	}
	var out map[*v1alpha1.Contract]bool
	for i := range j.Tasks {
		t := &j.Tasks[i]
		switch t.Kind {
		case draft.TaskFailover, draft.TaskMove, draft.TaskFollow:
		case draft.TaskLeave:
			if t.Old.Status.Displaced == nil || r.Void(t.Old) {
				continue
			}
		default:
			continue
		}
		if out == nil {
			out = map[*v1alpha1.Contract]bool{}
		}
		out[t.Old] = true
	}
	return out
}

// Keeping is a request that keeps to a domain, anywhere one that keeps to none.
func (q Request) Keeping(domain string) Request {
	q.in = domainChoice{how: keepsOne, domain: domain}
	return q
}

func (q Request) anywhere() Request {
	q.in = domainChoice{how: keepsNone}
	return q
}
