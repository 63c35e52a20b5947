package v1alpha1

import (
	"maps"
	"reflect"
)

// Flavor is what one provider offers of one kind of node (FLUIDOS's word): a
// homogeneous pool, what of it is in use, and its price.
type Flavor struct {
	TypeMeta `json:",inline"`
	// Metadata names the flavor; its namespace is the provider cluster's id.
	Metadata Metadata `json:"metadata"`
	// Spec is the offer.
	Spec FlavorSpec `json:"spec"`
}

// Ref is the flavor's identity, "<provider>/<name>".
func (f *Flavor) Ref() string { return f.Metadata.Namespace + "/" + f.Metadata.Name }

// EnforcementOf is how limits are enforced on a flavor: as its agent reports, else as
// its cluster's file states (which may be nil), by a label; "" where neither does.
func EnforcementOf(f *Flavor, c *Cluster) string {
	if level := f.Spec.Labels[LabelEnforcement]; level != "" || c == nil {
		return level
	}
	return c.Spec.Labels[LabelEnforcement]
}

// SameButUse reports whether two reports of a flavor differ in nothing but what
// changes with each of them: what is used, held and refused of it, and how it is
// used.
func (f *Flavor) SameButUse(o *Flavor) bool {
	if f == o {
		return true
	}
	x, y := *f, *o
	for _, s := range [...]*FlavorSpec{&x.Spec, &y.Spec} {
		s.Used, s.Held, s.HeldOn, s.Refused, s.Usage = nil, nil, nil, nil, nil
	}
	return reflect.DeepEqual(x, y)
}

// SameOnNodes reports whether contracts hold the same on the same nodes (HeldOn).
func SameOnNodes(a, b map[string]map[string]Resources) bool {
	return maps.EqualFunc(a, b, func(x, y map[string]Resources) bool { return maps.EqualFunc(x, y, Resources.Equal) })
}

// FlavorSpec is the offer of a Flavor.
type FlavorSpec struct {
	// Type is K8Slice (default), VM, Service or Sensor.
	Type string `json:"type,omitempty"`
	// Architecture of the nodes, such as amd64.
	Architecture string `json:"architecture,omitempty"`
	// Capacity is all there is; a file without it adds its partition, properties, labels and price (whole, or windows alone) to the flavor of that name that an agent reports, for as long as it does. Pods and ephemeral-storage that are not listed are not limited, any other absent key is 0.
	Capacity Resources `json:"capacity,omitzero"`
	// Used is what the provider's own pods use of it.
	Used Resources `json:"used,omitempty"`
	// Held is, per contract, what is granted or still running under it.
	Held map[string]Resources `json:"held,omitempty"`
	// Nodes is how the capacity lies on nodes, which bounds what one pod can have; absent: all of it counts as one node.
	Nodes *FlavorNodes `json:"nodes,omitempty"`
	// HeldOn is, per contract that names nodes, what of Held lies on which node, by the node's hash.
	HeldOn map[string]map[string]Resources `json:"heldOn,omitempty"`
	// Refused is, per contract, why the provider does not honour it: its own workloads came first, or its administrator says so.
	Refused map[string]string `json:"refused,omitempty"`
	// Usage is, per contract, how much of what it holds its pods really use, on average over the last hour or so; overcommit.maxRisk goes by it, and takes a contract that is not listed to use all it holds.
	Usage map[string]Resources `json:"usage,omitempty"`
	// GPU describes the cards; absent when there are none.
	GPU *FlavorGPU `json:"gpu,omitempty"`
	// Partition is the legal sizes of a contract; absent means any size.
	Partition *Partition `json:"partition,omitempty"`
	// Price of the flavor; absent takes the price table's or the cluster's.
	Price *Price `json:"price,omitempty"`
	// Location overrides the cluster's, key by key.
	Location Location `json:"location,omitzero"`
	// Properties that can be compared and ranked.
	Properties FlavorProperties `json:"properties,omitzero"`
	// Labels that intents can demand.
	Labels map[string]string `json:"labels,omitempty"`
	// NodeSelector is the provider's nodes behind the flavor.
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// Pool is shared by flavors cut from the same nodes: their CPU, memory and pods are then one.
	Pool string `json:"pool,omitempty"`
	// Class is the ResourceSlice class: fleetbroker where the provider's agent enforces, default, or one that the cluster declares (liqo.classes).
	Class string `json:"class,omitempty"`
	// Endpoint of the provider's API server, as its agent publishes it; information for contracts and answers. Default: its cluster's.
	Endpoint string `json:"endpoint,omitempty"`
	// Overcommit allows selling more than there is.
	Overcommit Overcommit `json:"overcommit,omitempty"`
	// ScalableTo is what an autoscaler could make of the pool.
	ScalableTo Resources `json:"scalableTo,omitempty"`
	// Cordon sells nothing new.
	Cordon bool `json:"cordon,omitempty"`
	// Drain moves contracts elsewhere by this time.
	Drain Time `json:"drain,omitzero"`
}

