package transport

import (
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/wire"
)

func TestVerdict(t *testing.T) {
	cases := map[string]struct {
		status int
		body   string
		want   string
	}{
		"taken":             {204, "", ""},
		"unknown base":      {412, `{"error":"x","reason":"UnknownBase"}`, ErrUnknownBase.Error()},
		"stale":             {409, `{"error":"x","reason":"StaleEpoch","last":"7.3"}`, "the broker knows the newer report 7.3"},
		"stale, no last":    {409, `{"error":"x","reason":"StaleEpoch"}`, "answered 409 StaleEpoch with a last generation that cannot be read"},
		"another conflict":  {409, `{"error":"no","reason":"Other"}`, "answered 409 Other: no"},
		"a proxy's 412":     {412, "<html>", "answered 412 Precondition Failed"},
		"revoked":           {403, `{"error":"the certificate of paris was revoked","reason":"Revoked"}`, "answered 403 Revoked: the certificate of paris was revoked"},
		"JSON of strangers": {500, `{}`, "answered 500 Internal Server Error"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := (&answer{status: tc.status, body: []byte(tc.body)}).verdict()
			if (err == nil) != (tc.want == "") || err != nil && !strings.HasPrefix(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// An agent follows the instructions of a broker that knows more than it does: an
// older one of those that say who delivers, or whatever comes next.
func TestInstructionsOfANewerBroker(t *testing.T) {
	var in wire.Instructions
	body := `{"version":"v2","deliver":true,"mood":{"good":[1]},"provide":[{"contract":"c","colour":"red"}],"consume":[],"requests":[]}`
	if err := (&answer{status: 200, body: []byte(body)}).into(&in); err != nil || !in.Deliver || len(in.Provide) != 1 || in.Provide[0].Contract != "c" {
		t.Errorf("%+v, %v", in, err)
	}
}
