package v1alpha1

// Contract is a reservation: so much of a flavor for a replica of an intent,
// at a price, for a term. It exists if and only if its file is on the ledger
// branch of the remote.
type Contract struct {
	TypeMeta `json:",inline"`
	// Metadata names the contract; its namespace is the tenant.
	Metadata Metadata `json:"metadata"`
	// Spec is what was agreed.
	Spec ContractSpec `json:"spec"`
	// Decision is why: enough to check it from history alone.
	Decision Decision `json:"decision"`
	// Status is where it stands.
	Status ContractStatus `json:"status"`
}

// ReasonNotHeld is the reason of a Degraded contract that its provider accepts
// again and holds nothing of: delivery has Liqo replicate its slice again.
const ReasonNotHeld = "NotHeld"

// ReasonBackOff is the reason of offloading that is not ready because pods wait on
// a contract's Nodes that the provider does not take: it is the word that a virtual
// kubelet of Liqo v1.2.0 writes on such a pod.
const ReasonBackOff = "OffloadingBackOff"

// ContractSpec is what was agreed.
type ContractSpec struct {
	// Intent that the contract serves.
	Intent ContractIntent `json:"intent"`
	// Consumer is the cluster in which the capacity appears.
	Consumer string `json:"consumer"`
	// Provider is the cluster that gives.
	Provider string `json:"provider"`
	// Flavor of the provider.
	Flavor string `json:"flavor"`
	// Endpoint of the provider's API server when the contract was made, as far as known: information, never dialled.
	Endpoint string `json:"endpoint,omitempty"`
	// Slice is the name of slice, virtual node and Node.
	Slice string `json:"slice"`
	// Class of the ResourceSlice: fleetbroker where the provider's agent enforces, else default.
	Class string `json:"class,omitempty"`
	// Resources in the names that the slice carries, every key explicit.
	Resources Resources `json:"resources"`
	// GPUs describes the cards behind the contract.
	GPUs *ContractGPU `json:"gpus,omitempty"`
	// Borrowed is what of it was above the tenant's quota when it was placed or resized (GPUs in cards, rounded up): it may be asked back.
	Borrowed Resources `json:"borrowed,omitempty"`
	// Price fixed at placement or resize.
	Price ContractPrice `json:"price"`
	// Term of the contract.
	Term Term `json:"term"`
	// Enforcement that the intent asks for; where the provider's is known to be less, the contract is Degraded.
	Enforcement Enforcement `json:"enforcement,omitempty"`
	// Stage reserve has no manifests; default peer.
	Stage Stage `json:"stage,omitempty"`
	// Offload is the namespaces that may use the capacity.
	Offload *Offload `json:"offload,omitempty"`
	// VirtualNode shapes the node.
	VirtualNode *VirtualNodeSpec `json:"virtualNode,omitempty"`
	// NodeSelector is the provider's nodes behind the flavor, where virtual nodes are made without Liqo: pods are pinned to them through it. Else the slice's status does that.
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// Nodes are the provider's nodes on which the contract lies and what it has of each: one virtual node each. None where the flavor tells no nodes, or the contract has no accelerator.
	Nodes []ContractNode `json:"nodes,omitempty"`
	// Grace bounds the contract's release: so long after it began, pods that a PodDisruptionBudget still keeps on its Nodes are deleted. None: budgets are respected for as long as it takes.
	Grace Duration `json:"grace,omitzero"`
	// Priority the intent had, for deciding whose contract becomes excess first.
	Priority int32 `json:"priority,omitempty"`
	// Preemptible is false where the intent may not be displaced; absent where it may. It counts while the intent's file cannot be read.
	Preemptible *bool `json:"preemptible,omitempty"`
}

// ContractNode is what a contract has of one of its provider's nodes.
type ContractNode struct {
	// Node by its hash, as the provider's agent reports it (the value of the label fleetbroker.io/node); of a file's flavor a number from 0.
	Node string `json:"node"`
	// Resources of it, in the names that the slice carries.
	Resources Resources `json:"resources"`
	// Part is the number in the name of its virtual node, <slice>.<part>, where it is not its place in the list: a part that lies on another node than at first has a virtual node of its own.
	Part int32 `json:"part,omitempty"`
}

