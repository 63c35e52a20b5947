package focus

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/escape"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/audit"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
)

// Versions of the FinOps Open Cost and Usage Specification that are written.
const (
	V10 = "1.0"
	V13 = "1.3"
)

// columns are those of each version (focus.finops.org), in order of name: a column that does
// not apply is empty, which is null there. Of 1.3 those are left out that only who divides
// shared costs (Allocated…) or has contract commitments (ContractApplied) has to write.
var columns = map[string][]string{V10: first, V13: slices.Sorted(slices.Values(slices.Concat(first, since)))}

var first = []string{
	"AvailabilityZone", "BilledCost", "BillingAccountId", "BillingAccountName", "BillingCurrency", "BillingPeriodEnd", "BillingPeriodStart",
	"ChargeCategory", "ChargeClass", "ChargeDescription", "ChargeFrequency", "ChargePeriodEnd", "ChargePeriodStart",
	"CommitmentDiscountCategory", "CommitmentDiscountId", "CommitmentDiscountName", "CommitmentDiscountStatus", "CommitmentDiscountType",
	"ConsumedQuantity", "ConsumedUnit", "ContractedCost", "ContractedUnitPrice", "EffectiveCost", "InvoiceIssuerName", "ListCost", "ListUnitPrice",
	"PricingCategory", "PricingQuantity", "PricingUnit", "ProviderName", "PublisherName", "RegionId", "RegionName",
	"ResourceId", "ResourceName", "ResourceType", "ServiceCategory", "ServiceName", "SkuId", "SkuPriceId", "SubAccountId", "SubAccountName", "Tags",
}

// since are the columns that came after 1.0.
var since = []string{
	"BillingAccountType", "CapacityReservationId", "CapacityReservationStatus", "CommitmentDiscountQuantity", "CommitmentDiscountUnit", "HostProviderName", "InvoiceId",
	"PricingCurrency", "PricingCurrencyContractedUnitPrice", "PricingCurrencyEffectiveCost", "PricingCurrencyListUnitPrice",
	"ServiceProviderName", "ServiceSubcategory", "SkuMeter", "SkuPriceDetails", "SubAccountType",
}

// places is how many decimals an hour's part and a mean price have: a second
// is no decimal part of an hour, and quantity times unit price has to be a cost.
const places = 9

