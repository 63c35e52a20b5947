package focus

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/audit"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
)

// forms are the value formats of the specification that the export uses.
var forms = map[string]*regexp.Regexp{
	"Numeric Format":       regexp.MustCompile(`^-?\d+(\.\d+)?$`),
	"Currency Format":      regexp.MustCompile(`^[A-Z]{3}$`),
	"Currency Code Format": regexp.MustCompile(`^[A-Z]{3}$`),
	"Date/Time Format":     regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$`),
	"Unit Format":          regexp.MustCompile(`^Hours$`),
}

// The export has the columns of the published specification, and every cell
// keeps its column's constraints and the rules that are given in words.
func TestFocusKeepsToTheSpecification(t *testing.T) {
	for version, columns := range map[string]int{V10: 43, V13: 59} {
		t.Run(version, func(t *testing.T) { keepsTo(t, version, columns) })
	}
}

func keepsTo(t *testing.T, version string, columns int) {
	t.Helper()
	file, err := os.Open("testdata/columns-" + version + ".csv")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	spec, err := csv.NewReader(file).ReadAll()
	if err != nil || len(spec) != columns+1 {
		t.Fatalf("%d columns: %v", len(spec)-1, err)
	}
	rows := exported(t, version)
	if len(rows[0]) != columns {
		t.Fatalf("%d columns are written, want %d", len(rows[0]), columns)
	}
	for i, column := range spec[1:] {
		name, nulls, kind, form, numbers := column[0], column[2], column[3], column[4], column[5]
		if rows[0][i] != name {
			t.Fatalf("column %d is %s, the specification has %s", i, rows[0][i], name)
		}
		for _, row := range rows[1:] {
			v := row[i]
			switch {
			case v == "":
				if nulls == "False" {
					t.Errorf("%s is null", name)
				}
				continue
			case strings.TrimSpace(v) == "":
				t.Errorf("%s is blank", name)
			case form == "Allowed values":
				if !slices.Contains(strings.Split(column[6], "|"), v) {
					t.Errorf("%s is %q, allowed are %s", name, v, column[6])
				}
			}
			if re := forms[strings.TrimSuffix(form, " recommended")]; re != nil && !re.MatchString(v) {
				t.Errorf("%s is %q, which is no %s", name, v, form)
			}
			if strings.Contains(numbers, "non-negative") && strings.HasPrefix(v, "-") {
				t.Errorf("%s is %s", name, v)
			}
			if kind == "JSON" {
				var flat map[string]any
				if err := json.Unmarshal([]byte(v), &flat); err != nil {
					t.Errorf("%s is %s: %v", name, v, err)
				}
				for key, value := range flat {
					switch value.(type) {
					case string, float64, bool:
					default:
						t.Errorf("%s.%s is %v, which is nested", name, key, value)
					}
				}
			}
		}
	}
	prices := map[string]string{}
	for _, row := range rows[1:] {
		cell := func(name string) string { return row[slices.Index(rows[0], name)] }
		holds(t, prices, cell)
		if version != V10 {
			holdsSince(t, cell)
		}
	}
}

// holds are what the specification says in words of a row of usage that
// corrects nothing. prices collects what a price's id stood for.
func holds(t *testing.T, prices map[string]string, cell func(string) string) {
	t.Helper()
	if cell("ChargeCategory") != "Usage" || cell("ChargeClass") != "" {
		t.Errorf("a row of %s %s", cell("ChargeCategory"), cell("ChargeClass"))
	}
	for _, name := range []string{
		"ConsumedQuantity", "ConsumedUnit", "ContractedUnitPrice", "ListUnitPrice", "PricingCategory",
		"PricingQuantity", "PricingUnit", "SkuId", "SkuPriceId", "ChargeDescription",
	} {
		if cell(name) == "" {
			t.Errorf("%s is null in a row of usage", name)
		}
	}
	product := func(price string) string {
		return v1alpha1.MustDecimal(cell(price)).Mul(v1alpha1.MustDecimal(cell("PricingQuantity"))).String()
	}
	if got := product("ContractedUnitPrice"); got != cell("ContractedCost") {
		t.Errorf("contracted price times quantity is %s, the cost %s", got, cell("ContractedCost"))
	}
	if got := product("ListUnitPrice"); got != cell("ListCost") {
		t.Errorf("list price times quantity is %s, the cost %s", got, cell("ListCost"))
	}
	off := v1alpha1.MustDecimal(cell("ContractedCost")).Sub(v1alpha1.MustDecimal(cell("BilledCost")))
	if millionth := v1alpha1.DecimalFromMicro(1); off.Cmp(millionth) > 0 || off.MulInt(-1).Cmp(millionth) > 0 {
		t.Errorf("%s was contracted and %s billed", cell("ContractedCost"), cell("BilledCost"))
	}
	if (cell("PricingCategory") == "Committed") != (cell("CommitmentDiscountId") != "") {
		t.Errorf("pricing is %s with the commitment %q", cell("PricingCategory"), cell("CommitmentDiscountId"))
	}
	if (cell("ResourceId") == "") != (cell("ResourceType") == "") {
		t.Errorf("resource %q is a %q", cell("ResourceId"), cell("ResourceType"))
	}
	if !(cell("BillingPeriodStart") <= cell("ChargePeriodStart") && cell("ChargePeriodStart") < cell("ChargePeriodEnd") && cell("ChargePeriodEnd") <= cell("BillingPeriodEnd")) {
		t.Errorf("charged from %s to %s, billed from %s to %s", cell("ChargePeriodStart"), cell("ChargePeriodEnd"), cell("BillingPeriodStart"), cell("BillingPeriodEnd"))
	}
	id, price := cell("SkuPriceId")+" in "+cell("BillingCurrency"), cell("SkuId")+" at "+cell("ListUnitPrice")
	if was, ok := prices[id]; ok && was != price {
		t.Errorf("%s is both %s and %s", id, was, price)
	}
	prices[id] = price
}

// holdsSince are what later versions say in words of such a row.
func holdsSince(t *testing.T, cell func(string) string) {
	t.Helper()
	for of, name := range map[string]string{"BillingAccountId": "BillingAccountType", "SubAccountId": "SubAccountType", "SkuId": "SkuMeter"} {
		if (cell(of) == "") != (cell(name) == "") {
			t.Errorf("%s is %q with %s %q", name, cell(name), of, cell(of))
		}
	}
	for _, name := range []string{"PricingCurrency", "PricingCurrencyContractedUnitPrice", "PricingCurrencyListUnitPrice", "PricingCurrencyEffectiveCost", "HostProviderName", "ServiceProviderName"} {
		if cell(name) == "" {
			t.Errorf("%s is null in a row of usage", name)
		}
	}
	if cell("PricingCurrency") == cell("BillingCurrency") && (cell("PricingCurrencyEffectiveCost") != cell("EffectiveCost") || cell("PricingCurrencyListUnitPrice") != cell("ListUnitPrice")) {
		t.Errorf("in one currency: effective cost %s and %s, list price %s and %s", cell("PricingCurrencyEffectiveCost"), cell("EffectiveCost"), cell("PricingCurrencyListUnitPrice"), cell("ListUnitPrice"))
	}
	var details map[string]any
	if err := json.Unmarshal([]byte(cell("SkuPriceDetails")), &details); err != nil || details["CoreCount"] != 8.0 {
		t.Errorf("SkuPriceDetails is %s, want 8 cores", cell("SkuPriceDetails"))
	}
	known := []string{"CoreCount", "DiskMaxIops", "DiskSpace", "DiskType", "GpuCount", "InstanceType", "InstanceSeries", "MemorySize", "NetworkMaxIops", "NetworkMaxThroughput", "OperatingSystem", "Redundancy", "StorageClass"}
	for key := range details {
		if !slices.Contains(known, key) && !strings.HasPrefix(key, "x_") {
			t.Errorf("SkuPriceDetails has %s, which FOCUS does not define", key)
		}
	}
}

// exported is the export of one contract of each kind: of all price classes
// and two sizes, with price windows, in another currency, for times that are no
// decimal part of an hour, in a timezone that is not UTC.
func exported(t *testing.T, version string) [][]string {
	t.Helper()
	rome, err := time.LoadLocation("Europe/Rome")
	if err != nil {
		t.Fatal(err)
	}
	books := ledger.Books{Zone: rome, Currency: "EUR", Rates: []v1alpha1.Rate{{From: "EUR", To: "USD", Rate: v1alpha1.MustDecimal("1.25"), Date: v1alpha1.Date{Time: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}}}}
	from := v1alpha1.TimeOf(time.Date(2026, 11, 20, 18, 0, 0, 0, time.UTC))
	var charges []audit.Charge
	for i, price := range []v1alpha1.ContractPrice{
		{Class: v1alpha1.OnDemand}, {Class: v1alpha1.OnDemand}, {Class: v1alpha1.Spot}, {Class: v1alpha1.Reserved},
		{Class: v1alpha1.OnDemand, Windows: []v1alpha1.ContractPriceWindow{{Window: v1alpha1.Window{From: "20:00", To: "06:00"}, Hourly: v1alpha1.MustDecimal("1.7")}}},
	} {
		gpus := int64(i%2 + 1)
		price.Hourly, price.List, price.Currency = v1alpha1.MustDecimal("2.9").MulInt(gpus), v1alpha1.MustDecimal("3.1").MulInt(gpus), "EUR"
		c := &v1alpha1.Contract{Metadata: v1alpha1.Metadata{Name: "vision-train-0", Namespace: "vision"}}
		c.Spec = v1alpha1.ContractSpec{
			Intent: v1alpha1.ContractIntent{Name: "train"}, Consumer: "rome", Provider: "paris", Flavor: "h100", Price: price, Term: v1alpha1.Term{Start: from},
			Resources: v1alpha1.Resources{v1alpha1.CPU: v1alpha1.AmountOf(8000), "nvidia.com/gpu": v1alpha1.AmountOf(gpus)},
		}
		ledger.Begin(c, ledger.Reason{}, from)
		to := v1alpha1.TimeOf(from.Add(time.Duration(i+1)*time.Hour + 7*time.Second))
		for month, cost := range books.CostByMonth(c, to) {
			charges = append(charges, audit.Charge{Contract: c, Labels: map[string]string{"app": "a, \"b\""}, Month: month, From: from, To: to, Cost: cost})
		}
	}
	var b bytes.Buffer
	for _, currency := range []string{"EUR", "USD"} {
		if err := Write(&b, version, &fleet.Fleet{Name: "acme"}, books, currency, charges); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := csv.NewReader(&b).ReadAll()
	if err != nil || len(rows) != 12 {
		t.Fatalf("%d rows: %v", len(rows), err)
	}
	return slices.Delete(rows, 6, 7) // the second header
}

// An intent's label cannot say who used what: tags of our domain are ours.
func TestFocusTagsAreOurs(t *testing.T) {
	c := &v1alpha1.Contract{Spec: v1alpha1.ContractSpec{Intent: v1alpha1.ContractIntent{Name: "train"}, Consumer: "rome"}}
	got := tagsOf(&audit.Charge{Contract: c, Labels: map[string]string{
		"fleetbroker.io/consumer": "milan", "fleetbroker.io/intent": "other", "fleetbroker.io/gpu": "99x", "x.fleetbroker.io/y": "z", "team": "a", "example.org/b": "c",
	}})
	want := map[string]string{"fleetbroker.io/consumer": "rome", "fleetbroker.io/intent": "train", "team": "a", "example.org/b": "c"}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
