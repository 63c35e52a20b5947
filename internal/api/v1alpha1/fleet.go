package v1alpha1

import (
	"cmp"
	"fmt"
	"time"
)

// Fleet is the policy of the whole fleet: one document, fleet.yaml.
type Fleet struct {
	TypeMeta `json:",inline"`
	// Metadata names the fleet.
	Metadata Metadata `json:"metadata"`
	// Spec is the policy.
	Spec FleetSpec `json:"spec"`
}

// FleetSpec is the policy of a Fleet.
type FleetSpec struct {
	// Currency in which the fleet counts (default EUR).
	Currency string `json:"currency,omitempty"`
	// Timezone in which months begin (default UTC).
	Timezone string `json:"timezone,omitempty"`
	// Rates convert currencies, each dated; the newest that is not in the future holds.
	Rates []Rate `json:"rates,omitempty"`
	// Transfer prices between regions, in the direction of the data. A pair that is not listed has an unknown price: such an offer counts as the most expensive, and is not taken by an intent with data and a budget.
	Transfer []TransferPrice `json:"transfer,omitempty"`
	// Latency between clusters or regions; goes before a flavor's latencyMs.
	Latency []LatencyEntry `json:"latency,omitempty"`
	// Accelerators are names of resources that count as accelerators next to GPUs and the devices that are known (Gaudi, TPU, Neuron, MIG by name and others): who asks for none is kept off them, and one without a price is not sold. A * at the end stands for any rest, as in example.org/npu-*.
	Accelerators []string `json:"accelerators,omitempty"`
	// Weights of the balanced score (default resources 0.7, cost 0.3).
	Weights *Weights `json:"weights,omitempty"`
	// Defaults for what intents and clusters leave open.
	Defaults FleetDefaults `json:"defaults,omitzero"`
	// Policies every placement must satisfy.
	Policies []Policy `json:"policies,omitempty"`
	// WarmPools keep slices peered for quick claims.
	WarmPools []WarmPool `json:"warmPools,omitempty"`
	// WriteBack is how decisions reach the repo.
	WriteBack WriteBack `json:"writeBack,omitzero"`
	// Verification of commits to inputs.
	Verification Verification `json:"verification,omitzero"`
	// Safety limits what one round may end.
	Safety Safety `json:"safety,omitzero"`
	// Limits of what an intent and a tenant may ask for, whatever quota they have.
	Limits Limits `json:"limits,omitzero"`
	// Bookings bound what may be booked ahead (schedule.book of an intent).
	Bookings Bookings `json:"bookings,omitzero"`
	// Retention of what has ended.
	Retention Retention `json:"retention,omitzero"`
	// Consolidation moves contracts to better offers.
	Consolidation Consolidation `json:"consolidation,omitzero"`
	// Scarcity is below how many times the price of the cheapest offer an intent with objective cost is placed to leave that to those who usually come and can use little else (default 1.5; 1 is never, 1000 the most).
	Scarcity *Decimal `json:"scarcity,omitempty"`
	// Peering of clusters.
	Peering Peering `json:"peering,omitzero"`
	// Enrollment of clusters whose agents hold a certificate and that are not in
	// the fleet: closed (default) refuses them; open proposes clusters/<id>.yaml
	// on the branch enroll/<id>, for a person to merge.
	Enrollment string `json:"enrollment,omitempty"`
	// Sources are further repositories from which tenants' intents are read.
	Sources []IntentSource `json:"sources,omitempty"`
	// Suspend stops placing, moving and ending; what stands is kept.
	Suspend bool `json:"suspend,omitempty"`
}

// Rate converts one currency into another from a date on.
type Rate struct {
	// From currency.
	From string `json:"from"`
	// To currency.
	To string `json:"to"`
	// Rate is how much of To one of From is.
	Rate Decimal `json:"rate"`
	// Date from which the rate holds.
	Date Date `json:"date"`
}

// TransferPrice is the price of moving data between regions.
type TransferPrice struct {
	// From region.
	From string `json:"from"`
	// To region.
	To string `json:"to"`
	// PerGi is the price of one GiB.
	PerGi Decimal `json:"perGi"`
	// Currency of the price; default the fleet's.
	Currency string `json:"currency,omitempty"`
}

