package fleet

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/fleetbroker/fleetbroker/internal/api/gpuforms"
	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/nearest"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/zones"
	"github.com/fleetbroker/fleetbroker/internal/fleet/advice"
	"github.com/fleetbroker/fleetbroker/internal/fleet/ahead"
	"github.com/fleetbroker/fleetbroker/internal/fleet/alternatives"
	"github.com/fleetbroker/fleetbroker/internal/fleet/domains"
	"github.com/fleetbroker/fleetbroker/internal/fleet/labels"
	"github.com/fleetbroker/fleetbroker/internal/fleet/pods"
)

// checkIntent checks what can be checked of an intent without the rest of the
// fleet, and compiles its expression.
func checkIntent(c *checker, in *v1alpha1.ResourceIntent) model.Predicate {
	s, spec := &in.Spec, at("spec")
	c.oneOf(spec.in("flavorType"), s.FlavorType, "K8Slice", "VM", "Service", "Sensor")
	c.oneOf(spec.in("objective"), string(s.Objective), "balanced", "cost", "performance", "latency", "energy")
	c.oneOf(spec.in("enforcement"), string(s.Enforcement), "None", "Soft", "Hard")
	c.oneOf(spec.in("stage"), string(s.Stage), "find", "reserve", "peer")
	c.oneOf(spec.in("queue", "policy"), s.Queue.Policy, "wait", "fail")
	for i, p := range s.Purchase {
		c.oneOf(spec.in("purchase", i), string(p), "on-demand", "spot", "reserved")
	}
	c.within(spec.in("priority"), int64(s.Priority), 0, 1000)
	if from, ok := in.Metadata.Annotations[v1alpha1.AnnotationRenamedFrom]; ok {
		p := at("metadata", "annotations", v1alpha1.AnnotationRenamedFrom)
		c.label(p, from)
		if from == in.Metadata.Name {
			c.errorf(p, "BadName", "the intent is still called %s; name what it was called before", from)
		}
	}
	c.replicas(s)
	if !c.lists(spec, s) {
		return nil
	}
	c.request(spec.in("resources"), s.Resources)
	c.bytes(spec.in("perPod"), s.PerPod.All())
	for i, alt := range s.Alternatives {
		c.request(spec.in("alternatives", i), alt)
	}
	for _, r := range alternatives.Repeated(s) {
		p := spec.in("alternatives", r.At)
		c.warnf(p, "NoEffect", "%s asks for what %s asks for, so that nothing else is tried; write what may differ, or take it out", p, r.Of)
	}
	c.weights(spec.in("weights"), s.Weights)
	c.intentBudget(spec.in("budget"), s.Budget)
	c.schedule(spec.in("schedule"), &s.Schedule)
	c.domains(spec, pods.Of(s, ahead.Of(s)))
	c.small(spec, s)
	c.offload(spec.in("offload", "namespaces"), s.Offload)
	c.virtualNode(spec.in("virtualNode"), s.VirtualNode)
	c.shares(spec, s)
	return c.placement(spec.in("placement"), &s.Placement)
}

