package fleet

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/accelerators"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/fleet/advice"
	"github.com/fleetbroker/fleetbroker/internal/fleet/liqoids"
	"github.com/fleetbroker/fleetbroker/internal/fleet/offered"
	"github.com/fleetbroker/fleetbroker/internal/fleet/policymatch"
)

func stem(p string) string { return strings.TrimSuffix(path.Base(p), path.Ext(p)) }

// checkPolicies holds fleet, clusters, tenants, flavors and prices against
// each other. Files in an older version are not checked: their places are
// gone.
func checkPolicies(f *Fleet, use map[section][]*file, policy *file, store tree.Store) {
	currencies := convertible(f)
	_, overlaps := claimsOf(f.Tenants)
	_, remote := remoteClaimsOf(f.Tenants, f.Clusters)
	each := func(files []*file, check func(c *checker, object any)) {
		for _, fl := range files {
			if fl == nil || fl.broken || f.good[fl.path] != fl {
				continue
			}
			for _, d := range fl.docs {
				trial := &checker{file: fl.path}
				if check(trial, d.object); len(trial.diags) == 0 {
					continue
				}
				c := &checker{file: fl.path, doc: fl.reopen(d, store)}
				check(c, d.object)
				f.Diagnostics = append(f.Diagnostics, c.diags...)
			}
		}
	}
	f.unread.missing = offered.Missing(f.Tenants, f.Flavors, func(id string) bool { return f.Clusters[id] != nil || f.unread.clusters[id] != "" })
	each([]*file{policy}, func(c *checker, o any) { c.fleetRefs(f, o.(*v1alpha1.Fleet)) })
	unpriced, shared := offered.Unpriced(f.Flavors, f.Prices), liqoids.Of(f.Clusters, func(name string) string { return clustersDir + "/" + name + ".yaml" })
	each(use[secClusters], func(c *checker, o any) { c.clusterRefs(f, o.(*v1alpha1.Cluster), currencies, unpriced, shared) })
	each(use[secTenants], func(c *checker, o any) { c.tenantRefs(f, o.(*v1alpha1.Tenant), currencies, overlaps, remote) })
	each(use[secFlavors], func(c *checker, o any) { c.flavorRefs(f, o.(*v1alpha1.Flavor), currencies) })
	each(use[secPrices], func(c *checker, o any) {
		t := o.(*v1alpha1.PriceTable)
		c.convertible(at("spec", "currency"), t.Spec.Currency, f.Policy.Currency, currencies)
		for i, row := range t.Spec.Prices {
			c.clusterExists(f, at("spec", "prices", i, "provider"), row.Provider)
		}
	})
}

func (c *checker) clusterExists(f *Fleet, p place, id string) {
	if f.Clusters[id] == nil && f.unread.clusters[id] == "" && f.unread.missing[id] == "" {
		c.warnf(p, "UnknownCluster", "there is no cluster %s%s", id, did(id, sortedKeys(f.Clusters)))
	}
}

func (c *checker) tenantExists(f *Fleet, p place, name string) {
	if f.Tenants[name] == nil && f.unread.tenants[name] == "" {
		c.warnf(p, "UnknownTenant", "there is no tenant %s%s", name, did(name, sortedKeys(f.Tenants)))
	}
}

// convertible warns of a currency that no rate turns into the fleet's. known is nil
// where the fleet's rates cannot be read.
func (c *checker) convertible(p place, currency, into string, known map[string]bool) {
	if currency != "" && known != nil && !known[currency] {
		c.warnf(p, "UnknownCurrency", "no rate turns %s into %s, so these prices are not used; add one under spec.rates of %s", currency, into, fleetFile)
	}
}

func (c *checker) fleetRefs(f *Fleet, o *v1alpha1.Fleet) {
	for i, p := range o.Spec.Policies {
		for j, t := range p.Match.Tenants {
			c.tenantExists(f, at("spec", "policies", i, "match", "tenants", j), t)
		}
		for j, id := range p.Match.Consumers {
			c.clusterExists(f, at("spec", "policies", i, "match", "consumers", j), id)
		}
	}
	for i, e := range o.Spec.Sources {
		for j, t := range e.Tenants {
			c.tenantExists(f, at("spec", "sources", i, "tenants", j), t)
		}
	}
	c.excluded(f, o)
	for i, w := range o.Spec.WarmPools {
		c.clusterExists(f, at("spec", "warmPools", i, "consumer"), w.Consumer)
	}
	c.latencyRefs(f, o.Spec.Latency)
}