// LatencyEntry is a measured latency; it holds in both directions.
type LatencyEntry struct {
	// From cluster or region.
	From string `json:"from"`
	// To cluster or region.
	To string `json:"to"`
	// Ms is the latency in milliseconds.
	Ms int64 `json:"ms"`
}

// FleetDefaults fill what intents and clusters leave open.
type FleetDefaults struct {
	// Duration of intents without one; empty is open-ended.
	Duration Duration `json:"duration,omitzero"`
	// CPU of replicas that name none (default 4, as Liqo's own default).
	CPU *Quantity `json:"cpu,omitempty"`
	// Memory of replicas that name none (default 8Gi).
	Memory *Quantity `json:"memory,omitempty"`
	// Pods of replicas that name none (default 110).
	Pods *Quantity `json:"pods,omitempty"`
	// EphemeralStorage of replicas that name none (default 20Gi).
	EphemeralStorage *Quantity `json:"ephemeral-storage,omitempty"`
	// GracePeriod of silence before a cluster counts as lost (default 5m).
	GracePeriod Duration `json:"gracePeriod,omitzero"`
	// Within is what holds where an intent has no placement.within, in place of Required by provider: its policy where gang: true is written, no more than Preferred where gang is only the default.
	Within *Within `json:"within,omitempty"`
	// MoveAfter is how long a lost replica waits for room in its gang's domain before the whole gang moves, where an intent has no update.moveAfter. Without it a gang never moves for one replica.
	MoveAfter Duration `json:"moveAfter,omitzero"`
	// Delivery to clusters that name none (default direct).
	Delivery string `json:"delivery,omitempty"`
}

// Policy is a rule that every matching placement must satisfy.
type Policy struct {
	// Name of the policy, shown in refusals.
	Name string `json:"name"`
	// Match selects placements; empty matches all.
	Match PolicyMatch `json:"match,omitzero"`
	// Require is a CEL expression over intent, flavor and cluster that must be true. One evaluation may cost 20000 of CEL's units in the worst case.
	Require string `json:"require"`
	// Message for people whose placement is refused.
	Message string `json:"message,omitempty"`
}

// PolicyMatch selects placements: an intent on an offer. What is named must all match.
type PolicyMatch struct {
	// Tenants it holds for; empty means all.
	Tenants []string `json:"tenants,omitempty"`
	// Consumers it holds for, the clusters in which the capacity appears; empty means all.
	Consumers []string `json:"consumers,omitempty"`
	// Labels that the intent must all have.
	Labels map[string]string `json:"labels,omitempty"`
	// Models of GPUs that the offer has, such as nvidia-h100 or H100, and "*" for any GPU; empty means every offer, those without GPUs too.
	Models []string `json:"models,omitempty"`
	// AboveHourly matches where one replica costs more than this an hour on demand, in the price's own currency; an offer without a price matches.
	AboveHourly *Decimal `json:"aboveHourly,omitempty"`
}

// WarmPool keeps slices peered that intents can claim. Until then its contracts
// belong to the tenant fleetbroker, are charged to nobody else, and nobody's
// pods can use them. An intent of the same consumer that asks for as many GPUs
// and no more of anything else takes a slice over as it is; the pool then gets
// another.
type WarmPool struct {
	// Name of the pool.
	Name string `json:"name"`
	// Consumer cluster.
	Consumer string `json:"consumer"`
	// Count of slices; with Forecast the fewest that are kept ready.
	Count int32 `json:"count"`
	// Max is the most slices that Forecast keeps ready. Required with Forecast.
	Max int32 `json:"max,omitempty"`
	// Forecast sizes the pool, between Count and Max, by what the ledger's history lets expect.
	Forecast *PoolForecast `json:"forecast,omitempty"`
	// Resources of each slice.
	Resources ResourceRequest `json:"resources"`
	// MaxPremium is how much dearer than the best other offer a warm slice may be to be claimed, as a ratio (default "0.2"; "0" claims only what is no dearer).
	MaxPremium *Decimal `json:"maxPremium,omitempty"`
}