// lists bounds what multiplies the work of a plan and of delivery: each replica
// may try each alternative, each of them every rule, and each contract is
// rendered into every namespace. It says whether the rest may be looked at.
func (c *checker) lists(p place, s *v1alpha1.IntentSpec) bool {
	type list struct {
		at      place
		n, most int
	}
	selectors := 0
	pl := p.in("placement")
	all := []list{
		{p.in("alternatives"), len(s.Alternatives), v1alpha1.MaxAlternatives}, {p.in("schedule", "windows"), len(s.Schedule.Windows), v1alpha1.MaxWindows},
		{pl.in("spread"), len(s.Placement.Spread), v1alpha1.MaxSpread}, {pl.in("together"), len(s.Placement.Together), v1alpha1.MaxNames},
		{pl.in("apart"), len(s.Placement.Apart), v1alpha1.MaxNames}, {p.in("purchase"), len(s.Purchase), v1alpha1.MaxPurchase},
		{pl.in("regions"), len(s.Placement.Regions), v1alpha1.MaxNames}, {pl.in("zones"), len(s.Placement.Zones), v1alpha1.MaxNames},
		{pl.in("architectures"), len(s.Placement.Architectures), v1alpha1.MaxNames}, {pl.in("labels"), len(s.Placement.Labels), v1alpha1.MaxLabels},
		{pl.in("providers", "allow"), len(s.Placement.Providers.Allow), v1alpha1.MaxNames}, {pl.in("providers", "deny"), len(s.Placement.Providers.Deny), v1alpha1.MaxNames},
	}
	request := func(p place, r v1alpha1.ResourceRequest, pod place, perPod *v1alpha1.PodRequest) {
		all = append(all, list{p, len(r.Named), v1alpha1.MaxResources}, list{pod, len(perPod.All()), v1alpha1.MaxResources})
		if r.GPU != nil {
			all = append(all, list{p.in("gpu", "models"), len(r.GPU.Models), v1alpha1.MaxModels})
		}
	}
	request(p.in("resources"), s.Resources, p.in("perPod"), s.PerPod)
	for i, alt := range s.Alternatives {
		request(p.in("alternatives", i), alt, p.in("alternatives", i, "perPod"), alt.PerPod)
	}
	if s.Offload != nil {
		all = append(all, list{p.in("offload", "namespaces"), len(s.Offload.Namespaces), v1alpha1.MaxOffload})
		for i, n := range s.Offload.Namespaces {
			selectors += labels.Bytes(n.PodSelector)
			for _, l := range labels.Lengths(n.PodSelector) {
				all = append(all, list{p.in("offload", "namespaces", i, "podSelector").in(l.At...), l.N, l.Most})
			}
		}
	}
	if v := s.VirtualNode; v != nil {
		all = append(all, list{p.in("virtualNode", "taints"), len(v.Taints), v1alpha1.MaxTaints}, list{p.in("virtualNode", "labels"), len(v.Labels), v1alpha1.MaxLabels})
		for i, share := range v.Shares {
			all = append(all, list{p.in("virtualNode", "shares", i), len(share), v1alpha1.MaxResources})
		}
	}
	within := selectors <= labels.MostBytes
	if !within {
		c.errorf(p.in("offload", "namespaces"), "LimitExceeded", "%s: the selectors have %d bytes together, and at most %d are read: select by fewer labels", p.in("offload", "namespaces"), selectors, labels.MostBytes)
	}
	for _, l := range all {
		if l.n > l.most {
			within = false
			c.errorf(l.at, "LimitExceeded", "%s: %d entries, and at most %d are read: leave out those that matter least", l.at, l.n, l.most)
		}
	}
	return within
}

func (c *checker) replicas(s *v1alpha1.IntentSpec) {
	p := at("spec", "replicas")
	r := s.Replicas
	switch {
	case r.Range && (r.Min < 0 || r.Max < 1 || r.Max < r.Min):
		c.errorf(p, "BadValue", "spec.replicas: {min: %d, max: %d} is not a range of at least one replica", r.Min, r.Max)
	case !r.Range && r.Min < 0:
		c.errorf(p, "BadValue", "spec.replicas: %d is negative; write 1 or more", r.Min)
	case r == v1alpha1.Replicas{} && c.doc != nil && c.doc.Text("spec", "replicas") == "0":
		c.errorf(p, "BadValue", "spec.replicas: 0 asks for nothing; write suspend: true to release what the intent holds")
	}
	most := int64(max(r.Max, 1))
	c.within(at("spec", "minReplicas"), int64(s.MinReplicas), 0, most)
	if s.MinReplicas > 0 && int64(s.MinReplicas) < most && (s.Gang == nil || *s.Gang) {
		c.warnf(at("spec", "minReplicas"), "NoEffect", "spec.minReplicas has no effect while gang is true; write gang: false")
	}
}

