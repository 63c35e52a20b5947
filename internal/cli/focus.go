package cli

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/audit"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
)

// focusColumns are those of the FinOps Open Cost and Usage Specification 1.0
// (focus.finops.org/focus-columns), in order of name, all of them: a column
// that does not apply is empty, which is null there.
var focusColumns = []string{
	"AvailabilityZone", "BilledCost", "BillingAccountId", "BillingAccountName", "BillingCurrency", "BillingPeriodEnd", "BillingPeriodStart",
	"ChargeCategory", "ChargeClass", "ChargeDescription", "ChargeFrequency", "ChargePeriodEnd", "ChargePeriodStart",
	"CommitmentDiscountCategory", "CommitmentDiscountId", "CommitmentDiscountName", "CommitmentDiscountStatus", "CommitmentDiscountType",
	"ConsumedQuantity", "ConsumedUnit", "ContractedCost", "ContractedUnitPrice", "EffectiveCost", "InvoiceIssuerName", "ListCost", "ListUnitPrice",
	"PricingCategory", "PricingQuantity", "PricingUnit", "ProviderName", "PublisherName", "RegionId", "RegionName",
	"ResourceId", "ResourceName", "ResourceType", "ServiceCategory", "ServiceName", "SkuId", "SkuPriceId", "SubAccountId", "SubAccountName", "Tags",
}

// writeFocus writes charges that have accrued as rows of FOCUS: the fleet is the
// billing account, tenants are its sub-accounts, contracts the resources, and
// the unit that is priced is an hour of the contract.
func writeFocus(w io.Writer, f *fleet.Fleet, books ledger.Books, to string, charges []audit.Charge) error {
	out := csv.NewWriter(w)
	if err := out.Write(focusColumns); err != nil {
		return err
	}
	for i := range charges {
		c := &charges[i]
		if c.Forecast {
			continue
		}
		row, err := focusRow(f, books, to, c)
		if err != nil {
			return err
		}
		cells := make([]string, len(focusColumns))
		for k, name := range focusColumns {
			cells[k] = row[name]
		}
		if err := out.Write(cells); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

func focusRow(f *fleet.Fleet, books ledger.Books, to string, c *audit.Charge) (map[string]string, error) {
	k, price := c.Contract, c.Contract.Spec.Price
	var figures [4]v1alpha1.Decimal
	for i, d := range []v1alpha1.Decimal{c.Cost.Amount, c.Cost.List, price.Hourly, price.List} {
		var err error
		if figures[i], err = exchange(books, d, price.Currency, to, c.To); err != nil {
			return nil, err
		}
	}
	hours := v1alpha1.DecimalFromInt(int64(c.To.Sub(c.From.Time)/time.Second)).DivInt(3600, 6).String()
	start, end := books.MonthBounds(c.From)
	tags, err := json.Marshal(focusTags(c))
	if err != nil {
		return nil, err
	}
	category := "Standard"
	switch price.Class {
	case v1alpha1.Spot:
		category = "Dynamic"
	case v1alpha1.Reserved:
		category = "Committed"
	}
	stamp := func(t v1alpha1.Time) string { return t.UTC().Format(time.RFC3339) }
	region := regionOf(f, k)
	return map[string]string{
		"BilledCost": figures[0].String(), "ContractedCost": figures[0].String(), "EffectiveCost": figures[0].String(), "ListCost": figures[1].String(),
		"ContractedUnitPrice": figures[2].String(), "ListUnitPrice": figures[3].String(), "BillingCurrency": to,
		"BillingAccountId": f.Name, "BillingAccountName": f.Name, "SubAccountId": k.Metadata.Namespace, "SubAccountName": k.Metadata.Namespace,
		"BillingPeriodStart": stamp(start), "BillingPeriodEnd": stamp(end), "ChargePeriodStart": stamp(c.From), "ChargePeriodEnd": stamp(c.To),
		"ChargeCategory": "Usage", "ChargeFrequency": "Usage-Based",
		"ChargeDescription": fmt.Sprintf("%s/%s on %s/%s", k.Metadata.Namespace, k.Spec.Intent.Name, k.Spec.Provider, k.Spec.Flavor),
		"ConsumedQuantity":  hours, "ConsumedUnit": "Hours", "PricingQuantity": hours, "PricingUnit": "Hours", "PricingCategory": category,
		"InvoiceIssuerName": f.Name, "ProviderName": k.Spec.Provider, "PublisherName": k.Spec.Provider, "RegionId": region, "RegionName": region,
		"ResourceId": k.Metadata.Name, "ResourceName": k.Metadata.Name, "ResourceType": "Contract", "ServiceCategory": "Compute", "ServiceName": "GPU capacity",
		"SkuId": k.Spec.Provider + "/" + k.Spec.Flavor, "SkuPriceId": k.Spec.Provider + "/" + k.Spec.Flavor + "/" + string(price.Class), "Tags": string(tags),
	}, nil
}

// focusTags are an intent's labels, and where the capacity appeared.
func focusTags(c *audit.Charge) map[string]string {
	out := map[string]string{"fleetbroker.io/intent": c.Contract.Spec.Intent.Name, "fleetbroker.io/consumer": c.Contract.Spec.Consumer}
	for name, value := range c.Labels {
		out[name] = value
	}
	if g := c.Contract.Spec.GPUs; g != nil {
		out["fleetbroker.io/gpu"] = fmt.Sprintf("%dx %s", g.Count, g.Model)
	}
	return out
}