// latencyRefs warns of latencies between what is not there; an agent may report
// its region.
func (c *checker) latencyRefs(f *Fleet, list []v1alpha1.LatencyEntry) {
	if len(list) == 0 || f.unread.places || len(f.unread.missing) > 0 {
		return
	}
	places, said := map[string]bool{}, map[string]bool{}
	for id, cl := range f.Clusters {
		places[id], places[cl.Spec.Location.Region] = true, true
	}
	for _, fl := range f.Flavors {
		places[fl.Spec.Location.Region] = true
	}
	delete(places, "")
	for i, l := range list {
		for _, end := range [][2]string{{"from", l.From}, {"to", l.To}} {
			if !places[end[1]] && !said[end[1]] {
				said[end[1]] = true
				c.warnf(at("spec", "latency", i, end[0]), "UnknownCluster", "no cluster is called %q, and no cluster or flavor in this repo names it as its region%s", end[1], did(end[1], sortedKeys(places)))
			}
		}
	}
}

func (c *checker) clusterRefs(f *Fleet, o *v1alpha1.Cluster, currencies map[string]bool, unpricedOf map[string][]*v1alpha1.Flavor, shared map[string]liqoids.Shared) {
	if id := shared[o.Metadata.Name]; id.Why != "" {
		c.errorf(id.At, "SharedClusterID", "%s", id.Why)
	}
	if r := o.Spec.Reservations; r != nil {
		c.tenantExists(f, at("spec", "reservations", "tenant"), r.Tenant)
	}
	unpriced := unpricedOf[o.Metadata.Name]
	if o.Spec.Price != nil && (len(o.Spec.Price.PerHour) > 0 || o.Spec.Price.Flat != nil) {
		c.sold(f, at("spec", "price"), o.Spec.Price, unpriced)
	} else if o.Spec.Price == nil {
		c.sold(f, at("spec", "defaultPrice"), o.Spec.DefaultPrice, unpriced)
	}
	for i, p := range []*v1alpha1.Price{o.Spec.DefaultPrice, o.Spec.Price} {
		if p != nil {
			c.convertible(at("spec", []string{"defaultPrice", "price"}[i], "currency"), p.Currency, f.Policy.Currency, currencies)
		}
	}
}

func (c *checker) tenantRefs(f *Fleet, o *v1alpha1.Tenant, currencies map[string]bool, overlaps, remote []overlap) {
	for i, id := range o.Spec.Consumers {
		p := at("spec", "consumers", i)
		switch cl := f.Clusters[id]; {
		case f.unread.clusters[id] != "":
		case cl == nil && f.unread.missing[id] == o.Metadata.Name:
			c.errorf(p, "UnknownCluster", "there is no cluster %s%s", id, offered.NoCluster(id, did(id, sortedKeys(f.Clusters)), f.Tenants))
		case cl == nil: // another tenant's file says so
		case !cl.HasRole("consumer"):
			c.errorf(p, "NotAConsumer", "cluster %s is not a consumer; add the role to %s/%s.yaml", id, clustersDir, id)
		case slices.Contains([]string{"flux", "argocd"}, cmp.Or(cl.Spec.Delivery, f.Policy.Defaults.Delivery)):
			if other := shorter(f, o.Metadata.Name, id); other != "" {
				c.errorf(p, "TenantPrefix", "on %s, where Flux or Argo CD acts as tenants' accounts, that of %s could take over virtual nodes of %s, whose names begin with %[2]s- too; rename one of them, or take one off %[1]s", id, other, o.Metadata.Name)
			}
		}
	}
	for i, id := range o.Spec.Providers.Allow {
		c.clusterExists(f, at("spec", "providers", "allow", i), id)
	}
	for i, id := range o.Spec.Providers.Deny {
		c.clusterExists(f, at("spec", "providers", "deny", i), id)
	}
	if b := o.Spec.Budget; b != nil && b.Currency != "" && currencies != nil && !currencies[b.Currency] {
		c.errorf(at("spec", "budget", "currency"), "UnknownCurrency", "no rate turns %s into %s; add one under spec.rates of %s", b.Currency, f.Policy.Currency, fleetFile)
	}
	for _, ov := range overlaps {
		if ov.tenant != o.Metadata.Name {
			continue
		}
		p := at("spec", "namespaces", ov.index)
		if ov.index < 0 {
			p = at("metadata", "name")
		}
		c.errorf(p, "NamespaceOverlap", "%s", ov.message)
	}
	for _, ov := range remote {
		if ov.tenant == o.Metadata.Name {
			c.errorf(at("spec", "remoteNamespaces", ov.index), "NamespaceOverlap", "%s", ov.message)
		}
	}
	for i, s := range o.Spec.Secrets {
		c.clusterExists(f, at("spec", "secrets", i, "consumer"), s.Consumer)
	}
}

