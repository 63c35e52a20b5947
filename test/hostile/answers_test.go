//go:build e2e

package hostile

import (
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestDaemon_FacesHostileServers: a daemon that was given hostile kubeconfigs, a
// cluster whose API server answers with harm, and a forge that does. It goes on
// deciding, runs none of their programs, and logs nothing that a terminal obeys.
func TestDaemon_FacesHostileServers(t *testing.T) {
	dir, list := t.TempDir(), Answers()
	marker := filepath.Join(dir, "made-by-a-kubeconfig")
	var api, forge atomic.Int64
	answer := func(asked *atomic.Int64) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			n := int(asked.Add(1) - 1)
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader([]int{200, 200, 200, 403, 429, 500}[n/len(list)%6])
			_, _ = w.Write([]byte(list[n%len(list)])) // the daemon may have seen enough
		})
	}
	cluster := httptest.NewTLSServer(answer(&api))
	t.Cleanup(cluster.Close)
	pulls := httptest.NewServer(answer(&forge))
	t.Cleanup(pulls.Close)

	configs := map[string]string{}
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cluster.Certificate().Raw})
	lies := fmt.Sprintf(
		"apiVersion: v1\nkind: Config\ncurrent-context: x\nclusters: [{name: x, cluster: {server: %q, certificate-authority-data: %s}}]\ncontexts: [{name: x, context: {cluster: x, user: x}}]\nusers: [{name: x, user: {token: x}}]\n",
		cluster.URL, base64.StdEncoding.EncodeToString(authority))
	put(t, dir, map[string]string{"token": "t"})
	more := map[string]string{}
	for name, text := range Kubeconfigs(cluster.URL, marker) {
		configs["kubeconfigs/kc-"+name+".kubeconfig"] = text
	}
	for i := range 6 { // which back off alone, so that each answer is given soon
		configs[fmt.Sprintf("kubeconfigs/lies-%d.kubeconfig", i)] = lies
	}
	put(t, dir, configs)
	consumers := []string{"rome"}
	for name := range configs {
		consumers = append(consumers, strings.TrimSuffix(filepath.Base(name), ".kubeconfig"))
	}
	slices.Sort(consumers)
	for _, c := range consumers {
		if c != "rome" {
			more["clusters/"+c+".yaml"] = group + "kind: Cluster\nmetadata: {name: " + c + "}\nspec: {roles: [consumer], liqo: {clusterID: " + c + "}}\n"
			more["intents/vision/at-"+c+".yaml"] = strings.Replace(Intent("vision", "at-"+c, ""), "consumer: rome", "consumer: "+c, 1)
		}
	}
	more["tenants/vision.yaml"] = group + "kind: Tenant\nmetadata: {name: vision}\nspec: {consumers: [" + strings.Join(consumers, ", ") + "], namespaces: [vision, \"vision-*\"]}\n"

	d := startDaemonWith(t, dir, more, "--kubeconfigs-dir", filepath.Join(dir, "kubeconfigs"),
		"--forge", "gitea", "--forge-url", pulls.URL, "--forge-repo", "acme/fleet", "--forge-token-file", filepath.Join(dir, "token"))
	before, _ := d.used()
	until := time.Now().Add(wall)
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for (forge.Load() < int64(len(list)) || api.Load() < int64(len(list))) && time.Now().Before(until) {
		d.push()
		d.decides("answers of servers")
		<-ticker.C
	}
	after, peak := d.used()
	if after-before > 4*maxCPU || peak > maxMemory {
		t.Errorf("took %s and %d MiB", after-before, peak>>20)
	}
	if n := int64(len(list)); forge.Load() < n || api.Load() < n {
		t.Errorf("the forge gave %d answers, the cluster %d, want all %d", forge.Load(), api.Load(), n)
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("the program of a kubeconfig was run")
	}
	t.Logf("forge %d, cluster %d answers, %d orderly requests: %s, %d MiB", forge.Load(), api.Load(), d.asked, after-before, peak>>20)
}
