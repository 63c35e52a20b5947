package server

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/market"
	"github.com/fleetbroker/fleetbroker/internal/market/store"
	"github.com/fleetbroker/fleetbroker/internal/pki"
	"github.com/fleetbroker/fleetbroker/test/bounded"
)

// inside is the agents' port behind its TLS, with the real market.
type inside struct {
	market  *market.Market
	metrics *Metrics
	handler http.Handler
	log     bytes.Buffer
}

func newInside() *inside {
	in := &inside{market: market.New(market.Options{}), metrics: NewMetrics()}
	in.broker(nil)
	return in
}

// broker sets who decides on reservations; nil: nobody.
func (in *inside) broker(b Broker) {
	a := newAgents(Agents{Reports: &store.Memory{Market: in.market}, Market: in.market, Broker: b, Metrics: in.metrics, Log: slog.New(slog.NewTextHandler(&in.log, nil))})
	in.handler = a.routes()
}

// send is a request of paris's agent.
func (in *inside) send(method, path string, body []byte, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, bytes.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	r = r.WithContext(context.WithValue(r.Context(), identityKey{}, pki.Identity{Name: "paris", Role: pki.Agent}))
	answer := httptest.NewRecorder()
	in.handler.ServeHTTP(answer, r)
	return answer
}

// flavor is a report of one flavor, with a piece of JSON in its spec.
func flavor(name, spec string) string {
	return fmt.Sprintf(`{"flavors":[{"metadata":{"name":%s},"spec":{"capacity":{"cpu":"8","gpu":2}%s}}]}`, name, spec)
}

// hostile are reports that no honest agent sends.
var hostile = map[string]string{
	"a huge number":               flavor(`"a"`, `,"used":{"gpu":99999999999999999999999999}`),
	"a huge quantity":             flavor(`"a"`, `,"used":{"memory":"999999999999Ei"}`),
	"a quantity that costs hours": flavor(`"a"`, `,"used":{"memory":"1e2147483647"}`),
	"a number without end":        flavor(`"a"`, `,"used":{"gpu":`+strings.Repeat("9", 1<<20)+`}`),
	"a negative amount":           flavor(`"a"`, `,"used":{"gpu":-1}`),
	"a negative quantity":         flavor(`"a"`, `,"used":{"memory":"-1Gi"}`),
	"a negative price":            flavor(`"a"`, `,"price":{"currency":"EUR","perHour":{"gpu":"-1"}}`),
	"a price with exponent":       flavor(`"a"`, `,"price":{"currency":"EUR","perHour":{"gpu":"1e999999999"}}`),
	"a price with an exponent":    flavor(`"a"`, `,"price":{"currency":"EUR","perHour":{"gpu":1e3}}`),
	"NaN":                         flavor(`"a"`, `,"used":{"gpu":NaN}`),
	"NaN as text":                 flavor(`"a"`, `,"used":{"gpu":"NaN"}`),
	"Infinity":                    flavor(`"a"`, `,"used":{"memory":"Infinity"}`),
	"a fraction of a GPU":         flavor(`"a"`, `,"used":{"gpu":"0.5"}`),
	"units below nothing":         flavor(`"a"`, `,"gpu":{"unitsPerGPU":-7}`),
	"one name twice":              `{"flavors":[{"metadata":{"name":"a"},"spec":{}},{"metadata":{"name":"a"},"spec":{}}]}`,
	"one key twice":               flavor(`"a","name":"b"`, ``),
	"one key in two cases":        flavor(`"a","NAME":"b"`, ``),
	"a list twice":                `{"flavors":[],"flavors":[{"metadata":{"name":"a"}}]}`,
	"another cluster's flavor":    flavor(`"a","namespace":"lyon"`, ``),
	"another cluster, escaped":    flavor(`"a","namespace":"l\u0079on"`, ``),
	"itself in capitals":          flavor(`"a","namespace":"PARIS"`, ``),
	"itself with a Cyrillic a":    flavor(`"a","namespace":"pаris"`, ``),
	"a name in full width":        flavor(`"ａ"`, ``),
	"a name of zero width":        flavor(`"a\u200bb"`, ``),
	"a path for a name":           flavor(`"../../lyon/a"`, ``),
	"a model that looks alike":    flavor(`"a"`, `,"gpu":{"model":"nvidiа-h100"}`),
	"a model from right to left":  flavor(`"a"`, `,"gpu":{"model":"\u202e001h"}`),
	"a terminal escape":           flavor(`"a"`, `,"location":{"city":"\u001b]0;owned\u0007"}`),
	"half a surrogate":            flavor(`"a"`, `,"location":{"city":"\udc00"}`),
	"a contract's name with dots": flavor(`"a"`, `,"held":{"../x":{"gpu":1}}`),
	"held below nothing":          flavor(`"a"`, `,"held":{"vision-a-0-aaaaaaaa":{"gpu":-1}}`),
	"nested without end":          `{"flavors":` + strings.Repeat("[", 1<<18) + strings.Repeat("]", 1<<18) + `}`,
	"objects without end":         strings.Repeat(`{"a":`, 1<<17) + `1` + strings.Repeat(`}`, 1<<17),
	"no object":                   `[]`,
	"a string":                    `"flavors"`,
	"two documents":               `{"flavors":[]}{"flavors":[]}`,
	"cut off":                     flavor(`"a"`, ``)[:30],
	"not UTF-8":                   flavor("\"a\xff\"", ``),
	"too many flavors":            `{"flavors":[` + strings.TrimSuffix(strings.Repeat(`{"metadata":{"name":"a"}},`, 5000), ",") + `]}`,
	"too many resources":          flavor(`"a"`, `,"used":{`+strings.TrimSuffix(many(`"r%d":1,`, 5000), ",")+`}`),
}