// FlavorNodes is how a flavor lies on nodes: a file states Count nodes of one Size, an
// agent reports Groups. Never both.
type FlavorNodes struct {
	// Count of equal nodes, where nobody reports them one by one.
	Count int64 `json:"count,omitempty"`
	// Size of one of them: what pods can have of it, every resource.
	Size Resources `json:"size,omitempty"`
	// Groups of nodes that are equal in shape, free and labels.
	Groups []NodeGroup `json:"groups,omitempty"`
}

// NodeGroup is nodes of one flavor that are equal in all that a pod can ask of them.
type NodeGroup struct {
	// Shape is what is allocatable on one node, every resource.
	Shape Resources `json:"shape"`
	// Free is what the provider's own pods leave of it; what contracts hold is not taken off. Absent: all of the shape.
	Free Resources `json:"free,omitempty"`
	// Labels of topology in which the flavor's nodes differ, such as a rack or an NVLink domain.
	Labels map[string]string `json:"labels,omitempty"`
	// Nodes by hash: the value of the label fleetbroker.io/node, salted per cluster.
	Nodes []string `json:"nodes"`
}

// FlavorGPU describes a flavor's cards.
type FlavorGPU struct {
	// Vendor such as nvidia.
	Vendor string `json:"vendor,omitempty"`
	// Model, vendor-prefixed and lower-case, such as nvidia-h100.
	Model string `json:"model,omitempty"`
	// Memory of one sellable unit, marketed size.
	Memory MemorySize `json:"memory,omitzero"`
	// Architecture such as hopper.
	Architecture string `json:"architecture,omitempty"`
	// Tier such as premium.
	Tier string `json:"tier,omitempty"`
	// Interconnect such as nvlink.
	Interconnect string `json:"interconnect,omitempty"`
	// ComputeCapability such as "9.0".
	ComputeCapability string `json:"computeCapability,omitempty"`
	// Sharing is none (default), mig, time-slicing or mps.
	Sharing string `json:"sharing,omitempty"`
	// Profile of a MIG unit, such as 1g.10gb.
	Profile string `json:"profile,omitempty"`
	// UnitsPerGPU is how many sellable units one card makes (default 1).
	UnitsPerGPU int32 `json:"unitsPerGPU,omitempty"`
	// ResourceName is what pods ask for, such as nvidia.com/gpu.
	ResourceName string `json:"resourceName,omitempty"`
}

// MemorySize is one marketed GPU memory size, in bytes.
type MemorySize struct{ Amount }

// UnmarshalJSON reads "80Gi" or "80GB", which mean the same.
func (m *MemorySize) UnmarshalJSON(b []byte) error {
	var r MemoryRange
	if err := r.UnmarshalJSON(b); err != nil {
		return err
	}
	m.Amount = r.Min
	return nil
}

// MarshalJSON writes "80Gi".
func (m MemorySize) MarshalJSON() ([]byte, error) { return MemoryRange{Min: m.Amount}.MarshalJSON() }

// Partition is the legal sizes of a contract on a flavor: the minimum, then
// steps.
type Partition struct {
	// Min is the smallest size.
	Min Resources `json:"min,omitempty"`
	// Step is what sizes grow by.
	Step Resources `json:"step,omitempty"`
}

// Price of a flavor. Either PerHour by resource or Flat for the whole flavor.
type Price struct {
	// Currency as three letters; default the fleet's.
	Currency string `json:"currency,omitempty"`
	// PerHour is the on-demand price.
	PerHour UnitPrices `json:"perHour,omitempty"`
	// Flat is the price per hour for the whole flavor, whatever part of it is taken by GPU (or CPU without GPUs).
	Flat *Decimal `json:"flat,omitempty"`
	// Spot prices replace PerHour key by key; when the flavor is later reported without, or no more, the contracts bought at it have to give way.
	Spot UnitPrices `json:"spot,omitempty"`
	// Reserved prices replace PerHour key by key for a committed term.
	Reserved *ReservedPrice `json:"reserved,omitempty"`
	// Windows in which other prices hold, key by key.
	Windows []PriceWindow `json:"windows,omitempty"`
}

