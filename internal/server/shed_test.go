package server

import (
	"context"
	"net/http"
	"net/http/httptrace"
	"testing"
	"time"
)

// Connections that are given away end with their next answer, long polls with theirs, and
// no request fails: its client opens another one.
func TestShed(t *testing.T) {
	f := &fleet{t: t, market: &recorder{}, revocations: new(Revocations), metrics: NewMetrics(), now: time.Now()}
	files := f.certify()
	servers, err := Listen(t.Context(), quiet, Port{
		Name: "agents", Address: "127.0.0.1:0", TLS: AgentTLS(files, f.revocations, quiet),
		Handler: NewAgents(Agents{Reports: f.market, Market: f.market, Broker: poller{}, Revocations: f.revocations, Log: quiet}),
	})
	if err != nil {
		t.Fatal(err)
	}
	serving, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- servers.Run(serving, 5*time.Second) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	f.address = "https://" + servers.Address("agents")
	const clients = 10
	ended := make(chan int, clients)
	all := make([]*http.Client, clients)
	polling, end := context.WithCancel(t.Context())
	defer end()
	for i := range all {
		all[i] = f.client(paris, nil)
		f.connect(all[i])
	}
	f.poll(polling, all[0], ended) // under way when its connection is given away
	if got := servers.Connections("agents"); got != clients {
		t.Fatalf("%d connections of %d clients", got, clients)
	}
	if got := servers.Shed("agents", 4) + servers.Shed("agents", 2); got != 6 {
		t.Errorf("%d are given away; want 6", got)
	}
	if got := servers.Connections("agents"); got != clients {
		t.Errorf("%d connections before their next answers", got)
	}
	opened := map[int]bool{}
	for end := time.Now().Add(30 * time.Second); len(opened) < 6 && time.Now().Before(end); {
		for i, client := range all {
			status, fresh := f.dials(client)
			if status != http.StatusOK {
				t.Errorf("a request of client %d is answered %d", i, status)
			}
			if fresh && opened[i] {
				t.Errorf("client %d opened a third connection", i)
			}
			opened[i] = opened[i] || fresh
			if !opened[i] {
				delete(opened, i)
			}
		}
		<-time.After(50 * time.Millisecond) // they are one identity, which may ask so often
	}
	if len(opened) != 6 {
		t.Errorf("%d clients opened another connection after their next answer; want 6", len(opened))
	}
	select {
	case status := <-ended:
		t.Errorf("the long poll ended with %d", status)
	default:
	}
	// All: nothing is left that has not been told.
	servers.Shed("agents", 100)
	if got := servers.Shed("agents", 100); got != 0 {
		t.Errorf("%d are given away twice", got)
	}
}

// dials makes a request, and says whether it needed a connection of its own.
func (f *fleet) dials(client *http.Client) (status int, fresh bool) {
	f.t.Helper()
	trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { fresh = !info.Reused }}
	r, err := http.NewRequestWithContext(httptrace.WithClientTrace(f.t.Context(), trace), http.MethodGet, f.address+"/healthz", nil)
	if err != nil {
		f.t.Fatal(err)
	}
	answer, err := client.Do(r)
	if err != nil {
		f.t.Fatal(err)
	}
	_ = answer.Body.Close()
	return answer.StatusCode, fresh
}
