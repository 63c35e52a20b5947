package match

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
)

// Requirements an offer can fail, in the order in which they are checked:
// facts, then capacity, then money. They are in `rejected`, so they are part
// of what scripts rely on.
const (
	ReqSelf      = "self"            // the provider is the consumer itself
	ReqRole      = "role"            // the cluster is unknown or no provider
	ReqSilent    = "provider.silent" // no recent report from its agent
	ReqLost      = "provider.lost"   // … past its grace
	ReqWithdrawn = "withdrawn"       // no longer offered
	ReqCordon    = "cordon"          // sells nothing new
	ReqDrain     = "drain"           // being emptied

	ReqFlavorType         = "flavorType"
	ReqTenantProviders    = "tenant.providers"
	ReqPlacementProviders = "placement.providers"
	ReqGPU                = "gpu" // the flavor has none
	ReqGPUVendor          = "gpu.vendor"
	ReqGPUModel           = "gpu.model"
	ReqGPUMemory          = "gpu.memory"
	ReqGPUTier            = "gpu.tier"
	ReqGPUArchitecture    = "gpu.architecture"
	ReqGPUInterconnect    = "gpu.interconnect"
	ReqGPUCapability      = "gpu.computeCapability"
	ReqGPUProfile         = "gpu.profile"
	ReqGPUSharing         = "gpu.sharing"
	ReqResource           = "resource." // + the extended resource that is not offered
	ReqRegions            = "placement.regions"
	ReqZones              = "placement.zones"
	ReqArchitectures      = "placement.architectures"
	ReqLabels             = "placement.labels"
	ReqLatency            = "placement.maxLatency"
	ReqEnforcement        = "enforcement"
	ReqAvailability       = "sla.availability" // the flavor's reliability is less, or unknown
	ReqWhere              = "placement.where"
	ReqPolicy             = "policy." // + the policy's name
	ReqPartition          = "partition"

	ReqDenied  = "denied"  // denied this intent a slice not long ago
	ReqRefuses = "refuses" // of a provider that is kept out of the market, because it denied what it advertised
	// What an intent names at a provider: a namespace that another mapping has
	// there, a Secret that its tenant's file does not declare.
	ReqRemoteNamespace = "offload.remoteNamespace"
	ReqSecret          = "virtualNode.kubeconfigSecretRef"
	// Rules on where replicas and intents are to each other, asked after
	// capacity and the intent's money.
	ReqSpread   = "placement.spread"
	ReqTogether = "placement.together"
	ReqApart    = "placement.apart"

	ReqCapacity = "capacity." // + gpu, cpu, memory, pods, ephemeral-storage or the extended resource

	// ReqCard: enough units are free and no card has so many: a share lies on one.
	ReqCard = ReqCapacity + "card"

	ReqPrice           = "price"         // unpriced, or in a currency without a rate
	ReqTransfer        = "data.transfer" // no price is known for moving the intent's data there, and it has a budget
	ReqPurchase        = "purchase"      // sold in none of the acceptable price classes
	ReqMaxHourly       = "budget.maxHourly"
	ReqMaxHourlySpot   = "budget.maxHourlySpot"
	ReqMaxHourlyPerGPU = "budget.maxHourlyPerGPU"
	ReqMaxTotal        = "budget.maxTotal"
)

// Tier ranks requirements for people: 0 for those that only a change of a file
// can meet, 1 for those that time may.
func Tier(req string) int {
	switch req {
	case ReqSilent, ReqLost, ReqWithdrawn, ReqCordon, ReqDrain, ReqDenied, ReqRefuses, ReqSpread, ReqTogether, ReqApart:
		return 1
	}
	if strings.HasPrefix(req, ReqCapacity) {
		return 1
	}
	return 0
}

// requirement is what an intent may ask of an offer by itself, whatever the size,
// the price and where other replicas are.
type requirement struct {
	name string
	// fails reports whether an offer fails it, and why says in numbers how it does.
	fails func(m *Matcher, w *Request, o *inventory.Offer) bool
	why   func(m *Matcher, w *Request, o *inventory.Offer) string
	// key writes all of the intent, and of the facts, that fails looks at.
	key func(m *Matcher, b *keyBuffer, s *v1alpha1.IntentSpec)
}

// requirements are asked in this order. One that is added here is asked, explained,
// counted, and told apart in keys.
var requirements = [...]requirement{
	{ReqLabels, lacksLabel, lackedLabel, keyLabels},
	{ReqSpread, lacksDomain, lackedDomain, keySpread},
	{ReqLatency, isFar, howFar, keyLatency},
	{ReqAvailability, isUnreliable, howUnreliable, keyAvailability},
	{ReqEnforcement, enforcesLess, whatEnforced, keyEnforcement},
}

// situation is the first of the requirements that an offer fails, "" for none.
func (m *Matcher) situation(w *Request, o *inventory.Offer) string {
	for i := range requirements {
		if requirements[i].fails(m, w, o) {
			return requirements[i].name
		}
	}
	return ""
}

