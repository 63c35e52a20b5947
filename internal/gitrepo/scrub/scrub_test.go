package scrub

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
)

// A server's words are as long as it likes: what is said of them is short.
func TestLongWordsAreCut(t *testing.T) {
	cause := errors.New("refs/heads/" + strings.Repeat("é", 30_000))
	for name, err := range map[string]error{
		"error": Error(cause), "cause": Cause(cause), "of a request": Cause(&url.Error{Op: "Get", URL: "https://a", Err: cause}), "silent": Cause(fmt.Errorf("%w: ", cause)),
	} {
		if text := err.Error(); len(text) > most+20 || !strings.HasPrefix(text, "refs/heads/é") || !strings.HasSuffix(text, "é… (cut)") || !errors.Is(err, cause) {
			t.Errorf("%s: %d bytes: %.40s", name, len(text), text)
		}
	}
}

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
