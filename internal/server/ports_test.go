package server

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
)

func scrape(t *testing.T, m *Metrics) string {
	t.Helper()
	answer := httptest.NewRecorder()
	m.Handler().ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	if answer.Code != 200 {
		t.Fatalf("scrape answered %d %s", answer.Code, answer.Body)
	}
	return answer.Body.String()
}

func TestMetrics(t *testing.T) {
	m := NewMetrics()
	m.Reservation(v1alpha1.PhaseReserved, "vision")
	m.Decision(20 * time.Millisecond)
	m.Commit(time.Second)
	m.PushConflict()
	m.TimeToReserve(2*time.Second, "")
	m.TimeToActive(time.Minute, "")
	m.SetSpend([]Sum{{"vision", "EUR", v1alpha1.MustDecimal("12.5")}, {"nlp", "EUR", v1alpha1.MustDecimal("1")}, {"vision", "EUR", v1alpha1.MustDecimal("0.5")}})
	m.SetSpend([]Sum{{"vision", "EUR", v1alpha1.MustDecimal("12.5")}, {"vision", "EUR", v1alpha1.MustDecimal("0.5")}})
	m.SetSavings([]Sum{{"vision", "USD", v1alpha1.MustDecimal("3")}})
	text := scrape(t, m)
	for _, want := range []string{
		`fleetbroker_reservations_total{phase="Reserved",requester="vision"} 1`,
		`fleetbroker_decision_seconds_bucket{le="0.025"} 1`,
		`fleetbroker_commit_seconds_count 1`,
		`fleetbroker_push_conflicts_total 1`,
		`fleetbroker_time_to_reserve_seconds_sum 2`,
		`fleetbroker_time_to_active_seconds_sum 60`,
		`fleetbroker_spend_total{currency="EUR",tenant="vision"} 13`,
		`fleetbroker_savings{currency="USD",tenant="vision"} 3`,
		`go_goroutines`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s", want)
		}
	}
	if strings.Contains(text, `tenant="nlp"`) {
		t.Error("a tenant that the ledger no longer names is still shown")
	}
}

func TestReadiness(t *testing.T) {
	var trouble atomic.Pointer[error]
	handler := NewOperators(Operators{
		Metrics: NewMetrics(),
		Market:  &recorder{},
		Ready: []Check{
			{"repository", func() error { return nil }},
			{"market", func() error {
				if err := trouble.Load(); err != nil {
					return *err
				}
				return nil
			}},
		},
	})
	get := func(path string) (int, string) {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequest("GET", path, nil))
		return answer.Code, answer.Body.String()
	}
	if code, body := get("/readyz"); code != 200 {
		t.Errorf("answered %d %s", code, body)
	}
	deaf := errors.New("heard 1 of 4 providers that hold contracts")
	trouble.Store(&deaf)
	code, body := get("/readyz")
	var answer wire.Readiness
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		t.Fatal(err)
	}
	if code != 503 || answer.Ready || !answer.Checks[0].OK || answer.Checks[1].Reason != deaf.Error() {
		t.Errorf("answered %d %s", code, body)
	}
	for path, want := range map[string]int{"/healthz": 200, "/metrics": 200, "/market": 200, "/debug/pprof/": 404} {
		if code, body := get(path); code != want {
			t.Errorf("%s: answered %d %s", path, code, body)
		}
	}
	sick := NewOperators(Operators{Metrics: NewMetrics(), Alive: func() error { return errors.New("the round hangs") }})
	answerer := httptest.NewRecorder()
	sick.ServeHTTP(answerer, httptest.NewRequest("GET", "/healthz", nil))
	if answerer.Code != 500 {
		t.Errorf("sick: answered %d", answerer.Code)
	}
}

