package ui_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/ui/view"
)

// A query that is not understood is refused with what would be: an empty list or a sum of
// zero would be taken for the answer.
func TestQueries_RefusedWithWhatIsKnown(t *testing.T) {
	d := newDaemon(t)
	d.show(small())
	for path, want := range map[string]string{
		"/cost?month=bad":                       `month: "bad" is no month as 2026-11 is one; costs are known of 2026-11`,
		"/cost?month=2026-99":                   `month: "2026-99"`,
		"/cost.csv?month=2026-13":               `month: "2026-13"`,
		"/contracts?state=Bogus":                `state: "Bogus" is no state of contracts; use one of all, booked, active,`,
		"/intents?state=active":                 `use one of all, placed, queued,`,
		"/providers?state=fresh":                `use one of all, provider, consumer, ready,`,
		"/flavors?state=ready":                  `use one of all, free, fresh,`,
		"/audit?state=nonsense":                 `use one of all, verified,`,
		"/intents/vision/train/offers?state=no": `use one of all, fits`,
		"/contracts?tenatn=vision":              `unknown parameter "tenatn" (did you mean "tenant"?); the known ones are q, state,`,
		"/fleet?%3Cb%3E=x":                      `unknown parameter "<b>"; the known ones are`,
		"/contracts?page=0":                     `page: "0" is not a number from 1`,
	} {
		got := d.get(t, "/api/ui"+path)
		if got.Code != http.StatusBadRequest || !strings.Contains(refusal(t, got.Body.Bytes()), want) {
			t.Errorf("%s: got %d %s, want 400 with %s", path, got.Code, got.Body, want)
		}
		if strings.HasPrefix(path, "/cost.csv") || strings.HasPrefix(path, "/fleet") {
			continue // no page has that address
		}
		page := d.get(t, "/ui"+path)
		if text := page.Body.String(); page.Code != http.StatusBadRequest || !strings.Contains(text, "<main") || strings.Contains(text, "<b>") {
			t.Errorf("the page %s: got %d", path, page.Code)
		}
	}
}

// refusal is the words of an answer that refuses.
func refusal(t *testing.T, body []byte) string {
	t.Helper()
	var e wire.Error
	if err := json.Unmarshal(body, &e); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return e.Error
}

// Every state that a page offers is one that it answers for, whatever the case.
func TestQueries_OfferedStatesAreKnown(t *testing.T) {
	d := newDaemon(t)
	d.show(small())
	offered := 0
	for _, list := range []string{"intents", "contracts", "flavors", "providers", "audit"} {
		page := d.get(t, "/ui/"+list).Body.String()
		_, options, _ := strings.Cut(page, `<select name="state">`)
		options, _, _ = strings.Cut(options, "</select>")
		for _, m := range regexp.MustCompile(`value="([a-z]+)"`).FindAllStringSubmatch(options, -1) {
			offered++
			for _, state := range []string{m[1], strings.ToUpper(m[1]), "All"} {
				if got := d.get(t, "/api/ui/"+list+"?state="+url.QueryEscape(state)); got.Code != http.StatusOK {
					t.Errorf("%s?state=%s: got %d %s", list, state, got.Code, got.Body)
				}
			}
		}
	}
	if offered < 40 {
		t.Errorf("only %d states are offered", offered)
	}
	if all, roles := read[view.List[view.ProviderRow]](t, d, "/api/ui/providers"), read[view.List[view.ProviderRow]](t, d, "/api/ui/providers?state=Consumer"); roles.Total == 0 || roles.Total >= all.Total {
		t.Errorf("%d of %d clusters are consumers", roles.Total, all.Total)
	}
}