// Write writes charges that have accrued as rows of FOCUS: the fleet is the
// billing account, tenants are its sub-accounts, contracts the resources, and
// the unit that is priced is an hour of the contract. version is one of those above.
func Write(w io.Writer, version string, f *fleet.Fleet, books ledger.Books, to string, charges []audit.Charge) error {
	out := csv.NewWriter(w)
	columns := columns[version]
	if err := out.Write(columns); err != nil {
		return err
	}
	for i := range charges {
		c := &charges[i]
		if c.Forecast {
			continue
		}
		row, err := rowOf(f, books, to, c)
		if err != nil {
			return err
		}
		cells := make([]string, len(columns))
		for k, name := range columns {
			cells[k] = escape.Cell(row[name])
		}
		if err := out.Write(cells); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

func rowOf(f *fleet.Fleet, books ledger.Books, to string, c *audit.Charge) (map[string]string, error) {
	k, price := c.Contract, c.Contract.Spec.Price
	var figures [3]v1alpha1.Decimal
	for i, d := range []v1alpha1.Decimal{c.Cost.Amount, price.Hourly, price.List} {
		var err error
		if figures[i], err = Exchange(books, d, price.Currency, to, c.To); err != nil {
			return nil, err
		}
	}
	seconds := int64(c.To.Sub(c.From.Time) / time.Second)
	hours := v1alpha1.DecimalFromInt(seconds).DivInt(3600, places)
	billed, unit, listUnit := figures[0], figures[1], figures[2]
	if len(price.Windows) > 0 { // several prices held: this is their mean
		unit = billed.MulInt(3600).DivInt(max(seconds, 1), places)
	}
	priced := price.Hourly // in the currency of the price, as what follows is in that of the bill
	if len(price.Windows) > 0 {
		priced = c.Cost.Amount.MulInt(3600).DivInt(max(seconds, 1), places)
	}
	details, err := json.Marshal(detailsOf(k))
	if err != nil {
		return nil, err
	}
	start, end := books.MonthBounds(c.From)
	tags, err := json.Marshal(tagsOf(c))
	if err != nil {
		return nil, err
	}
	category := "Standard" // a reserved price too: "Committed" is for what a commitment with an id discounts
	if price.Class == v1alpha1.Spot {
		category = "Dynamic"
	}
	charged, how, what, used, unitUsed := "Usage", "Usage-Based", "", hours.String(), "Hours"
	if c.Cancelled { // nothing was used
		charged, how, what, used, unitUsed = "Purchase", "One-Time", "cancelled booking of ", "", ""
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
		"ChargeCategory": charged, "ChargeFrequency": how,
		"ChargeDescription": fmt.Sprintf("%s%s/%s on %s at %s %s an hour", what, k.Metadata.Namespace, k.Spec.Intent.Name, place, unit.Round(6), to),
		"ConsumedQuantity":  used, "ConsumedUnit": unitUsed, "PricingQuantity": hours.String(), "PricingUnit": "Hours", "PricingCategory": category,
		"InvoiceIssuerName": f.Name, "ProviderName": k.Spec.Provider, "PublisherName": k.Spec.Provider, "RegionId": region, "RegionName": region,
		"ResourceId": k.Metadata.Name, "ResourceName": k.Metadata.Name, "ResourceType": "Contract", "ServiceCategory": "Compute", "ServiceName": "GPU capacity",
		"SkuId": place, "SkuPriceId": place + "/" + string(price.Class) + "/" + sizeOf(k.Spec.Resources), "Tags": string(tags),
		// Since 1.0.
		"BillingAccountType": "Fleet", "SubAccountType": "Tenant", "HostProviderName": k.Spec.Provider, "ServiceProviderName": k.Spec.Provider,
		"ServiceSubcategory": "Other (Compute)", "SkuMeter": "GPU capacity", "SkuPriceDetails": string(details), "PricingCurrency": price.Currency,
		"PricingCurrencyContractedUnitPrice": priced.String(), "PricingCurrencyEffectiveCost": c.Cost.Amount.String(), "PricingCurrencyListUnitPrice": price.List.String(),
	}, nil
}

// sizeOf names how much a contract is of: a SKU's price id stands for one
// unit price, and an hour of a larger contract costs more.
func sizeOf(r v1alpha1.Resources) string {
	parts := make([]string, 0, len(r))
	for _, name := range r.Names() {
		parts = append(parts, name+"="+r[name].Canonical(name))
	}
	return strings.Join(parts, ",")
}

// detailsOf are the properties of a SKU's price that FOCUS names, and the model of GPUs.
func detailsOf(k *v1alpha1.Contract) map[string]any {
	out := map[string]any{}
	if cores := k.Spec.Resources[v1alpha1.CPU]; !cores.IsZero() {
		out["CoreCount"] = float64(cores.Int64()) / 1000
	}
	if memory := k.Spec.Resources[v1alpha1.Memory]; !memory.IsZero() {
		out["MemorySize"] = float64(memory.Int64()) / (1 << 30)
	}
	if g := k.Spec.GPUs; g != nil {
		out["GpuCount"], out["x_GpuModel"] = g.Count, g.Model
	}
	return out
}

// tagsOf are an intent's labels, and where the capacity appeared. What is
// called fleetbroker.io/… is ours to say, never an intent's.
func tagsOf(c *audit.Charge) map[string]string {
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

// Exchange converts an amount by the fleet's rates of a day: the direct one, that of the
// other direction, or both by way of the fleet's currency. The error wraps
// ledger.ErrNoRate.
func Exchange(b ledger.Books, amount v1alpha1.Decimal, from, to string, at v1alpha1.Time) (v1alpha1.Decimal, error) {
	const decimals = 6
	step := func(amount v1alpha1.Decimal, from, to string) (v1alpha1.Decimal, bool) {
		if from == to || amount.IsZero() {
			return amount, true
		}
		if r := b.RateOf(from, to, at); r != nil {
			return amount.Mul(r.Rate).Round(decimals), true
		}
		if r := b.RateOf(to, from, at); r != nil && r.Rate.Sign() > 0 {
			return amount.Div(r.Rate, decimals), true
		}
		return amount, false
	}
	if out, ok := step(amount, from, to); ok {
		return out, nil
	}
	if own, ok := step(amount, from, b.Currency); ok {
		if out, ok := step(own, b.Currency, to); ok {
			return out, nil
		}
	}
	return amount, fmt.Errorf("convert %s to %s on %s: %w", from, to, at.UTC().Format(time.DateOnly), ledger.ErrNoRate)
}

// regionOf is where a provider's flavor is, as the inputs say now.
func regionOf(f *fleet.Fleet, c *v1alpha1.Contract) string {
	for _, fl := range f.Flavors {
		if fl.Metadata.Namespace == c.Spec.Provider && fl.Metadata.Name == c.Spec.Flavor && fl.Spec.Location.Region != "" {
			return fl.Spec.Location.Region
		}
	}
	if cl := f.Clusters[c.Spec.Provider]; cl != nil {
		return cl.Spec.Location.Region
	}
	return ""
}
