package daemon

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/market"
	"github.com/fleetbroker/fleetbroker/internal/market/store"
	"github.com/fleetbroker/fleetbroker/internal/market/store/storetest"
)

// Who may not decide: whose clock is off, who is cut off from the store, who has not read
// the fleet repo, and who is not answered by it.
func TestFitness(t *testing.T) {
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	api := (&storetest.Objects{}).API()
	shared := store.NewShared(store.Options{API: api, Market: market.New(market.Options{Now: func() time.Time { return now }}), Replica: "a", Life: "1", Now: func() time.Time { return now }})
	unread := store.NewShared(store.Options{API: api, Market: market.New(market.Options{}), Replica: "b", Life: "1"})
	shared.Follow(t.Context(), api.Follow)
	for range 3 {
		now = now.Add(time.Second)
		api.Deliver(0)
		shared.Look(t.Context())
		api.Deliver(0)
	}
	for name, c := range map[string]struct {
		change func(f *Fitness)
		want   string // "" fit
	}{
		"fit":                        {func(*Fitness) {}, ""},
		"a market in memory":         {func(f *Fitness) { f.Store = &store.Memory{} }, ""},
		"the clock is off":           {func(f *Fitness) { f.Clock = func() error { return errors.New("the clock is off") } }, "the clock is off"},
		"cut off":                    {func(f *Fitness) { f.Store = unread }, "the market's store is out of reach: it has not been read yet"},
		"not read":                   {func(f *Fitness) { f.Read = func() bool { return false } }, "has not been read yet"},
		"the repo is slow":           {func(f *Fitness) { f.RemoteOut = func() time.Duration { return 30 * time.Second } }, ""},
		"the repo has not answered":  {func(f *Fitness) { f.RemoteOut = func() time.Duration { return 31 * time.Second } }, "has not answered for 31s"},
		"neither store nor the repo": {func(f *Fitness) { f.Store, f.Read = unread, func() bool { return false } }, "store is out of reach"},
	} {
		f := Fitness{Clock: func() error { return nil }, Read: func() bool { return true }, RemoteOut: func() time.Duration { return 0 }, Store: shared}
		c.change(&f)
		if err := f.Err(); (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if cut := f.Cut() != ""; cut != (f.Store == unread) {
			t.Errorf("%s: cut off %t", name, cut)
		}
	}
}

// Connections are closed while a replica is of no use, every few seconds, and not else.
func TestShed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var useless atomic.Bool
		var dropped atomic.Int32
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			done <- Shed(ctx, useless.Load, func() int { return int(dropped.Add(1)) }, slog.New(slog.DiscardHandler))
		}()
		pass(time.Minute)
		if n := dropped.Load(); n != 0 {
			t.Errorf("dropped %d times while it is of use", n)
		}
		useless.Store(true)
		pass(21 * time.Second)
		if n := dropped.Load(); n < 4 || n > 5 {
			t.Errorf("dropped %d times in 21 s, want one each five", n)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