func (c *checker) request(p place, r v1alpha1.ResourceRequest) {
	c.resourceNames(p, r.Named)
	c.bytes(p, r.Named)
	c.bytes(p.in("perPod"), r.PerPod.All())
	for _, name := range []string{v1alpha1.CPU, v1alpha1.Memory, v1alpha1.Pods} {
		if amount, ok := r.Named[name]; ok && amount.IsZero() {
			c.nothing(p.in(name), "leave it out for the fleet's default")
		}
	}
	g := r.GPU
	if g == nil {
		return
	}
	p = p.in("gpu")
	if g.Count < 0 {
		c.errorf(p.in("count"), "BadValue", "%s: %d is negative; write 1 or more", p.in("count"), g.Count)
	}
	if g.Share != nil {
		if g.Count > 0 {
			c.errorf(p.in("share"), "BadValue", "%s: write either count or share", p)
		}
		if g.Share.Sign() <= 0 || g.Share.Cmp(v1alpha1.DecimalFromInt(1)) > 0 {
			c.errorf(p.in("share"), "BadValue", "%s: %s is not more than 0 and at most 1", p.in("share"), g.Share)
		}
	}
	c.oneOf(p.in("sharing"), g.Sharing, "mig", "time-slicing", "mps")
	if g.ComputeCapability != "" && !advice.IsCapability(g.ComputeCapability) {
		c.errorf(p.in("computeCapability"), "BadValue", "%s: %q is not a version; write for example \"8.0\"", p.in("computeCapability"), g.ComputeCapability)
	}
	c.profile(p.in("profile"), g.Profile)
	for i, m := range g.Models {
		at := p.in("models", i)
		if strings.TrimSpace(m) == "" {
			c.errorf(at, "BadValue", "%s is empty; leave models out for any", at)
		}
		if c.doc != nil && c.doc.Text(at...) == "" { // the short form
			at = p
		}
		if why := advice.Contrary(m); why != "" {
			c.errorf(at, "BadValue", "%s: unknown GPU model %q: %s", at, m, why)
		}
	}
	if why := advice.NoneOf(g.Vendor, g.Models); why != "" {
		at := p.in("vendor")
		if c.doc != nil && c.doc.Text(at...) == "" {
			at = p
		}
		c.errorf(at, "BadValue", "%s: %s", at, why)
	}
}

// sizes refuses unknown resources, and memory without a unit.
func (c *checker) sizes(p place, r v1alpha1.Resources) {
	c.resourceNames(p, r)
	c.bytes(p, r)
}

// bytes refuses memory and storage without a unit; the daemon writes bytes.
func (c *checker) bytes(p place, r v1alpha1.Resources) {
	if IsGenerated(c.file) {
		return
	}
	for _, name := range r.Names() {
		c.amount(p.in(name), name, r[name])
	}
}

func (c *checker) amount(p place, name string, a v1alpha1.Amount) {
	if c.doc == nil || !advice.InBytes(name) { // finding the text takes as long as the map that it is in
		return
	}
	if why := advice.Memory(name, a, c.doc.Text(p...)); why != "" {
		c.errorf(p, "NoUnit", "%s: %s", p, why)
	}
}

// nothing refuses 0 of what no Node does without: such contracts cost and hold
// nothing, so that no quota or budget bounds how many there are.
func (c *checker) nothing(p place, otherwise string) {
	c.errorf(p, "BadValue", "%s is 0, and a Node without it runs nothing: write what is needed at least, or %s", p, otherwise)
}

func (c *checker) profile(p place, value string) {
	if value != "" && !gpuforms.IsProfile(strings.ToLower(value)) {
		c.errorf(p, "BadValue", "%s: %q is not a MIG profile; write for example 1g.10gb", p, value)
	}
}

// unlisted: resources that a capacity without them does not limit.
func unlisted(name string) bool { return name == v1alpha1.Pods || name == v1alpha1.EphemeralStorage }

// resourceNames: the known ones, or extended resources with their domain.
func (c *checker) resourceNames(p place, r v1alpha1.Resources) {
	known := []string{v1alpha1.CPU, v1alpha1.Memory, v1alpha1.Pods, v1alpha1.EphemeralStorage, v1alpha1.GPU}
	for _, name := range r.Names() {
		switch {
		case name == v1alpha1.CPU || name == v1alpha1.Memory || name == v1alpha1.Pods || name == v1alpha1.EphemeralStorage || name == v1alpha1.GPU:
		case strings.HasPrefix(name, "hugepages-"):
		case strings.Contains(name, "/") && qualified.MatchString(name):
		case strings.Trim(name, "\u00a0") != name:
			c.keyf(p.in(name), "BadName", "unknown resource %q: a no-break space (U+00A0) is next to %s, as web pages have it; write a plain space", name, strings.Trim(name, "\u00a0"))
		default:
			if near := cmp.Or(advice.Resource(name), nearest.Of(name, known)); near != "" {
				c.keyf(p.in(name), "BadName", "unknown resource %q (did you mean %q?)", name, near)
				continue
			}
			c.keyf(p.in(name), "BadName", "unknown resource %q; an extended resource has a domain, such as rdma/hca", name)
		}
	}
}

