package v1alpha1

// ResourceIntent is what a team asks for: so much capacity, under these wishes
// and this budget, for so long.
type ResourceIntent struct {
	TypeMeta `json:",inline"`
	// Metadata names the intent; its namespace is the tenant.
	Metadata Metadata `json:"metadata"`
	// Spec is the request.
	Spec IntentSpec `json:"spec"`
}

// IntentSpec is the request of a ResourceIntent.
type IntentSpec struct {
	// Consumer is the cluster in which the capacity shall appear; default: the tenant's first.
	Consumer string `json:"consumer,omitempty"`
	// FlavorType is K8Slice (default), VM, Service or Sensor. Of the last three nothing is delivered: their contracts stay Reserved, and the provider does the rest.
	FlavorType string `json:"flavorType,omitempty"`
	// Replicas is how many equal slices are wanted (default 1), or {min, max} to follow demand.
	Replicas Replicas `json:"replicas,omitzero"`
	// MinReplicas says, with gang false, how many replicas are enough; default all. Where fewer find a place none is placed; what falls below by loss is kept.
	MinReplicas int32 `json:"minReplicas,omitempty"`
	// Gang places all replicas or none (default true).
	Gang *bool `json:"gang,omitempty"`
	// Resources of each replica; every quantity is a minimum.
	Resources ResourceRequest `json:"resources"`
	// PerPod is what the biggest pod of a replica asks for, such as {gpu: 1, cpu: 8}: it must fit on one node, and resources must be a whole multiple of its GPUs. Without it a replica whose GPUs fit a node of the flavor is one pod, and a bigger one is whole nodes of it.
	PerPod *PodRequest `json:"perPod,omitempty"`
	// Alternatives are tried in order when Resources cannot be had; an alternative's gpu replaces the whole gpu, and its perPod the whole perPod.
	Alternatives []ResourceRequest `json:"alternatives,omitempty"`
	// Placement says where the capacity may come from.
	Placement Placement `json:"placement,omitzero"`
	// Data is where the workload's data lies; moving it is part of the price.
	Data *DataLocation `json:"data,omitempty"`
	// Split allows one replica to be put together from several flavors; absent means never.
	Split *Split `json:"split,omitempty"`
	// Budget bounds what the whole intent may cost.
	Budget *IntentBudget `json:"budget,omitempty"`
	// Purchase lists acceptable price classes: on-demand (default), spot, reserved. One may be written without brackets.
	Purchase PriceClasses `json:"purchase,omitempty"`
	// Schedule is when and how long.
	Schedule Schedule `json:"schedule,omitzero"`
	// Priority from 0 to 1000, capped by the tenant; higher is served first.
	Priority int32 `json:"priority,omitempty"`
	// Preemption says whom this intent may displace and whether it may be displaced.
	Preemption *Preemption `json:"preemption,omitempty"`
	// Objective is balanced (default), cost, performance, latency or energy. Cost leaves a place to others where they need it more (Fleet.spec.scarcity). The last three weigh their own term with 0.7 and a low cost with 0.3 (performance: a low cost of the work done).
	Objective Objective `json:"objective,omitempty"`
	// Weights replace the objective by explicit weights.
	Weights *Weights `json:"weights,omitempty"`
	// Queue says what happens when nothing fits now.
	Queue Queue `json:"queue,omitzero"`
	// Update bounds the disruption of a change of this intent.
	Update *Update `json:"update,omitempty"`
	// Offload lists the namespaces that may use the capacity.
	Offload *Offload `json:"offload,omitempty"`
	// VirtualNode shapes the node that the capacity becomes.
	VirtualNode *VirtualNodeSpec `json:"virtualNode,omitempty"`
	// Enforcement is the least that the provider must enforce: None, Soft or Hard. Hard takes offers alone whose level is known to be Hard. A contract whose provider's level falls below becomes Degraded.
	Enforcement Enforcement `json:"enforcement,omitempty"`
	// SLA is what the intent expects once placed; a breach is notified and recorded.
	SLA *SLA `json:"sla,omitempty"`
	// Stage is how far to go: find (plan only), reserve (contract without manifests), peer (all, the default).
	Stage Stage `json:"stage,omitempty"`
	// Suspend releases what the intent holds and places nothing.
	Suspend bool `json:"suspend,omitempty"`
}

