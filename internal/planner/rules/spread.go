package rules

import (
	"fmt"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/said"
)

// Spread is one entry of placement.spread as it applies to one more
// replica. It means what Kubernetes' topology spread constraints mean
// (whenUnsatisfiable: DoNotSchedule): a domain is acceptable when it would then
// have at most maxSkew replicas more than the least used of all domains. The
// domains are those in which anything is offered that the intent could use,
// full at the moment or not, and those in which its replicas are. minDomains
// is kept more strictly than there: as long as fewer are in use, a replica goes
// to one that is not.
type Spread struct {
	By, Label           string
	maxSkew, MinDomains int
	// Domains are in order; Used counts the other replicas in each of them; a
	// replica of several parts counts in each of theirs. One of 0 is a domain too.
	Domains []string
	Used    []int
	// own are domains that have parts of the same replica already.
	own []string
	// Least and InUse sum up Used.
	Least, InUse int
}

// SpreadOf is an entry of placement.spread for one more replica of a job, by the domains
// that its class could ever use. placed are contracts of the attempt under way; those in
// except do not count.
func SpreadOf(r *draft.Draft, sp *v1alpha1.Spread, j *draft.Job, domains []string, replica int32, placed, except []*v1alpha1.Contract) Spread {
	x := Spread{By: sp.By, Label: sp.Label, maxSkew: int(max(sp.MaxSkew, 1)), MinDomains: int(sp.MinDomains), Domains: domains}
	x.Used = make([]int, len(x.Domains))
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
			k := seat{c.Spec.Intent.Replica, DomainOf(r, c, sp.By, sp.Label)}
			if k.domain == "" || seen[k] {
				continue
			}
			if seen[k] = true; k.replica == replica {
				x.own = append(x.own, k.domain)
				continue
			}
			x.Count(k.domain, 1)
		}
	}
	x.Sum()
	return x
}

// Sum sums up what is used.
func (x *Spread) Sum() {
	x.Least, x.InUse = 0, 0
	if len(x.Used) > 0 {
		x.Least = slices.Min(x.Used)
	}
	for _, n := range x.Used {
		if n > 0 {
			x.InUse++
		}
	}
}

// Count counts n more replicas in a domain. One in which nothing is offered any
// more is put among the others; their list is the class's and stays as it is.
func (x *Spread) Count(domain string, n int) {
	at, known := slices.BinarySearch(x.Domains, domain)
	if !known {
		x.Domains = slices.Insert(slices.Clone(x.Domains), at, domain)
		x.Used = slices.Insert(x.Used, at, 0)
	}
	x.Used[at] += n
}

// In is how many other replicas a domain has.
func (x *Spread) In(domain string) int {
	if at, known := slices.BinarySearch(x.Domains, domain); known {
		return x.Used[at]
	}
	return 0
}

// Breaks reports whether a replica in an offer's domain would break the rule.
func (x *Spread) Breaks(o *inventory.Offer) bool {
	d := x.DomainOf(o)
	switch {
	case d == "":
		return true
	case slices.Contains(x.own, d):
		return false // the replica is there already
	}
	return x.Refuses(x.In(d))
}

// Refuses reports whether a domain with n replicas may have no more of them.
func (x *Spread) Refuses(n int) bool {
	return x.InUse < x.MinDomains && n > 0 || n+1-x.Least > x.maxSkew
}

// DomainOf is where an offer is of what the rule spreads over.
func (x *Spread) DomainOf(o *inventory.Offer) string { return match.Domain(o, x.By, x.Label) }

func (x *Spread) detail(o *inventory.Offer) string {
	d := x.DomainOf(o)
	if d == "" {
		return "it has no " + match.KindOf(x.By, x.Label)
	}
	if x.InUse < x.MinDomains && x.In(d) > 0 {
		return fmt.Sprintf("%s %s has %s already, and of at least %d %ss (minDomains) only %d %s any", x.By, d, said.Replicas(x.In(d)), x.MinDomains, x.By, x.InUse, said.Verb("has", x.InUse))
	}
	return fmt.Sprintf("%s %s has %s, %s has %s: maxSkew allows %d more", x.By, d, said.Replicas(x.In(d)), x.Domains[slices.Index(x.Used, x.Least)], said.Replicas(x.Least), x.maxSkew)
}

// DomainOf is where a contract is; its cluster's location counts when its
// flavor is no longer known.
func DomainOf(r *draft.Draft, c *v1alpha1.Contract, by, label string) string {
	if o := r.OfferOf(c); match.ByNode(o, by, label) {
		return domainOfNodes(o, c, label)
	} else if o != nil {
		return match.Domain(o, by, label)
	}
	var at v1alpha1.Location
	cluster := r.W.Clusters[c.Spec.Provider]
	if cluster != nil {
		at = cluster.Spec.Location
	}
	return match.DomainAt(cluster, c.Spec.Provider, at, by, label)
}