// Why says how an offer fails one of the requirements, "" where it does not or the
// name is of no such requirement.
func (m *Matcher) Why(w *Request, o *inventory.Offer, name string) string {
	for i := range requirements {
		if r := &requirements[i]; r.name == name && r.fails(m, w, o) {
			return r.why(m, w, o)
		}
	}
	return ""
}

func lacksLabel(_ *Matcher, w *Request, o *inventory.Offer) bool {
	for k, v := range w.Intent.Spec.Placement.Labels {
		if !Labelled(o, k, v) {
			return true
		}
	}
	return false
}

func lackedLabel(_ *Matcher, w *Request, o *inventory.Offer) string {
	labels := w.Intent.Spec.Placement.Labels
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		if !Labelled(o, k, labels[k]) {
			return "it lacks " + k + "=" + labels[k]
		}
	}
	return ""
}

func keyLabels(_ *Matcher, b *keyBuffer, s *v1alpha1.IntentSpec) {
	labels := s.Placement.Labels
	b.int(int64(len(labels)))
	if len(labels) > 0 {
		for _, k := range slices.Sorted(maps.Keys(labels)) {
			b.text(k, labels[k])
		}
	}
}

func lacksDomain(_ *Matcher, w *Request, o *inventory.Offer) bool { return missingDomain(w, o) != "" }

func lackedDomain(_ *Matcher, w *Request, o *inventory.Offer) string {
	return "it has no " + missingDomain(w, o)
}

// missingDomain is a key of placement.spread for which an offer has no domain, "" for
// none.
func missingDomain(w *Request, o *inventory.Offer) string {
	for i := range w.Intent.Spec.Placement.Spread {
		if by := w.Intent.Spec.Placement.Spread[i].By; Domain(o, by) == "" {
			return by
		}
	}
	return ""
}

func keySpread(_ *Matcher, b *keyBuffer, s *v1alpha1.IntentSpec) {
	b.int(int64(len(s.Placement.Spread)))
	for _, by := range s.Placement.Spread {
		b.text(by.By)
		b.int(int64(by.MaxSkew), int64(by.MinDomains))
	}
}

func isFar(m *Matcher, w *Request, o *inventory.Offer) bool {
	most := w.Intent.Spec.Placement.MaxLatency.Duration
	if most <= 0 {
		return false
	}
	ms, known := m.Latency(w.Consumer, o)
	return !known || ms > most.Milliseconds()
}

func howFar(m *Matcher, w *Request, o *inventory.Offer) string {
	ms, known := m.Latency(w.Consumer, o)
	if !known {
		return "its latency is unknown"
	}
	return fmt.Sprintf("%dms > %s", ms, w.Intent.Spec.Placement.MaxLatency)
}

func keyLatency(_ *Matcher, b *keyBuffer, s *v1alpha1.IntentSpec) {
	b.int(int64(s.Placement.MaxLatency.Duration))
}

func isUnreliable(_ *Matcher, w *Request, o *inventory.Offer) bool {
	return !availability(w.Intent.Spec.SLA, o)
}

func howUnreliable(_ *Matcher, w *Request, o *inventory.Offer) string {
	have := o.Flavor.Spec.Properties.Reliability
	if have == nil {
		return "its reliability is unknown"
	}
	return have.MulInt(100).String() + "% < " + w.Intent.Spec.SLA.Availability.String() + "%"
}

func keyAvailability(_ *Matcher, b *keyBuffer, s *v1alpha1.IntentSpec) {
	b.int(flag(s.SLA != nil))
	if s.SLA != nil {
		b.decimal(s.SLA.Availability)
	}
}

// enforcesLess: only an agent with the slice class of our own enforces anything;
// how Liqo does there is known once it has made a Quota.
func enforcesLess(_ *Matcher, w *Request, o *inventory.Offer) bool {
	e := w.Intent.Spec.Enforcement
	if e != v1alpha1.EnforceHard && e != v1alpha1.EnforceSoft {
		return false
	}
	level := v1alpha1.Enforcement(o.Flavor.Spec.Labels[v1alpha1.LabelEnforcement])
	return o.Flavor.Spec.Class != ClassEnforced || level == v1alpha1.EnforceNone || level == v1alpha1.EnforceSoft && e == v1alpha1.EnforceHard
}

func whatEnforced(_ *Matcher, _ *Request, o *inventory.Offer) string {
	level := Enforced(o)
	if level == "" {
		return "its agent enforces nothing"
	}
	return "Liqo's limits enforcement there is " + level
}

// Enforced is the level at which Liqo enforces limits where an offer's agent grants
// slices, "" where it does not or does not report.
func Enforced(o *inventory.Offer) string {
	if o.Flavor.Spec.Class != ClassEnforced {
		return ""
	}
	return o.Flavor.Spec.Labels[v1alpha1.LabelEnforcement]
}

func keyEnforcement(_ *Matcher, b *keyBuffer, s *v1alpha1.IntentSpec) {
	b.text(string(s.Enforcement))
}