func (c *checker) weights(p place, w *v1alpha1.Weights) {
	if w == nil {
		return
	}
	sum := 0.0
	for name, v := range map[string]float64{"resources": w.Resources, "cost": w.Cost, "latency": w.Latency, "reliability": w.Reliability, "performance": w.Performance, "energy": w.Energy} {
		if sum += v; v < 0 || v > 1 {
			c.errorf(p.in(name), "BadValue", "%s: %v is not between 0 and 1", p.in(name), v)
		}
	}
	if sum == 0 {
		c.errorf(p, "BadValue", "%s are all 0; leave them out for the fleet's", p)
	}
}

func (c *checker) intentBudget(p place, b *v1alpha1.IntentBudget) {
	if b == nil {
		return
	}
	c.positive(p.in("maxHourly"), b.MaxHourly)
	c.positive(p.in("maxHourlySpot"), b.MaxHourlySpot)
	c.positive(p.in("maxHourlyPerGPU"), b.MaxHourlyPerGPU)
	c.positive(p.in("maxTotal"), b.MaxTotal)
	c.currency(p.in("currency"), b.Currency)
}

func (c *checker) schedule(p place, s *v1alpha1.Schedule) {
	if s.Duration.Duration == 0 && c.doc != nil && c.doc.Text(p.in("duration")...) != "" {
		c.errorf(p.in("duration"), "BadValue", "%s: %q must be greater than zero; leave it out for an open end", p.in("duration"), c.doc.Text(p.in("duration")...))
	}
	c.instant(p.in("notBefore"), s.NotBefore)
	c.instant(p.in("deadline"), s.Deadline)
	if !s.Deadline.IsZero() && !s.NotBefore.IsZero() {
		room := s.Deadline.Sub(s.NotBefore.Time)
		switch {
		case room <= 0:
			c.errorf(p.in("deadline"), "BadValue", "%s is not after notBefore", p.in("deadline"))
		case s.Duration.Duration > room:
			c.errorf(p.in("duration"), "BadValue", "%s: %s does not fit between notBefore and deadline (%s)", p.in("duration"), s.Duration, v1alpha1.Duration{Duration: room})
		}
	}
	for i, w := range s.Windows {
		c.window(p.in("windows", i), w)
	}
}

// instant refuses times that can only be a mistake: a clock that was not set, or
// another program's word for "none".
func (c *checker) instant(p place, t v1alpha1.Time) {
	if !t.IsZero() && (t.Year() < 2000 || t.Year() > 2199) {
		c.errorf(p, "BadValue", "%s: %s is not between the years 2000 and 2199; leave it out for none", p, t.Format(time.RFC3339))
	}
}

var (
	clockForm = regexp.MustCompile(`^([01]\d|2[0-3]):[0-5]\d$`)
	weekdays  = []string{"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"}
)

func (c *checker) window(p place, w v1alpha1.Window) {
	seen := map[string]bool{}
	for i, d := range w.Days {
		c.oneOf(p.in("days", i), d, weekdays...)
		if seen[d] {
			c.warnf(p.in("days", i), "NoEffect", "%s: %s is named twice", p.in("days"), d)
		}
		seen[d] = true
	}
	if !clockForm.MatchString(w.From) {
		c.errorf(p.in("from"), "BadValue", "%s: %q is not a time of day; write for example \"20:00\"", p.in("from"), w.From)
	}
	if w.To != "24:00" && !clockForm.MatchString(w.To) {
		c.errorf(p.in("to"), "BadValue", "%s: %q is not a time of day; write for example \"06:00\" or \"24:00\"", p.in("to"), w.To)
	}
	if w.From != "" && w.From == w.To {
		c.warnf(p.in("to"), "NoEffect", "%s: from and to are the same, so that it is open for 24 hours from %s on; write \"00:00\" to \"24:00\" for whole days", p, w.From)
	}
	c.timezone(p.in("timezone"), w.Timezone)
}

func (c *checker) timezone(p place, name string) {
	if name == "" {
		return
	}
	if _, err := zones.Load(name); err != nil {
		c.errorf(p, "BadValue", "%s: %q is not a timezone; write an IANA name such as Europe/Rome", p, name)
	}
}

