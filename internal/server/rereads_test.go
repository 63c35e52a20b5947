package server

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/pki"
)

// behind is a broker whose ledger is behind what agents say, and stays so.
type behind struct {
	Broker
	rereads int
}

func (*behind) Instructions(string) (wire.Instructions, <-chan struct{}) {
	return wire.Instructions{Version: "v", Seq: 7}, make(chan struct{})
}
func (b *behind) Reread()      { b.rereads++ }
func (*behind) Vouches() error { return nil }
func (*behind) Newest() error  { return errors.New("a round has failed") }

// Agents that say that the ledger is further than it is, each as often as it may ask,
// make the remote be asked once in 30 s each, and once in two seconds all together.
func TestInstructions_RereadsArePaced(t *testing.T) {
	for agents, most := range map[int]int{1: 21, 40: 301} {
		b := &behind{}
		now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
		h := newAgents(Agents{Broker: b, Log: quiet, Now: func() time.Time { return now }}).routes()
		for range 600 { // seconds
			now = now.Add(time.Second)
			for i := range agents {
				name := fmt.Sprintf("paris-%d", i)
				r := httptest.NewRequestWithContext(context.WithValue(t.Context(), identityKey{}, pki.Identity{Name: name, Role: pki.Agent}), "GET", "/api/v2/clusters/"+name+"/instructions?after=18446744073709551615", nil)
				w := httptest.NewRecorder()
				if h.ServeHTTP(w, r); w.Code != 503 {
					t.Fatalf("answered %d", w.Code)
				}
			}
		}
		if b.rereads > most || b.rereads < most-2 {
			t.Errorf("%d agents made the remote be asked %d times in ten minutes, want %d", agents, b.rereads, most)
		}
	}
}
