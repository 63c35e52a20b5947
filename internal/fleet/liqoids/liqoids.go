// Package liqoids holds that each cluster of a fleet has an id of its own in Liqo. By that id
// alone Liqo knows the other side of a peering: its tenant, its slices, its virtual nodes and
// the names of namespaces at providers. Two clusters with one id are one to it, and who uses
// the one reaches what is of the other.
//
// It judges values; package fleet knows where they are written and reports them.
//
// Pure functions; safe for concurrent use.
package liqoids

import (
	"fmt"
	"maps"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Shared is an id that another cluster has too.
type Shared struct {
	// At is the field that says it: that of the id, or the name where none is written.
	At []any
	// Why it is wrong, and what to write; "" where the id is the cluster's alone.
	Why string
}

// Of are the clusters whose id another has, by their names; file is where a cluster of a
// name is written.
func Of(clusters map[string]*v1alpha1.Cluster, file func(name string) string) map[string]Shared {
	names := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(clusters)) {
		id := v1alpha1.LiqoID(clusters, name)
		names[id] = append(names[id], name)
	}
	out := map[string]Shared{}
	for id, all := range names {
		for i, name := range all {
			if len(all) == 1 {
				break
			}
			other := all[0]
			if i == 0 {
				other = all[1]
			}
			s := Shared{At: []any{"spec", "liqo", "clusterID"}, Why: fmt.Sprintf("spec.liqo.clusterID is %s", id)}
			if clusters[name].Spec.Liqo.ClusterID == "" {
				s = Shared{At: []any{"metadata", "name"}, Why: fmt.Sprintf("the cluster's id in Liqo is its name %s, as no spec.liqo.clusterID is written", id)}
			}
			s.Why += ", which is that of " + file(other) + " too"
			if more := len(all) - 2; more > 0 {
				s.Why += fmt.Sprintf(" (and of %d more)", more)
			}
			s.Why += ": Liqo would take both for one cluster, and tenants of the one could reach what is of the other. Write in each the id that `liqoctl info` prints there; if they are one cluster, keep one file"
			out[name] = s
		}
	}
	return out
}
