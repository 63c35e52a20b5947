package prices

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/market"
)

// CSV reads a table of offers. Its rows name their clusters themselves, as
// "<provider>-<region>", so a quote's region is the whole name.
func CSV(in io.Reader) (*Answer, error) {
	t, err := market.ReadCSV(textOf(in, tableLimits), "nodes")
	if err != nil {
		return nil, err
	}
	out := &Answer{}
	for _, f := range t.Flavors {
		p, g := f.Spec.Price, f.Spec.GPU
		switch {
		case p == nil:
			out.Notes = append(out.Notes, f.Ref()+": it has no price; left out")
		case g == nil:
			out.Notes = append(out.Notes, f.Ref()+": it has no GPU; left out")
		case g.UnitsPerGPU > 1:
			out.Notes = append(out.Notes, f.Ref()+": it has a part of a card, whose price is not that of a card; left out")
		default:
			q := Quote{Region: f.Metadata.Namespace, Machine: f.Metadata.Name, Currency: p.Currency, PerHour: p.PerHour, Spot: p.Spot}
			if err := out.add(q.of(g.Model, g.Memory.Amount)); err != nil {
				return nil, fmt.Errorf("read the price of %s: %w", f.Ref(), err)
			}
		}
	}
	return out, nil
}

// configKeys are the custom prices of OpenCost (opencost.io, "On-premises
// pricing"; Kubecost's pricing-configs has the same keys), each an amount an
// hour: for a core, a GiB of memory, a GPU, a GiB of storage.
var configKeys = map[string]struct {
	unit string
	spot bool
}{
	"CPU": {"cpu", false}, "spotCPU": {"cpu", true}, "RAM": {"memoryGi", false}, "spotRAM": {"memoryGi", true},
	"GPU": {"gpu", false}, "spotGPU": {"gpu", true}, "storage": {"storageGi", false},
}

// ConfigMap reads a Kubernetes ConfigMap with OpenCost's custom prices, as keys
// of their own or as JSON under default.json. It names neither a currency nor
// the model of its GPU: those are the caller's.
func ConfigMap(in io.Reader, currency string, models []string) (*Answer, error) {
	var doc struct {
		Kind string
		Data map[string]string
	}
	b, err := io.ReadAll(textOf(in, configLimits))
	if err != nil {
		return nil, fmt.Errorf("read the ConfigMap: %w", err)
	}
	if err := yaml.Unmarshal(b, &doc); err != nil {
		return nil, fmt.Errorf("read the ConfigMap: %w", err)
	}
	if doc.Kind != "ConfigMap" || len(doc.Data) == 0 {
		return nil, fmt.Errorf("it is no ConfigMap with data: it has kind %q", doc.Kind)
	}
	data := doc.Data
	if text := data["default.json"]; text != "" {
		var inside map[string]any
		if err := json.Unmarshal([]byte(text), &inside); err != nil {
			return nil, fmt.Errorf("read default.json of the ConfigMap: %w", err)
		}
		data = map[string]string{}
		for k, v := range inside {
			data[k] = strings.Trim(fmt.Sprint(v), `"`)
		}
	}
	onDemand, spot := v1alpha1.UnitPrices{}, v1alpha1.UnitPrices{}
	for key, to := range configKeys {
		text := data[key]
		if text == "" {
			continue
		}
		d, err := v1alpha1.ParseDecimal(text)
		if err != nil || d.Sign() < 0 {
			return nil, fmt.Errorf("read %s of the ConfigMap: %q is no price", key, text)
		}
		if to.spot {
			spot[to.unit] = d
		} else {
			onDemand[to.unit] = d
		}
	}
	if len(onDemand) == 0 {
		return nil, fmt.Errorf("the ConfigMap has none of the keys CPU, RAM, GPU and storage")
	}
	_, hasGPU := onDemand["gpu"]
	if hasGPU && len(models) == 0 {
		return nil, fmt.Errorf("the ConfigMap prices a GPU and does not say which: name its models")
	}
	plain := Quote{Currency: currency, PerHour: without(onDemand, "gpu"), Spot: without(spot, "gpu")}
	out := &Answer{}
	var list []Quote
	if len(plain.PerHour) > 0 {
		list = append(list, plain)
	}
	for _, m := range models {
		list = append(list, Quote{Currency: currency, PerHour: onDemand, Spot: spot}.of(m, v1alpha1.Amount{}))
	}
	for _, q := range list {
		if err := out.add(q); err != nil {
			return nil, fmt.Errorf("read the prices of the ConfigMap: %w", err)
		}
	}
	return out, nil
}

func without(p v1alpha1.UnitPrices, name string) v1alpha1.UnitPrices {
	out := v1alpha1.UnitPrices{}
	for k, d := range p {
		if k != name {
			out[k] = d
		}
	}
	return out
}
