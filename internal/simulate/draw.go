package simulate

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/market"
)

// rows is the demand that is simulated: the table's, or, with a load, so much
// drawn from it.
//
// A load is made as the published comparison of scheduling policies does it
// (ATC 2023): the table once, then rows drawn from it again with a seed until
// all of them ask for load times the GPUs there are (rows drawn out of it where
// it asks for more), and the whole shuffled. Arrivals come at equal distances,
// a second where nothing ever leaves and else over the span of the table.
func (o *Options) rows() []market.Demand {
	if o.Load <= 0 {
		return o.Demand
	}
	draw := rand.New(rand.NewPCG(o.Seed, 0x6c6f6164)) //nolint:gosec // a simulation, not a secret
	var supply, asked int64
	for _, f := range o.flavors {
		units := int64(1)
		if f.Spec.GPU != nil {
			units = max(int64(f.Spec.GPU.UnitsPerGPU), 1)
		}
		supply += f.Spec.Capacity[v1alpha1.GPU].Int64() * thousands / units
	}
	want := int64(o.Load * float64(supply))
	rows := slices.Clone(o.Demand)
	var last int64
	for i := range rows {
		asked += rows[i].Milli()
		last = max(last, rows[i].Created)
	}
	if asked == 0 {
		return rows
	}
	draw.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	for asked > want && len(rows) > 0 {
		asked -= rows[len(rows)-1].Milli()
		rows = rows[:len(rows)-1]
	}
	for {
		d := o.Demand[draw.IntN(len(o.Demand))]
		if asked+d.Milli() > want {
			break
		}
		asked += d.Milli()
		rows = append(rows, d)
	}
	draw.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	for i := range rows {
		d := &rows[i]
		at := int64(i)
		if !o.Stay {
			at = last * int64(i) / int64(len(rows))
		}
		if d.Deleted >= 0 {
			d.Deleted = at + d.Deleted - d.Created
		}
		d.Created = at
		d.Name = fmt.Sprintf("%s-%d", d.Name, i)
	}
	return rows
}

// nodesInCluster is how many nodes of a trace make a cluster when its nodes are
// dealt out: those of the openb trace then make a hundred.
const nodesInCluster = 12

// spread makes n provider clusters. Clusters that a table names are taken in
// turn, and again under another name when there are fewer (a provider may well
// have two in a region); the nodes of a trace, which names none, are dealt out
// by the dozen, every n-th to the same, so that each gets a mixture.
func spread(flavors []*v1alpha1.Flavor, clusters []*v1alpha1.Cluster, n int) ([]*v1alpha1.Flavor, []*v1alpha1.Cluster) {
	var outF []*v1alpha1.Flavor
	var outC []*v1alpha1.Cluster
	cluster := func(of *v1alpha1.Cluster, name string) *v1alpha1.Cluster {
		c := *of
		c.Metadata.Name = name
		outC = append(outC, &c)
		return &c
	}
	put := func(f *v1alpha1.Flavor, provider, name string) {
		c := *f
		c.Metadata.Namespace, c.Metadata.Name = provider, name
		outF = append(outF, &c)
	}
	if len(clusters) == 1 && len(flavors) > nodesInCluster {
		base := clusters[0].Metadata.Name
		stride := max(len(flavors)/nodesInCluster, 1)
		for k := range n {
			c := cluster(clusters[0], fmt.Sprintf("%s-%03d", base, k))
			for i := k % stride; i < len(flavors); i += stride {
				put(flavors[i], c.Metadata.Name, flavors[i].Metadata.Name)
			}
		}
		return outF, outC
	}
	byCluster := map[string][]*v1alpha1.Flavor{}
	for _, f := range flavors {
		byCluster[f.Metadata.Namespace] = append(byCluster[f.Metadata.Namespace], f)
	}
	known := map[string]*v1alpha1.Cluster{}
	for _, c := range clusters {
		known[c.Metadata.Name] = c
	}
	names := slices.SortedFunc(maps.Keys(known), func(a, b string) int { return cmp.Compare(a, b) })
	for k := range n {
		name := names[k%len(names)]
		as := name
		if again := k / len(names); again > 0 {
			as = fmt.Sprintf("%s-%d", name, again+1)
		}
		cluster(known[name], as)
		for _, f := range byCluster[name] {
			put(f, as, f.Metadata.Name)
		}
	}
	return outF, outC
}
