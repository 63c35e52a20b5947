package celenv

import (
	"math"
	"reflect"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// The views are the kinds as expressions see them: metadata and spec side by
// side, with the few figures that everybody would otherwise compute.
type intentView struct {
	Name        string            `json:"name"`
	Tenant      string            `json:"tenant"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	v1alpha1.IntentSpec
}

type flavorView struct {
	Name     string     `json:"name"`
	Provider string     `json:"provider"`
	GPU      *gpuView   `json:"gpu,omitempty"`
	Price    *priceView `json:"price,omitempty"`
	v1alpha1.FlavorSpec
}

type gpuView struct {
	v1alpha1.FlavorGPU
	Count    int64 `json:"count"`
	MemoryGi int64 `json:"memoryGi"`
}

type priceView struct {
	v1alpha1.Price
	Hourly float64 `json:"hourly"`
}

type clusterView struct {
	Name string `json:"name"`
	v1alpha1.ClusterSpec
}

var (
	intentType  = objectOf(reflect.TypeFor[intentView](), "fleetbroker.intent")
	flavorType  = objectOf(reflect.TypeFor[flavorView](), "fleetbroker.flavor")
	clusterType = objectOf(reflect.TypeFor[clusterView](), "fleetbroker.cluster")
)

func viewIntent(in *v1alpha1.ResourceIntent) reflect.Value {
	if in == nil {
		return reflect.ValueOf(&intentView{}).Elem()
	}
	m := in.Metadata
	return reflect.ValueOf(&intentView{m.Name, m.Namespace, m.Labels, m.Annotations, in.Spec}).Elem()
}

func viewFlavor(f Facts) reflect.Value {
	v := &flavorView{Price: &priceView{Hourly: math.Inf(1)}}
	if f.Flavor == nil {
		return reflect.ValueOf(v).Elem()
	}
	v.Name, v.Provider, v.FlavorSpec = f.Flavor.Metadata.Name, f.Flavor.Metadata.Namespace, f.Flavor.Spec
	v.Location = f.Location.Over(f.Flavor.Spec.Location)
	if f.Location == (v1alpha1.Location{}) && f.Cluster != nil {
		v.Location = f.Cluster.Spec.Location.Over(f.Flavor.Spec.Location)
	}
	if g := f.Flavor.Spec.GPU; g != nil {
		v.GPU = &gpuView{*g, f.Flavor.Spec.Capacity[v1alpha1.GPU].Int64(), g.Memory.Int64() >> 30}
	}
	price := f.Flavor.Spec.Price
	if f.Price != nil {
		price = f.Price
	}
	if price != nil {
		v.Price = &priceView{*price, hourly(price, f.Flavor, f.Intent)}
	}
	return reflect.ValueOf(v).Elem()
}

func viewCluster(c *v1alpha1.Cluster) reflect.Value {
	if c == nil {
		return reflect.ValueOf(&clusterView{}).Elem()
	}
	return reflect.ValueOf(&clusterView{c.Metadata.Name, c.Spec}).Elem()
}

// hourly is what one replica of the intent's resources costs by the hour at
// the on-demand price, in the price's currency and before rounding up to the
// flavor's legal sizes. It is a float because expressions only compare it;
// money that is paid is computed in decimals by the planner. A flat price is
// shared by GPUs, or by CPU where the flavor has none.
func hourly(p *v1alpha1.Price, f *v1alpha1.Flavor, in *v1alpha1.ResourceIntent) float64 {
	want := v1alpha1.Resources{}
	if in != nil {
		want = want.Add(in.Spec.Resources.Named)
		if g := in.Spec.Resources.GPU; g != nil {
			want[v1alpha1.GPU] = v1alpha1.AmountOf(int64(max(g.Count, 1)))
		}
	}
	if p.Flat != nil {
		by := v1alpha1.GPU
		if f.Spec.Capacity[by].IsZero() {
			by = v1alpha1.CPU
		}
		if f.Spec.Capacity[by].IsZero() {
			return p.Flat.Float()
		}
		return p.Flat.Float() * float64(want[by].Int64()) / float64(f.Spec.Capacity[by].Int64())
	}
	sum := 0.0
	for _, name := range want.Names() {
		key, unit := name, 1.0
		switch name {
		case v1alpha1.CPU:
			unit = 1000
		case v1alpha1.Memory:
			key, unit = "memoryGi", 1<<30
		case v1alpha1.EphemeralStorage:
			key, unit = "storageGi", 1<<30
		}
		if d, ok := p.PerHour[key]; ok {
			sum += d.Float() * float64(want[name].Int64()) / unit
		}
	}
	return sum
}
