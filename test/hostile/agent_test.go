//go:build e2e

package hostile

import (
	"context"
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/pki"
	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/envtest"
)

// answers of a broker that means harm, each as status and body; every route
// gives them in turn.
func answers() []struct {
	status int
	body   string
} {
	type a = struct {
		status int
		body   string
	}
	out := []a{
		{200, ""}, {200, "{"}, {200, "[]"}, {200, "null"}, {200, "\x00"}, {200, "<html>"}, {204, ""}, {301, ""}, {302, ""}, {400, "{"}, {409, `{"error":"x","reason":"StaleEpoch","last":"9223372036854775807.9"}`},
		{409, `{"error":"\u001b[2J","reason":"StaleEpoch","last":"x"}`}, {412, ""}, {429, ""}, {500, strings.Repeat("x", 1<<20)}, {503, "\x1b]0;owned\x07"}, {999, ""},
		{200, `{"version":"1","provide":[{"contract":"../x","consumer":"rome","resources":{"cpu":"1e2147483647"}}]}`},
		{200, `{"version":"1","provide":[{"contract":"a","consumer":"rome","resources":{"cpu":"-1"}}]}`},
		{200, `{"version":"1","version":"2"}`}, {200, `{"version":"` + strings.Repeat("9", 1<<20) + `"}`},
		{200, `{"version":"1","provide":[` + strings.TrimSuffix(many(20_000, `{"contract":"c%d","consumer":"rome","resources":{"cpu":"1"}},`), ",") + `]}`},
		{200, strings.Repeat(`{"a":`, 100_000) + "1" + strings.Repeat("}", 100_000)}, {200, strings.Repeat("[", 1<<20)},
		{200, strings.Repeat(" ", 64<<20)}, {200, gzipped(256 << 20)},
	}
	return out
}

// TestAgent_FacesAHostileBroker: the real agent of a real cluster asks a broker
// that holds a good certificate and answers with harm, again and again. It goes
// on asking, within the bounds, and grants nothing.
func TestAgent_FacesAHostileBroker(t *testing.T) {
	dir := t.TempDir()
	cluster := envtest.Cluster(t, env.ClusterOptions{Name: "paris", Dir: filepath.Join(dir, "cluster")})
	if err := env.InstallLiqoCRDs(t.Context(), cluster.Config); err != nil {
		t.Fatal(err)
	}
	if err := env.InstallAgentCRDs(t.Context(), cluster.Config); err != nil {
		t.Fatal(err)
	}
	if _, err := env.CreateGPUNode(t.Context(), cluster.Config, env.GPUNode{Name: "paris-1", GPUs: 8, Labels: map[string]string{"fleetbroker.io/pool": "h100"}}); err != nil {
		t.Fatal(err)
	}
	ca, err := pki.InitCA(filepath.Join(dir, "pki"), "hostile", time.Now)
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range []pki.Request{{Name: "broker", Role: pki.Server, Hosts: []string{"127.0.0.1"}}, {Name: "paris"}} {
		bundle, err := ca.Issue(q)
		if err != nil {
			t.Fatal(err)
		}
		if err := bundle.WriteDir(filepath.Join(dir, q.Name)); err != nil {
			t.Fatal(err)
		}
	}
	files, err := pki.OpenFiles(filepath.Join(dir, "broker"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := files.Load()
	if err != nil {
		t.Fatal(err)
	}
	list := answers()
	var asked atomic.Int64
	broker := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		a := list[int(asked.Add(1)-1)%len(list)]
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Retry-After", "0")
		w.Header().Set("Location", "https://127.0.0.1:1/")
		if strings.HasPrefix(a.body, "\x1f\x8b") {
			w.Header().Set("Content-Encoding", "gzip")
		}
		w.WriteHeader(a.status)
		_, _ = w.Write([]byte(a.body)) // the agent may have seen enough
	}))
	broker.TLS = &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{m.Pair}, ClientCAs: m.Authorities, ClientAuth: tls.RequireAndVerifyClientCert}
	broker.StartTLS()
	t.Cleanup(broker.Close)
	put(t, dir, map[string]string{"kubeconfig": string(cluster.Kubeconfig), "logs/x": ""})
	agent, err := env.StartProgram("agent", filepath.Join(dir, "logs"), filepath.Join(bin, "fleet-agent"), "--cluster-id", "paris", "--kubeconfig", filepath.Join(dir, "kubeconfig"),
		"--broker-cert-path", filepath.Join(dir, "paris"), "--broker-url", broker.URL, "--advertisement-requeue-interval", "100ms")
	if err != nil {
		t.Fatal(err)
	}
	d := &daemon{Program: agent, t: t}
	ctx, cancel := context.WithTimeout(t.Context(), wall)
	defer cancel()
	for asked.Load() < int64(len(list)) {
		select {
		case <-agent.Done():
			t.Fatal(agent.Failure())
		case <-ctx.Done():
			t.Fatalf("the agent asked %d times of %d", asked.Load(), len(list))
		case <-time.After(50 * time.Millisecond):
		}
	}
	cpu, peak := d.used()
	if cpu > 4*maxCPU || peak > maxMemory {
		t.Errorf("took %s and %d MiB", cpu, peak>>20)
	}
	if err := agent.Stop(); err != nil {
		t.Error(err)
	}
	log, err := os.ReadFile(agent.LogFile())
	if err != nil || strings.Contains(string(log), "panic") {
		t.Errorf("%v\n%.4000s", err, log)
	}
	visible(t, "the agent's log", string(log))
	t.Logf("%d answers: %s, %d MiB", asked.Load(), cpu, peak>>20)
}
