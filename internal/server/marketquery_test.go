package server

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/market"
)

func offered(t *testing.T, m *market.Market, n uint64, provider string, models ...string) {
	t.Helper()
	var flavors []v1alpha1.Flavor
	for _, gpu := range models {
		f := v1alpha1.Flavor{TypeMeta: v1alpha1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindFlavor}, Metadata: v1alpha1.Metadata{Name: gpu, Namespace: provider}}
		f.Spec.Architecture = "amd64"
		f.Spec.GPU = &v1alpha1.FlavorGPU{Vendor: "nvidia", Model: gpu, UnitsPerGPU: 1, ResourceName: "nvidia.com/gpu"}
		f.Spec.Capacity = v1alpha1.Resources{v1alpha1.GPU: v1alpha1.AmountOf(8), v1alpha1.CPU: v1alpha1.AmountOf(64000), v1alpha1.Memory: v1alpha1.AmountOf(1 << 39), v1alpha1.Pods: v1alpha1.AmountOf(110)}
		flavors = append(flavors, f)
	}
	if err := m.Report(provider, wire.Generation{Epoch: 1, N: n}, flavors, true); err != nil {
		t.Fatal(err)
	}
}

// A query shows a part of the market, and with since it waits for news of it.
func TestMarketByQuery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := market.New(market.Options{Now: time.Now})
		offered(t, m, 1, "lyon", "nvidia-a100")
		offered(t, m, 1, "rome", "nvidia-a100", "nvidia-h100")
		h := marketHandler(m)
		ask := func(query string) (*httptest.ResponseRecorder, []string) {
			answer := httptest.NewRecorder()
			r := httptest.NewRequest(http.MethodGet, "/market"+query, nil)
			r.Header.Set("Accept", "application/json")
			h.ServeHTTP(answer, r)
			var got wire.MarketAnswer
			_ = json.Unmarshal(answer.Body.Bytes(), &got) // a 304 has no body
			var refs []string
			for _, f := range got.Flavors {
				refs = append(refs, f.Ref())
			}
			return answer, refs
		}
		for query, want := range map[string]string{
			"":                                 "lyon/nvidia-a100 rome/nvidia-a100 rome/nvidia-h100",
			"?provider=rome":                   "rome/nvidia-a100 rome/nvidia-h100",
			"?class=nvidia-a100&provider=rome": "rome/nvidia-a100",
			"?region=nowhere":                  "",
		} {
			if _, got := ask(query); strings.Join(got, " ") != want {
				t.Errorf("%q: %v, want %s", query, got, want)
			}
		}
		answer, _ := ask("")
		tree := answer.Header().Get(wire.HeaderMarket)
		began := time.Now()
		if answer, _ := ask("?class=nvidia-h100&wait=20s&since=" + tree); answer.Code != http.StatusNotModified || time.Since(began) != 20*time.Second {
			t.Errorf("without news: answered %d after %s, want 304 after 20s", answer.Code, time.Since(began))
		}
		go func() {
			time.Sleep(5 * time.Second) //nolint:forbidigo // in the bubble's time
			offered(t, m, 2, "rome", "nvidia-h100")
		}()
		began = time.Now()
		if answer, got := ask("?class=nvidia-h100&wait=20s&since=" + tree); answer.Code != http.StatusOK || time.Since(began) != 5*time.Second || len(got) != 1 {
			t.Errorf("with news after 5s: answered %d after %s with %v", answer.Code, time.Since(began), got)
		}
	})
}