// shorter is a tenant of a consumer whose name and "-" another tenant's begins with.
func shorter(f *Fleet, name, consumer string) string {
	for i := range name {
		if t := f.Tenants[name[:i]]; name[i] == '-' && t != nil && slices.Contains(t.Spec.Consumers, consumer) {
			return name[:i]
		}
	}
	return ""
}

func (c *checker) flavorRefs(f *Fleet, o *v1alpha1.Flavor, currencies map[string]bool) {
	p := at("metadata", "namespace")
	switch cl := f.Clusters[o.Metadata.Namespace]; {
	case f.unread.clusters[o.Metadata.Namespace] != "":
	case cl == nil && f.unread.missing[o.Metadata.Namespace] == o.Ref():
		c.warnf(p, "UnknownCluster", "there is no cluster %s%s, so nothing is placed on its flavors; add %s/%s.yaml", o.Metadata.Namespace, did(o.Metadata.Namespace, sortedKeys(f.Clusters)), clustersDir, o.Metadata.Namespace)
	case cl == nil: // reported already
	case !slices.Contains(cl.Spec.Roles, "provider"):
		c.warnf(p, "UnknownCluster", "cluster %s is not a provider, so nothing is placed on this flavor; add the role to %s/%s.yaml", o.Metadata.Namespace, clustersDir, o.Metadata.Namespace)
	}
	if pr := o.Spec.Price; pr != nil {
		c.convertible(at("spec", "price", "currency"), pr.Currency, f.Policy.Currency, currencies)
		c.sold(f, at("spec", "price"), pr, []*v1alpha1.Flavor{o})
	}
	c.classRef(f.Clusters[o.Metadata.Namespace], o)
	for _, name := range o.Spec.Capacity.Names() {
		if used, ok := o.Spec.Used[name]; ok && o.Spec.Capacity[name].Less(used) {
			c.warnf(at("spec", "used", name), "BadValue", "spec.used.%s is more than the capacity", name)
		}
	}
}

// classRef checks that a flavor's slice class is one that its cluster has.
func (c *checker) classRef(cl *v1alpha1.Cluster, o *v1alpha1.Flavor) {
	known := slices.Clone(flavorClasses)
	if cl != nil {
		for _, class := range cl.Spec.Liqo.Classes {
			known = append(known, class.Name)
		}
	}
	if class := o.Spec.Class; class != "" && cl != nil && !slices.Contains(known, class) {
		c.errorf(at("spec", "class"), "UnknownClass", "spec.class: cluster %s declares no slice class %q%s; write one of %s, or declare it under spec.liqo.classes of %s/%s.yaml",
			o.Metadata.Namespace, class, did(class, known), strings.Join(known, ", "), clustersDir, o.Metadata.Namespace)
	}
}

// sold warns of accelerators that some flavors have and a price of theirs does not name.
func (c *checker) sold(f *Fleet, p place, price *v1alpha1.Price, flavors []*v1alpha1.Flavor) {
	warned := map[string]bool{}
	for _, fl := range flavors {
		for _, name := range accelerators.Unsold(fl.Spec.Capacity, price, func(name string) bool { return accelerators.Is(name, f.Policy.Accelerators) }) {
			if !warned[name] && advice.Unreached(name, fl.Spec.Capacity[name]) == "" {
				c.warnf(p.in("perHour"), "NotSold", "%s.perHour names no price for %s, so none of %s is sold; add %s: \"<price an hour>\" (\"0\" sells it for nothing)", p, name, fl.Ref(), name)
			}
			warned[name] = true
		}
	}
}

// excluded warns of flavors that a policy excludes because it compares a number that they
// do not state.
func (c *checker) excluded(f *Fleet, o *v1alpha1.Fleet) {
	for i := range min(len(f.Policies), len(o.Spec.Policies)) {
		if why := policymatch.Excluded(&f.Policies[i], f.Flavors, f.Clusters); why != "" {
			c.warnf(at("spec", "policies", i, "require"), "PolicyExcludes", "spec.policies[%d].require: %s", i, why)
		}
	}
}
