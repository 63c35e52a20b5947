package login

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// Who asks as often as they can from one address keeps others from nothing: neither those
// who begin a login elsewhere, nor who ends one from the same address.
func TestPace(t *testing.T) {
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	p := newPace()
	from := func(address string) *http.Request {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, CallbackPath, nil)
		r.RemoteAddr = address
		return r
	}
	flood := func() (refused int) {
		for range 200 {
			if !p.allow(from("[2001:db8::1]:1"), "", now) {
				refused++
			}
		}
		return refused
	}
	if flood() != 160 || flood() != 200 {
		t.Error("a flood is not bounded")
	}
	if p.allow(from("[2001:db8::ffff]:2"), "", now) {
		t.Error("another address of the same host has a share of its own")
	}
	if !p.allow(from("192.0.2.7:1"), "", now) {
		t.Error("somebody elsewhere may not begin")
	}
	for range 5 {
		if !p.allow(from("[2001:db8::1]:3"), "its state", now) {
			t.Error("who has begun may not end it")
		}
	}
	if p.allow(from("[2001:db8::1]:3"), "its state", now) {
		t.Error("one login comes back as often as it likes")
	}
	if now = now.Add(time.Second); !p.allow(from("[2001:db8::1]:1"), "", now) {
		t.Error("a second later it may not begin")
	}
	for i := range 3 * maxRemembered {
		p.allow(from("192.0.2.8:1"), time.Duration(i).String(), now)
	}
	if len(p.of) > maxRemembered {
		t.Errorf("%d are remembered", len(p.of))
	}
}