func many(format string, n int) string {
	var out strings.Builder
	for i := range n {
		fmt.Fprintf(&out, format, i)
	}
	return out.String()
}

// TestHostileReportsAreRefusedAndCounted: with a reason, at little cost, without
// a trace in the market, and without anything in answer or log that could harm
// who reads it.
func TestHostileReportsAreRefusedAndCounted(t *testing.T) {
	in := newInside()
	if answer := in.send("PUT", wire.FlavorsPath("paris"), []byte(flavor(`"good"`, ``)), wire.HeaderGeneration, "1.1"); answer.Code != http.StatusNoContent {
		t.Fatalf("an honest report: answered %d %s", answer.Code, answer.Body)
	}
	before, _, _ := in.market.Offers(market.Query{})
	refused := 0
	for name, body := range hostile {
		t.Run(name, func(t *testing.T) {
			watch := bounded.StartStopwatch()
			answer := in.send("PUT", wire.FlavorsPath("paris"), []byte(body), wire.HeaderGeneration, fmt.Sprintf("1.%d", refused+2))
			if err := watch.Late(2*time.Second, time.Minute); err != nil {
				t.Error(err)
			}
			text := answer.Body.Bytes()
			if reason := reasonOf(t, text); answer.Code/100 != 4 || (reason != "BadReport" && reason != "ForeignFlavor") {
				t.Errorf("answered %d %s", answer.Code, text)
			}
			harmless(t, text)
			refused++
		})
	}
	if after, flavors, _ := in.market.Offers(market.Query{}); after.Root != before.Root || len(flavors) != 1 {
		t.Errorf("the market has %v", flavors)
	}
	harmless(t, in.log.Bytes())
	if want := fmt.Sprintf(`fleetbroker_advert_total{cluster="paris",result="rejected"} %d`, refused); !strings.Contains(scrape(t, in.metrics), want+"\n") {
		t.Errorf("no %s", want)
	}
}

// harmless fails on what moves a terminal or what a reader sees.
func harmless(t *testing.T, text []byte) {
	t.Helper()
	for _, bad := range []string{"\x1b", "\x07", "\u202e", "\u200b"} {
		if bytes.Contains(text, []byte(bad)) {
			t.Errorf("%+q is in %+.200q", bad, text)
		}
	}
	if len(text) > 1<<20 {
		t.Errorf("%d bytes", len(text))
	}
}

// TestHostileAdvertisements: the first form is judged like the second.
func TestHostileAdvertisements(t *testing.T) {
	in := newInside()
	ad := func(id, cpu string) string {
		return fmt.Sprintf(`{"clusterID":%s,"clusterName":"Paris","resources":{"allocatable":{"cpu":%s,"memory":"8Gi"},"allocated":{"cpu":"1","memory":"1Gi"}}}`, id, cpu)
	}
	cases := map[string]struct {
		body   string
		reason string
	}{
		"another cluster":    {ad(`"lyon"`, `"8"`), "ForeignCluster"},
		"another, twice":     {ad(`"paris","clusterID":"lyon"`, `"8"`), "BadReport"},
		"another, two cases": {ad(`"paris","clusterid":"lyon"`, `"8"`), "BadReport"},
		"a Cyrillic a":       {ad(`"pаris"`, `"8"`), "ForeignCluster"},
		"negative":           {ad(`"paris"`, `"-8"`), "BadReport"},
		"huge":               {ad(`"paris"`, `"1e2147483647"`), "BadReport"},
		"NaN":                {ad(`"paris"`, `"NaN"`), "BadReport"},
		"a number":           {ad(`"paris"`, `8`), "BadReport"},
		"an escape":          {ad(`"paris\u001b[2J"`, `"8"`), "BadReport"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			answer := in.send("POST", "/api/v1/advertisements", []byte(tc.body))
			if answer.Code/100 != 4 || reasonOf(t, answer.Body.Bytes()) != tc.reason {
				t.Errorf("answered %d %s; want %s", answer.Code, answer.Body, tc.reason)
			}
			harmless(t, answer.Body.Bytes())
		})
	}
	if _, flavors, _ := in.market.Offers(market.Query{}); len(flavors) != 0 {
		t.Errorf("the market has %v", flavors)
	}
	if want := fmt.Sprintf(`fleetbroker_advert_total{cluster="paris",result="rejected"} %d`, len(cases)); !strings.Contains(scrape(t, in.metrics), want+"\n") {
		t.Errorf("no %s in\n%s", want, scrape(t, in.metrics))
	}
}
