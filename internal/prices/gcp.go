package prices

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/gpunames"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// gpuOfGCP finds the model in a SKU's description: "Nvidia Tesla T4 GPU running
// in Belgium", "Nvidia H100 80GB GPU attached to Spot Preemptible VMs running
// in Iowa".
var gpuOfGCP = regexp.MustCompile(`^(?:(?:Spot Preemptible|Preemptible) )?(.+?) GPU (?:attached to (?:Spot )?Preemptible VMs )?running in `)

// GCP reads what the Cloud Billing Catalog answers for the SKUs of Compute
// Engine (cloudbilling.googleapis.com, services/6F81-5844-456A/skus): GPUs are
// SKUs of their own there, the rest of a machine comes on top.
func GCP(in io.Reader) (*Answer, error) {
	var doc struct {
		SKUs []struct {
			Description string
			Category    struct{ ResourceGroup, UsageType string }
			Regions     []string `json:"serviceRegions"`
			PricingInfo []struct {
				PricingExpression struct {
					UsageUnit   string
					TieredRates []struct {
						UnitPrice struct {
							CurrencyCode string
							Units        json.Number
							Nanos        int64
						}
					}
				}
			}
		} `json:"skus"`
		NextPageToken string
	}
	if err := textOf(in, pageLimits).decode(&doc); err != nil {
		return nil, fmt.Errorf("read Google's SKUs: %w", err)
	}
	if doc.SKUs == nil {
		return nil, fmt.Errorf("it has no skus: is it the answer of services/6F81-5844-456A/skus?")
	}
	out := &Answer{Next: doc.NextPageToken}
	for i := range doc.SKUs {
		s := &doc.SKUs[i]
		if s.Category.ResourceGroup != "GPU" || (s.Category.UsageType != "OnDemand" && s.Category.UsageType != "Preemptible") {
			continue
		}
		m := gpuOfGCP.FindStringSubmatch(s.Description)
		if m == nil || len(s.PricingInfo) == 0 || len(s.PricingInfo[0].PricingExpression.TieredRates) == 0 {
			out.Notes = append(out.Notes, fmt.Sprintf("SKU %q: no model and price are found in it; left out", s.Description))
			continue
		}
		e := s.PricingInfo[0].PricingExpression
		if e.UsageUnit != "h" {
			out.Notes = append(out.Notes, fmt.Sprintf("SKU %q: it is sold by %q and not by the hour; left out", s.Description, e.UsageUnit))
			continue
		}
		unit := e.TieredRates[len(e.TieredRates)-1].UnitPrice
		price, err := money(unit.Units.String(), unit.Nanos)
		if err != nil {
			return nil, fmt.Errorf("read SKU %q: %w", s.Description, err)
		}
		if price.Sign() <= 0 {
			continue // of what is not sold by it
		}
		q := Quote{Currency: unit.CurrencyCode}.of(gcpCard(m[1]), v1alpha1.Amount{})
		if s.Category.UsageType == "OnDemand" {
			q.PerHour = v1alpha1.UnitPrices{"gpu": price}
		} else {
			q.Spot = v1alpha1.UnitPrices{"gpu": price}
		}
		for _, q.Region = range s.Regions {
			if err := out.add(q); err != nil {
				return nil, fmt.Errorf("read SKU %q: %w", s.Description, err)
			}
		}
	}
	return out, nil
}

// gcpCard is a GPU's name as Google writes it. An A100 without a size is that of
// 40 GB, a V100 that of 16 (cloud.google.com/compute/docs/gpus).
func gcpCard(name string) string {
	switch bare := gpunames.Model(strings.ReplaceAll(name, "Tesla ", "")); {
	case !gpunames.Named(name).IsZero():
	case bare == "nvidia-a100":
		return "A100-40GB"
	case bare == "nvidia-v100":
		return "V100-16GB"
	}
	return strings.ReplaceAll(name, "Tesla ", "")
}

// money is so many units and billionths of one, of which neither is positive where the other is
// negative (google.type.Money).
func money(units string, nanos int64) (v1alpha1.Decimal, error) {
	n, err := strconv.ParseInt(cmp.Or(units, "0"), 10, 64)
	const most = 1_000_000_000
	if err != nil || n < -most || n > most || nanos <= -most || nanos >= most || n > 0 && nanos < 0 || n < 0 && nanos > 0 {
		return v1alpha1.Decimal{}, fmt.Errorf("%q units and %d nanos are no price an hour", units, nanos)
	}
	return v1alpha1.DecimalFromInt(nanos).Div(v1alpha1.DecimalFromInt(most), 9).Add(v1alpha1.DecimalFromInt(n)), nil
}
