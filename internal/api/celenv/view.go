package celenv

import (
	"math"
	"reflect"
	"sync"

	"github.com/google/cel-go/cel"

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

// view is what one evaluation sees, made as far as it is looked at. Nothing of it lives longer
// than that, so that the next takes the same room.
type view struct {
	facts  Facts
	flavor flavorView
	gpu    gpuView
	price  priceView
	want   want
}

// want is what a replica of an intent asks for, in the order of the names.
type want struct {
	of      *v1alpha1.ResourceIntent
	amounts v1alpha1.Resources
	names   []string
}

// wanted is what an intent's replica asks for; of none it is nothing.
func (v *view) wanted() *want {
	if in := v.facts.Intent; v.want.amounts == nil || v.want.of != in {
		v.want = want{of: in, amounts: v1alpha1.Resources{}}
		if in != nil {
			v.want.amounts = v.want.amounts.Add(in.Spec.Resources.Named)
			if g := in.Spec.Resources.GPU; g != nil {
				v.want.amounts[v1alpha1.GPU] = v1alpha1.AmountOf(int64(max(g.Count, 1)))
			}
		}
		v.want.names = v.want.amounts.Names()
	}
	return &v.want
}

var views = sync.Pool{New: func() any { return &view{} }}

// ResolveName implements cel.Activation.
func (v *view) ResolveName(name string) (any, bool) {
	switch name {
	case "intent":
		return intentType.value(viewIntent(v.facts.Intent)), true
	case "flavor":
		return flavorType.value(v.viewFlavor()), true
	case "cluster":
		return clusterType.value(viewCluster(v.facts.Cluster)), true
	}
	return nil, false
}

// Parent implements cel.Activation.
func (v *view) Parent() cel.Activation { return nil }

func viewIntent(in *v1alpha1.ResourceIntent) reflect.Value {
	if in == nil {
		return reflect.ValueOf(&intentView{}).Elem()
	}
	m := in.Metadata
	return reflect.ValueOf(&intentView{m.Name, m.Namespace, m.Labels, m.Annotations, in.Spec}).Elem()
}

func (v *view) viewFlavor() reflect.Value {
	f, out := &v.facts, &v.flavor
	*out, v.price = flavorView{Price: &v.price}, priceView{Hourly: math.Inf(1)}
	if f.Flavor == nil {
		return reflect.ValueOf(out).Elem()
	}
	out.Name, out.Provider, out.FlavorSpec = f.Flavor.Metadata.Name, f.Flavor.Metadata.Namespace, f.Flavor.Spec
	out.Location = f.Location.Over(f.Flavor.Spec.Location)
	if f.Location == (v1alpha1.Location{}) && f.Cluster != nil {
		out.Location = f.Cluster.Spec.Location.Over(f.Flavor.Spec.Location)
	}
	if g := f.Flavor.Spec.GPU; g != nil {
		v.gpu = gpuView{*g, countOf(f.Flavor), memoryGi(g)}
		out.GPU = &v.gpu
	}
	if price := v.priceOf(); price != nil {
		v.price = priceView{*price, hourly(price, f.Flavor, v.wanted())}
	}
	return reflect.ValueOf(out).Elem()
}

// priceOf is the price that holds for the flavor, nil for none.
func (v *view) priceOf() *v1alpha1.Price {
	switch f := &v.facts; {
	case f.Price != nil:
		return f.Price
	case f.Flavor == nil:
		return nil
	default:
		return f.Flavor.Spec.Price
	}
}

func countOf(f *v1alpha1.Flavor) int64 { return f.Spec.Capacity[v1alpha1.GPU].Int64() }

func memoryGi(g *v1alpha1.FlavorGPU) int64 { return g.Memory.Int64() >> 30 }

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
func hourly(p *v1alpha1.Price, f *v1alpha1.Flavor, want *want) float64 {
	if p.Flat != nil {
		by := v1alpha1.GPU
		if f.Spec.Capacity[by].IsZero() {
			by = v1alpha1.CPU
		}
		if f.Spec.Capacity[by].IsZero() {
			return p.Flat.Float()
		}
		return p.Flat.Float() * float64(want.amounts[by].Int64()) / float64(f.Spec.Capacity[by].Int64())
	}
	sum := 0.0
	for _, name := range want.names {
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
			sum += d.Float() * float64(want.amounts[name].Int64()) / unit
		}
	}
	return sum
}
