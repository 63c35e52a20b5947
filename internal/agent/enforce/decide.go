package enforce

import (
	"fmt"
	"maps"
	"strings"
	"time"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Class of the slices that are answered here.
const Class = "fleetbroker"

// Reasons of the condition Resources. The first two are Liqo's own words, which
// its tools look for.
const (
	ReasonAccepted = "ResourceSliceResourcesAccepted"
	// ReasonWithdrawn is on an accepted slice whose contract ends.
	ReasonWithdrawn  = "ContractReleased"
	ReasonNoContract = "NoContract"
	ReasonTooLarge   = "LargerThanContract"
	ReasonNoCapacity = "NoCapacity"
	ReasonNoFlavor   = "FlavorNotOffered"
	ReasonCordoned   = "TenantCordoned"
	ReasonDrained    = "TenantDrained"
)

// Promise is what the ledger says about one slice.
type Promise struct {
	// Contract and the Slice that carries it; the names are equal unless the slice was claimed warm.
	Contract, Slice string
	// ConsumerID is the consumer's cluster id in Liqo, Consumer its id in the fleet.
	ConsumerID, Consumer string
	// Tenant and Intent the contract serves.
	Tenant, Intent string
	// Flavor of this cluster.
	Flavor string
	// Resources in the names that the slice carries.
	Resources v1alpha1.Resources
	// Standing is false once the contract is being released.
	Standing bool
	// Nodes on which it lies by hash, in the names that the slice carries; none where the
	// contract names none, or not by hash.
	Nodes []v1alpha1.ContractNode
	// Priority of the intent, and Start of the contract's term.
	Priority int32
	Start    v1alpha1.Time
}

// Offer is what this cluster has of a promise's flavor.
type Offer struct {
	// Known is false for a flavor that no node is offered as now.
	Known bool
	// Free is what neither the provider's pods nor other slices take, in the names that slices carry; pods and storage that are not listed are not limited.
	Free v1alpha1.Resources
	// Short says which node has not the promise's piece of it, "" where all have.
	Short string
	// Growing resources may come to be more: an autoscaler makes nodes when pods ask for them.
	Growing bool
	// NodeSelector finds the flavor's nodes, Labels describe them.
	NodeSelector, Labels map[string]string
}

// Case is one slice with all that is known about it.
type Case struct {
	Slice *authv1beta1.ResourceSlice
	// Tenant of the slice's namespace, nil when there is none.
	Tenant *authv1beta1.Tenant
	// Heard is false while no broker is heard: nothing is known of contracts.
	Heard bool
	// Fleet whose agent decides, "" where it has no id.
	Fleet string
	// Promise for the slice, nil when the ledger has none.
	Promise *Promise
	// Offer of the promise's flavor.
	Offer Offer
	// Since is when the answer now decided on was first decided on without a break; the zero time is now.
	Since time.Time
	Now   time.Time
	// Patience is how long a "no" must hold before it is said.
	Patience time.Duration
	// Confirmed means that a broker was heard after Since: what was heard before may lack a contract that was made since.
	Confirmed bool
}

// Answer is what a slice's status shall be.
type Answer struct {
	// Verdict in one word.
	Verdict Verdict
	// Resources, NodeSelector and NodeLabels of the status, with Grant and Withdraw.
	Resources                v1alpha1.Resources
	NodeSelector, NodeLabels map[string]string
	// Reason and Message of the condition, or why the answer waits.
	Reason, Message string
	// Refused means that a standing contract is not honoured, to be reported with Message.
	Refused bool
	// Again is when to look again although nothing has changed; 0 is never.
	Again time.Duration
	// Unsure means that the brokers should be asked before the next look.
	Unsure bool
}

// Verdict on a slice.
type Verdict string

// The verdicts.
const (
	// Leave the status as it is.
	Leave Verdict = "leave"
	// Grant the contract.
	Grant Verdict = "grant"
	// Withdraw what can be withdrawn without killing pods.
	Withdraw Verdict = "withdraw"
	// Deny the slice, leaving its resources as they are.
	Deny Verdict = "deny"
)

// Decide answers one slice.
func Decide(c Case) Answer {
	if !c.Heard {
		return Answer{Verdict: Leave, Message: "no daemon answers: what is granted is kept and nothing new is granted"}
	}
	if c.others() {
		return Answer{Verdict: Leave, Message: "the slice is of fleet " + FleetOf(c.Slice) + ", whose agent answers it"}
	}
	consumer := consumerOf(c.Slice)
	if c.Tenant == nil || consumer == "" || string(c.Tenant.Spec.ClusterID) != consumer {
		return Answer{Verdict: Leave, Message: "the namespace has no Tenant of the consumer that the slice names"}
	}
	switch p := c.Promise; {
	case c.Tenant.Spec.TenantCondition == authv1beta1.TenantConditionDrained:
		return c.withdraw(ReasonDrained, "the Tenant is Drained")
	case p == nil:
		return c.withdraw(ReasonNoContract, fmt.Sprintf("the ledger has no contract for slice %s of consumer %s", c.Slice.Name, consumer))
	case !p.Standing:
		return c.withdraw(ReasonWithdrawn, fmt.Sprintf("contract %s is being released", p.Contract))
	}
	return c.honour()
}

// honour answers a slice that has a standing contract.
func (c Case) honour() Answer {
	p := c.Promise
	if more := exceeds(amounts(c.Slice.Spec.Resources), p.Resources); more != "" {
		return c.no(ReasonTooLarge, fmt.Sprintf("the slice asks for %s of %s, contract %s is for %s",
			quantity(c.Slice, more), more, p.Contract, p.Resources[more].Canonical(more)), false)
	}
	has := amounts(c.Slice.Status.Resources)
	accepted := state(c.Slice) == authv1beta1.ResourceSliceConditionAccepted
	if c.Tenant.Spec.TenantCondition == authv1beta1.TenantConditionCordoned {
		if accepted {
			return Answer{Verdict: Leave, Message: "the Tenant is Cordoned: it keeps what it has"}
		}
		return Answer{Verdict: Deny, Reason: ReasonCordoned, Message: "the Tenant is Cordoned: nothing new is granted to it"}
	}
	// What is granted already is taken into account by the offer's figures.
	grows := !accepted || exceeds(p.Resources, has) != ""
	switch lack := lacking(p.Resources, c.Offer.Free); {
	case !grows:
	case !c.Offer.Known:
		return c.unable(accepted, ReasonNoFlavor, "no node is offered as flavor "+p.Flavor)
	case lack != "" && c.Offer.Growing:
		return Answer{Verdict: Leave, Reason: ReasonNoCapacity, Message: "the flavor's nodes do not exist yet"}
	case lack != "":
		return c.unable(accepted, ReasonNoCapacity, fmt.Sprintf("flavor %s has %s of %s left, contract %s is for %s: other workloads came first",
			p.Flavor, c.Offer.Free[lack].Canonical(lack), lack, p.Contract, p.Resources[lack].Canonical(lack)))
	case c.Offer.Short != "":
		return c.unable(accepted, ReasonNoCapacity, c.Offer.Short)
	}
	selector, labels := c.Offer.NodeSelector, nodeLabels(c.Fleet, p, c.Offer.Labels)
	if !c.Offer.Known { // its nodes are gone for now: what was said of them stays
		selector, labels = c.Slice.Status.NodeSelector, c.Slice.Status.NodeLabels
	}
	return Answer{
		Verdict: Grant, Resources: withZeros(p.Resources, has), NodeSelector: selector, NodeLabels: labels,
		Reason: ReasonAccepted, Message: "granted as contract " + p.Contract + " says",
	}
}

// unable answers a contract that the nodes cannot serve: it is refused. While
// nothing is granted the slice is denied; else what is granted stays, and only
// that the contract grew is refused, so that the broker moves it or waits.
func (c Case) unable(accepted bool, reason, message string) Answer {
	if !accepted {
		return c.no(reason, message, true)
	}
	if again := wait(c); again > 0 {
		return Answer{Verdict: Leave, Reason: reason, Message: message, Again: again}
	}
	return Answer{Verdict: Leave, Reason: reason, Message: message, Refused: true}
}

// withdraw answers a slice whose contract stands no longer: first zero what can
// be, then, when the consumer had the time to hear that, Denied.
func (c Case) withdraw(reason, message string) Answer {
	has := amounts(c.Slice.Status.Resources)
	rest := drained(has)
	accepted := state(c.Slice) == authv1beta1.ResourceSliceConditionAccepted
	if has.Equal(rest) && !accepted {
		return c.no(reason, message, false)
	}
	// Also of a denied slice: Liqo follows resources only while they are accepted.
	if !has.Equal(rest) || wait(c) > 0 {
		return Answer{
			Verdict: Withdraw, Resources: withZeros(rest, has),
			NodeSelector: c.Slice.Status.NodeSelector, NodeLabels: c.Slice.Status.NodeLabels,
			Reason: reason, Message: message, Again: max(wait(c), time.Millisecond),
		}
	}
	return Answer{Verdict: Deny, Reason: reason, Message: message}
}

// no denies once the cause has held long enough.
func (c Case) no(reason, message string, refused bool) Answer {
	if state(c.Slice) == authv1beta1.ResourceSliceConditionDenied {
		return Answer{Verdict: Deny, Reason: reason, Message: message, Refused: refused}
	}
	if again := wait(c); again > 0 {
		return Answer{Verdict: Leave, Reason: reason, Message: message, Again: again}
	}
	if !refused && !c.Confirmed {
		return Answer{Verdict: Leave, Reason: reason, Message: message, Again: askAgain, Unsure: true}
	}
	return Answer{Verdict: Deny, Reason: reason, Message: message, Refused: refused}
}

// askAgain is how often brokers are asked about a slice that is to be denied.
const askAgain = time.Second

// wait is how much patience is left.
func wait(c Case) time.Duration {
	if c.Since.IsZero() {
		return c.Patience
	}
	return c.Since.Add(c.Patience).Sub(c.Now)
}

// consumerOf is the consumer that a slice names, "" for none.
func consumerOf(s *authv1beta1.ResourceSlice) string {
	if s.Spec.ConsumerClusterID == nil {
		return ""
	}
	return string(*s.Spec.ConsumerClusterID)
}

// state is the status of the condition Resources, "" when there is none.
func state(s *authv1beta1.ResourceSlice) authv1beta1.ResourceSliceConditionStatus {
	for _, c := range s.Status.Conditions {
		if c.Type == authv1beta1.ResourceSliceConditionTypeResources {
			return c.Status
		}
	}
	return ""
}

// exceeds is the first resource, by name, of which want has more than have; a
// resource that have does not list at all counts as none of it.
func exceeds(want, have v1alpha1.Resources) string {
	for _, name := range want.Names() {
		if have[name].Less(want[name]) {
			return name
		}
	}
	return ""
}

// lacking is the first resource, by name, of which free has less than want.
// Pods and storage that are not listed are not limited.
func lacking(want, free v1alpha1.Resources) string {
	for _, name := range want.Names() {
		have, listed := free[name]
		if !listed && (name == v1alpha1.Pods || name == v1alpha1.EphemeralStorage) {
			continue
		}
		if have.Less(want[name]) {
			return name
		}
	}
	return ""
}

// drained is a grant without what can be taken away from running pods: CPU and
// memory must stay above zero, or the Node would become NotReady.
func drained(r v1alpha1.Resources) v1alpha1.Resources {
	out := maps.Clone(r)
	for name := range out {
		switch {
		case name == v1alpha1.Pods, strings.Contains(name, "/"):
			out[name] = v1alpha1.Amount{}
		}
	}
	return out
}

// withZeros names what is granted no more as zero: Liqo keeps a resource that is
// merely no longer mentioned.
func withZeros(r, before v1alpha1.Resources) v1alpha1.Resources {
	out := maps.Clone(r)
	for name := range before {
		if _, named := out[name]; !named {
			out[name] = v1alpha1.Amount{}
		}
	}
	return out
}