// ContractGPU describes the cards behind a contract.
type ContractGPU struct {
	// Count of units.
	Count int64 `json:"count"`
	// Model such as nvidia-h100.
	Model string `json:"model,omitempty"`
	// Memory of a unit, marketed size.
	Memory MemorySize `json:"memory,omitzero"`
	// Tier such as premium.
	Tier string `json:"tier,omitempty"`
	// ResourceName under which the count stands in Resources.
	ResourceName string `json:"resourceName"`
	// UnitsPerGPU relates units to cards.
	UnitsPerGPU int32 `json:"unitsPerGPU,omitempty"`
	// Cards says which cards of the flavor the units are counted on, where it sells parts of cards. The ledger numbers a flavor's cards from 0, those of a flavor that tells its nodes on each node; the numbers say what lies together, not which card a node's driver calls so.
	Cards []CardUnits `json:"cards,omitempty"`
}

// CardUnits is so many units of one card.
type CardUnits struct {
	// Node by its hash, or number of a file's flavor: that which has the card, where the flavor tells its nodes.
	Node string `json:"node,omitempty"`
	// Card number, from 0: of the node, else of the flavor.
	Card int32 `json:"card"`
	// Units of it.
	Units int64 `json:"units"`
}

// ContractIntent says what a contract serves and who asked.
type ContractIntent struct {
	// Name of the intent.
	Name string `json:"name"`
	// Path of its file; an unreadable file freezes its contracts.
	Path string `json:"path"`
	// Commit of the inputs that was acted on.
	Commit string `json:"commit"`
	// Author of the last change of the intent.
	Author string `json:"author"`
	// Digest of the intent's specification.
	Digest string `json:"digest"`
	// Replica number, from 0.
	Replica int32 `json:"replica"`
	// Part of the replica, from 0.
	Part int32 `json:"part"`
	// Units of the replica's Of that the part is: GPUs, or cores where it has none. Absent for a replica in one piece.
	Units int64 `json:"units,omitempty"`
	// Of is how many units the whole replica has.
	Of int64 `json:"of,omitempty"`
	// Ordinal distinguishes the successive contracts of one replica and part.
	Ordinal int32 `json:"ordinal,omitempty"`
}

// ContractPrice is what a contract costs, fixed at placement or resize: the
// cost follows from the contract alone.
type ContractPrice struct {
	// Hourly price now, all resources together.
	Hourly Decimal `json:"hourly"`
	// List is the hourly on-demand price, for reporting savings.
	List Decimal `json:"list"`
	// Currency of both.
	Currency string `json:"currency"`
	// Class of the price.
	Class PriceClass `json:"class"`
	// Windows in which another hourly price holds.
	Windows []ContractPriceWindow `json:"windows,omitempty"`
	// Rate by which the flavor's price was converted, when its currency differs.
	Rate *Rate `json:"rate,omitempty"`
}

// ContractPriceWindow is a recurring part of the week with its own price.
type ContractPriceWindow struct {
	Window `json:",inline"`
	// Hourly price in the window.
	Hourly Decimal `json:"hourly"`
}

// Term of a contract. An open-ended one has no End.
type Term struct {
	// Start is when it was reserved; of a booking, when it begins.
	Start Time `json:"start"`
	// End is when it ends.
	End Time `json:"end,omitzero"`
	// Yields: it ends then because its capacity is booked from then on (preemption.yields).
	Yields bool `json:"yields,omitempty"`
}

// Decision is why a contract was placed where it is.
type Decision struct {
	// Score of the chosen offer, from 0 to 1; less by scarcity, which may take it below 0.
	Score float64 `json:"score"`
	// Scores are the terms of the score; scarcity, below 0, is what the place is expected to be worth to others, where that decides.
	Scores map[string]float64 `json:"scores,omitempty"`
	// Rules numbers the planner's rules that it was placed, or last resized, by; absent where those were older than the number is recorded.
	Rules int `json:"rules,omitempty"`
	// Market is the tree of the market snapshot it was decided on.
	Market string `json:"market"`
	// Offer is the flavor's figures at that moment.
	Offer OfferFigures `json:"offer"`
	// Considered is how many offers were looked at.
	Considered int `json:"considered"`
	// Rejected counts offers under the first requirement they failed.
	Rejected map[string]int `json:"rejected,omitempty"`
	// Transfer is what moving the intent's data was estimated to cost. It was part of the price that was compared and held against the intent's budget; it is no part of the contract's price and does not accrue, because whoever carries the data bills it.
	Transfer *TransferEstimate `json:"transfer,omitempty"`
	// Claimed names the warm pool whose slice the contract took over.
	Claimed string `json:"claimed,omitempty"`
	// RunnersUp are the next best.
	RunnersUp []RunnerUp `json:"runnersUp,omitempty"`
	// Dearest is the most expensive offer that fitted, the chosen one included; absent where no price was known, or the contract was resized in place since: nothing else was looked at then.
	Dearest *DearestOffer `json:"dearest,omitempty"`
	// Scaled is what of the contract did not stand when it was decided: the provider's autoscaler has to add it.
	Scaled Resources `json:"scaled,omitempty"`
	// Displaced names the contracts that had to give way to this one.
	Displaced []string `json:"displaced,omitempty"`
}

