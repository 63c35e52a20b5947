package fleet

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/nearest"
	"github.com/fleetbroker/fleetbroker/internal/api/strictyaml"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/fleet/offered"
)

// context is what one tenant's intents are checked against. Two contexts with
// equal keys answer alike; a file keeps the one it was checked against.
type context struct {
	key        string
	tenantName string
	tenant     *v1alpha1.Tenant
	unreadable string // why the tenant's file cannot be read, "" when it can
	clusters   map[string]*v1alpha1.Cluster
	regions    map[string]bool
	zones      map[string]bool
	claims     *claims
	remote     *remoteClaims
	currencies map[string]bool // nil: the fleet's rates cannot be read
	currency   string
	limits     v1alpha1.Limits
	unread     unread
	offered    offered.Names
}

// contexts makes one context a tenant, sharing what is the fleet's.
type contexts struct {
	shared   context
	fleetKey string
	tenants  map[string]*v1alpha1.Tenant
	made     map[string]*context
}

func newContexts(f *Fleet, old *contexts) *contexts {
	cs := &contexts{tenants: f.Tenants, made: map[string]*context{}}
	cs.shared = context{clusters: f.Clusters, regions: map[string]bool{}, zones: map[string]bool{}, currency: f.Policy.Currency, currencies: convertible(f), unread: f.unread}
	cs.shared.claims, _ = claimsOf(f.Tenants)
	cs.shared.claims.liqo = map[string]string{}
	cs.shared.remote, _ = remoteClaimsOf(f.Tenants, f.Clusters)
	var key strings.Builder
	for _, name := range sortedKeys(f.Clusters) {
		c := f.Clusters[name]
		fmt.Fprintf(&key, "%s %v %s %s %s %s %s\n", name, c.Spec.Roles, c.Spec.Location.Region, c.Spec.Location.Zone, c.Spec.Liqo.Namespace, c.Spec.Liqo.TenantNamespace, c.Spec.Liqo.ClusterID)
		cs.shared.claims.liqo[c.Spec.Liqo.Namespace], cs.shared.claims.liqo[c.Spec.Liqo.TenantNamespace] = name, name
		cs.shared.offered.Cluster(c)
		cs.shared.regions[c.Spec.Location.Region], cs.shared.zones[c.Spec.Location.Zone] = true, true
	}
	for _, fl := range f.Flavors {
		l := fl.Spec.Location
		if !cs.shared.regions[l.Region] || !cs.shared.zones[l.Zone] {
			fmt.Fprintf(&key, "@%s %s\n", l.Region, l.Zone)
		}
		cs.shared.regions[l.Region], cs.shared.zones[l.Zone] = true, true
		cs.shared.offered.Flavor(fl)
	}
	for _, t := range f.Prices {
		cs.shared.offered.Table(t)
	}
	cs.shared.offered.Accelerators(f.Policy.Accelerators)
	fmt.Fprintf(&key, "%s %q %v %v %t\n", cs.shared.offered.Key(), f.unread.fleet, f.unread.clusters, f.unread.missing, f.unread.places)
	delete(cs.shared.regions, "")
	delete(cs.shared.zones, "")
	cs.shared.limits = f.Policy.Limits.Filled()
	fmt.Fprintf(&key, "%d\n", cs.shared.limits.Replicas)
	fmt.Fprintf(&key, "%s %v\n", cs.shared.currency, slices.Sorted(maps.Keys(cs.shared.currencies)))
	// All claims matter to every tenant: another's exact claim beats one's own pattern.
	for _, n := range sortedKeys(cs.shared.claims.exact) {
		fmt.Fprintf(&key, "%s=%s\n", n, cs.shared.claims.exact[n])
	}
	fmt.Fprintf(&key, "%v", cs.shared.claims.patterns)
	for _, name := range sortedKeys(f.Tenants) {
		fmt.Fprintf(&key, "\n%s %q", name, f.Tenants[name].Spec.RemoteNamespaces)
	}
	sum := sha256.Sum256([]byte(key.String()))
	cs.fleetKey = string(sum[:])
	if old != nil {
		cs.made = cs.reuse(old)
	}
	return cs
}

// reuse keeps the contexts whose key did not change, by pointer, so that files
// need not compare keys.
func (cs *contexts) reuse(old *contexts) map[string]*context {
	made := map[string]*context{}
	for name, c := range old.made {
		if cs.key(name) == c.key {
			made[name] = c
		}
	}
	return made
}

// key is everything that an intent of the tenant is checked against, as text.
func (cs *contexts) key(tenant string) string {
	if t := cs.tenants[tenant]; t != nil {
		most := ""
		if t.Spec.MaxPriority != nil {
			most = fmt.Sprint(*t.Spec.MaxPriority)
		}
		return fmt.Sprintf("%s\n%v %s %v", cs.fleetKey, t.Spec.Consumers, most, t.Spec.Secrets)
	}
	return cs.fleetKey + "\nnone " + cs.shared.unread.tenants[tenant]
}

