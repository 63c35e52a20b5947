package prices_test

import (
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/prices"
)

func TestNext(t *testing.T) {
	for _, tc := range []struct{ at, next, want, wrong string }{
		{"https://prices.azure.com/api?$filter=x", "https://prices.azure.com:443/api?$skip=1000", "https://prices.azure.com:443/api?$skip=1000", ""},
		{"https://prices.azure.com:443/api?$skip=1000", "https://Prices.Azure.com/api?$skip=2000", "https://Prices.Azure.com/api?$skip=2000", ""},
		{"http://127.0.0.1:8080/a", "http://127.0.0.1:8080/b", "http://127.0.0.1:8080/b", ""},
		{"https://example.org/skus?key=secret", "AP+K/C=", "https://example.org/skus?key=secret&pageToken=AP%2BK%2FC%3D", ""},
		{"http://127.0.0.1:8080/a", "http://127.0.0.1:6443/b", "", `"http://127.0.0.1:6443", on another host or port`},
		{"https://example.org/a", "https://example.org:8443/a", "", "on another host or port"},
		{"https://example.org/a", "http://example.org/a", "", "on another host or port"},
		{"https://example.org/a", "http://example.org:443/a", "", "on another host or port"},
		{"https://example.org/a", "https://elsewhere.example.org/a?token=secret", "", "on another host or port"},
		{"https://example.org/a", "https://user:secret@example.org/a", "", "has credentials"},
		{"https://example.org/a", "https://user@example.org/a", "", "has credentials"},
		{"https://example.org/a", "https://exa mple.org/a?secret", "", "cannot be read"},
		{"https://example.org/a", "file:///etc/passwd", "", "on another host or port"},
	} {
		got, err := prices.Next(tc.at, tc.next)
		if got != tc.want || (err == nil) != (tc.wrong == "") || err != nil && (!strings.Contains(err.Error(), tc.wrong) || strings.Contains(err.Error(), "secret")) {
			t.Errorf("%s after %s: got %q, %v, want %q, %q", tc.next, tc.at, got, err, tc.want, tc.wrong)
		}
	}
}