// DataLocation is where an intent's data lies.
type DataLocation struct {
	// Region of the data. Moving it to the region of a flavor costs what Fleet.transfer says, for each replica; within a region nothing.
	Region string `json:"region"`
	// SizeGi is moved once, in GiB; its cost is divided by the hours of the term, by 730 (a month) when that is open-ended.
	SizeGi int64 `json:"sizeGi,omitempty"`
	// EgressGiPerHour flows from there all the time, in GiB per hour.
	EgressGiPerHour int64 `json:"egressGiPerHour,omitempty"`
}

// Split allows one replica to come from several flavors.
type Split struct {
	// MaxParts is how many flavors at most. The fewest that suffice are taken, and none when one flavor holds the replica whole. Each part takes its share of all resources by its GPUs (its cores, where the replica has no GPUs), rounded up, and has a contract and a slice of its own; all are placed or none.
	MaxParts int32 `json:"maxParts"`
	// MinGPU is the least number of GPUs a part has; default 1.
	MinGPU int32 `json:"minGPU,omitempty"`
}

// IntentBudget bounds an intent's cost. Every limit is for the whole intent,
// all replicas together.
type IntentBudget struct {
	// MaxHourly is the most per hour.
	MaxHourly *Decimal `json:"maxHourly,omitempty"`
	// MaxHourlySpot is the most per hour at spot price; default MaxHourly.
	MaxHourlySpot *Decimal `json:"maxHourlySpot,omitempty"`
	// MaxHourlyPerGPU is the most per hour and GPU.
	MaxHourlyPerGPU *Decimal `json:"maxHourlyPerGPU,omitempty"`
	// MaxTotal is the most over the whole life of the intent.
	MaxTotal *Decimal `json:"maxTotal,omitempty"`
	// Currency of the limits; default the fleet's.
	Currency string `json:"currency,omitempty"`
}

// PriceClass is the kind of price a capacity is sold at.
type PriceClass string

// The price classes.
const (
	OnDemand PriceClass = "on-demand"
	Spot     PriceClass = "spot"
	Reserved PriceClass = "reserved"
)

// Schedule is when capacity is wanted and for how long.
type Schedule struct {
	// Duration is wall-clock time from the reservation, such as 72h, 3d or 1w; none is open-ended. A longer one extends the same contract.
	Duration Duration `json:"duration,omitzero"`
	// NotBefore is the earliest start; with book it is the start.
	NotBefore Time `json:"notBefore,omitzero"`
	// Deadline is the latest end; a term that no longer fits is refused.
	Deadline Time `json:"deadline,omitzero"`
	// Windows in which the capacity is wanted; at a window's end contracts are released.
	Windows []Window `json:"windows,omitempty"`
	// Book ahead: capacity is promised from notBefore for duration (both are required), at the price of the day of booking. Not with windows, replicas of min and max, split, together, apart, or spot capacity, and of cards that are shared no more than one unit for each replica (instances of MIG are booked in any number); the tenant needs quota.book.
	Book bool `json:"book,omitempty"`
}

// Preemption is an intent's side of being displaced.
type Preemption struct {
	// Preempts is never (default) or lower: contracts of strictly lower priority may be ended for this intent when nothing else fits.
	Preempts string `json:"preempts,omitempty"`
	// Preemptible says whether this intent may be displaced (default true).
	Preemptible *bool `json:"preemptible,omitempty"`
	// Grace is how long a contract of this intent keeps its capacity after notice that it has to give way (to a higher priority, to the owner of borrowed quota, or because its provider takes spot capacity back); none: it is drained at once. It bounds every release of the intent's contracts too: so long after it began, pods that a PodDisruptionBudget still keeps are deleted; without it budgets are respected for as long as it takes.
	Grace Duration `json:"grace,omitzero"`
	// Yields is never (default) or booked: this intent may also be given capacity that is booked from a later instant on; its contract carries that instant as its end from the first day, and the intent is placed again elsewhere then.
	Yields string `json:"yields,omitempty"`
}