// UnitPrices per hour: gpu (per sellable unit: a card, or where a flavor sells parts of
// cards one of these), cpu (per core), memoryGi, storageGi, or any extended resource (per
// unit). What is not named costs nothing, but for accelerators: of those nothing is sold
// without a price, and "0" is one.
type UnitPrices map[string]Decimal

// ReservedPrice is the price under a committed term.
type ReservedPrice struct {
	// Term that must be committed to.
	Term Duration `json:"term,omitzero"`
	// UnitPrices of the term.
	UnitPrices `json:"-"`
}

// PriceWindow is a recurring part of the week with its own prices.
type PriceWindow struct {
	Window `json:",inline"`
	// PerHour replaces the price's own, key by key.
	PerHour UnitPrices `json:"perHour"`
}

// FlavorProperties can be compared and ranked.
type FlavorProperties struct {
	// LatencyMs to the provider in milliseconds, where Fleet.latency has no entry.
	LatencyMs *int64 `json:"latencyMs,omitempty"`
	// Carbon intensity of its electricity in grams of CO2 equivalent per kWh.
	Carbon *int64 `json:"carbon,omitempty"`
	// Reliability as a ratio, such as "0.997".
	Reliability *Decimal `json:"reliability,omitempty"`
	// SecurityStandards that it is certified for, such as ISO27001.
	SecurityStandards []string `json:"securityStandards,omitempty"`
}

// IsZero reports whether nothing is stated.
func (p FlavorProperties) IsZero() bool {
	return p.LatencyMs == nil && p.Carbon == nil && p.Reliability == nil && len(p.SecurityStandards) == 0
}

// Over is p, and what p leaves out as q has it.
func (p FlavorProperties) Over(q FlavorProperties) FlavorProperties {
	if p.LatencyMs == nil {
		p.LatencyMs = q.LatencyMs
	}
	if p.Carbon == nil {
		p.Carbon = q.Carbon
	}
	if p.Reliability == nil {
		p.Reliability = q.Reliability
	}
	if len(p.SecurityStandards) == 0 {
		p.SecurityStandards = q.SecurityStandards
	}
	return p
}

// Overcommit is a ratio for each resource (1 sells exactly what there is), and
// maxRisk, the accepted probability that contracts together use more than there
// is, estimated from usage: it bounds what the ratios allow. With "0" nothing is
// sold beyond the capacity; absent, the ratios alone hold.
type Overcommit map[string]Decimal

// PriceTable holds prices by provider and model for flavors without their own.
type PriceTable struct {
	TypeMeta `json:",inline"`
	// Metadata names the table.
	Metadata Metadata `json:"metadata"`
	// Spec is the prices.
	Spec PriceTableSpec `json:"spec"`
}

// PriceTableSpec is the prices of a PriceTable.
type PriceTableSpec struct {
	// Currency of all prices of the table.
	Currency string `json:"currency"`
	// Prices by provider and model.
	Prices []TablePrice `json:"prices"`
}

// TablePrice is one row of a PriceTable.
type TablePrice struct {
	// Provider cluster id.
	Provider string `json:"provider"`
	// Model such as nvidia-h100; empty is for flavors without GPUs.
	Model string `json:"model,omitempty"`
	// Memory of a card, marketed size, where a model is sold in several: a row with the flavor's own goes before one without, and one with another never holds.
	Memory MemorySize `json:"memory,omitzero"`
	// Profile of MIG, such as 1g.10gb, whose units the row prices, one each. A row with the flavor's own profile goes before one without, and one with another never holds: a row without one is the price of whole cards, and of units of which no row names the profile.
	Profile string `json:"profile,omitempty"`
	// PerHour is the on-demand price.
	PerHour UnitPrices `json:"perHour,omitempty"`
	// Spot prices replace PerHour key by key.
	Spot UnitPrices `json:"spot,omitempty"`
	// Reserved prices replace PerHour key by key for a committed term.
	Reserved *ReservedPrice `json:"reserved,omitempty"`
	// Windows of the week whose prices replace PerHour, as in a flavor's price.
	Windows []PriceWindow `json:"windows,omitempty"`
}

// Price is what a row states, in its table's currency.
func (r *TablePrice) Price(currency string) *Price {
	return &Price{Currency: currency, PerHour: r.PerHour, Spot: r.Spot, Reserved: r.Reserved, Windows: r.Windows}
}
