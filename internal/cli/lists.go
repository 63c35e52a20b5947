package cli

import (
	"cmp"
	"fmt"
	"sort"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/accelerators"
	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/onnodes"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/cli/tables"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/ui/view"
)

func getIntents(in *gathered, o getOptions) (*tables.Table, any) {
	t := tables.New(o.view(), "TENANT", "NAME", "STATE", ">REPLICAS", "GPU", "CONSUMER", "REASON", ">"+in.perHour()+"=hourly", ">AGE", "+MESSAGE")
	objects := []*v1alpha1.ResourceIntent{}
	facts := in.facts()
	for _, it := range in.fleet.Intents {
		m := it.Metadata
		if !o.wanted(m.Namespace, m.Name) {
			continue
		}
		objects = append(objects, it.ResourceIntent)
		state, reason, message, seen := "New", "", "", v1alpha1.Time{}
		if st := in.ledger.State(m.Namespace, m.Name); st != nil {
			state, reason, message, seen = string(st.Status.State), st.Status.Reason, st.Status.Message, st.Status.FirstSeen.At
		}
		if it.Problem != "" && state == "New" {
			state, reason, message = "Refused", it.ProblemCode, it.Problem
		}
		charged, hourly := 0, v1alpha1.Zero
		for _, c := range in.ledger.ByIntent(m.Namespace, m.Name) {
			if c.Status.Phase.Charged() {
				charged++
				hourly = hourly.Add(facts.Hourly(c))
			}
		}
		consumer := it.Spec.Consumer
		if ten := in.fleet.Tenants[m.Namespace]; ten != nil {
			consumer = ten.Spec.ConsumerOf(&it.Spec)
		}
		t.Row(m.Namespace, m.Name, state, fmt.Sprintf("%d/%s", charged, view.Replicas(it.Spec.Replicas)), view.Request(it.Spec.Resources.GPU), consumer, reason, t.Money(hourly), t.Age(seen), message)
	}
	return t, tables.Listed(t, objects)
}

func getContracts(in *gathered, o getOptions) (*tables.Table, any) {
	t := tables.New(o.view(), "NAME", "TENANT", "INTENT", "PHASE", "FLAVOR", "CONSUMER", "GPU", ">"+in.perHour()+"=hourly", ">AGE",
		"+TYPE", "+ENDS", "+REASON", "+RESOURCES", "+COMMIT")
	objects := []*v1alpha1.Contract{}
	facts := in.facts()
	for c := range in.ledger.Contracts() {
		m := c.Metadata
		if !o.wanted(m.Namespace, m.Name) || (ledger.Ended(c.Status.Phase) && !o.ended && len(o.names) == 0) {
			continue
		}
		objects = append(objects, c)
		gpu := "-"
		if g := c.Spec.GPUs; g != nil && g.Count > 0 {
			gpu = fmt.Sprintf("%dx %s", g.Count, tables.Dash(g.Model))
		}
		phase := string(c.Status.Phase)
		if (c.Status.Phase.Charged() || c.Status.Phase == v1alpha1.PhaseBooked) && c.Status.Reason != "" {
			phase += ", " + c.Status.Reason
		}
		if now := v1alpha1.TimeOf(o.streams.Now()); ledger.Expiring(c, now) {
			phase += ", expiring"
		}
		t.Row(m.Name, m.Namespace, c.Spec.Intent.Name, phase, c.Spec.Provider+"/"+c.Spec.Flavor, c.Spec.Consumer, gpu, t.Money(facts.Hourly(c)), t.Age(c.Spec.Term.Start),
			string(c.Spec.Price.Class), t.Until(c.Spec.Term.End), c.Status.Why(), tables.Resources(c.Spec.Resources), shortCommit(c.Spec.Intent.Commit))
	}
	return t, tables.Listed(t, objects)
}

func shortCommit(s string) string {
	if len(s) > 7 {
		return s[:7]
	}
	return s
}

func getFlavors(in *gathered, o getOptions) (*tables.Table, any) {
	t := tables.New(o.view(), "PROVIDER", "NAME", "TYPE", "GPU", ">FREE", ">CPU=freeCpu", ">MEMORY=freeMemory", ">GPU/H=gpuHourly", "REGION", "STATE", ">AGE",
		"+GPU MEMORY", "+TIER", "+POOL", "+CLASS", "+LABELS", "+NODES")
	objects := []listedFlavor{}
	facts := in.facts()
	for _, offer := range in.offers {
		f := offer.Flavor
		if !o.wanted("", f.Metadata.Name) && !o.wanted("", f.Ref()) && !o.wanted("", f.Metadata.Namespace) {
			continue
		}
		objects = append(objects, listedFlavor{f, offerStatus{offer.Price, offer.Sources.Price, offer.Location, offer.Sources.Location}})
		free := facts.Free(f)
		gpu, units := "-", "-"
		if g := f.Spec.GPU; g != nil {
			gpu = fmt.Sprintf("%dx %s", f.Spec.Capacity[v1alpha1.GPU].Int64(), strings.TrimSpace(g.Model+" "+g.Profile))
			units = free[v1alpha1.GPU].Max(v1alpha1.Amount{}).Canonical(v1alpha1.GPU)
			if more := view.Growth(f, free[v1alpha1.GPU]); !more.IsZero() {
				units += "+" + more.Canonical(v1alpha1.GPU) // an autoscaler would add them
			}
		}
		if what, left := accelerators.Columns(f.Spec.Capacity, free, in.fleet.Policy.Accelerators); gpu == "-" && what != "" {
			gpu, units = what, left
		}
		memory, tier := "-", "-"
		if g := f.Spec.GPU; g != nil {
			memory, tier = g.Memory.Canonical(v1alpha1.Memory), g.Tier
		}
		t.Row(f.Metadata.Namespace, f.Metadata.Name, cmp.Or(f.Spec.Type, "K8Slice"), gpu, units, free[v1alpha1.CPU].Canonical(v1alpha1.CPU), free[v1alpha1.Memory].Canonical(v1alpha1.Memory),
			marked(priceOf(offer.Price, t), offer.Sources.Price), marked(tables.Dash(offer.Location.Region), offer.Sources.Location), stateOf(offer, in.told(f)), t.Age(offer.Since),
			memory, tier, f.Spec.Pool, f.Spec.Class, labelList(f.Spec.Labels), onnodes.Count(f.Spec.Nodes))
	}
	return t, tables.Listed(t, objects)
}