func (cs *contexts) of(tenant string) *context {
	if c, ok := cs.made[tenant]; ok {
		return c
	}
	c := cs.shared
	c.key, c.tenantName, c.tenant, c.unreadable = cs.key(tenant), tenant, cs.tenants[tenant], cs.shared.unread.tenants[tenant]
	cs.made[tenant] = &c
	return &c
}

// convertible are the currencies that rates can turn into the fleet's, over
// any number of steps, in either direction; nil when fleet.yaml cannot be read.
func convertible(f *Fleet) map[string]bool {
	if f.unread.fleet != "" {
		return nil
	}
	p := f.Policy
	known := map[string]bool{p.Currency: true}
	for grew := true; grew; {
		grew = false
		for _, r := range p.Rates {
			if known[r.From] != known[r.To] {
				known[r.From], known[r.To], grew = true, true, true
			}
		}
	}
	return known
}

// checkTogether holds a file's intents against the rest of the fleet, and
// reports whether anything is other than it was.
func (f *file) checkTogether(ctx *context, store tree.Store) (changed bool) {
	if f.against == ctx {
		return false
	}
	trial := &checker{file: f.path}
	wrong := false
	for _, d := range f.docs {
		if in, ok := d.object.(*v1alpha1.ResourceIntent); ok && ctx.check(trial, in) {
			wrong = true
		}
	}
	if !wrong && f.against != nil && !f.wrong { // good before and now: by far most files
		f.against = ctx
		return false
	}
	f.against, f.wrong, f.intents, f.together = ctx, wrong, nil, nil
	for _, d := range f.docs {
		in, ok := d.object.(*v1alpha1.ResourceIntent)
		if !ok {
			continue
		}
		c := &checker{file: f.path}
		if wrong { // only now is the text worth reading again, for the places
			c.doc = f.reopen(d, store)
			ctx.check(c, in)
			for i := range c.diags {
				c.diags[i].Intent = in.Metadata.Namespace + "/" + in.Metadata.Name
			}
		}
		out := &model.Intent{ResourceIntent: in, Path: f.path, Digest: d.digest, Problem: d.problem, ProblemCode: d.code, Where: d.where}
		if out.Problem == "" {
			out.Problem, out.ProblemCode = firstError(c.diags)
		}
		f.intents = append(f.intents, out)
		f.together = append(f.together, slices.DeleteFunc(c.diags, func(d Diagnostic) bool { return ctx.reported(in, d.Code) })...)
	}
	return true
}

// reported: what an intent depends on has a diagnostic of its own, where the mistake is.
func (ctx *context) reported(in *v1alpha1.ResourceIntent, code string) bool {
	return code == codeUnreadable || code == codeNoConsumer && ctx.unread.missing[ctx.tenant.Spec.ConsumerOf(&in.Spec)] != ""
}

// reopen parses a document again for its places; nil when there are none.
func (f *file) reopen(d document, store tree.Store) *strictyaml.Document {
	if f.made != "" {
		return nil
	}
	content, err := store.File(f.hash, strictyaml.MaxSize)
	if err != nil {
		return nil
	}
	sources, _ := strictyaml.Split(content)
	if d.index >= len(sources) {
		return nil
	}
	doc, _ := strictyaml.Parse(sources[d.index])
	return doc
}

// check reports whether it found anything. It runs for every intent whenever
// a cluster or tenant changes, so places are made only for what is wrong.
func (ctx *context) check(c *checker, in *v1alpha1.ResourceIntent) bool {
	switch {
	case ctx.unreadable != "":
		c.errorf(at("metadata", "namespace"), codeUnreadable, "the file of tenant %s cannot be read: %s", ctx.tenantName, ctx.unreadable)
		return true
	case ctx.tenant == nil:
		c.errorf(at("metadata", "namespace"), "UnknownTenant", "there is no tenant %s; add %s/%s.yaml", ctx.tenantName, tenantsDir, ctx.tenantName)
		return true
	}
	ctx.consumer(c, in)
	ctx.names(c, in)
	if n, most := int64(max(in.Spec.Replicas.Min, in.Spec.Replicas.Max)), ctx.limits.Replicas; n > most && ctx.unread.fleet == "" {
		c.errorf(at("spec", "replicas"), "LimitExceeded", "spec.replicas: %d is more than the %d that an intent may have; write fewer, or raise spec.limits.replicas in %s", n, most, fleetFile)
	}
	if most := ctx.tenant.Spec.MaxPriority; most != nil && in.Spec.Priority > *most && in.Spec.Priority <= 1000 {
		c.warnf(at("spec", "priority"), "NoEffect", "spec.priority: %d is more than tenant %s may have, and counts as its maxPriority %d", in.Spec.Priority, ctx.tenantName, *most)
	}
	pl := &in.Spec.Placement
	for i, id := range pl.Providers.Allow {
		if cl := ctx.clusters[id]; (cl == nil || !cl.HasRole("provider")) && ctx.unread.clusters[id] == "" && ctx.unread.missing[id] == "" {
			ctx.cluster(c, at("spec", "placement", "providers", "allow", i), id)
		}
	}
	for i, id := range pl.Providers.Deny {
		if ctx.clusters[id] == nil && ctx.unread.clusters[id] == "" && ctx.unread.missing[id] == "" {
			ctx.cluster(c, at("spec", "placement", "providers", "deny", i), id)
		}
	}
	ctx.known(c, "regions", "region", pl.Regions, ctx.regions)
	ctx.known(c, "zones", "zone", pl.Zones, ctx.zones)
	if b := in.Spec.Budget; b != nil && b.Currency != "" && currencyForm.MatchString(b.Currency) && ctx.currencies != nil && !ctx.currencies[b.Currency] {
		c.errorf(at("spec", "budget", "currency"), "UnknownCurrency", "spec.budget.currency: no rate turns %s into %s; add one under spec.rates of %s", b.Currency, ctx.currency, fleetFile)
	}
	if o := in.Spec.Offload; o != nil {
		for i := range o.Namespaces {
			if why := ctx.claims.entitled(ctx.tenantName, o.Namespaces[i].Name); why != "" {
				c.errorf(at("spec", "offload", "namespaces", i, "name"), "NamespaceNotEntitled", "%s", why)
			}
		}
		ctx.remoteNames(c, in)
	}
	ctx.secrets(c, in)
	return len(c.diags) > 0
}

