package fair

import (
	"context"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"
)

func address4(last byte) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, last}) }

// A place that is not settled in time goes to an address that has fewer, one that is settled
// stays, and an address that has as many asks for nothing.
func TestPlaces_AreAskedBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPlaces(3, 2, 8, time.Second)
		asked := map[string]int{}
		take := func(name string, from byte) *Place {
			var mine *Place
			mine = p.Take(t.Context(), address4(from), func() { asked[name]++; go func() { mine.Leave() }() })
			return mine
		}
		first, second := take("first", 1), take("second", 1)
		if !first.Settle() {
			t.Error("nobody waits, and the place was asked back")
		}
		take("other", 2)
		began := time.Now()
		mine := take("mine", 3)
		if took := time.Since(began); mine == nil || took != time.Second || asked["second"] != 1 || len(asked) != 1 {
			t.Errorf("a place after %s, asked back %v, want second's after a second", took, asked)
		}
		if second.Settle() {
			t.Error("who was asked to leave may stay")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if p.Take(ctx, address4(2), func() {}) != nil || len(asked) != 1 {
			t.Errorf("one place each, and of %v one was asked back", asked)
		}
	})
}

// However many addresses are slow, each with one place and others waiting, who is prompt has
// a place within a turn, and what waits in vain leaves nothing behind.
func TestPlaces_ManySlowAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPlaces(4, 3, 8, 100*time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for i := range 40 {
			go func() {
				for ctx.Err() == nil {
					gone := make(chan struct{})
					if mine := p.Take(ctx, address4(byte(i+1)), func() { close(gone) }); mine != nil {
						select {
						case <-gone:
						case <-ctx.Done():
						}
						mine.Leave()
					}
				}
			}()
		}
		synctest.Wait()
		for range 5 {
			began := time.Now()
			mine := p.Take(ctx, address4(200), func() {})
			if took := time.Since(began); mine == nil || took > 2*time.Second || !mine.Settle() {
				t.Fatalf("a place after %s", took)
			}
			mine.Leave()
		}
		<-ctx.Done()
		synctest.Wait()
		if len(p.of)+len(p.taken)+len(p.queue) != 0 || p.asked {
			t.Errorf("left: %d addresses, %d places, %d that wait, %t", len(p.of), len(p.taken), len(p.queue), p.asked)
		}
	})
}