// small are the parts of an intent that need a line or two each.
func (c *checker) small(p place, s *v1alpha1.IntentSpec) {
	if sp := s.Split; sp != nil {
		c.within(p.in("split", "maxParts"), int64(sp.MaxParts), 1, 100)
		c.within(p.in("split", "minGPU"), int64(sp.MinGPU), 0, noMost)
	}
	if u := s.Update; u != nil {
		most, steps := u.Steps()
		c.within(p.in("update", "maxUnavailable"), int64(most), 0, noMost)
		switch {
		case u.MaxUnavailable == nil && u.MoveAfter.Duration == 0:
			c.errorf(p.in("update"), "BadValue", "spec.update is empty; write maxUnavailable: <replicas without capacity during a change>, or moveAfter: <how long a lost replica of a gang waits>")
		case u.MoveAfter.Duration > 0 && (s.Gang != nil && !*s.Gang || s.Split != nil && (s.Placement.Within == nil || s.Placement.Within.Policy != "" && s.Placement.Within.Policy != v1alpha1.WithinRequired)):
			c.warnf(p.in("update", "moveAfter"), "NoEffect", "spec.update.moveAfter has no effect with gang: false, or with a split without placement.within: {policy: Required}: replicas that are lost are placed one by one")
		}
		if steps && most == 0 && s.Split != nil {
			c.warnf(p.in("update", "maxUnavailable"), "NoEffect", "spec.update.maxUnavailable: 0 does not hold for a replica put together from parts (spec.split): its old parts go as the new ones are placed, one replica after the other")
		}
	}
	if d := s.Data; d != nil {
		if d.Region == "" || len(d.Region) > 253 { // it stands in each contract
			c.errorf(p.in("data", "region"), "BadValue", "spec.data.region is empty or longer than 253 bytes; name the region where the data lies")
		}
		c.within(p.in("data", "sizeGi"), d.SizeGi, 0, noMost)
		c.within(p.in("data", "egressGiPerHour"), d.EgressGiPerHour, 0, noMost)
	}
	if s.SLA != nil && s.SLA.Availability != nil {
		if a := s.SLA.Availability; a.Sign() <= 0 || a.Cmp(v1alpha1.DecimalFromInt(100)) > 0 {
			c.errorf(p.in("sla", "availability"), "BadValue", "spec.sla.availability: %s is not a percentage", a)
		} else if a.Cmp(v1alpha1.DecimalFromInt(1)) <= 0 {
			c.warnf(p.in("sla", "availability"), "Unlikely", "spec.sla.availability: %s is a percentage; write 99.9 for three nines", a)
		}
	}
}

func (c *checker) placement(p place, pl *v1alpha1.Placement) model.Predicate {
	if pl.MaxCarbon != nil {
		c.within(p.in("maxCarbon"), *pl.MaxCarbon, 0, noMost)
	}
	c.ratio(p.in("minReliability"), pl.MinReliability)
	c.domains(p, domains.Of(pl, c.doc != nil && c.doc.Text("spec", "placement", "spread", "by") != "")) // one entry instead of a list
	for _, at := range domains.NoSkew(pl, c.doc, p) {
		c.warnf(at, "NoEffect", "%s: 0 counts as 1, the least there is; write 1, or leave it out", place(at))
	}
	for i, name := range pl.Together {
		if slices.Contains(pl.Apart, name) {
			c.errorf(p.in("together", i), "BadValue", "%s: %s is named in placement.apart too; take it out of one of the two", p.in("together", i), name)
		}
	}
	for i, name := range pl.Architectures {
		if known := advice.Architecture(name); known != "" {
			c.warnf(p.in("architectures", i), "UnknownArchitecture", "%s: unknown architecture %q; Kubernetes calls it %s", p.in("architectures", i), name, known)
		}
	}
	for i, name := range pl.Providers.Allow {
		if slices.Contains(pl.Providers.Deny, name) {
			c.warnf(p.in("providers", "allow", i), "NoEffect", "%s is allowed and denied; deny wins", name)
		}
	}
	if strings.TrimSpace(pl.Where) == "" {
		return nil
	}
	return c.expression(p.in("where"), pl.Where, false)
}

// domains reports what is wrong with domains below a place.
func (c *checker) domains(p place, list []domains.Problem) {
	for _, x := range list {
		c.errorf(p.in(x.At...), "BadValue", "%s%s", p.in(x.At...), x.Text)
	}
}

