package prices_test

import (
	"bytes"
	"io"
	"os"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/prices"
)

// FuzzAnswers: whatever a price list holds, it is refused, or makes no price
// below nothing and no quote without a currency.
func FuzzAnswers(f *testing.F) {
	for _, text := range []string{
		"", "{", "[]", "{}", `{"Items": 3, "skus": 3, "PriceList": 3}`, `{"Items":[{"retailPrice":1e308,"unitOfMeasure":"1 Hour"}]}`, `{"skus":[{"pricingInfo":[{"pricingExpression":{"tieredRates":[{"unitPrice":{"units":"-1","nanos":1}}]}}]}]}`,
		"region,model,currency,gpu\na,nvidia-t4,EUR,-1\n", "a: &a [*a]", "data: {x: \"{\"}",
	} {
		f.Add([]byte(text))
	}
	samples, err := os.ReadDir("testdata")
	if err != nil {
		f.Fatal(err)
	}
	for _, e := range samples {
		if e.IsDir() {
			continue // what fuzzing kept
		}
		text, err := os.ReadFile("testdata/" + e.Name())
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for name, read := range map[string]func(io.Reader) (*prices.Answer, error){
			"aws": prices.AWS, "gcp": prices.GCP, "azure": prices.Azure, "csv": prices.CSV,
			"configmap": func(in io.Reader) (*prices.Answer, error) {
				return prices.ConfigMap(in, "EUR", []string{"nvidia-h100"})
			},
		} {
			a, err := read(bytes.NewReader(text))
			if err != nil {
				continue
			}
			if len(a.Quotes) > len(text) || len(a.Notes) > len(text) {
				t.Fatalf("%s: %d quotes and %d notes of %d bytes", name, len(a.Quotes), len(a.Notes), len(text))
			}
			for _, q := range a.Quotes {
				if len(q.Currency) != 3 {
					t.Fatalf("%s: %s is sold in %q", name, q.Model, q.Currency)
				}
				for unit, price := range q.PerHour {
					if price.Sign() < 0 {
						t.Fatalf("%s: %s of %s costs %s", name, unit, q.Model, price)
					}
				}
			}
			if table, _, err := prices.Table(a.Quotes, prices.Options{Cloud: "x"}); err == nil && table == nil {
				t.Fatalf("%s: no table and no error", name)
			}
		}
	})
}
