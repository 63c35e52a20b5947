package daemon

import (
	"context"
	"crypto/x509"
	"errors"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/logs/logtest"
	"github.com/fleetbroker/fleetbroker/internal/market"
	"github.com/fleetbroker/fleetbroker/internal/market/store"
	"github.com/fleetbroker/fleetbroker/internal/market/store/storetest"
)

// A daemon whose market lies in memory ends when its cluster serves the objects by now;
// one that does not know goes on.
func TestShared_Follow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		s := &Shared{installed: func(context.Context) (bool, error) {
			switch minutes := int(time.Since(began).Minutes()); {
			case minutes < 3:
				return false, nil
			case minutes < 5:
				return true, errors.New("out of reach") // which is no word
			}
			return true, nil
		}}
		if err := s.Follow(t.Context()); err == nil || time.Since(began) != 5*time.Minute {
			t.Errorf("it ended after %s with %v", time.Since(began), err)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := s.Follow(ended); err != nil {
			t.Error(err)
		}
		if err := new(Shared).Follow(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A replica that others cannot hand requests to says so when there are others.
func TestShared_Reachable(t *testing.T) {
	objects := &storetest.Objects{}
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	start := func(name string) (*store.Shared, *storetest.API) {
		api := objects.API()
		clock := func() time.Time { return now }
		s := store.NewShared(store.Options{API: api, Market: market.New(market.Options{Now: clock}), Replica: name, Life: "1", Now: clock})
		s.Follow(t.Context(), api.Follow)
		return s, api
	}
	a, itsAPI := start("a")
	tick := func(all ...*store.Shared) {
		for range 25 {
			now = now.Add(time.Second)
			for _, s := range all {
				s.Look(t.Context())
			}
			itsAPI.Deliver(0)
		}
	}
	tick(a)
	alone := &Shared{Store: a, hidden: true}
	if err := alone.Reachable(); err != nil {
		t.Errorf("alone: %v", err)
	}
	b, other := start("b")
	other.Deliver(0)
	tick(a, b)
	if err := alone.Reachable(); err == nil {
		t.Error("beside another one it says nothing")
	}
	if err := (&Shared{Store: a}).Reachable(); err != nil {
		t.Errorf("with an address: %v", err)
	}
	if err := (&Shared{Store: &store.Memory{}, hidden: true}).Reachable(); err != nil {
		t.Errorf("with a market of its own: %v", err)
	}
}

// A daemon's certificate is taken that is good for this replica's address or that of a
// live one; that of another fleet's daemon, of the same authority, is not.
func TestShared_Peer(t *testing.T) {
	objects := &storetest.Objects{}
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	start := func(name, address string) (*store.Shared, *storetest.API) {
		api := objects.API()
		s := store.NewShared(store.Options{API: api, Market: market.New(market.Options{Now: clock}), Replica: name, Life: "1", Address: address, Now: clock})
		s.Follow(t.Context(), api.Follow)
		return s, api
	}
	a, itsAPI := start("a", "a.broker.example.org:8443")
	b, other := start("b", "b.elsewhere.example.org:8443")
	other.Deliver(0)
	for range 25 {
		now = now.Add(time.Second)
		a.Look(t.Context())
		b.Look(t.Context())
		itsAPI.Deliver(0)
	}
	s := &Shared{Store: a, address: "a.broker.example.org:8443"}
	for host, good := range map[string]bool{
		"*.broker.example.org": true, "b.elsewhere.example.org": true, "broker.other.example.org": false, "": false,
	} {
		cert := &x509.Certificate{DNSNames: []string{host}}
		if err := s.peer(&x509.Certificate{}, cert); (err == nil) != good {
			t.Errorf("a certificate for %q: %v", host, err)
		}
	}
	of := func(fleet string) *x509.Certificate {
		out := &x509.Certificate{DNSNames: []string{"*.broker.example.org"}} // the guide's names
		if fleet != "" {
			out.URIs = []*url.URL{{Scheme: "urn", Opaque: "fleetbroker:fleet:" + fleet}}
		}
		return out
	}
	const ours, others = "a123456789", "b123456789"
	s.fleet = ours
	for _, test := range []struct {
		own, other string
		good       bool
	}{
		{"", "", true}, {"", ours, true}, {"", others, false}, {ours, ours, true}, {ours, "", false}, {ours, others, false}, {others, others, false},
	} {
		if err := s.peer(of(test.own), of(test.other)); (err == nil) != test.good {
			t.Errorf("own certificate of %q, another's of %q: %v", test.own, test.other, err)
		}
	}
}

// A cluster that does not answer may have the market's kinds: the store is opened, the log
// says what is waited for, and nothing is kept in memory meanwhile.
func TestStoreFlags_OpenOutOfReach(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().String()
	if err := l.Close(); err != nil { // nobody listens there
		t.Fatal(err)
	}
	text := "apiVersion: v1\nkind: Config\nclusters: [{name: home, cluster: {server: \"https://" + at + "\"}}]\nusers: [{name: broker, user: {token: x}}]\n" +
		"contexts: [{name: home, context: {cluster: home, user: broker}}]\ncurrent-context: home\n"
	s, lines := openAuto(t, []byte(text))
	if _, shared := s.Store.(*store.Shared); !shared {
		t.Errorf("the store is a %T, want the cluster's", s.Store)
	}
	lines.Wants(t, "FB1065")
}

// openAuto opens the store that a kubeconfig leads to, where none is asked for by name, and
// returns what was logged.
func openAuto(t *testing.T, kubeconfig []byte) (*Shared, *logtest.Lines) {
	t.Helper()
	lines := &logtest.Lines{}
	s, err := openStore(t, storeAuto, kubeconfig, lines)
	if err != nil {
		t.Fatal(err)
	}
	return s, lines
}

// openStore opens a store of a kind by a kubeconfig.
func openStore(t *testing.T, kind string, kubeconfig []byte, lines *logtest.Lines) (*Shared, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, kubeconfig, 0o600); err != nil {
		t.Fatal(err)
	}
	flags := StoreFlags{kind: kind, kubeconfig: file, namespace: "fleetbroker"}
	return flags.Open(t.Context(), StoreOptions{Identity: "broker-0", Market: market.New(market.Options{Now: time.Now}), Log: lines.Logger()})
}