// Objective is what a good placement is.
type Objective string

// The objectives.
const (
	Balanced    Objective = "balanced"
	Cost        Objective = "cost"
	Performance Objective = "performance"
	Latency     Objective = "latency"
	Energy      Objective = "energy"
)

// Weights of the terms of a score. Each is a ratio from 0 to 1; they are
// normalised to a sum of 1.
type Weights struct {
	// Resources weighs how little of what is scarce is stranded.
	Resources float64 `json:"resources,omitempty"`
	// Cost weighs a low price.
	Cost float64 `json:"cost,omitempty"`
	// Latency weighs closeness to the consumer.
	Latency float64 `json:"latency,omitempty"`
	// Reliability weighs the flavor's reliability.
	Reliability float64 `json:"reliability,omitempty"`
	// Performance weighs the speed of the cards.
	Performance float64 `json:"performance,omitempty"`
	// Energy weighs low emission: power drawn by carbon intensity.
	Energy float64 `json:"energy,omitempty"`
}

// Queue says what happens to an intent that fits nowhere now.
type Queue struct {
	// Policy is wait (default) or fail.
	Policy string `json:"policy,omitempty"`
	// Timeout ends the waiting; none waits for ever.
	Timeout Duration `json:"timeout,omitzero"`
}

// Update bounds disruption when a change, or a loss, needs new contracts.
type Update struct {
	// MaxUnavailable is how many replicas may be without capacity while a change is rolled out. Absent next to moveAfter: all replicas change at once.
	MaxUnavailable *int32 `json:"maxUnavailable,omitempty"`
	// MoveAfter is how long a lost replica waits for room in the domain that a gang must share (placement.within) before the whole gang moves to another one (default: Fleet.defaults.moveAfter, and never without it).
	MoveAfter Duration `json:"moveAfter,omitzero"`
}

// Steps is how many replicas may be without capacity while a change is rolled out step by
// step; ok is false where all change at once.
func (u *Update) Steps() (maxUnavailable int32, ok bool) {
	switch {
	case u == nil || u.MaxUnavailable == nil && u.MoveAfter.Duration > 0:
		return 0, false
	case u.MaxUnavailable == nil:
		return 0, true
	}
	return *u.MaxUnavailable, true
}

// Offload lists namespaces of the consumer that may use the capacity.
type Offload struct {
	// Namespaces to offload.
	Namespaces []OffloadNamespace `json:"namespaces"`
}

// OffloadNamespace is one namespace of the consumer cluster.
type OffloadNamespace struct {
	// Name of the namespace; the tenant must be entitled to it.
	Name string `json:"name"`
	// Create makes the namespace when it does not exist. It is never deleted.
	Create bool `json:"create,omitempty"`
	// PodOffloadingStrategy is Local, Remote or LocalAndRemote (default).
	PodOffloadingStrategy string `json:"podOffloadingStrategy,omitempty"`
	// NamespaceMappingStrategy is DefaultName (default), EnforceSameName or SelectedName.
	NamespaceMappingStrategy string `json:"namespaceMappingStrategy,omitempty"`
	// RemoteNamespaceName goes with SelectedName.
	RemoteNamespaceName string `json:"remoteNamespaceName,omitempty"`
	// PodSelector limits which pods may use the capacity; empty means all.
	PodSelector *LabelSelector `json:"podSelector,omitempty"`
	// Quota makes a ResourceQuota equal to what is contracted for the namespace.
	Quota bool `json:"quota,omitempty"`
}

// LabelSelector selects pods by label.
type LabelSelector struct {
	// MatchLabels must all be on the pod.
	MatchLabels map[string]string `json:"matchLabels,omitempty"`
	// MatchExpressions must all hold for the pod's labels.
	MatchExpressions []LabelExpression `json:"matchExpressions,omitempty"`
}

