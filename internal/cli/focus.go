package cli

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/escape"
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

// focusPlaces is how many decimals an hour's part and a mean price have: a second
// is no decimal part of an hour, and quantity times unit price has to be a cost.
const focusPlaces = 9

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
			cells[k] = escape.Cell(row[name])
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
	var figures [3]v1alpha1.Decimal
	for i, d := range []v1alpha1.Decimal{c.Cost.Amount, price.Hourly, price.List} {
		var err error
		if figures[i], err = exchange(books, d, price.Currency, to, c.To); err != nil {
			return nil, err
		}
	}
	seconds := int64(c.To.Sub(c.From.Time) / time.Second)
	hours := v1alpha1.DecimalFromInt(seconds).DivInt(3600, focusPlaces)
	billed, unit, listUnit := figures[0], figures[1], figures[2]
	if len(price.Windows) > 0 { // several prices held: this is their mean
		unit = billed.MulInt(3600).DivInt(max(seconds, 1), focusPlaces)
	}
	start, end := books.MonthBounds(c.From)
	tags, err := json.Marshal(focusTags(c))
	if err != nil {
		return nil, err
	}
	category := "Standard" // a reserved price too: "Committed" is for what a commitment with an id discounts
	if price.Class == v1alpha1.Spot {
		category = "Dynamic"
	}
	stamp := func(t v1alpha1.Time) string { return t.UTC().Format(time.RFC3339) }
	region := regionOf(f, k)
	place := k.Spec.Provider + "/" + k.Spec.Flavor
	return map[string]string{
		"BilledCost": billed.String(), "EffectiveCost": billed.String(), "BillingCurrency": to,
		"ContractedUnitPrice": unit.String(), "ContractedCost": unit.Mul(hours).String(),
		"ListUnitPrice": listUnit.String(), "ListCost": listUnit.Mul(hours).String(),
		"BillingAccountId": f.Name, "BillingAccountName": f.Name, "SubAccountId": k.Metadata.Namespace, "SubAccountName": k.Metadata.Namespace,
		"BillingPeriodStart": stamp(start), "BillingPeriodEnd": stamp(end), "ChargePeriodStart": stamp(c.From), "ChargePeriodEnd": stamp(c.To),
		"ChargeCategory": "Usage", "ChargeFrequency": "Usage-Based",
		"ChargeDescription": fmt.Sprintf("%s/%s on %s at %s %s an hour", k.Metadata.Namespace, k.Spec.Intent.Name, place, unit.Round(6), to),
		"ConsumedQuantity":  hours.String(), "ConsumedUnit": "Hours", "PricingQuantity": hours.String(), "PricingUnit": "Hours", "PricingCategory": category,
		"InvoiceIssuerName": f.Name, "ProviderName": k.Spec.Provider, "PublisherName": k.Spec.Provider, "RegionId": region, "RegionName": region,
		"ResourceId": k.Metadata.Name, "ResourceName": k.Metadata.Name, "ResourceType": "Contract", "ServiceCategory": "Compute", "ServiceName": "GPU capacity",
		"SkuId": place, "SkuPriceId": place + "/" + string(price.Class) + "/" + focusSize(k.Spec.Resources), "Tags": string(tags),
	}, nil
}

// focusSize names how much a contract is of: a SKU's price id stands for one
// unit price, and an hour of a larger contract costs more.
func focusSize(r v1alpha1.Resources) string {
	parts := make([]string, 0, len(r))
	for _, name := range r.Names() {
		parts = append(parts, name+"="+r[name].Canonical(name))
	}
	return strings.Join(parts, ",")
}

// focusTags are an intent's labels, and where the capacity appeared. What is
// called fleetbroker.io/… is ours to say, never an intent's.
func focusTags(c *audit.Charge) map[string]string {
	out := map[string]string{}
	for name, value := range c.Labels {
		if domain, _, ours := strings.Cut(name, "/"); !ours || domain != v1alpha1.Group && !strings.HasSuffix(domain, "."+v1alpha1.Group) {
			out[name] = value
		}
	}
	out["fleetbroker.io/intent"], out["fleetbroker.io/consumer"] = c.Contract.Spec.Intent.Name, c.Contract.Spec.Consumer
	if g := c.Contract.Spec.GPUs; g != nil {
		out["fleetbroker.io/gpu"] = fmt.Sprintf("%dx %s", g.Count, g.Model)
	}
	return out
}
