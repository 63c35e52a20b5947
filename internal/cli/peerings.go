package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/cli/consumers"
	"github.com/fleetbroker/fleetbroker/internal/cli/tables"
	"github.com/fleetbroker/fleetbroker/internal/delivery/access"
	"github.com/fleetbroker/fleetbroker/internal/ui/view"
)

// peeringState is a pair of clusters that contracts need, and how it is.
type peeringState struct {
	view.Peering
	// Since is when the oldest of its contracts was reserved.
	Since v1alpha1.Time `json:"since,omitzero"`
	// Modules are Liqo's, with their health; absent when the consumer was not asked.
	Modules map[string]string `json:"modules,omitempty"`
}

// peerings are those that held contracts need; with kubeconfigs the consumers are asked
// how they are, and say which virtual nodes they have.
func (g *gathered) peerings(ctx context.Context, kubeconfigs access.Kubeconfigs) ([]peeringState, []consumers.Answer) {
	out := []peeringState{}
	for _, p := range g.facts().Peerings() {
		state := peeringState{Peering: p}
		for _, c := range g.ledger.Consumer(p.Consumer) {
			if c.Spec.Provider == p.Provider && c.Status.Phase.Held() && (state.Since.IsZero() || c.Spec.Term.Start.Before(state.Since.Time)) {
				state.Since = c.Spec.Term.Start
			}
		}
		out = append(out, state)
	}
	if kubeconfigs.Dir == "" {
		return out, nil
	}
	answers := consumers.Ask(ctx, g.fleet.Clusters, kubeconfigs)
	for _, a := range answers {
		for i := range out {
			if out[i].Consumer == a.State.Cluster {
				out[i].Modules = a.Modules[liqoID(g, out[i].Provider)]
			}
		}
	}
	return out, answers
}

func liqoID(in *gathered, cluster string) string {
	if c := in.fleet.Clusters[cluster]; c != nil && c.Spec.Liqo.ClusterID != "" {
		return c.Spec.Liqo.ClusterID
	}
	return cluster
}

func peeringTable(v tables.View, list []peeringState, in *gathered) *tables.Table {
	t := tables.New(v, "CONSUMER", "PROVIDER", ">CONTRACTS", ">ACTIVE", ">GPU=gpus", ">"+in.perHour()+"=hourly", "MODULES=health", ">AGE=since")
	for _, p := range list {
		var modules []string
		for _, m := range sortedNames(p.Modules) {
			modules = append(modules, m+" "+p.Modules[m])
		}
		t.Row(p.Consumer, p.Provider, p.Contracts, p.Active, p.GPUs, t.Money(p.Hourly), strings.Join(modules, ", "), t.Age(p.Since))
	}
	return t
}

func getPeerings(ctx context.Context, in *gathered, o getOptions) (*tables.Table, any) {
	all, answers := in.peerings(ctx, o.kubeconfigs)
	for _, a := range answers {
		if a.State.Error != "" {
			fmt.Fprintf(o.streams.Err, "fleetbroker: cannot ask %s: %s\n", a.State.Cluster, a.State.Error)
		}
	}
	list := []peeringState{}
	for _, p := range all {
		if o.wanted("", p.Consumer) || o.wanted("", p.Provider) {
			list = append(list, p)
		}
	}
	t := peeringTable(o.view(), list, in)
	return t, tables.Listed(t, list)
}
