package server

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"testing"
	"time"
)

// TestCrowd: whatever comes and goes, the one that gives way is the oldest of the address
// that has most, as a look at all of them finds it.
func TestCrowd(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	c := crowd{by: map[netip.Addr]*member{}}
	var all []*watchedConn
	now := time.Unix(0, 0)
	for step := range 5000 {
		if len(all) == 0 || r.IntN(5) > 1 {
			now = now.Add(time.Millisecond)
			address := netip.AddrFrom4([4]byte{192, 0, 2, byte(r.IntN(40))})
			conn := &watchedConn{began: now}
			conn.place.address = address
			conn.place.silent = c.add(address, conn)
			all = append(all, conn)
		} else {
			i := r.IntN(len(all))
			c.remove(all[i].place.address, all[i].place.silent)
			all = append(all[:i], all[i+1:]...)
		}
		counts := map[netip.Addr]int{}
		for _, conn := range all {
			counts[conn.place.address]++
		}
		var want *watchedConn
		for _, conn := range all { // the oldest first
			if want == nil || counts[conn.place.address] > counts[want.place.address] {
				want = conn
			}
		}
		if got := c.oldest(); got != want || c.n != len(all) || len(c.by) != len(counts) || len(c.first) != len(counts) {
			t.Fatalf("step %d: of %d connections of %d addresses another one gives way", step, len(all), len(counts))
		}
	}
}

// BenchmarkAdmission_Flood is one connection more on a full port, of so many addresses.
func BenchmarkAdmission_Flood(b *testing.B) {
	for _, addresses := range []int{100, 20_000} {
		b.Run(fmt.Sprint(addresses), func(b *testing.B) {
			now := time.Unix(0, 0)
			a := newAdmission(20_000, 0, false, func() time.Time { return now })
			enter := func(i int) {
				now = now.Add(time.Microsecond)
				n := i % addresses
				a.enter(&watchedConn{Conn: from{address: &net.TCPAddr{IP: net.IPv4(10, byte(n>>16), byte(n>>8), byte(n))}}, began: now})
			}
			for i := range 20_000 {
				enter(i)
			}
			for i := 0; b.Loop(); i++ {
				enter(i)
			}
		})
	}
}
