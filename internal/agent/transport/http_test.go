package transport

import (
	"context"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/pki"
	"github.com/fleetbroker/fleetbroker/internal/server"
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

// A cluster whose certificate names the broker's host is not taken for the
// broker: its certificate has not the role.
func TestBroker_MustHoldTheRoleServer(t *testing.T) {
	p := open(t)
	log := slog.New(slog.DiscardHandler)
	for name, role := range map[string]pki.Role{"an agent": pki.Agent, "an operator": pki.Operator} {
		own := issue(t, p.ca, pki.Request{Name: "milan", Role: role, Hosts: []string{"127.0.0.1"}}, filepath.Join(t.TempDir(), "milan"))
		heard := false
		servers, err := server.Listen(t.Context(), log, server.Port{
			Name: "agents", Address: "127.0.0.1:0", TLS: server.AgentTLS(own, nil, log),
			Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { heard = true }),
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- servers.Run(ctx, time.Second) }()
		line, err := New("grpc", "https://"+servers.Address("agents"), "rome", p.files)
		if err != nil {
			t.Fatal(err)
		}
		_, err = line.Instructions(t.Context(), "", 0, 0)
		line.Close()
		cancel()
		if serr := <-done; serr != nil {
			t.Error(serr)
		}
		if err == nil || !strings.Contains(err.Error(), "pki issue --role server") || heard {
			t.Errorf("%s in the broker's place: %v, heard a request: %t", name, err, heard)
		}
	}
}
