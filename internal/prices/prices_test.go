package prices_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/prices"
)

func read(t *testing.T, name string) io.Reader {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.NewReader(b)
}

// rows is a table as lines: provider, model, memory, GPU an hour, GPU on spot.
func rows(t *testing.T, a *prices.Answer, err error, o prices.Options) (lines, notes []string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	table, notes, err := prices.Table(a.Quotes, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range table.Spec.Prices {
		price := func(name string, of map[string]string) string { return name + " " + of[name] }
		on, spot := map[string]string{}, map[string]string{}
		for k, d := range p.PerHour {
			on[k] = d.String()
		}
		for k, d := range p.Spot {
			spot[k] = d.String()
		}
		line := fmt.Sprintf("%s %s %s %s", p.Provider, p.Model, p.Memory.Canonical("memory"), price("gpu", on))
		if spot["gpu"] != "" {
			line += " spot " + spot["gpu"]
		}
		lines = append(lines, line)
	}
	return lines, append(slices.Clone(a.Notes), notes...)
}

func want(t *testing.T, got []string, lines ...string) {
	t.Helper()
	if !slices.Equal(got, lines) {
		t.Errorf("\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(lines, "\n"))
	}
}

// Recorded: a capacity block costs elsewhere, and its 0.00 is no price.
func TestAWS(t *testing.T) {
	a, err := prices.AWS(read(t, "aws_us_east_1.json"))
	got, notes := rows(t, a, err, prices.Options{Name: "aws", Cloud: "aws"})
	want(t, got, "aws-us-east-1 nvidia-a100 40Gi gpu 4.096575")
	if len(notes) > 0 {
		t.Error(notes)
	}
}

// Recorded: a GPU is a SKU of its own and holds in several regions; cores and
// memory are not GPUs; the page goes on.
func TestGCP(t *testing.T) {
	a, err := prices.GCP(read(t, "gcp_skus.json"))
	got, notes := rows(t, a, err, prices.Options{Name: "gcp", Cloud: "gcp"})
	want(t, got,
		"gcp-us-central1 nvidia-a100 40Gi gpu 2.933908",
		"gcp-us-east1 nvidia-a100 40Gi gpu 2.933908",
		"gcp-us-west1 nvidia-a100 40Gi gpu 2.933908")
	if !strings.HasPrefix(a.Next, "APKCS1HVa0Ypwgy") || len(notes) > 0 {
		t.Errorf("next %q, notes %v", a.Next, notes)
	}
}

// Names are written with and without spaces, Windows in full and cut to Win;
// reservations, low priority and Windows are no price of a GPU by the hour.
func TestAzure(t *testing.T) {
	a, err := prices.Azure(read(t, "azure.json"))
	got, notes := rows(t, a, err, prices.Options{Name: "azure", Cloud: "azure"})
	want(t, got,
		"azure-eastus nvidia-a100 40Gi gpu 3.399625",
		"azure-eastus nvidia-a100 80Gi gpu 3.673",
		"azure-eastus nvidia-h100 80Gi gpu 12.29",
		"azure-eastus2 nvidia-h100 94Gi gpu 6.98 spot 1.289904")
	if a.Next != "https://prices.azure.com:443/api/retail/prices?$skip=1000" || len(notes) > 0 {
		t.Errorf("next %q, notes %v", a.Next, notes)
	}
}

// Recorded: the two sizes of the A100 have a price each.
func TestCSV(t *testing.T) {
	a, err := prices.CSV(read(t, "offers_a100.csv"))
	regions := map[string][]string{}
	for _, q := range a.Quotes {
		regions[q.Region] = []string{q.Region}
	}
	got, _ := rows(t, a, err, prices.Options{Name: "csv", Providers: regions})
	if len(got) != 4 {
		t.Fatalf("%q", got)
	}
	for _, region := range []string{"gcp-europe-west4", "gcp-us-central1"} {
		small := slices.IndexFunc(got, func(s string) bool { return strings.HasPrefix(s, region+" nvidia-a100 40Gi gpu ") })
		large := slices.IndexFunc(got, func(s string) bool { return strings.HasPrefix(s, region+" nvidia-a100 80Gi gpu ") })
		if small < 0 || large < 0 {
			t.Errorf("%s: %q", region, got)
		}
	}
}

// Recorded: OpenCost's defaults, for the models that the caller names.
func TestConfigMap(t *testing.T) {
	a, err := prices.ConfigMap(read(t, "configmap.yaml"), "USD", []string{"T4", "A100-80GB"})
	got, _ := rows(t, a, err, prices.Options{Name: "c", Cloud: "paris"})
	want(t, got, "paris  0 gpu ", "paris nvidia-a100 80Gi gpu 0.95", "paris nvidia-t4 0 gpu 0.95")
	if _, err := prices.ConfigMap(read(t, "configmap.yaml"), "USD", nil); err == nil || !strings.Contains(err.Error(), "name its models") {
		t.Error(err)
	}
	table, _, err := prices.Table(a.Quotes, prices.Options{Name: "c", Cloud: "paris"})
	if err != nil || table.Spec.Prices[0].PerHour["cpu"].String() != "0.031611" || table.Spec.Prices[0].Spot["memoryGi"].String() != "0.000892" {
		t.Errorf("%v: %+v", err, table.Spec.Prices)
	}
}

// A price that is nothing or less is none, wherever it is from; a currency is three capitals.
func TestPrices_OfNothing(t *testing.T) {
	gcp := func(currency, units string, nanos int64) string {
		return fmt.Sprintf(`{"skus": [{"description": "Nvidia L4 GPU running in Belgium", "category": {"resourceGroup": "GPU", "usageType": "OnDemand"}, "serviceRegions": ["europe-west1"],
			"pricingInfo": [{"pricingExpression": {"usageUnit": "h", "tieredRates": [{"unitPrice": {"currencyCode": %q, "units": %s, "nanos": %d}}]}}]}]}`, currency, units, nanos)
	}
	azure := func(currency, price string) string {
		return fmt.Sprintf(`{"Items": [{"currencyCode": %q, "retailPrice": %s, "armRegionName": "x", "armSkuName": "Standard_ND96isr_H100_v5", "serviceName": "Virtual Machines", "unitOfMeasure": "1 Hour", "type": "Consumption"}]}`, currency, price)
	}
	aws := func(currency, price string) string {
		return fmt.Sprintf(`{"PriceList": [{"product": {"attributes": {"instanceType": "p5.48xlarge", "regionCode": "x", "operatingSystem": "Linux", "tenancy": "Shared", "preInstalledSw": "NA", "capacitystatus": "Used", "gpu": "8"}},
			"terms": {"OnDemand": {"a": {"priceDimensions": {"b": {"unit": "Hrs", "pricePerUnit": {%q: %q}}}}}}}]}`, currency, price)
	}
	csv := func(currency, price string) string {
		return "provider,region,instance_type,gpu_model,gpu_count,gpu_mem_gib,vcpus,mem_gib,price_ondemand_hour,price_spot_hour,currency\ngcp,eu,a2,A100,8,40,96,680," + price + ",," + currency + "\n"
	}
	configMap := func(currency string) func(io.Reader) (*prices.Answer, error) {
		return func(in io.Reader) (*prices.Answer, error) { return prices.ConfigMap(in, currency, []string{"T4"}) }
	}
	for name, tc := range map[string]struct {
		read   func(io.Reader) (*prices.Answer, error)
		text   string
		quotes int
		want   string
	}{
		"gcp":                          {prices.GCP, gcp("USD", `"0"`, 560_000_000), 1, ""},
		"gcp, whole":                   {prices.GCP, gcp("USD", `"2"`, 0), 1, ""},
		"gcp, nothing":                 {prices.GCP, gcp("USD", `"0"`, 0), 0, ""},
		"gcp, negative units":          {prices.GCP, gcp("USD", `"-1"`, 0), 0, ""},
		"gcp, negative units and more": {prices.GCP, gcp("USD", `"-1"`, -1), 0, ""},
		"gcp, negative nanos":          {prices.GCP, gcp("USD", `"0"`, -1), 0, ""},
		"gcp, of two signs":            {prices.GCP, gcp("USD", `"-1"`, 1), 0, `"-1" units and 1 nanos are no price an hour`},
		"gcp, nanos of a unit":         {prices.GCP, gcp("USD", `"0"`, 1_500_000_000), 0, "1500000000 nanos are no price"},
		"gcp, an exponent":             {prices.GCP, gcp("USD", `"1e3"`, 0), 0, `"1e3" units`},
		"gcp, lower-case currency":     {prices.GCP, gcp("usd", `"1"`, 0), 0, `"usd" is not a currency`},
		"azure":                        {prices.Azure, azure("USD", "1"), 1, ""},
		"azure, nothing":               {prices.Azure, azure("USD", "0.0"), 0, ""},
		"azure, negative":              {prices.Azure, azure("USD", "-1"), 0, ""},
		"azure, no currency":           {prices.Azure, azure("", "1"), 0, `"" is not a currency`},
		"aws":                          {prices.AWS, aws("USD", "1"), 1, ""},
		"aws, nothing":                 {prices.AWS, aws("USD", "0.0000000000"), 0, ""},
		"aws, negative":                {prices.AWS, aws("USD", "-1"), 0, ""},
		"aws, a long currency":         {prices.AWS, aws("DOLLARS", "1"), 0, `"DOLLARS" is not a currency`},
		"csv":                          {prices.CSV, csv("USD", "1"), 1, ""},
		"csv, a currency with a line":  {prices.CSV, csv("\"U\nD\"", "1"), 0, "currency"},
		"configmap":                    {configMap("USD"), "kind: ConfigMap\ndata: {GPU: \"1\"}", 1, ""},
		"configmap, no currency":       {configMap("EURO"), "kind: ConfigMap\ndata: {GPU: \"1\"}", 0, `"EURO" is not a currency`},
	} {
		a, err := tc.read(strings.NewReader(tc.text))
		if tc.want == "" && (err != nil || len(a.Quotes) != tc.quotes) || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: got %+v, %v, want %d quotes, %q", name, a, err, tc.quotes, tc.want)
		}
	}
}

// What is no answer, or of two currencies, is said to be so.
func TestAnswersWithMistakes(t *testing.T) {
	for name, read := range map[string]func(io.Reader) (*prices.Answer, error){"aws": prices.AWS, "gcp": prices.GCP, "azure": prices.Azure} {
		for _, text := range []string{"", "{", "[]", "{}", `{"Items": 3, "skus": 3, "PriceList": 3}`} {
			if a, err := read(strings.NewReader(text)); err == nil {
				t.Errorf("%s reads %q as %+v", name, text, a)
			}
		}
	}
	two := []prices.Quote{{Region: "a", Model: "nvidia-t4", Currency: "USD"}, {Region: "a", Model: "nvidia-t4", Currency: "CNY"}}
	if _, _, err := prices.Table(two, prices.Options{Cloud: "x"}); err == nil || !strings.Contains(err.Error(), "one currency") {
		t.Error(err)
	}
}