func (c *checker) offload(p place, o *v1alpha1.Offload) {
	if o == nil {
		return
	}
	seen := map[string]bool{}
	for i, n := range o.Namespaces {
		p := p.in(i)
		c.label(p.in("name"), n.Name)
		if seen[n.Name] {
			c.errorf(p.in("name"), "Duplicate", "namespace %s is listed twice", n.Name)
		}
		seen[n.Name] = true
		c.oneOf(p.in("podOffloadingStrategy"), n.PodOffloadingStrategy, "Local", "Remote", "LocalAndRemote")
		c.oneOf(p.in("namespaceMappingStrategy"), n.NamespaceMappingStrategy, "DefaultName", "EnforceSameName", "SelectedName")
		switch {
		case n.RemoteNamespaceName == "" && n.NamespaceMappingStrategy == "SelectedName":
			c.errorf(p, "BadValue", "%s is missing: SelectedName needs it", p.in("remoteNamespaceName"))
		case n.RemoteNamespaceName != "" && n.NamespaceMappingStrategy != "SelectedName":
			c.errorf(p.in("remoteNamespaceName"), "BadValue", "%s goes with namespaceMappingStrategy: SelectedName only", p.in("remoteNamespaceName"))
		case n.RemoteNamespaceName != "":
			c.label(p.in("remoteNamespaceName"), n.RemoteNamespaceName)
		}
		if n.PodSelector != nil {
			c.labels(p.in("podSelector", "matchLabels"), n.PodSelector.MatchLabels)
			c.domains(p.in("podSelector"), labels.Expressions(n.PodSelector))
		}
	}
}

// labels checks Kubernetes labels.
func (c *checker) labels(p place, m map[string]string) {
	for _, k := range sortedKeys(m) {
		if why := labels.BadKey(k); why != "" {
			c.keyf(p.in(k), "BadName", "%s: %q is not a label key: %s", p, k, why)
		}
		if v := m[k]; !labels.Value(v) {
			c.errorf(p.in(k), "BadValue", "%s: %q is not a label value", p.in(k), v)
		}
	}
}

func (c *checker) virtualNode(p place, v *v1alpha1.VirtualNodeSpec) {
	if v == nil {
		return
	}
	c.labels(p.in("labels"), v.Labels)
	for _, k := range sortedKeys(v.Labels) {
		switch {
		case labels.Ours(k):
			c.keyf(p.in("labels", k), "BadName", "%s: labels of fleetbroker.io and liqo.io are not yours to set", p.in("labels", k))
		case labels.System(k):
			c.keyf(p.in("labels", k), "BadName", "%s: labels of Kubernetes and of card vendors say what a node is; write a label of your own domain, or one without a domain", p.in("labels", k))
		}
	}
	for i, t := range v.Taints {
		p := p.in("taints", i)
		c.oneOf(p.in("effect"), t.Effect, "NoSchedule", "PreferNoSchedule", "NoExecute")
		if t.Key == "" || t.Effect == "" {
			c.errorf(p, "BadValue", "%s: a taint has a key and an effect", p)
		}
		if why := labels.BadKey(t.Key); t.Key != "" && why != "" {
			c.errorf(p.in("key"), "BadName", "%s: %q is not the key of a taint: %s", p.in("key"), t.Key, why)
		}
		if !labels.Value(t.Value) {
			c.errorf(p.in("value"), "BadValue", "%s: %q is not the value of a taint: at most 63 letters, digits, '-', '_' and '.'", p.in("value"), t.Value)
		}
		if labels.Ours(t.Key) || labels.System(t.Key) {
			c.errorf(p.in("key"), "BadName", "%s: taints of fleetbroker.io, liqo.io and Kubernetes are not yours to set", p.in("key"))
		}
	}
	if why := validation.IsDNS1123Subdomain(v.RuntimeClassName); v.RuntimeClassName != "" && why != nil {
		c.errorf(p.in("runtimeClassName"), "BadName", "%s: %.100q is not the name of a RuntimeClass: %s", p.in("runtimeClassName"), v.RuntimeClassName, why[0])
	}
	if v.KubeconfigSecretRef != nil {
		c.ownSecret(p.in("kubeconfigSecretRef"), *v.KubeconfigSecretRef)
	}
}

func (c *checker) secret(p place, r v1alpha1.SecretKeyRef) {
	if !regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`).MatchString(r.Name) {
		c.errorf(p.in("name"), "BadName", "%s: %q is not the name of a Secret", p.in("name"), r.Name)
	}
}

// money says where an amount is negative.
func (c *checker) notNegative(p place, d v1alpha1.Decimal) {
	if d.Sign() < 0 {
		c.errorf(p, "BadValue", "%s: %s is negative; write 0 or more", p, fmt.Sprint(d))
	}
}