// DearestOffer is the most expensive offer that a contract could have been placed on.
type DearestOffer struct {
	// Flavor is "<provider>/<flavor>".
	Flavor string `json:"flavor"`
	// Hourly is what the same request would have cost there, at that moment, in the contract's currency.
	Hourly Decimal `json:"hourly"`
}

// TransferEstimate is what moving an intent's data to a flavor's region costs.
type TransferEstimate struct {
	// From is the region of the data.
	From string `json:"from"`
	// To is the region of the flavor.
	To string `json:"to"`
	// Once is the cost of moving the data there.
	Once Decimal `json:"once"`
	// Hourly is all of it as a price per hour: what flows all the time, and Once divided by the hours of the term.
	Hourly Decimal `json:"hourly"`
	// Currency of both: the fleet's.
	Currency string `json:"currency"`
}

// OfferFigures are a flavor's figures at the moment of a decision, before it.
type OfferFigures struct {
	// Capacity of the flavor.
	Capacity Resources `json:"capacity,omitempty"`
	// Used by the provider's own pods.
	Used Resources `json:"used,omitempty"`
	// Held by all other contracts.
	Held Resources `json:"held,omitempty"`
	// Overcommit ratios.
	Overcommit Overcommit `json:"overcommit,omitempty"`
	// ScalableTo is what an autoscaler could make of it.
	ScalableTo Resources `json:"scalableTo,omitempty"`
	// Nodes on which the contract lies: what all contracts together may have of each, in the flavor's own names, because the provider's own pods leave it.
	Nodes map[string]Resources `json:"nodes,omitempty"`
	// Pool figures, where flavors are cut from the same nodes: what the other flavors of the pool hold and use.
	Pool Resources `json:"pool,omitempty"`
	// At is the instant of the figures held and pool where that is not the decision's: of a booking the one at which most is held during its term.
	At Time `json:"at,omitzero"`
}

// RunnerUp is an offer that was not chosen.
type RunnerUp struct {
	// Flavor as <provider>/<name>.
	Flavor string `json:"flavor"`
	// Score from 0 to 1; less by what the place is expected to be worth to others, which may take it below 0.
	Score float64 `json:"score"`
	// Hourly price.
	Hourly Decimal `json:"hourly"`
}

// Phase is where a contract stands.
type Phase string

// Held phases keep capacity, Booked promises it for a term that has not begun; ended ones
// do neither.
const (
	PhaseBooked    Phase = "Booked"
	PhaseReserved  Phase = "Reserved"
	PhasePeering   Phase = "Peering"
	PhaseActive    Phase = "Active"
	PhaseDegraded  Phase = "Degraded"
	PhaseReleasing Phase = "Releasing"

	PhaseReleased  Phase = "Released"
	PhaseExpired   Phase = "Expired"
	PhasePreempted Phase = "Preempted"
	PhaseFailed    Phase = "Failed"
)

// Held reports whether a contract in this phase keeps its capacity.
func (p Phase) Held() bool {
	switch p {
	case PhaseReserved, PhasePeering, PhaseActive, PhaseDegraded, PhaseReleasing:
		return true
	}
	return false
}

// Charged reports whether a contract in this phase is paid for, out of budget and
// quota. Releasing is not: a dead provider must not block failover. The planner
// still counts against the quota what a tenant gave up and is not seen gone.
func (p Phase) Charged() bool { return p.Held() && p != PhaseReleasing }