func TestWebhooks(t *testing.T) {
	secret := "s3cret"
	sign := func(key, body string) string {
		mac := hmac.New(sha256.New, []byte(key))
		mac.Write([]byte(body))
		return hex.EncodeToString(mac.Sum(nil))
	}
	const push = `{"ref":"refs/heads/main"}`
	cases := map[string]struct {
		forge, header, value, body string
		status                     int
	}{
		"github":                 {"github", "X-Hub-Signature-256", "sha256=" + sign(secret, push), push, 202},
		"github, wrong secret":   {"github", "X-Hub-Signature-256", "sha256=" + sign("other", push), push, 401},
		"github, other body":     {"github", "X-Hub-Signature-256", "sha256=" + sign(secret, push), push + " ", 401},
		"github, SHA-1 only":     {"github", "X-Hub-Signature", "sha1=00", push, 401},
		"github, no signature":   {"github", "X-Other", "x", push, 401},
		"gitea":                  {"gitea", "X-Gitea-Signature", sign(secret, push), push, 202},
		"gitea, not hex":         {"gitea", "X-Gitea-Signature", "zz", push, 401},
		"gitlab":                 {"gitlab", "X-Gitlab-Token", secret, push, 202},
		"gitlab, prefix":         {"gitlab", "X-Gitlab-Token", secret[:3], push, 401},
		"gitlab, empty":          {"gitlab", "X-Gitlab-Token", "", push, 401},
		"generic, HMAC":          {"generic", "X-Signature", "sha256=" + sign(secret, push), push, 202},
		"generic, token":         {"generic", "Authorization", "Bearer " + secret, push, 202},
		"generic, bare token":    {"generic", "Authorization", secret, push, 401},
		"generic, wrong token":   {"generic", "Authorization", "Bearer x", push, 401},
		"payload need not parse": {"github", "X-Hub-Signature-256", "sha256=" + sign(secret, "\x00"), "\x00", 202},
		"too large":              {"gitlab", "X-Gitlab-Token", secret, strings.Repeat("x", maxWebhook+1), 413},
		"unknown forge":          {"bitbucket", "X-Gitlab-Token", secret, push, 404},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			triggered := ""
			handler := NewWebhooks(Webhooks{Secret: func(string) []byte { return []byte(secret) }, Trigger: func(forge string) { triggered = forge }})
			r := httptest.NewRequest("POST", "/hooks/"+tc.forge, strings.NewReader(tc.body))
			r.Header.Set(tc.header, tc.value)
			answer := httptest.NewRecorder()
			handler.ServeHTTP(answer, r)
			if answer.Code != tc.status {
				t.Errorf("answered %d %s; want %d", answer.Code, answer.Body, tc.status)
			}
			if (triggered != "") != (tc.status == 202) {
				t.Errorf("triggered %q", triggered)
			}
		})
	}
	t.Run("no secret configured", func(t *testing.T) {
		handler := NewWebhooks(Webhooks{Secret: func(string) []byte { return nil }, Trigger: func(string) { t.Error("triggered") }})
		r := httptest.NewRequest("POST", "/hooks/gitlab", nil)
		r.Header.Set("X-Gitlab-Token", "")
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, r)
		if answer.Code != 404 {
			t.Errorf("answered %d", answer.Code)
		}
	})
}

func TestPlainPortsStayOnLoopback(t *testing.T) {
	for _, address := range []string{"0.0.0.0:0", ":0"} {
		servers, err := Listen(t.Context(), quiet, Port{Name: "operators", Address: address, Handler: http.NotFoundHandler()})
		if err == nil {
			t.Errorf("%s was served without TLS (%v)", address, servers.Close())
		}
	}
}

func TestListenBindsAllOrNone(t *testing.T) {
	first, err := Listen(t.Context(), quiet, Port{Name: "a", Address: "127.0.0.1:0", Handler: http.NotFoundHandler()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := first.Close(); err != nil {
			t.Error(err)
		}
	})
	taken := first.Address("a")
	if _, err := Listen(t.Context(), quiet, Port{Name: "b", Address: "127.0.0.1:0"}, Port{Name: "c", Address: taken}); err == nil {
		t.Fatal("one port was bound twice")
	}
	if first.Address("b") != "" {
		t.Error("an unknown port has an address")
	}
}