// LabelExpression is a condition on one label of a pod.
type LabelExpression struct {
	// Key of the label.
	Key string `json:"key"`
	// Operator is In, NotIn, Exists or DoesNotExist. NotIn holds for a pod without the label too.
	Operator string `json:"operator"`
	// Values of which the label has one (In) or none (NotIn).
	Values []string `json:"values,omitempty"`
}

// VirtualNodeSpec shapes the node that the capacity becomes.
type VirtualNodeSpec struct {
	// Labels to put on the node.
	Labels map[string]string `json:"labels,omitempty"`
	// Taints to put on the node, beside the intent's own.
	Taints []Taint `json:"taints,omitempty"`
	// RuntimeClassName is set on offloaded pods.
	RuntimeClassName string `json:"runtimeClassName,omitempty"`
	// KubeconfigSecretRef makes the virtual node from an existing kubeconfig Secret of Liqo's tenant namespace, under the key kubeconfig, instead of the slice's own. The slice is made nevertheless: it holds the capacity.
	KubeconfigSecretRef *SecretKeyRef `json:"kubeconfigSecretRef,omitempty"`
	// Shares make several virtual nodes of one slice, one each. All name the same resources; what none names is divided evenly. Their sum must fit into a replica; split has no effect beside them.
	Shares []Resources `json:"shares,omitempty"`
}

// Taint of a node.
type Taint struct {
	// Key of the taint.
	Key string `json:"key"`
	// Value of the taint.
	Value string `json:"value,omitempty"`
	// Effect is NoSchedule, PreferNoSchedule or NoExecute.
	Effect string `json:"effect"`
}

// Enforcement is how a provider holds consumers to their slices.
type Enforcement string

// Enforcement levels, in rising order.
const (
	EnforceNone Enforcement = "None"
	EnforceSoft Enforcement = "Soft"
	EnforceHard Enforcement = "Hard"
)

// rank orders levels; one that is not known is the lowest.
func (e Enforcement) rank() int {
	switch e {
	case EnforceNone:
		return 1
	case EnforceSoft:
		return 2
	case EnforceHard:
		return 3
	}
	return 0
}

// Below reports whether a level is less than another. One that is not known is below
// all.
func (e Enforcement) Below(other Enforcement) bool { return e.rank() < other.rank() }

// SLA is what an intent expects of its contracts.
type SLA struct {
	// Availability as a percentage of the time, such as "99.5": flavors whose properties.reliability is less, or unknown, are not taken.
	Availability *Decimal `json:"availability,omitempty"`
	// MaxTimeToActive from reservation to usable. A contract that takes longer is replaced by one elsewhere and ends as Failed, with the reason SLABroken; where nothing else fits it is kept.
	MaxTimeToActive Duration `json:"maxTimeToActive,omitzero"`
}

// Stage is how far an intent goes (FLUIDOS's three phases).
type Stage string

// The stages.
const (
	StageFind    Stage = "find"
	StageReserve Stage = "reserve"
	StagePeer    Stage = "peer"
)

