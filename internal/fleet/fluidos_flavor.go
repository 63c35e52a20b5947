package fleet

import (
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/strictyaml"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/fleet/fluidos"
)

// convertFlavor: the price is of the whole flavor, hence flat; a flavor that
// is not available is cordoned.
func convertFlavor(c *checker, doc *strictyaml.Document, provider string) any {
	f := decodeForeign[fluidos.Flavor](c, doc)
	if f == nil {
		return nil
	}
	if f.Spec.FlavorType.TypeIdentifier != "K8Slice" {
		c.errorf(at("spec", "flavorType", "typeIdentifier"), "NotConvertible", "flavors of type %s are not read here; only K8Slice", f.Spec.FlavorType.TypeIdentifier)
		return nil
	}
	data, p := f.Spec.FlavorType.TypeData, at("spec", "flavorType", "typeData", "characteristics")
	out := &v1alpha1.Flavor{Metadata: v1alpha1.Metadata{Name: fluidos.Name(f.Metadata.Name), Namespace: provider, Labels: f.Metadata.Labels}}
	s := &out.Spec
	s.Type, s.Architecture, s.Cordon = "K8Slice", data.Characteristics.Architecture, !f.Spec.Availability
	s.Location = v1alpha1.Location{City: f.Spec.Location.City}
	if len(f.Spec.Location.Country) == 2 {
		s.Location.Country = strings.ToUpper(f.Spec.Location.Country)
	}
	s.Properties.LatencyMs = data.Properties.Latency
	s.Properties.Carbon, s.Properties.SecurityStandards = data.Properties.Intensity(), data.Properties.SecurityStandards
	s.Capacity = c.amounts(p, map[string]v1alpha1.Quantity{
		v1alpha1.CPU: data.Characteristics.CPU, v1alpha1.Memory: data.Characteristics.Memory,
		v1alpha1.Pods: data.Characteristics.Pods, v1alpha1.EphemeralStorage: data.Characteristics.Storage,
	})
	if g := data.Characteristics.GPU; g != nil && g.Model != "" {
		if g.Count == 0 {
			c.warnf(p.in("gpu"), "NotConvertible", "FLUIDOS does not say how many GPUs there are; add count, or none is offered")
		} else {
			s.Capacity[v1alpha1.GPU] = v1alpha1.AmountOf(g.Count)
			s.GPU = &v1alpha1.FlavorGPU{
				Vendor: strings.ToLower(g.Vendor), Model: strings.ToLower(g.Model), Tier: g.Tier, Architecture: g.Architecture, Interconnect: g.Interconnect,
				ComputeCapability: g.ComputeCapability, Memory: v1alpha1.MemorySize{Amount: g.Memory.Amount(v1alpha1.Memory)},
			}
		}
	}
	part := data.Policies.Partitionability
	s.Partition = &v1alpha1.Partition{
		Min:  c.amounts(p, map[string]v1alpha1.Quantity{v1alpha1.CPU: part.CPUMin, v1alpha1.Memory: part.MemoryMin, v1alpha1.Pods: part.PodsMin, v1alpha1.GPU: part.GPUMin}),
		Step: c.amounts(p, map[string]v1alpha1.Quantity{v1alpha1.CPU: part.CPUStep, v1alpha1.Memory: part.MemoryStep, v1alpha1.Pods: part.PodsStep, v1alpha1.GPU: part.GPUStep}),
	}
	if len(s.Partition.Min) == 0 && len(s.Partition.Step) == 0 {
		s.Partition = nil
	}
	price, wrong := f.Spec.Price.Hourly()
	if wrong != nil {
		c.errorf(at("spec", "price", wrong.Field), wrong.Reason, "%s", wrong.Message)
	}
	s.Price = price
	return out
}

// amounts reads the quantities that are given, capacity rounded down.
func (c *checker) amounts(p place, in map[string]v1alpha1.Quantity) v1alpha1.Resources {
	out := v1alpha1.Resources{}
	for _, name := range sortedKeys(in) {
		if in[name] == "" {
			continue
		}
		a, err := fluidos.Floor(name, string(in[name]))
		if err != nil {
			c.errorf(p, "BadValue", "%s", err)
			continue
		}
		if !a.IsZero() {
			out[name] = a
		}
	}
	return out
}