func TestShutdownAnswersWhatIsUnderWay(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(entered)
		<-release
		fmt.Fprint(w, "done")
	})
	servers, err := Listen(t.Context(), quiet, Port{Name: "a", Address: "127.0.0.1:0", Handler: handler})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- servers.Run(ctx, time.Minute) }()
	answered := make(chan string, 1)
	go func() {
		answer, err := http.Get("http://" + servers.Address("a"))
		if err != nil {
			answered <- err.Error()
			return
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			answered <- err.Error()
			return
		}
		answered <- string(body)
	}()
	<-entered
	cancel()
	select {
	case err := <-ran:
		t.Fatalf("stopped with a request under way: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	close(release)
	if got := <-answered; got != "done" {
		t.Errorf("the waiter got %q", got)
	}
	if err := <-ran; err != nil {
		t.Error(err)
	}
}

func TestAFailedPortStopsTheRest(t *testing.T) {
	servers, err := Listen(t.Context(), quiet,
		Port{Name: "a", Address: "127.0.0.1:0", Handler: http.NotFoundHandler()},
		Port{Name: "b", Address: "127.0.0.1:0", Handler: http.NotFoundHandler()})
	if err != nil {
		t.Fatal(err)
	}
	if err := servers.ports[0].listener.Close(); err != nil {
		t.Fatal(err)
	}
	if err := servers.Run(t.Context(), time.Second); err == nil || !strings.Contains(err.Error(), "serve a") {
		t.Errorf("got %v", err)
	}
}

// TestPortsLeaveFilesToTheDaemon: however many connections strangers open, files
// are left for the git server, the clusters and the disk.
func TestPortsLeaveFilesToTheDaemon(t *testing.T) {
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	few := was
	few.Cur = 300
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	servers, err := Listen(t.Context(), quiet, Port{Name: "a", Address: "127.0.0.1:0"}, Port{Name: "b", Address: "127.0.0.1:0", Connections: 7})
	if lerr := unix.Setrlimit(unix.RLIMIT_NOFILE, &was); err != nil || lerr != nil {
		t.Fatal(err, lerr)
	}
	t.Cleanup(func() {
		if err := servers.Close(); err != nil {
			t.Error(err)
		}
	})
	for i, want := range []int{75, 7} {
		if l := servers.ports[i].listener; l.admission.all != want {
			t.Errorf("port %s takes %d connections at a time, want %d", servers.ports[i].Name, l.admission.all, want)
		}
	}
}

// Connections of one port are closed on demand, and of no other; who comes again
// is served.
func TestDrop(t *testing.T) {
	hello := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	servers, err := Listen(t.Context(), quiet, Port{Name: "agents", Address: "127.0.0.1:0", Handler: hello}, Port{Name: "operators", Address: "127.0.0.1:0", Handler: hello})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- servers.Run(ctx, time.Second) }()
	defer func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	ask := func(name string) net.Conn {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", servers.Address(name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		if _, err := conn.Write([]byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Read(make([]byte, 512)); err != nil {
			t.Fatal(err)
		}
		return conn
	}
	agent, operator := ask("agents"), ask("operators")
	if n := servers.Drop("agents"); n != 1 {
		t.Errorf("%d connections were closed", n)
	}
	for name, conn := range map[string]net.Conn{"agent": agent, "operator": operator} {
		if err := conn.SetReadDeadline(time.Now().Add(300 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		_, err := conn.Read(make([]byte, 1))
		if closed := !errors.Is(err, os.ErrDeadlineExceeded); closed != (name == "agent") {
			t.Errorf("the %s's connection: %v", name, err)
		}
	}
	ask("agents")
}
