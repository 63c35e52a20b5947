package server

import (
	"context"
	"encoding/json"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/pki"
)

// talker has much to say to every cluster.
type talker struct {
	Broker
	Delivery
	in    wire.Instructions
	most  atomic.Int32 // questions to the remote at a time
	asked atomic.Int32
	meet  chan struct{}
}

func (t *talker) Instructions(string) (wire.Instructions, <-chan struct{}) { return t.in, nil }

func (t *talker) Root(context.Context, string) (string, error) {
	if n := t.asked.Add(1); n > t.most.Load() {
		t.most.Store(n)
	}
	select { // until another is asked at the same time, or none came for a while
	case t.meet <- struct{}{}:
	case <-t.meet:
	case <-time.After(20 * time.Millisecond):
	}
	t.asked.Add(-1)
	return "0", nil
}

func startTalking(t *testing.T, limits Limits) (*fleet, *talker) {
	t.Helper()
	f := &fleet{t: t, market: &recorder{}, revocations: new(Revocations), metrics: NewMetrics(), now: time.Now()}
	for range 200 {
		f.market.flavors = append(f.market.flavors, v1alpha1.Flavor{Metadata: v1alpha1.Metadata{Name: "a", Namespace: "paris"}}, v1alpha1.Flavor{Metadata: v1alpha1.Metadata{Name: "a", Namespace: "lyon"}})
	}
	talk := &talker{meet: make(chan struct{}), in: wire.Instructions{Version: "1", Provide: make([]wire.Instruction, 100)}}
	files := f.certify()
	f.address = "https://" + run(t, Port{
		Name: "agents", Address: "127.0.0.1:0", TLS: AgentTLS(files, f.revocations, quiet),
		Handler: NewAgents(Agents{Reports: f.market, Market: f.market, Broker: talk, Delivery: talk, Revocations: f.revocations, Log: quiet, Limits: limits, Now: f.clock}),
	})
	return f, talk
}

// TestOneIdentity_PaysForItsAnswers: who asks for large answers without end is held
// back until they are paid, and nobody else is.
func TestOneIdentity_PaysForItsAnswers(t *testing.T) {
	f, talk := startTalking(t, Limits{Answers: 10_000})
	size := func(v any) int {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return len(b)
	}(talk.in)
	client := f.client(paris, nil)
	for _, path := range []string{wire.InstructionsPath("paris"), "/market"} {
		got := 0
		for range 400 {
			status, header, body := f.call(client, "GET", path, nil)
			if status == http.StatusTooManyRequests {
				if header.Get("Retry-After") == "" || reasonOf(t, body) != "RateLimited" {
					t.Fatalf("%s: refused by %s", path, body)
				}
				break
			}
			if status != http.StatusOK {
				t.Fatalf("%s: answered %d %s", path, status, body)
			}
			got += len(body)
		}
		// A burst of sixteen seconds' worth, and the answer that goes beyond it.
		if most := 16*10_000 + 2*max(size, 40_000); got == 0 || got > most {
			t.Errorf("%s: got %d bytes of answers at once, want some and at most %d", path, got, most)
		}
		if status, _, body := f.call(f.client(&pki.Request{Name: "lyon"}, nil), "GET", wire.InstructionsPath("lyon"), nil); status != http.StatusOK {
			t.Errorf("another cluster is answered %d %s", status, body)
		}
		f.mu.Lock()
		f.now = f.now.Add(10 * time.Minute)
		f.mu.Unlock()
	}
	if status, _, body := f.call(client, "GET", "/market", nil); status != http.StatusOK {
		t.Errorf("once it is paid: answered %d %s", status, body)
	}
}

// TestOneIdentity_AsksTheRemoteInTurn: one cluster's agent has the git server asked
// once at a time, however many requests it sends.
func TestOneIdentity_AsksTheRemoteInTurn(t *testing.T) {
	f, talk := startTalking(t, Limits{})
	client := f.client(paris, nil)
	f.connect(client)
	done := make(chan int, 10)
	for range cap(done) {
		go func() {
			status, _, _ := f.call(client, "GET", wire.ManifestsRootPath("paris"), nil)
			done <- status
		}()
	}
	for range cap(done) {
		if status := <-done; status != http.StatusOK {
			t.Errorf("answered %d", status)
		}
	}
	if most := talk.most.Load(); most != 1 {
		t.Errorf("the remote is asked %d times at once for one cluster", most)
	}
}
