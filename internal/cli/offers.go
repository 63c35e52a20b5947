package cli

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/escape"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/market"
	"github.com/fleetbroker/fleetbroker/internal/pki"
)

// Bounds of what --market may bring: a fleet of 10,000 flavors is some 20 MiB.
const (
	maxMarketBytes = 256 << 20
	marketTimeout  = 30 * time.Second
)

// offers is what --market brought.
type offers struct {
	flavors []*v1alpha1.Flavor
	// clusters of a CSV file, which fleets of their own may not know.
	clusters []*v1alpha1.Cluster
	// tree of the daemon's market, "" from a file.
	tree string
	// trust is the daemon's, nil where it did not say.
	trust *wire.Trust
	// pods on contracts' virtual nodes; nil where the daemon did not say.
	pods []wire.PodsReport
	// sources of the daemon that are frozen, nil where it did not say.
	sources *wire.FrozenSources
}

// readMarket reads a file or asks a daemon.
func readMarket(ctx context.Context, from, certPath string) (offers, error) {
	switch {
	case from == "":
		return offers{}, nil
	case isURL(from):
		return askMarket(ctx, from, certPath)
	}
	content, err := os.ReadFile(from) //nolint:gosec // the user named the file
	if err != nil {
		return offers{}, hinted(fmt.Errorf("read the market: %w", err), "--market is a YAML stream of Flavors, a CSV file, or a URL such as https://broker.example.org:8443/market")
	}
	if strings.EqualFold(filepath.Ext(from), ".csv") {
		name := strings.TrimSuffix(strings.ToLower(filepath.Base(from)), ".csv")
		t, err := market.ReadCSV(bytes.NewReader(content), strings.ReplaceAll(name, "_", "-"))
		if err != nil {
			return offers{}, fmt.Errorf("read the market %s: %w", from, err)
		}
		return offers{flavors: t.Flavors, clusters: t.Clusters}, nil
	}
	flavors, err := market.ParseBlob(content)
	if err != nil {
		return offers{}, fmt.Errorf("read the market %s: %w", from, err)
	}
	return offers{flavors: flavors}, nil
}

// askMarket asks a running daemon: over mutual TLS, or plainly on this machine.
func askMarket(ctx context.Context, from, certPath string) (offers, error) {
	u, err := url.Parse(from)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return offers{}, usagef("--market %q: want a file, or a URL that begins with https://", from)
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/market"
	}
	client, err := marketClient(u, certPath)
	if err != nil {
		return offers{}, err
	}
	header, content, err := askDaemon(ctx, client, u, "application/yaml")
	if err != nil {
		return offers{}, err
	}
	flavors, err := market.ParseBlob(content)
	if err != nil {
		return offers{}, fmt.Errorf("read the market of %s: %w", u.Redacted(), err)
	}
	out := offers{flavors: flavors, tree: header.Get(wire.HeaderMarket)}
	var trust wire.Trust
	if json.Unmarshal([]byte(header.Get(wire.HeaderTrust)), &trust) == nil {
		out.trust = &trust
	}
	var sources wire.FrozenSources
	if json.Unmarshal([]byte(header.Get(wire.HeaderSources)), &sources) == nil {
		out.sources = &sources
	}
	pods := *u
	pods.Path, pods.RawQuery = path.Join(path.Dir(u.Path), wire.PodsPath), ""
	if _, content, err := askDaemon(ctx, client, &pods, "application/json"); err == nil { // older daemons, and readers, have none
		_ = json.Unmarshal(content, &out.pods)
	}
	return out, nil
}

// askDaemon makes one request of a daemon.
func askDaemon(ctx context.Context, client *http.Client, u *url.URL, accept string) (http.Header, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, nil, fmt.Errorf("ask for the market: %w", err)
	}
	req.Header.Set("Accept", accept)
	resp, err := client.Do(req)
	if err != nil {
		return nil, nil, hinted(fmt.Errorf("ask for the market: %w", err), "is the daemon running, and is this its agents' address? --market FILE plans without one")
	}
	defer resp.Body.Close()
	content, err := io.ReadAll(io.LimitReader(resp.Body, maxMarketBytes))
	if err != nil {
		return nil, nil, fmt.Errorf("read the market of %s: %w", u.Redacted(), err)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, nil, fmt.Errorf("ask for the market: %s answers %s: %s", u.Redacted(), resp.Status, escape.Line(firstLine(content)))
	}
	return resp.Header, content, nil
}

func firstLine(b []byte) string {
	s, _, _ := strings.Cut(strings.TrimSpace(string(b)), "\n")
	if len(s) > 200 {
		s = s[:200]
	}
	return s
}

func marketClient(u *url.URL, certPath string) (*http.Client, error) {
	client := &http.Client{
		Timeout:       marketTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return errors.New("redirects are not followed") },
	}
	if u.Scheme == "http" {
		if ip := net.ParseIP(u.Hostname()); u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return nil, usagef("--market %s: http is for this machine alone; use https with --cert-path", u.Redacted())
		}
		return client, nil
	}
	if certPath == "" {
		return nil, hinted(usagef("--market %s needs --cert-path: the daemon asks for a certificate", u.Redacted()),
			"make one: fleetbroker pki issue DIR NAME --role operator --out certs")
	}
	files, err := pki.OpenFiles(certPath)
	if err != nil {
		return nil, err
	}
	m, err := files.Load()
	if err != nil {
		return nil, err
	}
	client.Transport = &http.Transport{TLSClientConfig: &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{m.Pair}, RootCAs: m.Authorities, VerifyConnection: pki.VerifyServer,
	}}
	return client, nil
}

// offline is a market of the repo's flavors and those of --market, which win
// over files of the same name. All of it is as static as the files are, but for
// what a daemon's market says of providers that it does not hear (see states).
func offline(f *fleet.Fleet, o offers, now v1alpha1.Time) *market.Snapshot {
	newer := map[string]bool{} // as an agent reports them: what the repo states of price and place goes before
	for _, fl := range o.flavors {
		newer[fl.Ref()] = true
	}
	all := append([]*v1alpha1.Flavor{}, o.flavors...)
	for _, fl := range f.Flavors {
		if !newer[fl.Ref()] || fl.Spec.Capacity == nil { // without one it adds to what is reported
			all = append(all, fl)
		}
	}
	clusters := withClusters(f, o)
	m := market.New(market.Options{Now: func() time.Time { return now.Time }})
	m.SetInputs(market.Inputs{Fleet: f.Policy, Clusters: clusters, Flavors: all, Prices: f.Prices, Reported: newer})
	return m.Snapshot()
}

// withClusters are the fleet's clusters, and those of a CSV file that it does
// not know.
func withClusters(f *fleet.Fleet, o offers) map[string]*v1alpha1.Cluster {
	out := map[string]*v1alpha1.Cluster{}
	for _, c := range o.clusters {
		out[c.Metadata.Name] = c
	}
	for name, c := range f.Clusters {
		out[name] = c
	}
	return out
}
