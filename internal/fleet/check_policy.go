package fleet

import (
	"maps"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/fleetbroker/fleetbroker/internal/api/accelerators"
	"github.com/fleetbroker/fleetbroker/internal/api/nearest"
	"github.com/fleetbroker/fleetbroker/internal/api/onnodes"
	"github.com/fleetbroker/fleetbroker/internal/api/properties"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/fleet/advice"
	"github.com/fleetbroker/fleetbroker/internal/fleet/ahead"
	"github.com/fleetbroker/fleetbroker/internal/fleet/domains"
	"github.com/fleetbroker/fleetbroker/internal/fleet/naming"
	"github.com/fleetbroker/fleetbroker/internal/fleet/policymatch"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// checkFleet checks fleet.yaml.
func checkFleet(c *checker, f *v1alpha1.Fleet) {
	s, spec := &f.Spec, at("spec")
	c.currency(spec.in("currency"), s.Currency)
	c.timezone(spec.in("timezone"), s.Timezone)
	for i, r := range s.Rates {
		p := spec.in("rates", i)
		c.currency(p.in("from"), r.From)
		c.currency(p.in("to"), r.To)
		c.aboveZero(p.in("rate"), &r.Rate, "")
		if r.From == r.To {
			c.errorf(p, "BadValue", "%s converts %s into itself", p, r.From)
		}
	}
	for i, t := range s.Transfer {
		c.notNegative(spec.in("transfer", i, "perGi"), t.PerGi)
		if t.From == "" || t.To == "" {
			c.errorf(spec.in("transfer", i), "BadValue", "%s: name the regions under from and to", spec.in("transfer", i))
		}
		c.currency(spec.in("transfer", i, "currency"), t.Currency)
	}
	for i, l := range s.Latency {
		c.within(spec.in("latency", i, "ms"), l.Ms, 0, noMost)
	}
	c.accelerators(spec.in("accelerators"), s.Accelerators)
	c.weights(spec.in("weights"), s.Weights)
	c.oneOf(spec.in("defaults", "delivery"), s.Defaults.Delivery, deliveries...)
	c.defaultRequest(spec.in("defaults"), s)
	c.domains(spec.in("defaults"), domains.Within(s.Defaults.Within))
	names := map[string]bool{}
	for i, p := range s.Policies {
		p2 := spec.in("policies", i)
		c.label(p2.in("name"), p.Name)
		if names[p.Name] {
			c.errorf(p2.in("name"), "Duplicate", "a policy called %s stands above already", p.Name)
		}
		names[p.Name] = true
		c.labels(p2.in("match", "labels"), p.Match.Labels)
		c.domains(p2, policymatch.Problems(&p))
		if c.expression(p2.in("require"), p.Require, true) != nil {
			c.expression(p2.in("match"), policymatch.Condition(&p), true)
		}
	}
	pools := map[string]bool{}
	for i, w := range s.WarmPools {
		p := spec.in("warmPools", i)
		c.label(p.in("name"), w.Name)
		c.within(p.in("count"), int64(w.Count), 0, s.Limits.Filled().Replicas)
		c.request(p.in("resources"), w.Resources)
		c.poolForecast(p, &w)
		if w.MaxPremium != nil {
			c.notNegative(p.in("maxPremium"), *w.MaxPremium)
		}
		if pools[w.Name] {
			c.errorf(p.in("name"), "Duplicate", "a warm pool called %s stands above already", w.Name)
		}
		pools[w.Name] = true
	}
	c.writeBack(spec.in("writeBack"), &s.WriteBack)
	c.oneOf(spec.in("verification", "mode"), s.Verification.Mode, "none", "signed")
	c.oneOf(spec.in("verification", "intents"), s.Verification.Intents, "signed")
	c.signers(spec.in("verification", "signers"), s.Verification.Signers)
	if s.Verification.Mode == "signed" && len(s.Verification.Signers) == 0 && len(s.WriteBack.Signers) == 0 {
		c.warnf(spec.in("verification", "mode"), "NobodySigns", "spec.verification.mode is signed, and nobody may change this file, clusters or tenants any more: name the fleet's keys under spec.verification.signers")
	}
	c.oneOf(spec.in("consolidation", "mode"), s.Consolidation.Mode, "off", "propose", "apply")
	c.aboveZero(spec.in("consolidation", "threshold"), s.Consolidation.Threshold, "; leave it out for 0.5")
	if d := s.Scarcity; d != nil && (d.Micro() < 1_000_000 || d.Micro() > 1000_000_000) {
		c.errorf(spec.in("scarcity"), "BadValue", "%s: %s is not between 1 and 1000; it is below how many times the cheapest price an intent may be placed at to leave that to others: 1 for never, or leave it out for 1.5", spec.in("scarcity"), d)
	}
	c.oneOf(spec.in("enrollment"), s.Enrollment, "closed", "open")
	if s.Safety.MaxEnds != nil {
		c.within(spec.in("safety", "maxEnds"), int64(*s.Safety.MaxEnds), 0, noMost)
	}
	if d := s.Safety.Silence.Duration; d != 0 && (d < 45*time.Second || d > 24*time.Hour) {
		c.errorf(spec.in("safety", "silence"), "BadValue", "%s: %s is not between 45s and 24h; agents report every 30 s, so that less than 45s would take providers out between two reports", spec.in("safety", "silence"), s.Safety.Silence)
	}
	c.domains(spec.in("bookings"), ahead.Rules(&s.Bookings, c.doc != nil && c.doc.Text("spec", "bookings", "maxShare") != ""))
	c.fleetLimits(spec.in("limits"), &s.Limits)
	c.sources(spec.in("sources"), s)
}

// accelerators checks the names that count as accelerators.
func (c *checker) accelerators(p place, names []string) {
	for i, name := range names {
		plain := strings.TrimSuffix(name, "*")
		switch {
		case !strings.Contains(plain, "/") || !qualified.MatchString(plain+"x"):
			c.errorf(p.in(i), "BadName", "%s: %q is not an extended resource; write its whole name, such as example.org/npu, or its beginning with a *", p.in(i), name)
		case accelerators.Is(name, names[:i]):
			c.warnf(p.in(i), "NoEffect", "%s: %s counts as an accelerator already; take it out", p.in(i), name)
		}
	}
}

// The most that a fleet may raise its limits to.
const (
	mostReplicas  = 100_000
	mostContracts = 10_000_000
	mostUnits     = 1_000_000_000_000
)

func (c *checker) fleetLimits(p place, l *v1alpha1.Limits) {
	for _, f := range []struct {
		name        string
		value, most int64
	}{
		{"replicas", l.Replicas, mostReplicas}, {"contracts", l.Contracts, mostContracts}, {"intents", l.Intents, mostContracts},
		{"files", l.Files, mostContracts}, {"conditions", l.Conditions, mostUnits},
	} {
		if f.value != 0 {
			c.within(p.in(f.name), f.value, 1, f.most)
		}
	}
	if l.Bytes != nil && bytesOf(*l.Bytes) <= 0 {
		c.errorf(p.in("bytes"), "BadValue", "%s: %q is not more than 0 bytes; leave it out for %s", p.in("bytes"), *l.Bytes, v1alpha1.DefaultBytes)
	}
}

// defaultRequest checks what an intent asks for that leaves it out.
func (c *checker) defaultRequest(p place, s *v1alpha1.FleetSpec) {
	d := s.Defaults
	for name, q := range map[string]*v1alpha1.Quantity{v1alpha1.CPU: d.CPU, v1alpha1.Memory: d.Memory, v1alpha1.Pods: d.Pods, v1alpha1.EphemeralStorage: d.EphemeralStorage} {
		if c.quantity(p.in(name), name, q) && q.Amount(name).IsZero() && name != v1alpha1.EphemeralStorage {
			c.nothing(p.in(name), "leave it out")
		}
	}
}

// quantity checks a quantity as an amount of its field's resource, and reports whether it is one.
func (c *checker) quantity(p place, name string, q *v1alpha1.Quantity) bool {
	if q == nil {
		return false
	}
	a, err := v1alpha1.ParseAmount(name, string(*q))
	if err != nil {
		c.errorf(p, "BadValue", "%s: %s; write one that can be counted, or leave it out", p, strings.TrimPrefix(err.Error(), name+": "))
		return false
	}
	c.amount(p, name, a)
	return true
}

// poolForecast checks how a warm pool is sized.
func (c *checker) poolForecast(p place, w *v1alpha1.WarmPool) {
	f := w.Forecast
	if f == nil {
		if w.Max != 0 {
			c.errorf(p.in("max"), "BadValue", "%s is for pools that follow a forecast: add forecast: {}, or write count alone", p.in("max"))
		}
		return
	}
	if w.Max < max(w.Count, 1) {
		c.errorf(p.in("max"), "BadValue", "%s: %d; with a forecast it is the most slices that are kept ready, at least 1 and no less than count", p.in("max"), w.Max)
	}
	if g := w.Resources.GPU; g == nil || g.Count < 1 {
		c.errorf(p.in("forecast"), "BadValue", "%s: only GPUs that are counted are forecast; write resources.gpu with a count", p.in("forecast"))
	}
	if d := f.Ahead.Duration; d != 0 && (d < time.Hour || d > 24*time.Hour || d%time.Hour != 0) {
		c.errorf(p.in("forecast", "ahead"), "BadValue", "%s: %s is not a whole number of hours from 1h to 24h", p.in("forecast", "ahead"), f.Ahead)
	}
	if f.Margin != nil {
		c.notNegative(p.in("forecast", "margin"), *f.Margin)
	}
}

var deliveries = []string{"direct", "flux", "argocd", "agent", "none"}

func (c *checker) writeBack(p place, w *v1alpha1.WriteBack) {
	c.oneOf(p.in("mode"), w.Mode, "push", "pull-request", "none")
	for _, b := range []struct{ field, name string }{{"inputs", w.Inputs}, {"branch", w.Branch}} {
		c.branch(p.in(b.field), b.name)
	}
	if strings.ContainsAny(w.Author.Name+w.Author.Email, "<>\n") {
		c.errorf(p.in("author"), "BadValue", "%s: name and email must not contain < or >", p.in("author"))
	}
	if field, why := w.Pushes.Problem(); why != "" {
		c.errorf(p.in("pushes", field), "BadValue", "%s: %s", p.in("pushes", field), why)
	}
	c.signers(p.in("signers"), w.Signers)
}

func (c *checker) branch(p place, name string) {
	if name != "" && !naming.Branch(name) {
		c.errorf(p, "BadName", "%s: %q is not the name of a branch", p, name)
	}
}

func (c *checker) signers(p place, list []v1alpha1.Signer) {
	for i, s := range list {
		p := p.in(i)
		if s.Principal == "" {
			c.errorf(p.in("principal"), "BadValue", "%s is empty", p.in("principal"))
		}
		if strings.Contains(s.PublicKey, "PRIVATE KEY") {
			c.errorf(p.in("publicKey"), "SecretInRepo", "%s is a private key: remove it from the repository's history and replace it", p.in("publicKey"))
			continue
		}
		if strings.HasPrefix(strings.TrimSpace(s.PublicKey), "-----BEGIN PGP PUBLIC KEY") {
			continue
		}
		switch _, _, options, _, err := ssh.ParseAuthorizedKey([]byte(s.PublicKey)); {
		case err != nil || strings.Contains(strings.TrimSpace(s.PublicKey), "\n"):
			c.errorf(p.in("publicKey"), "BadValue", "%s is neither one OpenSSH public key (ssh-ed25519 AAAA…) nor an OpenPGP one", p.in("publicKey"))
		case len(options) > 0:
			c.errorf(p.in("publicKey"), "BadValue", "%s has options (%s), which have no effect here: write the key without them", p.in("publicKey"), strings.Join(options, ","))
		}
	}
}

var namespacePattern = regexp.MustCompile(`^[a-z0-9*]([-a-z0-9*]*[a-z0-9*])?$`)

// checkTenant checks a tenant's file.
func checkTenant(c *checker, t *v1alpha1.Tenant) {
	s, spec := &t.Spec, at("spec")
	if len(s.Consumers) == 0 {
		c.errorf(spec.in("consumers"), "BadValue", "spec.consumers is empty; name the clusters in which the tenant may have capacity")
	}
	for i, n := range s.Namespaces {
		p := spec.in("namespaces", i)
		switch {
		case !namespacePattern.MatchString(n) || len(n) > 63:
			c.errorf(p, "BadName", "%s: %q is neither a namespace nor a pattern with *", p, n)
		case forbiddenNamespace(n):
			c.errorf(p, "NamespaceForbidden", "%s: namespace %s belongs to the cluster or its tools and is never offloaded", p, n)
		}
	}
	c.tenantNames(spec, s)
	if q := s.Quota; q != nil {
		p := spec.in("quota")
		if q.GPU != nil {
			c.within(p.in("gpu"), *q.GPU, 0, noMost)
		}
		if q.Contracts != nil {
			c.within(p.in("contracts"), *q.Contracts, 0, noMost)
		}
		for _, m := range sortedKeys(q.ByModel) {
			c.within(p.in("byModel", m), q.ByModel[m], 0, noMost)
			c.model(p.in("byModel", m), m)
		}
		c.quantity(p.in("cpu"), v1alpha1.CPU, q.CPU)
		c.quantity(p.in("memory"), v1alpha1.Memory, q.Memory)
		c.bytes(p.in("maxBorrow"), q.MaxBorrow)
		c.borrows(p.in("maxBorrow"), q)
	}
	if b := s.Budget; b != nil {
		p := spec.in("budget")
		c.positive(p.in("monthly"), b.Monthly)
		c.positive(p.in("hourly"), b.Hourly)
		c.currency(p.in("currency"), b.Currency)
		c.oneOf(p.in("atLimit"), b.AtLimit, "warn", "stop", "end")
	}
	if s.MaxPriority != nil {
		c.within(spec.in("maxPriority"), int64(*s.MaxPriority), 0, 1000)
	}
	c.within(spec.in("weight"), int64(s.Weight), 0, 1_000_000)
	c.signers(spec.in("signers"), s.Signers)
	for i, n := range s.Notify {
		p := spec.in("notify", i)
		c.secret(p.in("urlSecretRef"), n.URLSecretRef)
		if len(n.Events) == 0 {
			c.errorf(p.in("events"), "BadValue", "%s is empty; name events, or write [%s]", p.in("events"), v1alpha1.NotifyAll)
		}
		for k, e := range n.Events {
			c.oneOf(p.in("events", k), e, append([]string{v1alpha1.NotifyAll}, v1alpha1.NotifyEvents...)...)
		}
	}
}

// checkCluster checks a cluster's file.
func checkCluster(c *checker, cl *v1alpha1.Cluster) {
	s, spec := &cl.Spec, at("spec")
	if len(s.Roles) == 0 {
		c.errorf(spec.in("roles"), "BadValue", "spec.roles is empty; write provider, consumer or both")
	}
	for i, r := range s.Roles {
		c.oneOf(spec.in("roles", i), r, "provider", "consumer")
	}
	c.oneOf(spec.in("delivery"), s.Delivery, deliveries...)
	c.oneOf(spec.in("admission"), s.Admission, v1alpha1.AdmissionV1, v1alpha1.AdmissionV1Beta1, v1alpha1.AdmissionWebhook)
	for i, name := range s.Deliverers {
		if !userForm.MatchString(name) {
			c.errorf(spec.in("deliverers", i), "BadValue", "spec.deliverers: %q is not the name of a user; write it as the cluster's API server does, for example system:serviceaccount:kube-system:argocd-manager", name)
		}
	}
	for _, n := range []struct{ field, name string }{{"clusterID", s.Liqo.ClusterID}, {"namespace", s.Liqo.Namespace}, {"tenantNamespace", s.Liqo.TenantNamespace}} {
		if n.name != "" {
			c.label(spec.in("liqo", n.field), n.name)
		}
	}
	c.classes(spec.in("liqo", "classes"), s.Liqo.Classes)
	c.endpoint(spec.in("endpoint"), s.Endpoint)
	if s.Access != nil && s.Access.KubeconfigSecretRef != nil {
		c.secret(spec.in("access", "kubeconfigSecretRef"), *s.Access.KubeconfigSecretRef)
	}
	c.instant(spec.in("drain"), s.Drain)
	c.location(spec.in("location"), s.Location)
	c.properties(spec.in("properties"), s.Properties)
	c.labels(spec.in("labels"), s.Labels)
	c.price(spec.in("defaultPrice"), s.DefaultPrice)
	c.price(spec.in("price"), s.Price)
	for i, topic := range s.TrustAgent {
		c.oneOf(spec.in("trustAgent", i), topic, v1alpha1.TrustPrice, v1alpha1.TrustLocation)
	}
	if r := s.Reservations; r != nil {
		c.label(spec.in("reservations", "tenant"), r.Tenant)
	}
}

func (c *checker) endpoint(p place, e string) {
	if e == "" {
		return
	}
	if u, err := url.Parse(e); err != nil || u.Host == "" || u.User != nil {
		c.errorf(p, "BadValue", "spec.endpoint: %q is not the URL of an API server (without credentials)", e)
	}
}

func (c *checker) location(p place, l v1alpha1.Location) {
	if l.Country != "" && !regexp.MustCompile(`^[A-Z]{2}$`).MatchString(l.Country) {
		c.errorf(p.in("country"), "BadValue", "%s: %q is not a country; write two capital letters, such as FR", p.in("country"), l.Country)
	}
	c.domains(p, domains.Network(l.Network))
}

// flavorClasses are the slice classes that every provider may have.
var flavorClasses = []string{"fleetbroker", "default"}

// classes checks the slice classes that a cluster declares.
func (c *checker) classes(p place, list []v1alpha1.SliceClass) {
	seen := map[string]bool{}
	for i, class := range list {
		p := p.in(i)
		c.label(p.in("name"), class.Name)
		switch {
		case slices.Contains(flavorClasses, class.Name):
			c.errorf(p.in("name"), "BadName", "%s: the class %s needs no declaration; take it out", p.in("name"), class.Name)
		case seen[class.Name]:
			c.errorf(p.in("name"), "Duplicate", "%s: the class %s is declared already", p.in("name"), class.Name)
		}
		seen[class.Name] = true
		c.oneOf(p.in("grants"), class.Grants, v1alpha1.GrantsAgent, v1alpha1.GrantsOthers)
		if class.Grants == "" {
			c.errorf(p, "BadValue", "%s is empty; write agent or others", p.in("grants"))
		}
	}
}

// checkFlavor checks a flavor's file.
func checkFlavor(c *checker, f *v1alpha1.Flavor) {
	s, spec := &f.Spec, at("spec")
	c.oneOf(spec.in("type"), s.Type, "K8Slice", "VM", "Service", "Sensor")
	c.resourceNames(spec.in("capacity"), s.Capacity)
	if name, text := advice.FirstUnreached(s.Capacity); text != "" {
		c.warnf(spec.in("capacity", name), "NotSold", "spec.capacity.%s: %s", name, text)
	}
	c.bytes(spec.in("capacity"), s.Capacity)
	c.sizes(spec.in("used"), s.Used)
	c.sizes(spec.in("scalableTo"), s.ScalableTo)
	c.endpoint(spec.in("endpoint"), s.Endpoint)
	if s.Partition != nil {
		c.sizes(spec.in("partition", "min"), s.Partition.Min)
		c.sizes(spec.in("partition", "step"), s.Partition.Step)
		for _, name := range s.Partition.Min.Names() {
			// Without a capacity only the agent knows what there is.
			if most := s.Capacity[name]; s.Capacity != nil && most.Less(s.Partition.Min[name]) && s.ScalableTo[name].Less(s.Partition.Min[name]) && (!most.IsZero() || !unlisted(name)) {
				c.warnf(spec.in("partition", "min", name), "NoEffect", "spec.partition.min.%s is more than the capacity, so nothing of it can be sold", name)
			}
		}
	}
	if g := s.GPU; g != nil {
		p := spec.in("gpu")
		c.oneOf(p.in("sharing"), g.Sharing, "none", "mig", "time-slicing", "mps")
		c.within(p.in("unitsPerGPU"), int64(g.UnitsPerGPU), 0, 1024)
		if g.ResourceName != "" && (!strings.Contains(g.ResourceName, "/") || !qualified.MatchString(g.ResourceName)) {
			c.errorf(p.in("resourceName"), "BadName", "%s: %q is not an extended resource; write for example nvidia.com/gpu", p.in("resourceName"), g.ResourceName)
		}
		if g.ComputeCapability != "" && !advice.IsCapability(g.ComputeCapability) {
			c.errorf(p.in("computeCapability"), "BadValue", "%s: %q is not a version; write for example \"9.0\"", p.in("computeCapability"), g.ComputeCapability)
		}
		c.profile(p.in("profile"), g.Profile)
		c.model(p.in("model"), g.Model)
		if s.Capacity != nil && s.Capacity[v1alpha1.GPU].IsZero() {
			c.warnf(p, "NoEffect", "spec.gpu describes cards, but spec.capacity.gpu says that there are none")
		}
	} else if !s.Capacity[v1alpha1.GPU].IsZero() {
		c.warnf(spec.in("capacity", "gpu"), "NoEffect", "spec.capacity.gpu has cards, but spec.gpu does not say of which model; intents that name a model will not find them")
	}
	c.instant(spec.in("drain"), s.Drain)
	c.price(spec.in("price"), s.Price)
	c.location(spec.in("location"), s.Location)
	c.labels(spec.in("labels"), s.Labels)
	c.labels(spec.in("nodeSelector"), s.NodeSelector)
	if s.Class != "" && nearest.Of(s.Class, flavorClasses) != "" { // others are declared by the cluster (classRef)
		c.oneOf(spec.in("class"), s.Class, flavorClasses...)
	}
	for _, name := range sortedKeys(s.Overcommit) {
		if p, d := spec.in("overcommit", name), s.Overcommit[name]; name == "maxRisk" {
			c.ratio(p, &d)
		} else {
			c.aboveZero(p, &d, "; leave it out to sell what there is")
		}
	}
	for _, problem := range onnodes.File(s) {
		c.errorf(spec.in(problem.Path...), "BadValue", "%s", problem.Message)
	}
	c.properties(spec.in("properties"), s.Properties)
	c.factsOnly(spec, f)
}

// model warns of a model of another vendor than its name states: what is offered is sold
// as the model.
func (c *checker) model(p place, name string) {
	if why := advice.Contrary(name); why != "" {
		c.warnf(p, "UnknownModel", "%s: unknown GPU model %q: %s", p, name, why)
	}
}

// properties checks the facts of a flavor, or of all of a cluster's.
func (c *checker) properties(p place, s v1alpha1.FlavorProperties) {
	for _, problem := range properties.Of(&s) {
		p := p.in(problem.At...)
		c.errorf(p, problem.Code, "%s%s", p, problem.Text)
	}
}

// factsOnly checks a file that adds facts to what an agent reports: it offers nothing, and
// says nothing of what the agent knows.
func (c *checker) factsOnly(spec place, f *v1alpha1.Flavor) {
	if f.Spec.Capacity != nil {
		return
	}
	rest := f.Spec
	rest.Partition, rest.Properties, rest.Labels, rest.Price = nil, v1alpha1.FlavorProperties{}, nil, nil
	if !reflect.DeepEqual(rest, v1alpha1.FlavorSpec{}) {
		c.errorf(spec, "BadValue", "spec has no capacity: such a file adds partition, properties, labels and price to the flavor that the agent of %s reports as %s, and nothing else; add capacity for an offer of its own, or take the rest out", f.Metadata.Namespace, f.Metadata.Name)
	}
}

func (c *checker) price(p place, pr *v1alpha1.Price) {
	if pr == nil {
		return
	}
	c.currency(p.in("currency"), pr.Currency)
	c.unitPrices(p.in("perHour"), pr.PerHour)
	c.unitPrices(p.in("spot"), pr.Spot)
	if pr.Reserved != nil {
		c.unitPrices(p.in("reserved"), pr.Reserved.UnitPrices)
	}
	switch {
	case pr.Flat != nil && len(pr.PerHour) > 0:
		c.errorf(p.in("flat"), "BadValue", "%s: write either flat or perHour", p)
	case pr.Flat != nil:
		c.notNegative(p.in("flat"), *pr.Flat)
	}
	for i, w := range pr.Windows {
		c.window(p.in("windows", i), w.Window)
		c.unitPrices(p.in("windows", i, "perHour"), w.PerHour)
	}
}

func (c *checker) unitPrices(p place, prices v1alpha1.UnitPrices) {
	known := []string{"gpu", "cpu", "memoryGi", "storageGi"}
	for _, name := range sortedKeys(prices) {
		if !slices.Contains(known, name) && !(strings.Contains(name, "/") && qualified.MatchString(name)) {
			if near := nearest.Of(name, known); near != "" {
				c.keyf(p.in(name), "BadName", "unknown price %q (did you mean %q?)", name, near)
			} else {
				c.keyf(p.in(name), "BadName", "unknown price %q; write gpu, cpu, memoryGi, storageGi or an extended resource", name)
			}
			continue
		}
		c.notNegative(p.in(name), prices[name])
	}
}

// checkPriceTable checks a price table's file.
func checkPriceTable(c *checker, t *v1alpha1.PriceTable) {
	c.currency(at("spec", "currency"), t.Spec.Currency)
	if t.Spec.Currency == "" {
		c.errorf(at("spec", "currency"), "BadValue", "spec.currency is empty; write three capital letters, such as EUR")
	}
	type row struct {
		provider, model, profile string
		memory                   v1alpha1.Amount
	}
	seen := map[row]bool{}
	for i, r := range t.Spec.Prices {
		p := at("spec", "prices", i)
		c.label(p.in("provider"), r.Provider)
		key := row{r.Provider, strings.ToLower(r.Model), strings.ToLower(r.Profile), r.Memory.Amount}
		if seen[key] {
			c.errorf(p, "Duplicate", "%s: a price for %s %s stands above already", p, r.Provider, r.Model)
		}
		seen[key] = true
		c.profile(p.in("profile"), r.Profile)
		c.model(p.in("model"), r.Model)
		if r.Profile != "" && r.Model == "" {
			c.errorf(p.in("profile"), "BadValue", "%s goes with a model: write which cards are cut", p.in("profile"))
		}
		price := r.Price("") // the currency is the table's
		if cards := (v1alpha1.Resources{v1alpha1.GPU: v1alpha1.AmountOf(1)}); r.Model != "" && len(accelerators.Unsold(cards, price, func(string) bool { return true })) > 0 {
			c.warnf(p.in("perHour"), "NotSold", "%s names no price for gpu, so none of %s's %s are sold at it; add gpu: \"<price an hour>\" (\"0\" sells them for nothing)", p.in("perHour"), r.Provider, r.Model)
		}
		c.price(p, price)
		if len(r.Windows) > 0 && len(r.PerHour) == 0 {
			c.errorf(p.in("windows"), "BadValue", "%s: windows change the prices of perHour, and the row has none; add perHour", p)
		}
	}
}

// borrows checks what a tenant may hold above its quota: only what its quota
// bounds can be exceeded.
func (c *checker) borrows(p place, q *v1alpha1.TenantQuota) {
	bounded := map[string]bool{v1alpha1.GPU: q.GPU != nil, v1alpha1.CPU: q.CPU != nil, v1alpha1.Memory: q.Memory != nil}
	for _, name := range q.MaxBorrow.Names() {
		is, known := bounded[name]
		switch {
		case !known:
			c.keyf(p.in(name), "BadName", "%s cannot be borrowed; gpu, cpu and memory can", name)
		case !is:
			c.warnf(p.in(name), "NoEffect", "spec.quota has no %s, so there is nothing to exceed: set spec.quota.%s too, or take this out", name, name)
		}
	}
}
