package server

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/pki"
)

// TestTheOperatorsPortIsGuarded: beyond the loopback interface a certificate of
// an operator or reader opens it; probes need none and are told yes or no.
// Tokens are tried on a real API server in test/e2e/install.
func TestTheOperatorsPortIsGuarded(t *testing.T) {
	f := &fleet{t: t, revocations: new(Revocations), now: time.Now()}
	files := f.certify()
	guard, err := NewGuard(nil, f.revocations, f.clock, quiet)
	if err != nil {
		t.Fatal(err)
	}
	secret := func() error { return errString("tenant vision has spent its budget") }
	f.address = "https://" + run(t, Port{Name: "operators", Address: "127.0.0.1:0", TLS: GuardTLS(files, quiet), Handler: NewOperators(Operators{
		Metrics: NewMetrics(), Market: &recorder{}, Guard: guard, Profiling: true, Alive: secret, Ready: []Check{{"fleet", secret}},
		Dashboard: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "%+v", CallerOf(r)) }),
	})})
	cases := map[string]struct {
		who    *pki.Request
		path   string
		status int
		reason string
		tells  bool
	}{
		"nobody, metrics":       {nil, "/metrics", 401, "Unauthorized", false},
		"nobody, market":        {nil, "/market", 401, "Unauthorized", false},
		"nobody, what is not":   {nil, "/nothing", 401, "Unauthorized", false},
		"nobody, ready":         {nil, "/readyz", 503, "", false},
		"nobody, alive":         {nil, "/healthz", 500, "", false},
		"an operator, metrics":  {&pki.Request{Name: "ada", Role: pki.Operator}, "/metrics", 200, "", false},
		"an operator, ready":    {&pki.Request{Name: "ada", Role: pki.Operator}, "/readyz", 503, "", true},
		"an operator, alive":    {&pki.Request{Name: "ada", Role: pki.Operator}, "/healthz", 500, "", true},
		"a reader, metrics":     {&pki.Request{Name: "bo", Role: pki.Reader}, "/metrics", 403, "Forbidden", false},
		"a reader, ready":       {&pki.Request{Name: "bo", Role: pki.Reader}, "/readyz", 503, "", false},
		"a reader, alive":       {&pki.Request{Name: "bo", Role: pki.Reader}, "/healthz", 500, "", false},
		"a reader, market":      {&pki.Request{Name: "bo", Role: pki.Reader}, "/market", 200, "", false},
		"an agent, market":      {&pki.Request{Name: "paris"}, "/market", 403, "Forbidden", false},
		"an agent, ready":       {&pki.Request{Name: "paris"}, "/readyz", 403, "Forbidden", false},
		"a server, metrics":     {&pki.Request{Name: "b", Role: pki.Server, Hosts: []string{"b"}}, "/metrics", 403, "Forbidden", false},
		"nobody, dashboard":     {nil, "/ui/", 401, "Unauthorized", false},
		"nobody, its JSON":      {nil, "/api/ui/fleet", 401, "Unauthorized", false},
		"an agent, dashboard":   {&pki.Request{Name: "paris"}, "/ui/", 403, "Forbidden", false},
		"nobody, profiles":      {nil, "/debug/pprof/heap", 401, "Unauthorized", false},
		"an agent, profiles":    {&pki.Request{Name: "paris"}, "/debug/pprof/heap", 403, "Forbidden", false},
		"a reader, profiles":    {&pki.Request{Name: "bo", Role: pki.Reader}, "/debug/pprof/heap", 403, "Forbidden", false},
		"an operator, profiles": {&pki.Request{Name: "ada", Role: pki.Operator}, "/debug/pprof/goroutine?debug=1", 200, "", false},
		"an operator, a trace":  {&pki.Request{Name: "ada", Role: pki.Operator}, "/debug/pprof/trace?seconds=0.01", 200, "", false},
		"a reader, what is not": {&pki.Request{Name: "bo", Role: pki.Reader}, "/nothing", 404, "NotFound", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			status, _, body := f.call(f.client(tc.who, nil), "GET", tc.path, nil)
			if status != tc.status || (tc.reason != "" && reasonOf(t, body) != tc.reason) {
				t.Errorf("answered %d %.200s; want %d %s", status, body, tc.status, tc.reason)
			}
			if strings.Contains(string(body), "budget") != tc.tells {
				t.Errorf("told %s", body)
			}
		})
	}
	for who, want := range map[pki.Role]string{pki.Operator: "{Name:ada Identity:certificate:ada Groups:[] SignedIn:false All:true}", pki.Reader: "{Name:ada Identity:certificate:ada Groups:[] SignedIn:false All:false}"} {
		for _, path := range []string{"/", "/ui", "/ui/", "/ui/intents/a/b", "/api/ui/fleet"} {
			if status, _, body := f.call(f.client(&pki.Request{Name: "ada", Role: who}, nil), "GET", path, nil); status != 200 || string(body) != want {
				t.Errorf("%s of role %s: answered %d %s, want %s", path, who, status, body, want)
			}
		}
	}
	if status, _, body := f.call(f.client(nil, nil), "GET", "/metrics", nil, "Authorization", "Bearer x"); status != 401 || reasonOf(t, body) != "Unauthorized" {
		t.Errorf("a token that nobody reviews: answered %d %s", status, body)
	}
	ada := f.client(&pki.Request{Name: "eve", Role: pki.Operator}, nil)
	if status, _, _ := f.call(ada, "GET", "/metrics", nil); status != 200 {
		t.Fatalf("before the revocation: answered %d", status)
	}
	if _, err := f.ca.Revoke("eve"); err != nil {
		t.Fatal(err)
	}
	crl, err := f.ca.CRL()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.revocations.Set(crl, f.ca.CA(), f.clock()); err != nil {
		t.Fatal(err)
	}
	if status, _, body := f.call(ada, "GET", "/metrics", nil); status != 403 || reasonOf(t, body) != "Revoked" {
		t.Errorf("revoked: answered %d %s", status, body)
	}
}

