package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/cli"
)

// Pages of an answer are followed, and a key in the address is never shown.
func TestPricesOverPages(t *testing.T) {
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a server that was not named is asked") }))
	defer inside.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		azure := func(region, price, next string) {
			fmt.Fprintf(w, `{"Items": [{"currencyCode": "USD", "retailPrice": %s, "armRegionName": %q, "armSkuName": "Standard_ND96isr_H100_v5",
				"skuName": "ND96isr H100 v5", "productName": "NDsr H100 v5 Series Linux", "serviceName": "Virtual Machines", "unitOfMeasure": "1 Hour", "type": "Consumption"}],
				"NextPageLink": %q}`, price, region, next)
		}
		switch {
		case r.URL.Path == "/azure" && r.URL.Query().Get("$skip") == "":
			azure("westeurope", "98.32", "http://"+r.Host+"/azure?$skip=100")
		case r.URL.Path == "/azure":
			azure("eastus", "88.488", "")
		case r.URL.Path == "/elsewhere":
			azure("eastus", "88.488", "https://elsewhere.example.org/azure?$skip=100")
		case r.URL.Path == "/port":
			azure("eastus", "88.488", inside.URL+"/azure")
		case r.URL.Path == "/credentials":
			azure("eastus", "88.488", "http://user:secret@"+r.Host+"/azure?$skip=100")
		case r.URL.Path == "/gcp" && r.URL.Query().Get("key") == "secret":
			sku := `{"skus": [{"description": "Nvidia %s GPU running in Belgium", "category": {"resourceGroup": "GPU", "usageType": "OnDemand"}, "serviceRegions": ["europe-west1"],
				"pricingInfo": [{"pricingExpression": {"usageUnit": "h", "tieredRates": [{"unitPrice": {"currencyCode": "USD", "units": "0", "nanos": 350000000}}]}}]}], "nextPageToken": %q}`
			if r.URL.Query().Get("pageToken") == "" {
				fmt.Fprintf(w, sku, "Tesla T4", "two")
			} else {
				fmt.Fprintf(w, sku, "L4", "")
			}
		case r.URL.Path == "/moved":
			http.Redirect(w, r, "/azure?$skip=100", http.StatusFound)
		case r.URL.Path == "/inside":
			http.Redirect(w, r, inside.URL+"/azure?token=secret", http.StatusFound)
		default:
			http.Error(w, "who are you", http.StatusForbidden)
		}
	}))
	defer server.Close()
	run := func(args ...string) (code int, out, errs string) {
		var o, e bytes.Buffer
		code = cli.Run(context.Background(), cli.Streams{In: strings.NewReader(""), Out: &o, Err: &e, Now: time.Now}, append([]string{"prices", "import"}, args...))
		return code, o.String(), e.String()
	}
	code, out, errs := run("azure", "--from", server.URL+"/azure")
	if code != 0 || !strings.Contains(out, "provider: azure-westeurope") || !strings.Contains(out, `gpu: "12.29"`) || !strings.Contains(out, `gpu: "11.061"`) {
		t.Errorf("%d %s%s", code, out, errs)
	}
	if code, out, errs = run("azure", "--from", server.URL+"/elsewhere"); code != 1 || !strings.Contains(errs, "on another host") {
		t.Errorf("%d %s%s", code, out, errs)
	}
	if code, out, errs = run("azure", "--from", server.URL+"/port"); code != 1 || !strings.Contains(errs, "on another host or port") {
		t.Errorf("%d %s%s", code, out, errs)
	}
	if code, out, errs = run("azure", "--from", server.URL+"/credentials"); code != 1 || !strings.Contains(errs, "has credentials") || strings.Contains(errs, "secret") {
		t.Errorf("%d %s%s", code, out, errs)
	}
	if code, out, errs = run("azure", "--from", server.URL+"/moved"); code != 0 || !strings.Contains(out, `gpu: "11.061"`) {
		t.Errorf("%d %s%s", code, out, errs)
	}
	if code, out, errs = run("azure", "--from", server.URL+"/inside"); code != 1 || !strings.Contains(errs, "it sends on to") || strings.Contains(errs, "secret") {
		t.Errorf("%d %s%s", code, out, errs)
	}
	code, out, errs = run("gcp", "--from", server.URL+"/gcp?key=secret", "--provider", "europe-west1=brussels")
	if code != 0 || strings.Count(out, "provider: brussels") != 2 || !strings.Contains(out, "nvidia-l4") || !strings.Contains(out, `gpu: "0.35"`) {
		t.Errorf("%d %s%s", code, out, errs)
	}
	server.Config.Handler = http.NotFoundHandler()
	if code, out, errs = run("gcp", "--from", server.URL+"/gcp?key=secret"); code != 1 || strings.Contains(errs, "secret") || !strings.Contains(errs, "404") {
		t.Errorf("%d %s%s", code, out, errs)
	}
	if code, _, errs = run("gcp", "--from", "http://192.0.2.1/gcp?key=secret"); code != 1 || strings.Contains(errs, "secret") || !strings.Contains(errs, "use https") {
		t.Errorf("%d %s", code, errs)
	}
}
