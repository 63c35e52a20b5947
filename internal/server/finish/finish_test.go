package finish_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/server/finish"
)

// TestHandler_StripsAfterwards: the handler sees all of a request, and what the server keeps
// of it afterwards is empty; HTTP/1.1 is left alone, as its server asks for headers at the end.
func TestHandler_StripsAfterwards(t *testing.T) {
	for _, major := range []int{1, 2} {
		r := httptest.NewRequest(http.MethodGet, "/market?class=h100", nil)
		r.ProtoMajor = major
		r.Header.Set("X-Fill", "x")
		seen := ""
		finish.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			seen = r.Header.Get("X-Fill") + r.URL.Query().Get("class") + r.Host
		})).ServeHTTP(httptest.NewRecorder(), r)
		if seen != "xh100example.com" {
			t.Errorf("HTTP/%d: the handler saw %q", major, seen)
		}
		if held := len(r.Header) > 0 || r.URL.Path != "" || r.RequestURI != "" || r.Host != ""; held != (major == 1) {
			t.Errorf("HTTP/%d: afterwards it holds %v %q", major, r.Header, r.RequestURI)
		}
	}
}