func (ctx *context) consumer(c *checker, in *v1alpha1.ResourceIntent) {
	id := ctx.tenant.Spec.ConsumerOf(&in.Spec)
	if id == "" {
		return
	}
	cl := ctx.clusters[id]
	switch why := ctx.unread.clusters[id]; {
	case why != "":
		c.errorf(at("spec", "consumer"), codeUnreadable, "the file of cluster %s cannot be read: %s", id, why)
	case cl == nil:
		c.errorf(at("spec", "consumer"), codeNoConsumer, "there is no cluster %s%s; consumers of tenant %s are %s", id, did(id, sortedKeys(ctx.clusters)), ctx.tenantName, strings.Join(ctx.tenant.Spec.Consumers, ", "))
	case !cl.HasRole("consumer"):
		c.errorf(at("spec", "consumer"), "NotAConsumer", "cluster %s is not a consumer; add the role to %s/%s.yaml", id, clustersDir, id)
	case !slices.Contains(ctx.tenant.Spec.Consumers, id):
		c.errorf(at("spec", "consumer"), "ConsumerNotEntitled", "tenant %s may not have capacity in cluster %s; its consumers are %s", ctx.tenantName, id, strings.Join(ctx.tenant.Spec.Consumers, ", "))
	}
}

// cluster warns of a cluster that is not there (it may come later), or that
// gives nothing though it should.
func (ctx *context) cluster(c *checker, p place, id string) {
	if ctx.clusters[id] != nil {
		c.warnf(p, "UnknownCluster", "cluster %s is not a provider", id)
		return
	}
	c.warnf(p, "UnknownCluster", "there is no cluster %s%s", id, did(id, sortedKeys(ctx.clusters)))
}

// known warns of a region or zone that no file names; an agent may report it.
func (ctx *context) known(c *checker, field, what string, list []string, known map[string]bool) {
	if len(known) == 0 || ctx.unread.places || len(ctx.unread.missing) > 0 {
		return
	}
	for i, v := range list {
		if !known[v] {
			meant := did(v, sortedKeys(known))
			for _, cl := range ctx.clusters {
				if strings.EqualFold(cl.Spec.Location.Country, v) {
					meant = fmt.Sprintf("; %s is a country: write where: 'flavor.location.country == %q'", v, cl.Spec.Location.Country)
				}
			}
			c.warnf(at("spec", "placement", field, i), "Unknown"+strings.ToUpper(what[:1])+what[1:], "no cluster or flavor in this repo names the %s %s%s", what, v, meant)
		}
	}
}

// names reports names that neither a file offers nor anybody knows; an agent may report
// most of them.
func (ctx *context) names(c *checker, in *v1alpha1.ResourceIntent) {
	for _, x := range ctx.offered.Problems(&in.Spec, ctx.unread.places) {
		p := at("spec").in(x.At...)
		if n := len(p) - 2; p[n] == "models" && c.doc != nil && c.doc.Text(p...) == "" { // the short form
			p = p[:n]
		}
		if x.Refused {
			c.errorf(p, x.Code, "%s%s", p, x.Text)
		} else {
			c.warnf(p, x.Code, "%s%s", p, x.Text)
		}
	}
}

// codeUnreadable is of what depends on a file that cannot be read. It refuses the
// intent, and is no diagnostic of its own: the file has one.
const codeUnreadable = "DependsOnUnreadable"

// codeNoConsumer is of an intent whose consumer does not exist.
const codeNoConsumer = "UnknownConsumer"

func did(name string, known []string) string {
	if near := nearest.Of(name, known); near != "" {
		return fmt.Sprintf(" (did you mean %q?)", near)
	}
	return ""
}