// listedFlavor is a flavor as its provider describes it, with what holds for it.
type listedFlavor struct {
	*v1alpha1.Flavor
	Offer offerStatus `json:"offer"`
}

type offerStatus struct {
	Price        *v1alpha1.Price   `json:"price,omitempty"`
	PriceFrom    string            `json:"priceFrom,omitempty"`
	Location     v1alpha1.Location `json:"location,omitzero"`
	LocationFrom string            `json:"locationFrom,omitempty"`
}

// marked says of a value that nobody reviewed it.
func marked(value, source string) string {
	if source == v1alpha1.SourceReported && value != "-" {
		return value + " (reported)"
	}
	return value
}

func labelList(m map[string]string) string {
	var parts []string
	for k, v := range m {
		parts = append(parts, k+"="+v)
	}
	sort.Strings(parts)
	return strings.Join(parts, ",")
}

// priceOf is the on-demand price of a GPU, or of a core where there are none.
func priceOf(p *v1alpha1.Price, t *tables.Table) string {
	switch {
	case p == nil:
		return "-"
	case p.Flat != nil:
		return t.Money(*p.Flat).Text + " flat"
	}
	if d, ok := p.PerHour[v1alpha1.GPU]; ok {
		return t.Money(d).Text + " " + p.Currency
	}
	return "-"
}

// stateOf is how an offer stands. live says that a daemon told of it, and not a
// file.
func stateOf(o *model.Offer, live bool) string {
	switch {
	case o.Flavor.Spec.Cordon:
		return "Cordoned"
	case o.State == model.Silent:
		return "Silent"
	case o.State == model.Lost:
		return "Lost"
	case o.State == model.Withdrawn:
		return "Withdrawn"
	case o.Static && !live:
		return "Static"
	}
	return "Fresh"
}

func getClusters(in *gathered, o getOptions) (*tables.Table, any) {
	t := tables.New(o.view(), "NAME", "ROLES", "REGION", "COUNTRY", "DELIVERY", ">FLAVORS", ">GIVES", ">GETS", "STATE", ">AGE")
	objects := []listedCluster{}
	conditions := map[string][]planner.Condition{}
	for _, c := range in.conditions() {
		conditions[c.Provider] = append(conditions[c.Provider], c)
	}
	silent, rows := map[string]v1alpha1.Time{}, map[string]view.ProviderRow{}
	for _, offer := range in.offers {
		silent[offer.Flavor.Metadata.Namespace] = offer.Since
	}
	for _, r := range view.Clusters(in.shown(tree.Hash{}), in.books, in.now.Time) {
		rows[r.Name] = r
	}
	for _, name := range sortedNames(in.fleet.Clusters) {
		c, r := in.fleet.Clusters[name], rows[name]
		if !o.wanted("", name) {
			continue
		}
		objects = append(objects, listedCluster{c, conditions[name]})
		state := r.State
		if state == "Draining" {
			state += " until " + t.Until(r.Since).Text
		}
		for _, c := range conditions[name] {
			state += ", " + c.Type
		}
		t.Row(name, strings.Join(r.Roles, ","), c.Spec.Location.Region, c.Spec.Location.Country, tables.Dash(r.Delivery), r.Flavors, r.Gives, r.Gets, state, t.Age(silent[name]))
	}
	return t, tables.Listed(t, objects)
}

// listedCluster is a cluster's file with what people should look at.
type listedCluster struct {
	*v1alpha1.Cluster
	Conditions []planner.Condition `json:"conditions,omitempty"`
}

// conditions are those of the providers.
func (g *gathered) conditions() []planner.Condition {
	w := g.world()
	return planner.Conditions(&w)
}

func getTenants(in *gathered, o getOptions) (*tables.Table, any) {
	t := tables.New(o.view(), "NAME", "CONSUMERS", ">INTENTS", ">CONTRACTS", ">GPU", ">GPU QUOTA", ">"+in.perHour()+"=hourly", ">SPENT", ">BUDGET")
	objects := []*v1alpha1.Tenant{}
	intents := map[string]int{}
	for _, it := range in.fleet.Intents {
		intents[it.Metadata.Namespace]++
	}
	facts := in.facts()
	for _, name := range sortedNames(in.fleet.Tenants) {
		ten := in.fleet.Tenants[name]
		if !o.wanted(name, name) {
			continue
		}
		objects = append(objects, ten)
		totals := in.ledger.Totals(name)
		quota, budget := "-", "-"
		if q := ten.Spec.Quota; q != nil && q.GPU != nil {
			quota = fmt.Sprint(*q.GPU)
		}
		if b := ten.Spec.Budget; b != nil && b.Monthly != nil {
			budget = t.Money(*b.Monthly).Text + " " + view.CurrencyOr(b.Currency, in.fleet.Policy.Currency)
		}
		t.Row(name, strings.Join(ten.Spec.Consumers, ","), intents[name], totals.Contracts, view.Cards(totals), quota,
			t.Money(facts.TenantHourly(name)), spentText(facts, t, name), budget)
	}
	return t, tables.Listed(t, objects)
}

func sortedNames[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}