type errString string

func (e errString) Error() string { return string(e) }

// One who is let in to the operators' port has a part of it: who holds all the long polls
// that it may holds up nobody else.
func TestTheOperatorsPortIsShared(t *testing.T) {
	f := &fleet{t: t, revocations: new(Revocations)} // by the real clock: each try costs of what refills
	files := f.certify()
	guard, err := NewGuard(nil, f.revocations, f.clock, quiet)
	if err != nil {
		t.Fatal(err)
	}
	offered := &recorder{}
	f.address = "https://" + run(t, Port{Name: "operators", Address: "127.0.0.1:0", TLS: GuardTLS(files, quiet), Handler: NewOperators(Operators{
		Metrics: NewMetrics(), Market: offered, Guard: guard,
	})})
	bo, waiting := &pki.Request{Name: "bo", Role: pki.Reader}, fmt.Sprintf("/market?since=%s&wait=5s", feed)
	answers := make(chan int, maxPolls)
	for range maxPolls {
		client := f.client(bo, nil) // a connection each
		go func() {
			status, _, _ := f.call(client, "GET", waiting, nil)
			answers <- status
		}()
	}
	for offered.timesAsked() < maxPolls { // all have their places: one of another's would be refused
		select {
		case status := <-answers:
			t.Fatalf("a long poll is answered %d at once", status)
		case <-time.After(5 * time.Millisecond):
		}
	}
	one := f.client(bo, nil)
	status, headers, body := f.call(one, "GET", waiting, nil)
	if status != http.StatusTooManyRequests || headers.Get("Retry-After") == "" || !strings.Contains(string(body), "certificate:bo is held back") {
		t.Errorf("one more long poll is answered %d %v %s", status, headers, body)
	}
	for _, who := range []*pki.Request{{Name: "ada", Role: pki.Operator}, {Name: "cy", Role: pki.Reader}} {
		if status, _, body := f.call(f.client(who, nil), "GET", "/market", nil); status != http.StatusOK {
			t.Errorf("%s is answered %d %s", who.Name, status, body)
		}
	}
	if status, _, body := f.call(one, "GET", "/readyz", nil); status != http.StatusOK {
		t.Errorf("what is no long poll is answered %d %s", status, body)
	}
	for range maxPolls {
		if status := <-answers; status != http.StatusNotModified {
			t.Errorf("a long poll is answered %d", status)
		}
	}
}
