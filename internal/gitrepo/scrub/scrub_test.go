package scrub

import (
	"errors"
	"fmt"
	"net/url"
	"testing"
)

func TestCause(t *testing.T) {
	refused := errors.New("dial tcp 127.0.0.1:1: connect: connection refused")
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"a request":           {&url.Error{Op: "Get", URL: "https://example.org/x.git/info/refs", Err: refused}, refused.Error()},
		"a request, wrapped":  {fmt.Errorf("unexpected: %w", &url.Error{Op: "Get", URL: "https://ada:pw@example.org/x", Err: refused}), "unexpected: " + refused.Error()},
		"a URL in the cause":  {&url.Error{Op: "Get", URL: "https://a", Err: errors.New("redirected to https://ada:pw@b/x")}, "redirected to https://b/x"},
		"no request":          {errors.New("https://ada:pw@example.org/x: not found"), "https://example.org/x: not found"},
		"nothing to take out": {refused, refused.Error()},
		"a server is silent":  {errors.New("repository not found: "), "repository not found"},
	} {
		got := Cause(c.err)
		if got.Error() != c.want || !errors.Is(got, c.err) {
			t.Errorf("%s: got %q (the cause is visible: %v), want %q", name, got, errors.Is(got, c.err), c.want)
		}
	}
}
