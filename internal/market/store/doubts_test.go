package store_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/marketcrd"
	"github.com/fleetbroker/fleetbroker/internal/market"
	"github.com/fleetbroker/fleetbroker/internal/market/store"
)

// strict is an API whose client refuses names that no object has, as that of Kubernetes
// does, and which fails for others.
type strict struct {
	store.API
	asked int
}

func (a *strict) Advertisement(context.Context, string) (*marketcrd.Advertisement, error) {
	a.asked++
	return nil, errors.New("it is refused, or the answer cannot be read")
}

// Providers that a forged Heartbeat names are not looked at without end: one whose name no
// object has never is, and the others only while Heartbeats name them.
func TestDoubts_ForgedNamesGo(t *testing.T) {
	r := newReplicas(t)
	api := &strict{API: r.objects.API()}
	inner := api.API.(interface { //nolint:forcetypeassert // it is that
		Follow(w store.Watcher)
		Deliver(most int) int
	})
	m := market.New(market.Options{Now: clockOf(r)})
	s := store.NewShared(store.Options{API: api, Market: m, Replica: "a", Life: "1", Now: clockOf(r)})
	s.Follow(t.Context(), inner.Follow)
	pass := func(seconds int) {
		for range seconds {
			r.tick(1)
			inner.Deliver(0)
			s.Look(t.Context())
			s.Tend(t.Context())
		}
	}
	pass(2)
	var text bytes.Buffer
	w := gzip.NewWriter(&text)
	for i := range 300 {
		fmt.Fprintf(w, "No_Object/%d 7.1 1\n", i)
		fmt.Fprintf(w, "forged-%d 7.1 1\n", i)
	}
	must(t, w.Close())
	h := &marketcrd.Heartbeat{Spec: marketcrd.HeartbeatSpec{Life: "1", Beat: 1, Serving: true, Heard: text.Bytes()}}
	h.Name = "forged"
	_, err := r.objects.API().PutHeartbeat(t.Context(), h)
	must(t, err)
	pass(2)
	if got := s.Doubts(); got != 300 {
		t.Errorf("%d are to be looked at, want the 300 that an object may be called", got)
	}
	pass(11 * 60)
	if got := s.Doubts(); got != 0 {
		t.Errorf("%d are still to be looked at", got)
	}
	asked := api.asked
	if pass(60); asked == 0 || api.asked != asked {
		t.Errorf("looked at %d times, and %d times after that", asked, api.asked-asked)
	}
}
