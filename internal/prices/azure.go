package prices

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// azureMachines are the GPUs of Azure's sizes, which its prices do not name
// (learn.microsoft.com, "GPU accelerated virtual machine sizes").
var azureMachines = map[string]struct {
	model string
	gpus  int64
}{
	"NC6s_v3": {"V100-16GB", 1}, "NC12s_v3": {"V100-16GB", 2}, "NC24s_v3": {"V100-16GB", 4}, "NC24rs_v3": {"V100-16GB", 4},
	"NC4as_T4_v3": {"T4", 1}, "NC8as_T4_v3": {"T4", 1}, "NC16as_T4_v3": {"T4", 1}, "NC64as_T4_v3": {"T4", 4},
	"NC24ads_A100_v4": {"A100-80GB", 1}, "NC48ads_A100_v4": {"A100-80GB", 2}, "NC96ads_A100_v4": {"A100-80GB", 4},
	"NC40ads_H100_v5": {"H100-94GB", 1}, "NC80adis_H100_v5": {"H100-94GB", 2}, "NCC40ads_H100_v5": {"H100-94GB", 1},
	"ND40rs_v2": {"V100-32GB", 8}, "ND96asr_v4": {"A100-40GB", 8}, "ND96amsr_A100_v4": {"A100-80GB", 8},
	"ND96isr_H100_v5": {"H100-80GB", 8}, "ND96isr_H200_v5": {"H200", 8}, "ND96isr_MI300X_v5": {"MI300X", 8},
	"NV36ads_A10_v5": {"A10", 1}, "NV36adms_A10_v5": {"A10", 1}, "NV72ads_A10_v5": {"A10", 2},
}

// Azure reads what the Retail Prices API answers (prices.azure.com/api/retail/
// prices, learn.microsoft.com "Azure Retail Prices overview"): consumption of
// virtual machines, Linux, by the hour, on demand and spot.
func Azure(in io.Reader) (*Answer, error) {
	var doc struct {
		Items []struct {
			CurrencyCode, ArmRegionName, ArmSkuName, SkuName, MeterName, ProductName, ServiceName, UnitOfMeasure, Type string
			RetailPrice                                                                                                json.Number
		}
		NextPageLink string
	}
	if err := textOf(in, pageLimits).decode(&doc); err != nil {
		return nil, fmt.Errorf("read Azure's retail prices: %w", err)
	}
	if doc.Items == nil {
		return nil, fmt.Errorf("it has no Items: is it the answer of prices.azure.com/api/retail/prices?")
	}
	out := &Answer{Next: doc.NextPageLink}
	for i := range doc.Items {
		it := &doc.Items[i]
		windows := strings.Contains(it.ProductName, "Windows") || strings.HasSuffix(it.ProductName, " Win")
		if it.ServiceName != "Virtual Machines" || it.Type != "Consumption" || windows || strings.Contains(it.SkuName, "Low Priority") {
			continue
		}
		size := strings.TrimPrefix(it.ArmSkuName, "Standard_")
		if !strings.HasPrefix(size, "N") {
			continue // N is the family with accelerators
		}
		m, known := azureMachines[size]
		if !known {
			out.Notes = append(out.Notes, fmt.Sprintf("%s in %s: a size whose GPUs are not known; left out", it.ArmSkuName, it.ArmRegionName))
			continue
		}
		price, err := v1alpha1.ParseDecimal(it.RetailPrice.String())
		if err != nil || it.UnitOfMeasure != "1 Hour" {
			return nil, fmt.Errorf("read %s in %s: %q per %q is no price an hour", it.ArmSkuName, it.ArmRegionName, it.RetailPrice, it.UnitOfMeasure)
		}
		if price.Sign() <= 0 {
			continue
		}
		q := Quote{Region: it.ArmRegionName, Machine: it.ArmSkuName, Currency: it.CurrencyCode}.of(m.model, v1alpha1.Amount{})
		if strings.HasSuffix(it.SkuName, " Spot") || strings.HasSuffix(it.MeterName, " Spot") {
			q.Spot = perGPU(price, m.gpus)
		} else {
			q.PerHour = perGPU(price, m.gpus)
		}
		if err := out.add(q); err != nil {
			return nil, fmt.Errorf("read %s in %s: %w", it.ArmSkuName, it.ArmRegionName, err)
		}
	}
	return out, nil
}
