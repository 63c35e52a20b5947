package match

import (
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
	// fails reports whether an offer fails it.
	fails func(m *Matcher, w *Request, o *inventory.Offer) bool
	// key writes all of the intent, and of the facts, that fails looks at.
	key func(m *Matcher, b *keyBuffer, s *v1alpha1.IntentSpec)
}

// requirements are asked in this order. One that is added here is asked, told
// apart in keys, counted and explained.
var requirements = [...]requirement{
	{ReqLabels, (*Matcher).lacksLabels, func(_ *Matcher, b *keyBuffer, s *v1alpha1.IntentSpec) {
		b.int(int64(len(s.Placement.Labels)))
		for _, k := range slices.Sorted(maps.Keys(s.Placement.Labels)) {
			b.text(k, s.Placement.Labels[k])
		}
	}},
	{ReqSpread, (*Matcher).hasNoDomain, func(_ *Matcher, b *keyBuffer, s *v1alpha1.IntentSpec) {
		b.int(int64(len(s.Placement.Spread)))
		for _, by := range s.Placement.Spread {
			b.text(by.By)
			b.int(int64(by.MaxSkew), int64(by.MinDomains))
		}
	}},
	{ReqLatency, (*Matcher).isFar, func(_ *Matcher, b *keyBuffer, s *v1alpha1.IntentSpec) {
		b.int(int64(s.Placement.MaxLatency.Duration))
	}},
	{ReqAvailability, (*Matcher).isUnreliable, func(_ *Matcher, b *keyBuffer, s *v1alpha1.IntentSpec) {
		b.int(flag(s.SLA != nil))
		if s.SLA != nil {
			b.decimal(s.SLA.Availability)
		}
	}},
	{ReqEnforcement, (*Matcher).enforcesLess, func(_ *Matcher, b *keyBuffer, s *v1alpha1.IntentSpec) {
		b.text(string(s.Enforcement))
	}},
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

func (m *Matcher) lacksLabels(w *Request, o *inventory.Offer) bool {
	for k, v := range w.Intent.Spec.Placement.Labels {
		if !Labelled(o, k, v) {
			return true
		}
	}
	return false
}

func (m *Matcher) hasNoDomain(w *Request, o *inventory.Offer) bool {
	return slices.ContainsFunc(w.Intent.Spec.Placement.Spread, func(s v1alpha1.Spread) bool { return Domain(o, s.By) == "" })
}

func (m *Matcher) isFar(w *Request, o *inventory.Offer) bool {
	most := w.Intent.Spec.Placement.MaxLatency.Duration
	if most <= 0 {
		return false
	}
	ms, known := m.Latency(w.Consumer, o)
	return !known || ms > most.Milliseconds()
}

func (m *Matcher) isUnreliable(w *Request, o *inventory.Offer) bool {
	return !availability(w.Intent.Spec.SLA, o)
}

// enforcesLess: only an agent with the slice class of our own enforces anything;
// how Liqo does there is known once it has made a Quota.
func (m *Matcher) enforcesLess(w *Request, o *inventory.Offer) bool {
	e := w.Intent.Spec.Enforcement
	if e != v1alpha1.EnforceHard && e != v1alpha1.EnforceSoft {
		return false
	}
	level := v1alpha1.Enforcement(o.Flavor.Spec.Labels[v1alpha1.LabelEnforcement])
	return o.Flavor.Spec.Class != ClassEnforced || level == v1alpha1.EnforceNone || level == v1alpha1.EnforceSoft && e == v1alpha1.EnforceHard
}
