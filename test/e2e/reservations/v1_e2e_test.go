//go:build e2e

package reservations

import (
	"context"
	"crypto/tls"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/test/env/rig"
)

var update = flag.Bool("update", false, "write the golden file anew")

// exchange is one request of an agent of the first form, with its name for the
// golden file.
type exchange struct {
	as, what, method, path, body string
}

const parisAdvert = `{"clusterID":"paris","clusterName":"paris","resources":{` +
	`"capacity":{"cpu":"64","memory":"256Gi","gpu":"4"},"allocatable":{"cpu":"63500m","memory":"250Gi","gpu":"4","storage":"500Gi"},` +
	`"allocated":{"cpu":"3500m","memory":"10Gi"},"available":{"cpu":"60","memory":"240Gi","gpu":"4"}},"timestamp":"2026-11-20T12:00:00Z"}`

// exchanges are every route with its answers, in an order that builds on each
// other.
var exchanges = []exchange{
	{"paris", "health", "GET", "/healthz", ""},
	{"paris", "nothing is owed yet", "GET", "/api/v1/instructions", ""},
	{"paris", "not advertised yet", "GET", "/api/v1/advertisements/paris", ""},
	{"paris", "no JSON", "POST", "/api/v1/advertisements", `{"clusterID":`},
	{"rome", "for another cluster", "POST", "/api/v1/advertisements", parisAdvert},
	{"paris", "advertise", "POST", "/api/v1/advertisements", parisAdvert},
	{"rome", "nothing of CPU", "POST", "/api/v1/reservations", `{"requestedResources":{"cpu":"","memory":"8Gi"}}`},
	{"rome", "no memory at all", "POST", "/api/v1/reservations", `{"requestedResources":{"cpu":"4","memory":"0"}}`},
	{"rome", "no such duration", "POST", "/api/v1/reservations", `{"requestedResources":{"cpu":"4","memory":"8Gi"},"duration":"for ever"}`},
	{"rome", "more than there is", "POST", "/api/v1/reservations", `{"requestedResources":{"cpu":"400","memory":"8Gi"},"priority":10,"duration":"1h"}`},
	{"paris", "of a cluster that may not ask", "POST", "/api/v1/reservations", `{"requestedResources":{"cpu":"4","memory":"8Gi"}}`},
	{"rome", "reserve", "POST", "/api/v1/reservations", `{"requestedResources":{"cpu":"4000m","memory":"8Gi","gpu":"2"},"priority":10,"duration":"1h"}`},
	{"paris", "owed", "GET", "/api/v1/instructions", ""},
	{"rome", "owes nothing", "GET", "/api/v1/instructions", ""},
	{"paris", "advertise again", "POST", "/api/v1/advertisements", parisAdvert},
	{"paris", "what is known of it", "GET", "/api/v1/advertisements/paris", ""},
}

// TestFirstForm holds every route of the first form against the recorded
// exchange. What differs from run to run (hashes, times) is replaced.
func TestFirstForm(t *testing.T) {
	ctx, r := start(t, nil)
	d := daemon(ctx, t, r, "one")
	clients := map[string]*http.Client{"paris": client(t, r, "paris"), "rome": client(t, r, "rome")}
	var out strings.Builder
	for _, x := range exchanges {
		fmt.Fprintf(&out, "## %s: %s\n%s %s\n", x.as, x.what, x.method, x.path)
		if x.body != "" {
			fmt.Fprintf(&out, "%s\n", x.body)
		}
		status, body := send(ctx, t, clients[x.as], "https://"+d.Agents+x.path, x)
		fmt.Fprintf(&out, "=> %d\n%s\n\n", status, changing(body))
	}
	const golden = "testdata/v1.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(out.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if out.String() != string(want) {
		t.Errorf("the exchange is another one (-update accepts it):\n%s", out.String())
	}
}

// client speaks as the agent of the first form does: TLS with its certificate
// and HTTP/1.1.
func client(t *testing.T, r *rig.Rig, cluster string) *http.Client {
	t.Helper()
	files, err := r.Files(cluster)
	if err != nil {
		t.Fatal(err)
	}
	m, err := files.Load()
	if err != nil {
		t.Fatal(err)
	}
	tr := &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{m.Pair}, RootCAs: m.Authorities}}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: 30 * time.Second}
}

func send(ctx context.Context, t *testing.T, c *http.Client, url string, x exchange) (int, string) {
	t.Helper()
	q, err := http.NewRequestWithContext(ctx, x.method, url, strings.NewReader(x.body))
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Content-Type", "application/json")
	res, err := c.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, strings.TrimSpace(string(body))
}

// varying is what differs from run to run, by what stands for it.
var varying = []struct {
	form *regexp.Regexp
	as   string
}{
	{regexp.MustCompile(`[0-9a-f]{40}`), "<hash>"},
	{regexp.MustCompile(`"rules":[0-9]+`), `"rules":"<n>"`},
	{regexp.MustCompile(`rq-[0-9a-v]{16}`), "<id>"},
	{regexp.MustCompile(`<id>-0-[0-9a-v]{8}`), "<id>-0-<hash>"},
	{regexp.MustCompile(`20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ`), "<time>"},
	{regexp.MustCompile(`requests/vision/\d{6}/`), "requests/vision/<month>/"},
}

func changing(body string) string {
	body = strings.ReplaceAll(body, `"timestamp":"2026-11-20T12:00:00Z"`, `"timestamp":"its own"`)
	for _, v := range varying {
		body = v.form.ReplaceAllString(body, v.as)
	}
	return body
}
