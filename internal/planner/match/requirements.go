package match

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/keys"
)

// Requirements an offer can fail: facts, which are checked first, then capacity, then
// money. Within these an offer is counted under the first that fails by the code, not by
// this list. They are in `rejected`, so they are part of what scripts rely on.
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
	ReqAccelerators       = "placement.allowAccelerators" // it has accelerators, and none are asked for
	ReqCarbon             = "placement.maxCarbon"         // its electricity emits more, or nobody knows
	ReqReliability        = "placement.minReliability"    // its reliability is less, or unknown
	ReqAvailability       = "sla.availability"            // the flavor's reliability is less, or unknown
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
	ReqWithin   = "placement.within"
	ReqTogether = "placement.together"
	ReqApart    = "placement.apart"
	// ReqBooked: others have booked it before the contract would end.
	ReqBooked = "booked"
	// Rules on what may be booked ahead.
	ReqBookedCards = "bookings.cards"    // it sells shares of cards (by rules before 22)
	ReqBookedParts = "bookings.parts"    // it sells shares of cards, and more than one unit is asked for
	ReqBookedShare = "bookings.maxShare" // too much of it is booked then
	ReqBookedMany  = "bookings.starts"   // its bookings begin at too many instants

	ReqCapacity = "capacity." // + gpu, cpu, memory, pods, ephemeral-storage or the extended resource

	// ReqCard: enough units are free and no card has so many: a share lies on one.
	ReqCard = ReqCapacity + "card"
	// ReqNode: enough is free in total, and no node has what a pod asks for.
	ReqNode = ReqCapacity + "node"

	ReqPrice           = "price"         // unpriced, or in a currency without a rate
	ReqPriceOf         = "price."        // + the accelerator that it names no price for
	ReqTransfer        = "data.transfer" // no price is known for moving the intent's data there, and it has a budget
	ReqPurchase        = "purchase"      // sold in none of the acceptable price classes
	ReqMaxHourly       = "budget.maxHourly"
	ReqMaxHourlySpot   = "budget.maxHourlySpot"
	ReqMaxHourlyPerGPU = "budget.maxHourlyPerGPU"
	ReqMaxTotal        = "budget.maxTotal"
)

// Requirements are all of them, in the order above, by which reports list them; one that ends with a dot goes on with the
// name of a resource.
func Requirements() []string {
	return []string{
		ReqSelf, ReqRole, ReqSilent, ReqLost, ReqWithdrawn, ReqCordon,
		ReqDrain, ReqFlavorType, ReqTenantProviders, ReqPlacementProviders, ReqGPU, ReqGPUVendor,
		ReqGPUModel, ReqGPUMemory, ReqGPUTier, ReqGPUArchitecture, ReqGPUInterconnect, ReqGPUCapability,
		ReqGPUProfile, ReqGPUSharing, ReqResource, ReqRegions, ReqZones, ReqArchitectures,
		ReqLabels, ReqLatency, ReqEnforcement, ReqAccelerators, ReqCarbon, ReqReliability,
		ReqAvailability, ReqWhere, ReqPolicy, ReqPartition, ReqDenied, ReqRefuses,
		ReqRemoteNamespace, ReqSecret, ReqSpread, ReqWithin, ReqTogether, ReqApart, ReqBooked, ReqBookedCards, ReqBookedParts, ReqBookedShare, ReqBookedMany, ReqCapacity, ReqCard, ReqNode,
		ReqPrice, ReqPriceOf, ReqTransfer, ReqPurchase, ReqMaxHourly, ReqMaxHourlySpot,
		ReqMaxHourlyPerGPU, ReqMaxTotal,
	}
}

// requirement is what an intent may ask of an offer by itself, whatever the size,
// the price and where other replicas are. All that is to be known of it is here.
type requirement struct {
	name string
	// words are what is wrong with an offer that fails it, the verb first and in the
	// singular: "lacks a label of placement.labels".
	words string
	// later: an offer may come to meet it without any change of a file.
	later bool
	// asked reports whether an intent asks for it: of one that does not, nothing else
	// of it is asked but key.
	asked func(in *model.Intent) bool
	// fails reports whether an offer fails it, and why shows with values how it does.
	fails func(m *Matcher, w *Request, o *inventory.Offer) bool
	why   func(m *Matcher, w *Request, o *inventory.Offer) string
	// key writes all of the intent that asked and fails look at.
	key func(b *keys.Buffer, in *model.Intent)
	// readsUse: fails looks at what of an offer is used or held.
	readsUse bool
	// due is the next instant at which fails may answer otherwise because time has
	// passed, zero for never again. It is nil where time does not matter.
	due func(m *Matcher, in *model.Intent) v1alpha1.Time
}