// ContractStatus is where a contract stands.
type ContractStatus struct {
	// Phase now.
	Phase Phase `json:"phase"`
	// Since when.
	Since Time `json:"since"`
	// Reason as a code, such as GrantedLess or BudgetExceeded.
	Reason string `json:"reason,omitempty"`
	// Message for people.
	Message string `json:"message,omitempty"`
	// Target is the end a Releasing contract goes to: Released, Expired, Preempted or Failed.
	Target Phase `json:"target,omitempty"`
	// Displaced is notice that the contract has to give way; absent when it may stay.
	Displaced *Displacement `json:"displaced,omitempty"`
	// Drained is when virtual node and Node of a Releasing contract were seen gone; the slice goes next.
	Drained Time `json:"drained,omitzero"`
	// Accrued is what the contract had cost when its price last changed or its accrual stopped, in its currency.
	Accrued *Decimal `json:"accrued,omitempty"`
	// AccruedAt is the instant up to which Accrued counts.
	AccruedAt Time `json:"accruedAt,omitzero"`
	// Months says in which calendar month ("2026-11", in the fleet's timezone) how much of Accrued arose.
	Months map[string]MonthCost `json:"months,omitempty"`
	// History is the last ten phases.
	History []PhaseChange `json:"history,omitempty"`
}

// Why is the reason in one line, for tables and logs: "<reason>: <message>", one
// of them where there is no other, "" for none.
func (s *ContractStatus) Why() string { return why(s.Reason, s.Message) }

func why(reason, message string) string {
	if reason == "" || message == "" {
		return reason + message
	}
	return reason + ": " + message
}

// Cause is why a contract has to give way.
type Cause string

// The causes.
const (
	// Preempted: an intent of higher priority needs its capacity.
	Preempted Cause = "Preempted"
	// Reclaimed: it was borrowed from quota that its owner asks for.
	Reclaimed Cause = "Reclaimed"
	// Interrupted: its provider takes spot capacity back.
	Interrupted Cause = "Interrupted"
	// Moved: its intent moved to another flavor, so that an intent that finds no place has one.
	Moved Cause = "Moved"
)

// Displacement is notice that a contract has to give way. Until it leaves, its intent looks
// for another place; the notice is taken back when its cause is gone.
type Displacement struct {
	// Cause is Preempted, Reclaimed, Interrupted or Moved.
	Cause Cause `json:"cause"`
	// By is the intent it gives way to, as <tenant>/<intent>; empty when its provider takes the capacity back.
	By string `json:"by,omitempty"`
	// Noticed is when the notice was given.
	Noticed Time `json:"noticed"`
	// Leaves is when it is released at the latest.
	Leaves Time `json:"leaves"`
}

// MonthCost is what a contract cost in one calendar month.
type MonthCost struct {
	// Amount at the contract's price.
	Amount Decimal `json:"amount"`
	// List is what it would have cost at list price.
	List Decimal `json:"list"`
}

// PhaseChange is one entry of a contract's history.
type PhaseChange struct {
	// Phase that was entered.
	Phase Phase `json:"phase"`
	// At is when.
	At Time `json:"at"`
	// Reason as a code.
	Reason string `json:"reason,omitempty"`
	// Message for people.
	Message string `json:"message,omitempty"`
}

// Why is the entry's reason in one line: "<reason>: <message>".
func (h *PhaseChange) Why() string { return why(h.Reason, h.Message) }

// IntentState is what the ledger remembers of an intent.
type IntentState struct {
	TypeMeta `json:",inline"`
	// Metadata is the intent's name and tenant.
	Metadata Metadata `json:"metadata"`
	// Status is the memory.
	Status IntentStatus `json:"status"`
}

// IntentPhase is where an intent stands.
type IntentPhase string

// The states of an intent.
const (
	IntentPlaced    IntentPhase = "Placed"
	IntentQueued    IntentPhase = "Queued"
	IntentBooked    IntentPhase = "Booked"
	IntentRefused   IntentPhase = "Refused"
	IntentSuspended IntentPhase = "Suspended"
	IntentDone      IntentPhase = "Done"
	IntentReleasing IntentPhase = "Releasing"
)