// PoolForecast sizes a warm pool once an hour: as many slices as contracts of
// its kind (same consumer, model and GPUs each) are expected beyond those that
// stand, in the hour that runs and those ahead of it.
type PoolForecast struct {
	// Ahead is how far is looked, in whole hours from 1h (the default) to 24h.
	Ahead Duration `json:"ahead,omitzero"`
	// Margin is how many times the forecast's mean error is added (default "1").
	Margin *Decimal `json:"margin,omitempty"`
}

// WriteBack is how decisions reach the repo.
type WriteBack struct {
	// Mode is push (default), pull-request or none (shadow).
	Mode string `json:"mode,omitempty"`
	// Inputs is the branch that people write (default main).
	Inputs string `json:"inputs,omitempty"`
	// Branch is the ledger, written by the daemon alone (default the inputs branch).
	Branch string `json:"branch,omitempty"`
	// Author of the daemon's commits.
	Author Person `json:"author,omitzero"`
	// Signers whose commits on the ledger are the daemon's own; with a trust root, those beside its list ledger.
	Signers []Signer `json:"signers,omitempty"`
	// StatusInterval is the shortest time between commits that only carry status (default 30s).
	StatusInterval Duration `json:"statusInterval,omitzero"`
	// Pushes is how often the daemon pushes to the fleet repo, all its replicas together (default 6 a minute on github, as GitHub asks; elsewhere without limit). What forges answer with 403 or 429 is obeyed in any case.
	Pushes *PushBudget `json:"pushes,omitempty"`
	// Merge lets the daemon merge its own pull requests when required checks pass.
	Merge bool `json:"merge,omitempty"`
}

// PushBudget bounds how often a repository is pushed to. Commits of status wait for
// the pace and leave the burst alone, and other decisions leave half of it; reservations,
// releases and the undoing of foreign edits use all of it, and wait when it is used up.
// What waits goes together in one push. Every push counts, one that is refused too.
type PushBudget struct {
	// PerMinute is how many pushes go a minute in the long run, at most 6000; 0 is without limit (default that of the forge).
	PerMinute *int32 `json:"perMinute,omitempty"`
	// Burst is how many pushes may go at once when none went for a while, from 1 to 1000 (default 1: never more than perMinute in a minute).
	Burst int32 `json:"burst,omitempty"`
}

// Problem is what is wrong with a budget, and in which field; "" when nothing is.
func (b *PushBudget) Problem() (field, why string) {
	switch {
	case b == nil:
	case b.PerMinute != nil && (*b.PerMinute < 0 || *b.PerMinute > maxPushes):
		return "perMinute", fmt.Sprintf("%d is not between 0 and %d", *b.PerMinute, maxPushes)
	case b.Burst < 0 || b.Burst > maxBurst:
		return "burst", fmt.Sprintf("%d is not between 1 and %d", b.Burst, maxBurst)
	case b.Burst != 0 && b.PerMinute != nil && *b.PerMinute == 0:
		return "burst", fmt.Sprintf("%d; pushes have no limit with perMinute: 0, so leave burst out", b.Burst)
	}
	return "", ""
}

// Bounds of a PushBudget.
const (
	maxPushes = 6000
	maxBurst  = 1000
)

// Person is a name and an e-mail address.
type Person struct {
	// Name of the person or program.
	Name string `json:"name,omitempty"`
	// Email address.
	Email string `json:"email,omitempty"`
}

// String is "Name <email>".
func (p Person) String() string { return p.Name + " <" + p.Email + ">" }

// Verification of commits that touch inputs. A daemon with a trust root verifies
// what gives rights whatever stands here: fleet.yaml can only ask for more.
type Verification struct {
	// Mode is none (default) or signed: of the inputs only that is acted on which commits say that are signed by those who may. A tenant's signers (its approvers, when it names some) may change its intents; the fleet's may change everything.
	Mode string `json:"mode,omitempty"`
	// Intents is signed to ask for signatures on intents too, where a trust root asks for those on what gives rights; mode signed does so as well.
	Intents string `json:"intents,omitempty"`
	// Signers are the fleet's: they may change everything. With a trust root, those beside its list policy; without, default those of writeBack.
	Signers []Signer `json:"signers,omitempty"`
}