// requirements are asked in this order.
var requirements = []requirement{
	{
		name: ReqLabels, words: "lacks a label of placement.labels",
		asked: func(in *model.Intent) bool { return len(in.Spec.Placement.Labels) > 0 },
		fails: lacksLabel, why: lackedLabel, key: keyLabels,
	},
	{
		// An offer outside of all domains fails it; the rule itself is asked of each
		// replica, and met as others come and go.
		name: ReqSpread, words: "would break placement.spread", later: true,
		asked: func(in *model.Intent) bool { return len(in.Spec.Placement.Spread) > 0 },
		fails: lacksDomain, why: lackedDomain, key: keySpread,
	},
	{
		// Likewise one outside of all that replicas could share; which of them it is
		// is asked of each replica.
		name: ReqWithin, words: "would break placement.within", later: true,
		asked: func(in *model.Intent) bool { return mustShare(in.Spec.Placement.Within) },
		fails: sharesNone, why: sharedNone, key: keyWithin,
	},
	{
		name: ReqLatency, words: "is farther away than placement.maxLatency",
		asked: func(in *model.Intent) bool { return in.Spec.Placement.MaxLatency.Duration > 0 },
		fails: isFar, why: howFar, key: keyLatency,
	},
	{
		name: ReqCarbon, words: "has electricity of more carbon than placement.maxCarbon, or of an unknown intensity",
		asked: func(in *model.Intent) bool { return in.Spec.Placement.MaxCarbon != nil },
		fails: isDirty, why: howDirty, key: keyCarbon,
	},
	{
		name: ReqReliability, words: "is less reliable than placement.minReliability, or of unknown reliability",
		asked: func(in *model.Intent) bool { return in.Spec.Placement.MinReliability != nil },
		fails: failsReliability, why: whyReliability, key: keyReliability,
	},
	{
		name: ReqAvailability, words: "promises less than sla.availability",
		asked: func(in *model.Intent) bool { return in.Spec.SLA != nil && in.Spec.SLA.Availability != nil },
		fails: isUnreliable, why: howUnreliable, key: keyAvailability,
	},
	{
		name: ReqEnforcement, words: "enforces less than enforcement asks for",
		asked: func(in *model.Intent) bool {
			return in.Spec.Enforcement == v1alpha1.EnforceHard || in.Spec.Enforcement == v1alpha1.EnforceSoft
		},
		fails: enforcesLess, why: whatEnforced, key: keyEnforcement,
	},
	{
		name: ReqWhere, words: "does not meet placement.where", readsUse: true,
		asked: func(in *model.Intent) bool { return in.Where != nil },
		fails: notWhere, why: whereText, key: keyWhere, // what the condition reads of the intent is in conditions (key.go)
	},
}

// asks notes which requirements an intent asks for.
func (w *Request) asks(in *model.Intent) {
	w.readsUse = len(w.Policies) > 0
	for i := range requirements {
		if r := &requirements[i]; r.asked(in) {
			w.own = append(w.own, r)
			w.readsUse = w.readsUse || r.readsUse
		}
	}
}

// situation is the first of the requirements that an offer fails, "" for none.
func (m *Matcher) situation(w *Request, o *inventory.Offer) string {
	for _, r := range w.own {
		if r.fails(m, w, o) {
			return r.name
		}
	}
	return ""
}

// Why shows with values how an offer fails one of the requirements, "" where it does
// not or the name is of no such requirement.
func (m *Matcher) Why(w *Request, o *inventory.Offer, name string) string {
	for _, r := range w.own {
		if r.name == name && r.fails(m, w, o) {
			return r.why(m, w, o)
		}
	}
	return ""
}

