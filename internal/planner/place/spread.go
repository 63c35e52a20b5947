package place

import (
	"fmt"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/said"
)

// spreadRule is one entry of placement.spread as it applies to one more
// replica. It means what Kubernetes' topology spread constraints mean
// (whenUnsatisfiable: DoNotSchedule): a domain is acceptable when it would then
// have at most maxSkew replicas more than the least used of all domains. The
// domains are those in which anything is offered that the intent could use,
// full at the moment or not, and those in which its replicas are. minDomains
// is kept more strictly than there: as long as fewer are in use, a replica goes
// to one that is not.
type spreadRule struct {
	By, label           string
	maxSkew, MinDomains int
	// domains are in order; used counts the other replicas in each of them; a
	// replica of several parts counts in each of theirs. One of 0 is a domain too.
	domains []string
	used    []int
	// own are domains that have parts of the same replica already.
	own []string
	// Least and InUse sum up used.
	Least, InUse int
}

func (r *Placer) spreadRule(sp *v1alpha1.Spread, j *draft.Job, s *match.Class, replica int32, placed, except []*v1alpha1.Contract) spreadRule {
	x := spreadRule{By: sp.By, label: sp.Label, maxSkew: int(max(sp.MaxSkew, 1)), MinDomains: int(sp.MinDomains), domains: DomainsOf(s, sp.By, sp.Label)}
	x.used = make([]int, len(x.domains))
	type seat struct {
		replica int32
		domain  string
	}
	seen := map[seat]bool{}
	for _, list := range [...][]*v1alpha1.Contract{j.Live, placed} {
		for _, c := range list {
			if slices.Contains(except, c) {
				continue
			}
			k := seat{c.Spec.Intent.Replica, r.DomainOf(c, sp.By, sp.Label)}
			if k.domain == "" || seen[k] {
				continue
			}
			if seen[k] = true; k.replica == replica {
				x.own = append(x.own, k.domain)
				continue
			}
			x.count(k.domain, 1)
		}
	}
	x.sum()
	return x
}

func (x *spreadRule) sum() {
	x.Least, x.InUse = 0, 0
	if len(x.used) > 0 {
		x.Least = slices.Min(x.used)
	}
	for _, n := range x.used {
		if n > 0 {
			x.InUse++
		}
	}
}

// count counts n more replicas in a domain. One in which nothing is offered any
// more is put among the others; their list is the class's and stays as it is.
func (x *spreadRule) count(domain string, n int) {
	at, known := slices.BinarySearch(x.domains, domain)
	if !known {
		x.domains = slices.Insert(slices.Clone(x.domains), at, domain)
		x.used = slices.Insert(x.used, at, 0)
	}
	x.used[at] += n
}

// In is how many other replicas a domain has.
func (x *spreadRule) In(domain string) int {
	if at, known := slices.BinarySearch(x.domains, domain); known {
		return x.used[at]
	}
	return 0
}

// Breaks reports whether a replica in an offer's domain would break the rule.
func (x *spreadRule) Breaks(o *inventory.Offer) bool {
	d := x.DomainOf(o)
	switch {
	case d == "":
		return true
	case slices.Contains(x.own, d):
		return false // the replica is there already
	}
	return x.refuses(x.In(d))
}

// refuses reports whether a domain with n replicas may have no more of them.
func (x *spreadRule) refuses(n int) bool {
	return x.InUse < x.MinDomains && n > 0 || n+1-x.Least > x.maxSkew
}

// DomainOf is where an offer is of what the rule spreads over.
func (x *spreadRule) DomainOf(o *inventory.Offer) string { return match.Domain(o, x.By, x.label) }

func (x *spreadRule) detail(o *inventory.Offer) string {
	d := x.DomainOf(o)
	if d == "" {
		return "it has no " + match.KindOf(x.By, x.label)
	}
	if x.InUse < x.MinDomains && x.In(d) > 0 {
		return fmt.Sprintf("%s %s has %s already, and of at least %d %ss (minDomains) only %d %s any", x.By, d, Replicas(x.In(d)), x.MinDomains, x.By, x.InUse, said.Verb("has", x.InUse))
	}
	return fmt.Sprintf("%s %s has %s, %s has %s: maxSkew allows %d more", x.By, d, Replicas(x.In(d)), x.domains[slices.Index(x.used, x.Least)], Replicas(x.Least), x.maxSkew)
}

// Replicas is a number of replicas in words.
func Replicas(n int) string {
	switch n {
	case 0:
		return "no replica"
	case 1:
		return "1 replica"
	}
	return fmt.Sprintf("%d replicas", n)
}

// DomainOf is where a contract is; its cluster's location counts when its
// flavor is no longer known.
func (r *Placer) DomainOf(c *v1alpha1.Contract, by, label string) string {
	if o := r.OfferOf(c); o != nil {
		return match.Domain(o, by, label)
	}
	var at v1alpha1.Location
	cluster := r.W.Clusters[c.Spec.Provider]
	if cluster != nil {
		at = cluster.Spec.Location
	}
	return match.DomainAt(cluster, c.Spec.Provider, at, by, label)
}

// DomainsOf are those of the candidates that a class could ever use, in order.
func DomainsOf(s *match.Class, by, label string) []string {
	memo, key := memoOf(s), match.KindOf(by, label)
	if list, known := memo.spreads[key]; known {
		return list
	}
	seen := map[string]bool{}
	for i := range s.Candidates {
		c := &s.Candidates[i]
		if d := match.Domain(c.Offer, by, label); d != "" && c.FailsMoney == "" && (c.Size.Within(c.Offer.Capacity) || s.Request.Intent.Spec.Split != nil) {
			seen[d] = true
		}
	}
	list := draft.SortedNames(seen)
	if memo.spreads == nil {
		memo.spreads = map[string][]string{}
	}
	memo.spreads[key] = list
	return list
}