// Safety limits what one round may end.
type Safety struct {
	// MaxEnds is how many contracts one round may end because intents are gone, and how many because providers are lost; default the larger of 5 and 20 % of held contracts. Beyond it, the tenant (the provider) with more of them than all others together is held back alone if the others are within it, or with those of whose intents the same commit removes some; otherwise none of them ends.
	MaxEnds *int32 `json:"maxEnds,omitempty"`
	// FrozenFor is after what time a contract without an end, of an intent whose file cannot be read, counts as preemptible at priority 0 (default 24h). Its term, budgets, drains and higher priorities apply to it from the beginning; that it is frozen never ends it.
	FrozenFor Duration `json:"frozenFor,omitzero"`
	// Silence is how long a provider's agent may not report before its cluster sells nothing new, from 45s to 24h (default that of the daemon's flag --agent-silence, 1m30s). Agents report every 30 s. After defaults.gracePeriod, and never before, the cluster counts as lost.
	Silence Duration `json:"silence,omitzero"`
}

// DefaultFrozenFor is the default of Safety.FrozenFor.
const DefaultFrozenFor = 24 * time.Hour

// Ages is after what time a frozen contract without an end counts as preemptible.
func (s *Safety) Ages() time.Duration { return cmp.Or(s.FrozenFor.Duration, DefaultFrozenFor) }

// Bookings bound what may be booked ahead.
type Bookings struct {
	// MaxAhead is how far in the future a booking may start (default 90d).
	MaxAhead Duration `json:"maxAhead,omitzero"`
	// MaxShare is how much of each resource of a flavor may be booked at any instant, in percent from 1 to 100 (default 100).
	MaxShare int32 `json:"maxShare,omitempty"`
	// Lead is how long before its start a booking is delivered, so that its nodes exist at the start (default 10m); it costs nothing until the start.
	Lead Duration `json:"lead,omitzero"`
	// FreeUntil is how long before its start a booking may be cancelled or changed at no cost; later its tenant is charged for its whole term. Without it cancelling costs nothing.
	FreeUntil Duration `json:"freeUntil,omitzero"`
}

// Defaults of Bookings.
const (
	DefaultMaxAhead = 90 * 24 * time.Hour
	DefaultLead     = 10 * time.Minute
)

// Ahead is how far in the future a booking may start.
func (b *Bookings) Ahead() time.Duration { return cmp.Or(b.MaxAhead.Duration, DefaultMaxAhead) }

// LeadTime is how long before its start a booking is delivered.
func (b *Bookings) LeadTime() time.Duration { return cmp.Or(b.Lead.Duration, DefaultLead) }

// Share is how much of a flavor may be booked, in percent.
func (b *Bookings) Share() int64 { return int64(cmp.Or(b.MaxShare, 100)) }

// Retention of what has ended.
type Retention struct {
	// Ended contracts stay in the tree this long (default 168h); those that their provider denied at least 24h, as long as the denial counts.
	Ended Duration `json:"ended,omitzero"`
	// Market snapshots stay this long (default 720h).
	Market Duration `json:"market,omitzero"`
}

// Consolidation moves contracts to better offers.
type Consolidation struct {
	// Mode is off (default), propose or apply.
	Mode string `json:"mode,omitempty"`
	// Threshold is the least savings fraction divided by disruption fraction, of the tenant's contracts (default "0.5").
	Threshold *Decimal `json:"threshold,omitempty"`
	// Hold is how long an offer must stay better (default 30m).
	Hold Duration `json:"hold,omitzero"`
}

// Peering of clusters.
type Peering struct {
	// Auto peers clusters when a contract needs it (default true).
	Auto *bool `json:"auto,omitempty"`
	// UnpeerWhenIdle undoes peerings without contracts.
	UnpeerWhenIdle bool `json:"unpeerWhenIdle,omitempty"`
}
