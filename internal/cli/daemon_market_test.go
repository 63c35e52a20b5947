package cli

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/market"
	"github.com/fleetbroker/fleetbroker/internal/market/store"
	"github.com/fleetbroker/fleetbroker/internal/pki"
	"github.com/fleetbroker/fleetbroker/internal/server"
)

// A plan against the agents' port of a daemon: the market as it hears it, over
// mutual TLS, a silent provider included.
func TestPlanAsksADaemon(t *testing.T) {
	now := time.Now().Add(-time.Hour)
	m := market.New(market.Options{Now: func() time.Time { return now }})
	m.SetInputs(market.Inputs{
		Fleet:    &v1alpha1.FleetSpec{Currency: "EUR"},
		Clusters: map[string]*v1alpha1.Cluster{"paris": {Metadata: v1alpha1.Metadata{Name: "paris"}}},
	})
	f := v1alpha1.Flavor{
		TypeMeta: v1alpha1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindFlavor},
		Metadata: v1alpha1.Metadata{Name: "l4-live", Namespace: "paris"},
		Spec: v1alpha1.FlavorSpec{
			Capacity: v1alpha1.Resources{v1alpha1.CPU: v1alpha1.AmountOf(64000), v1alpha1.Memory: v1alpha1.AmountOf(1 << 38), v1alpha1.GPU: v1alpha1.AmountOf(4)},
			GPU:      &v1alpha1.FlavorGPU{Vendor: "nvidia", Model: "nvidia-l4", ResourceName: "nvidia.com/gpu"},
			Price:    &v1alpha1.Price{Currency: "EUR", PerHour: v1alpha1.UnitPrices{"gpu": v1alpha1.MustDecimal("0.10")}},
		},
	}
	if err := m.Report("paris", wire.Generation{Epoch: 1, N: 1}, []v1alpha1.Flavor{f}, true); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	url := serveMarket(t, m, dir)
	fleet := filepath.Join(dir, "fleet")
	if code, out := command(t, "init", fleet); code != 0 {
		t.Fatal(out)
	}

	code, out := command(t, "plan", fleet, "--market", url, "--cert-path", filepath.Join(dir, "ada"))
	if code != 2 || !strings.Contains(out, "paris/l4-live -> rome") || !strings.Contains(out, m.Snapshot().Tree().Root.Short()) {
		t.Errorf("exit code %d: %s", code, out)
	}
	// Nobody without a certificate of the fleet's authority.
	if code, out := command(t, "plan", fleet, "--market", url); code != 1 || !strings.Contains(out, "--cert-path") {
		t.Errorf("exit code %d: %s", code, out)
	}
	if code, out := command(t, "plan", fleet, "--market", url, "--cert-path", filepath.Join(dir, "mallory")); code != 1 {
		t.Errorf("a stranger is let in with exit code %d: %s", code, out)
	}

	// What the daemon says of a provider that it does not hear holds here too:
	// the file's offer is all that is left.
	now = now.Add(2 * time.Minute)
	code, out = command(t, "plan", fleet, "--market", url, "--cert-path", filepath.Join(dir, "ada"))
	if code != 2 || !strings.Contains(out, "paris/l4 -> rome") || !strings.Contains(out, "paris silent") {
		t.Errorf("exit code %d: %s", code, out)
	}
}

// command runs a command line and returns everything it prints.
func command(t *testing.T, args ...string) (code int, out string) {
	t.Helper()
	var b bytes.Buffer
	s := Streams{In: strings.NewReader(""), Out: &b, Err: &b, Now: time.Now}
	code = Run(t.Context(), s, args)
	return code, b.String()
}

// serveMarket serves an agents' port with certificates in dir: ada's is good,
// mallory's of another authority.
func serveMarket(t *testing.T, m *market.Market, dir string) string {
	t.Helper()
	for authority, holders := range map[string][]pki.Request{
		"ca":    {{Name: "broker", Role: pki.Server, Hosts: []string{"127.0.0.1"}}, {Name: "ada", Role: pki.Operator}},
		"other": {{Name: "mallory", Role: pki.Operator}},
	} {
		ca, err := pki.InitCA(filepath.Join(dir, authority), authority, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range holders {
			bundle, err := ca.Issue(r)
			if err != nil {
				t.Fatal(err)
			}
			if err := bundle.WriteDir(filepath.Join(dir, r.Name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	certs, err := pki.OpenFiles(filepath.Join(dir, "broker"))
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	address := freeAddress(t)
	ctx, stop := context.WithCancel(t.Context())
	servers, err := server.Listen(ctx, log, server.Port{
		Name: "agents", Address: address, TLS: server.AgentTLS(certs, nil, log),
		Handler: server.NewAgents(server.Agents{Reports: &store.Memory{Market: m}, Market: m, Log: log}),
	})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- servers.Run(ctx, time.Second) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return "https://" + address + "/market"
}

// freeAddress is an address that nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return address
}