// Placement says where capacity may come from.
type Placement struct {
	// Providers to use or to avoid, by cluster id.
	Providers ClusterLists `json:"providers,omitzero"`
	// Regions that are acceptable; empty means all.
	Regions []string `json:"regions,omitempty"`
	// Zones that are acceptable; empty means all.
	Zones []string `json:"zones,omitempty"`
	// Architectures that are acceptable, such as amd64; empty means all.
	Architectures []string `json:"architectures,omitempty"`
	// MaxLatency from the consumer; an unknown latency fails it.
	MaxLatency Duration `json:"maxLatency,omitzero"`
	// MaxCarbon is the highest carbon intensity of the electricity in gCO2e per kWh; an unknown one fails it.
	MaxCarbon *int64 `json:"maxCarbon,omitempty"`
	// MinReliability is the lowest reliability as a ratio, such as "0.99"; an unknown one fails it.
	MinReliability *Decimal `json:"minReliability,omitempty"`
	// Labels that must all be on the flavor or its cluster.
	Labels map[string]string `json:"labels,omitempty"`
	// AllowAccelerators lets an intent that asks for no accelerators be placed on offers that have some, where no other fits. Without it such offers are left to those who ask for them.
	AllowAccelerators bool `json:"allowAccelerators,omitempty"`
	// Where is a CEL expression over intent, flavor and cluster that must be true. One evaluation may cost 2000 of CEL's units in the worst case; validation says what it costs when that is more.
	Where string `json:"where,omitempty"`
	// Within keeps all replicas in one domain. Default: Required by provider where gang: true is written and there is neither spread nor split; Preferred by provider where gang is only the default, or there is a split; none with gang: false, or with a spread by provider, zone, region or network. Fleet.defaults.within changes that. What stands is kept: it holds for what is placed, enlarged or moved.
	Within *Within `json:"within,omitempty"`
	// Spread spreads replicas over providers, regions, zones, networks or values of a label. An offer that does not say its region or zone cannot be used. Contracts that stand are not moved when the market changes; new replicas and those that go respect it.
	Spread SpreadList `json:"spread,omitempty"`
	// Together names intents of the tenant whose provider must be the same. It holds for both: whoever is placed second follows. Those that wait at once are placed as one, on a provider with room for all; where there is none, those that name none of the others are placed alone and the others wait. All of them leave a lost or drained provider as one, and move with a gang that update.moveAfter moves, or with one all of whose spot capacity is taken back: where no provider holds all, those that name that one end with it; else no contract that exists moves for another's sake.
	Together []string `json:"together,omitempty"`
	// Apart names intents of the tenant whose provider must be another. It holds for both, and as long as the other's contracts hold capacity, draining ones included.
	Apart []string `json:"apart,omitempty"`
}

// Within is the domain that all replicas of an intent share: those that come later
// join those that are there, and a replica that is lost is replaced there or waits. All
// move together when their domain is lost or drained. Intents that are together share
// the domain.
type Within struct {
	// By is provider, region, zone, network (location.network: clusters of one value reach each other at training speed) or label. Required unless policy is None. An offer that states no such domain cannot be used under Required.
	By string `json:"by,omitempty"`
	// Label is the key of the label, with by: label, such as topology.kubernetes.io/rack. A flavor's own label goes before those of its nodes, where these differ, and these before its cluster's; a value of a flavor or node is one of its provider's alone, one of a Cluster file is the same for all.
	Label string `json:"label,omitempty"`
	// Policy is Required (default): in one domain, or it waits; Preferred: in one domain if one has room for all, else anywhere; None: anywhere.
	Policy WithinPolicy `json:"policy,omitempty"`
}

// WithinPolicy is how strictly replicas share a domain.
type WithinPolicy string

// The policies.
const (
	WithinRequired  WithinPolicy = "Required"
	WithinPreferred WithinPolicy = "Preferred"
	WithinNone      WithinPolicy = "None"
)

// Domains are what replicas can be spread over or kept within, in the order of Width.
var Domains = []string{"provider", "zone", "region", "network", "label"}

// Width orders domains of which each lies in one of the next: 1 provider, 2 zone,
// 3 region; 0 for a network or a label, which may lie across any.
func Width(by string) int { return map[string]int{"provider": 1, "zone": 2, "region": 3}[by] }

// Contradicts reports whether a spread makes it impossible to keep to one domain: it
// spreads over the same kind of domain, or a wider one.
func (s *Spread) Contradicts(by, label string) bool {
	switch {
	case s.By == by:
		return by != "label" || s.Label == label
	case by == "provider":
		return s.By != "label"
	}
	return Width(by) > 0 && Width(s.By) > Width(by)
}

// Spread is one rule for spreading replicas.
type Spread struct {
	// By is provider, region, zone, network (location.network) or label.
	By string `json:"by"`
	// Label is the key of the label, with by: label.
	Label string `json:"label,omitempty"`
	// MaxSkew is how many replicas more than in the least used domain are allowed; default 1, and 0 counts as 1. Domains are those in which anything is offered that the intent could use, full at the moment or not.
	MaxSkew int32 `json:"maxSkew,omitempty"`
	// MinDomains is how many domains at least, or as many as there are replicas: as long as fewer are in use, a new replica goes to one that is not.
	MinDomains int32 `json:"minDomains,omitempty"`
}