// IntentStatus is what the ledger remembers of an intent.
type IntentStatus struct {
	// Path of the intent's file.
	Path string `json:"path"`
	// Digest of the specification that was acted on.
	Digest string `json:"digest"`
	// FirstSeen is when and by whom the intent came.
	FirstSeen FirstSeen `json:"firstSeen"`
	// State of the intent.
	State IntentPhase `json:"state"`
	// Since when.
	Since Time `json:"since"`
	// Reason as a code, such as NothingFits or BudgetExceeded.
	Reason string `json:"reason,omitempty"`
	// Message for people.
	Message string `json:"message,omitempty"`
	// Started is when the first contract of the present term was reserved: the schedule's duration counts from it.
	Started Time `json:"started,omitzero"`
	// Displaced is when capacity of the intent last had to give way; until it is served again, it displaces nobody itself.
	Displaced Time `json:"displaced,omitzero"`
	// Frozen is set while the intent's file cannot be read and it holds contracts.
	Frozen *Frozen `json:"frozen,omitempty"`
	// Proposals are moves of its contracts to better offers, by contract, as they were when first seen.
	Proposals []Proposal `json:"proposals,omitempty"`
	// Expected is, of a warm pool that follows a forecast, that of the hour.
	Expected *Expectation `json:"expected,omitempty"`
	// NextOrdinals are, by "<replica>.<part>", the ordinal of the next contract.
	NextOrdinals map[string]int32 `json:"nextOrdinals,omitempty"`
	// Spent is what contracts of this intent that have left the tree had cost.
	Spent *Decimal `json:"spent,omitempty"`
	// Currency of Spent.
	Currency string `json:"currency,omitempty"`
}

// Frozen says since when an intent's specification cannot be acted on. Its
// contracts keep what it last asked for; their terms go on.
type Frozen struct {
	// Since when its file cannot be read.
	Since Time `json:"since"`
	// Told is the last of the daily instants, counted from Since, at which the tenant was told.
	Told Time `json:"told"`
	// Reason as it was told.
	Reason string `json:"reason,omitempty"`
}

// Proposal is a better offer for a contract that works (Fleet.consolidation).
// It stands as long as the offer stays better.
type Proposal struct {
	// Contract that would be replaced.
	Contract string `json:"contract"`
	// Flavor that is better, as <provider>/<name>.
	Flavor string `json:"flavor"`
	// Since when it is better.
	Since Time `json:"since"`
	// Hourly price there, when it was first seen, in the fleet's currency.
	Hourly Decimal `json:"hourly"`
	// Saves is how much less that is in an average hour of a week.
	Saves Decimal `json:"saves"`
}

// Expectation is what a warm pool was sized by: contracts that it could have
// served, as the ledger's history lets expect them. It holds for the hour in
// which it was made, so that all rounds of the hour want as many slices.
type Expectation struct {
	// At is when it was made.
	At Time `json:"at"`
	// Digest of the pool's slices and of how far was looked.
	Digest string `json:"digest"`
	// Held is how many such contracts stood then.
	Held int32 `json:"held"`
	// Peak is the most that are expected at once, on average over an hour.
	Peak Decimal `json:"peak"`
	// Error is the mean absolute error of such forecasts in the past, in contracts.
	Error Decimal `json:"error"`
	// Tested is how many forecasts Error is the mean of; with 0 there is too little history and the pool's count holds.
	Tested int32 `json:"tested"`
}

// FirstSeen is when and by whom an intent came.
type FirstSeen struct {
	// Commit of the inputs.
	Commit string `json:"commit"`
	// Author of the commit that brought it.
	Author string `json:"author"`
	// At is the round's time.
	At Time `json:"at"`
}

// Spend is what contracts that have left the tree cost a tenant in one month:
// contracts/<tenant>/spend-<yyyy-mm>.yaml.
type Spend struct {
	TypeMeta `json:",inline"`
	// Metadata is the month and the tenant.
	Metadata Metadata `json:"metadata"`
	// Entries by intent.
	Entries []SpendEntry `json:"entries"`
}

// SpendEntry is what one contract cost in one month.
type SpendEntry struct {
	// Contract that has left the tree.
	Contract string `json:"contract"`
	// Intent it served.
	Intent string `json:"intent"`
	// Provider that gave.
	Provider string `json:"provider"`
	// Amount in Currency.
	Amount Decimal `json:"amount"`
	// List is what it would have cost at list price.
	List Decimal `json:"list"`
	// Currency of both.
	Currency string `json:"currency"`
}
