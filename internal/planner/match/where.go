package match

import (
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
)

// Labelled reports whether a label is on the flavor or on its cluster; the
// flavor's own value goes before the cluster's.
func Labelled(o *inventory.Offer, key, value string) bool {
	if v, ok := o.Flavor.Spec.Labels[key]; ok {
		return v == value
	}
	if o.Cluster == nil {
		return false
	}
	v, ok := o.Cluster.Spec.Labels[key]
	return ok && v == value
}

// pair is two clusters or regions, in order.
type pair struct{ a, b string }

func pairOf(a, b string) pair {
	if b < a {
		a, b = b, a
	}
	return pair{a, b}
}

// Latency is that from a consumer to an offer in milliseconds: the fleet's
// entry for the clusters, else for a cluster and a region, else for the
// regions; without any the flavor's own figure.
func (m *Matcher) Latency(consumer string, o *inventory.Offer) (ms int64, known bool) {
	if len(m.latencies) == 0 {
		return ownLatency(o)
	}
	var home string
	if c := m.facts.Clusters[consumer]; c != nil {
		home = c.Spec.Location.Region
	}
	for _, p := range [...]pair{
		pairOf(consumer, o.Provider), pairOf(consumer, o.Location.Region),
		pairOf(home, o.Provider), pairOf(home, o.Location.Region),
	} {
		if p.a == "" {
			continue
		}
		if ms, ok := m.latencies[p]; ok {
			return ms, true
		}
	}
	return ownLatency(o)
}

// ownLatency is the flavor's own figure.
func ownLatency(o *inventory.Offer) (ms int64, known bool) {
	if l := o.Flavor.Spec.Properties.LatencyMs; l != nil {
		return *l, true
	}
	return 0, false
}

// Domain is where an offer is among domains of a kind, "" when it states none. Zones
// are distinguished by their region. A flavor's own label goes before its cluster's, and
// its values are of its provider alone, as racks are; those of a Cluster file are the
// same for all.
func Domain(o *inventory.Offer, by, label string) string {
	if by != "label" {
		return DomainAt(o.Cluster, o.Provider, o.Location, by, label)
	}
	return labelled(o.Flavor, o.Provider, label, DomainAt(o.Cluster, o.Provider, o.Location, by, label))
}

// Domains are all that an offer is in of a kind, in order: several where its nodes bear
// several values of a label and the flavor itself none. Those are of its provider alone.
func Domains(o *inventory.Offer, by, label string) []string {
	if ByNode(o, by, label) {
		out := o.Places(label)
		for i := range out {
			out[i] = o.Provider + "/" + out[i]
		}
		return out
	}
	if d := Domain(o, by, label); d != "" {
		return []string{d}
	}
	return nil
}

// ByNode reports whether domains of a kind are of an offer's nodes, one by one.
func ByNode(o *inventory.Offer, by, label string) bool {
	if by != "label" || o == nil {
		return false
	}
	_, own := o.Flavor.Spec.Labels[label]
	return !own && o.HasPlaces(label)
}

// NodesIn are the nodes of an offer that are in one of Domains by a label; nil for all,
// where domains are not of nodes.
func NodesIn(o *inventory.Offer, by, label, domain string) func(node string) bool {
	if domain == "" || !ByNode(o, by, label) {
		return nil
	}
	return func(node string) bool {
		at := o.PlaceOf(label, node)
		return at != "" && o.Provider+"/"+at == domain
	}
}

// labelled is the domain by a label of a flavor, otherwise where it has none.
func labelled(f *v1alpha1.Flavor, provider, label, otherwise string) string {
	switch v, ok := f.Spec.Labels[label]; {
	case !ok:
		return otherwise
	case v == "":
		return ""
	default:
		return provider + "/" + v
	}
}

// DomainOf is Domain of an offer as the market has it, nil where there is none any more.
func DomainOf(cluster *v1alpha1.Cluster, provider string, o *model.Offer, by, label string) string {
	var at v1alpha1.Location
	switch {
	case o != nil:
		at = o.Location
	case cluster != nil:
		at = cluster.Spec.Location
	}
	d := DomainAt(cluster, provider, at, by, label)
	if o != nil && by == "label" {
		return labelled(o.Flavor, provider, label, d)
	}
	return d
}

// DomainAt is Domain of a provider that is somewhere; its cluster may be nil.
func DomainAt(cluster *v1alpha1.Cluster, provider string, at v1alpha1.Location, by, label string) string {
	switch by {
	case "provider":
		return provider
	case "region":
		return at.Region
	case "network":
		return at.Network
	case "label":
		if cluster == nil {
			return ""
		}
		return cluster.Spec.Labels[label]
	}
	if at.Zone == "" || at.Region == "" || strings.HasPrefix(at.Zone, at.Region) {
		return at.Zone
	}
	return at.Region + "/" + at.Zone
}
