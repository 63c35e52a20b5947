package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/fleetbroker/fleetbroker/internal/agent/notes"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// facts is all that an intent can ask of a node but quantities. Nodes of equal
// facts are one offer. Names of flavors are made of their hash: fields that are
// empty must leave no trace in the encoding, so that a new field renames nothing.
type facts struct {
	Architecture string                    `json:"architecture,omitempty"`
	Location     v1alpha1.Location         `json:"location,omitzero"`
	Properties   v1alpha1.FlavorProperties `json:"properties,omitzero"`
	Labels       map[string]string         `json:"labels,omitempty"`
	GPUs         []v1alpha1.FlavorGPU      `json:"gpus,omitempty"`
	// Prices of one unit of each of GPUs, or one of a core; nil when unpriced.
	Prices []v1alpha1.Price `json:"prices,omitempty"`
	// Pool is the label's value as written: two that make one name stay apart.
	Pool string `json:"pool,omitempty"`
	// Size of the node, for those that no pool's label declares to be alike.
	Size string `json:"size,omitempty"`
}

// factsOf reads a node. Problems are annotations that could not be read.
func factsOf(n *corev1.Node) (facts, []string) {
	a := notes.Of(n)
	f := facts{
		Architecture: either(n.Status.NodeInfo.Architecture, n.Labels[corev1.LabelArchStable]),
		Location: v1alpha1.Location{
			Region:  either(a.Text("location/region"), n.Labels[corev1.LabelTopologyRegion]),
			Zone:    either(a.Text("location/zone"), n.Labels[corev1.LabelTopologyZone]),
			Country: a.Text("location/country"),
			City:    a.Line("location/city"),
		},
		Pool: n.Labels[labelPool],
	}
	if ms, ok := a.Whole("network/latency-ms"); ok {
		f.Properties.LatencyMs = &ms
	}
	f.Properties.Carbon, f.Properties.Reliability = a.Carbon(), a.Ratio("provider/reliability")
	f.Properties.SecurityStandards = a.List("provider/security-standards")
	var cards int64
	f.GPUs, cards = gpusOf(n, a)
	f.Prices = pricesOf(n, a, f.GPUs, cards)
	f.Labels = a.Labels()
	if f.Pool == "" {
		f.Size = sizeOf(n, cards)
	}
	return f, a.Problems()
}

// pricesOf spreads a node's hourly rate (cost.fluidos.eu/hourly-rate) over its
// cards, and a card's over the units it is cut into; without cards, over its
// cores. A price for each unit, and not a flat one for the whole flavor, stays
// true while nodes come and go.
func pricesOf(n *corev1.Node, a *notes.Notes, gpus []v1alpha1.FlavorGPU, cards int64) []v1alpha1.Price {
	currency, known := a.Currency("cost/currency")
	rate, priced := a.Decimal("cost/hourly-rate")
	if !known || !priced {
		return nil
	}
	const places = 6 // of a unit's price; rounding costs less than a cent a year
	perUnit := func(name string, units int64) v1alpha1.Price {
		return v1alpha1.Price{Currency: currency, PerHour: v1alpha1.UnitPrices{name: rate.DivInt(units, places)}}
	}
	if len(gpus) == 0 {
		cores := max(amounts(n.Status.Capacity)[v1alpha1.CPU].Int64()/1000, 1)
		return []v1alpha1.Price{perUnit(v1alpha1.CPU, cores)}
	}
	prices := make([]v1alpha1.Price, len(gpus))
	for i, gpu := range gpus {
		prices[i] = perUnit(v1alpha1.GPU, max(cards, 1)*int64(max(gpu.UnitsPerGPU, 1)))
	}
	return prices
}

// sizeOf is a node's size, coarse enough that machines of one type are alike:
// kernels keep some megabytes more or less of the same memory for themselves.
func sizeOf(n *corev1.Node, cards int64) string {
	const coarse = 4 << 30
	c := amounts(n.Status.Capacity)
	return fmt.Sprintf("%dx%d/%d", c[v1alpha1.CPU].Int64()/1000, (c[v1alpha1.Memory].Int64()+coarse/2)/coarse, cards)
}

// kind is what of the facts a node is made of and cannot easily be changed.
func (f facts) kind() facts {
	return facts{Architecture: f.Architecture, Location: f.Location, GPUs: f.GPUs, Pool: f.Pool, Size: f.Size}
}

// key identifies equal facts.
func (f facts) key() string {
	data, err := json.Marshal(f)
	if err != nil {
		panic(fmt.Sprintf("facts of a node do not encode: %v", err)) // plain data always does
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:3])
}