// Due is the next instant at which offers may meet, or fail, what an intent asks only
// because time has passed; zero for never.
func (m *Matcher) Due(in *model.Intent) v1alpha1.Time {
	var next v1alpha1.Time
	for i := range requirements {
		if r := &requirements[i]; r.due != nil && r.asked(in) {
			if at := r.due(m, in); !at.IsZero() && (next.IsZero() || at.Before(next.Time)) {
				next = at
			}
		}
	}
	return next
}

// keyRequirements writes what distinguishes intents by their requirements: of what
// depends on time also until when the answer holds.
func (m *Matcher) keyRequirements(b *keys.Buffer, in *model.Intent) {
	for i := range requirements {
		r := &requirements[i]
		if r.key(b, in); r.due != nil && r.asked(in) {
			b.Int(r.due(m, in).Unix())
		}
	}
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
	return "it lacks " + MissingLabel(w, o)
}

// MissingLabel is the first label of placement.labels that an offer lacks, as
// key=value; "" for none.
func MissingLabel(w *Request, o *inventory.Offer) string {
	labels := w.Intent.Spec.Placement.Labels
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		if !Labelled(o, k, labels[k]) {
			return k + "=" + labels[k]
		}
	}
	return ""
}

func keyLabels(b *keys.Buffer, in *model.Intent) {
	labels := in.Spec.Placement.Labels
	b.Int(int64(len(labels)))
	if len(labels) > 0 {
		for _, k := range slices.Sorted(maps.Keys(labels)) {
			b.Text(k, labels[k])
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
		if sp := &w.Intent.Spec.Placement.Spread[i]; Domain(o, sp.By, sp.Label) == "" {
			return KindOf(sp.By, sp.Label)
		}
	}
	return ""
}

func keySpread(b *keys.Buffer, in *model.Intent) {
	b.Int(int64(len(in.Spec.Placement.Spread)))
	for _, by := range in.Spec.Placement.Spread {
		b.Text(by.By, by.Label)
		b.Int(int64(by.MaxSkew), int64(by.MinDomains))
	}
}

// mustShare reports whether a rule leaves offers out that are in no domain.
func mustShare(w *v1alpha1.Within) bool {
	return w != nil && w.Policy != v1alpha1.WithinPreferred && w.Policy != v1alpha1.WithinNone
}

func sharesNone(_ *Matcher, w *Request, o *inventory.Offer) bool {
	in := w.Intent.Spec.Placement.Within
	return len(Domains(o, in.By, in.Label)) == 0
}

func sharedNone(_ *Matcher, w *Request, _ *inventory.Offer) string {
	return "it has no " + KindOf(w.Intent.Spec.Placement.Within.By, w.Intent.Spec.Placement.Within.Label)
}

func keyWithin(b *keys.Buffer, in *model.Intent) {
	w := in.Spec.Placement.Within
	b.Int(keys.Flag(w != nil))
	if w != nil {
		b.Text(w.By, w.Label, string(w.Policy))
	}
}

// KindOf is a kind of domain for people: zone, or the label with its key.
func KindOf(by, label string) string {
	if by == "label" {
		return "label " + label
	}
	return by
}

func isFar(m *Matcher, w *Request, o *inventory.Offer) bool {
	ms, known := m.Latency(w.Consumer, o)
	return !known || ms > w.Intent.Spec.Placement.MaxLatency.Milliseconds()
}

func howFar(m *Matcher, w *Request, o *inventory.Offer) string {
	ms, known := m.Latency(w.Consumer, o)
	if !known {
		return "its latency is unknown"
	}
	return fmt.Sprintf("%dms > %s", ms, w.Intent.Spec.Placement.MaxLatency)
}

func keyLatency(b *keys.Buffer, in *model.Intent) {
	b.Int(int64(in.Spec.Placement.MaxLatency.Duration))
}

// isUnreliable: an offer that does not state its reliability promises none.
func isUnreliable(_ *Matcher, w *Request, o *inventory.Offer) bool {
	have := o.Flavor.Spec.Properties.Reliability
	return have == nil || have.MulInt(100).Cmp(*w.Intent.Spec.SLA.Availability) < 0
}

func howUnreliable(_ *Matcher, w *Request, o *inventory.Offer) string {
	have := o.Flavor.Spec.Properties.Reliability
	if have == nil {
		return "its reliability is unknown"
	}
	return have.MulInt(100).String() + "% < " + w.Intent.Spec.SLA.Availability.String() + "%"
}

func keyAvailability(b *keys.Buffer, in *model.Intent) {
	b.Int(keys.Flag(in.Spec.SLA != nil))
	if in.Spec.SLA != nil {
		b.Decimal(in.Spec.SLA.Availability)
	}
}

// isDirty: an offer that does not state its carbon intensity may have any.
func isDirty(_ *Matcher, w *Request, o *inventory.Offer) bool {
	have := o.Flavor.Spec.Properties.Carbon
	return have == nil || *have > *w.Intent.Spec.Placement.MaxCarbon
}

func howDirty(_ *Matcher, w *Request, o *inventory.Offer) string {
	have := o.Flavor.Spec.Properties.Carbon
	if have == nil {
		return "its carbon intensity is unknown"
	}
	return fmt.Sprintf("%d gCO2e/kWh > %d", *have, *w.Intent.Spec.Placement.MaxCarbon)
}

func keyCarbon(b *keys.Buffer, in *model.Intent) {
	most := in.Spec.Placement.MaxCarbon
	b.Int(keys.Flag(most != nil))
	if most != nil {
		b.Int(*most)
	}
}

func failsReliability(_ *Matcher, w *Request, o *inventory.Offer) bool {
	have := o.Flavor.Spec.Properties.Reliability
	return have == nil || have.Cmp(*w.Intent.Spec.Placement.MinReliability) < 0
}

func whyReliability(_ *Matcher, w *Request, o *inventory.Offer) string {
	have := o.Flavor.Spec.Properties.Reliability
	if have == nil {
		return "its reliability is unknown"
	}
	return have.String() + " < " + w.Intent.Spec.Placement.MinReliability.String()
}

func keyReliability(b *keys.Buffer, in *model.Intent) { b.Decimal(in.Spec.Placement.MinReliability) }

// enforcesLess: only where contracts are granted exactly is anything enforced. How Liqo
// does there shows once it has made a Quota, unless somebody states it: until then
// nothing holds Hard.
func enforcesLess(m *Matcher, w *Request, o *inventory.Offer) bool {
	level, want := v1alpha1.Enforcement(Enforced(o)), w.Intent.Spec.Enforcement
	switch {
	case !grantedExactly(o):
		return true
	case level == "" && (want != v1alpha1.EnforceHard || !m.facts.Asked):
		return false
	}
	return level.Below(want)
}

// grantedExactly reports whether slices of an offer are granted as contracts state.
func grantedExactly(o *inventory.Offer) bool {
	return o.Cluster.GrantedByAgent(o.Flavor.Spec.Class)
}

func whatEnforced(_ *Matcher, _ *Request, o *inventory.Offer) string {
	level := Enforced(o)
	switch {
	case !grantedExactly(o):
		return "its agent enforces nothing"
	case level == "":
		return "how Liqo enforces limits there is not known yet"
	}
	return "Liqo's limits enforcement there is " + level
}

// Enforced is the level at which Liqo enforces limits where an offer's slices are granted
// as contracts state, "" where they are not or nobody reports it.
func Enforced(o *inventory.Offer) string {
	if !grantedExactly(o) {
		return ""
	}
	return v1alpha1.EnforcementOf(o.Flavor, o.Cluster)
}

func keyEnforcement(b *keys.Buffer, in *model.Intent) {
	b.Text(string(in.Spec.Enforcement))
}

// notWhere: a condition that has no answer for an offer fails it.
func notWhere(m *Matcher, w *Request, o *inventory.Offer) bool {
	return !meets(m, w, w.Where, answersOf(m, w, len(w.Policies)), o)
}

// whereText is why an offer does not meet placement.where: that the answer is
// no, or that there is none, because it looks for something the flavor does not have.
func whereText(_ *Matcher, w *Request, o *inventory.Offer) string {
	_, err := w.Where.Eval(w.Intent, o.Resolved(), o.Cluster)
	if err == nil {
		return "it is not true of this flavor"
	}
	if inner := errors.Unwrap(err); inner != nil {
		err = inner
	}
	return "it has no answer for this flavor: " + err.Error()
}

func keyWhere(b *keys.Buffer, in *model.Intent) { b.Text(in.Spec.Placement.Where) }
