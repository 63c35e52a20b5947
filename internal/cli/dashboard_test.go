package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/ui"
	"github.com/fleetbroker/fleetbroker/internal/ui/view"
)

// TestRun_ServesTheDashboard: a daemon shows what it decided at /ui/ and as JSON, with
// the ledger's commits, and streams a new version after a commit of the inputs.
func TestRun_ServesTheDashboard(t *testing.T) {
	dir := t.TempDir()
	work, bare := filepath.Join(dir, "fleet"), filepath.Join(dir, "fleet.git")
	if code, out := command(t, "init", work); code != 0 {
		t.Fatal(out)
	}
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-c", "user.name=Ada", "-c", "user.email=ada@example.org"}, args...)...)
		cmd.Dir = work
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	git("init", "-q", "-b", "main")
	git("add", ".")
	git("commit", "-q", "-m", "A fleet")
	git("clone", "-q", "--bare", ".", bare)
	git("remote", "add", "origin", bare)
	d := startRun(t, "--state-dir", filepath.Join(dir, "state"), "--repo", "file://"+bare, "--poll-interval", "200ms")
	d.await("/readyz", http.StatusOK)
	get := func(path string, into any) string {
		t.Helper()
		answer, err := http.Get("http://" + d.operators + path)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			t.Fatalf("%s is answered %s", path, answer.Status)
		}
		if into != nil {
			if err := json.NewDecoder(answer.Body).Decode(into); err != nil {
				t.Fatalf("%s: %v", path, err)
			}
		}
		return answer.Request.URL.Path
	}
	if at := get("/", nil); at != "/ui/" {
		t.Errorf("/ leads to %s", at)
	}
	var fleet struct {
		view.Head

		Data ui.FleetAnswer
	}
	for until := time.Now().Add(time.Minute); len(fleet.Data.Contracts) == 0 && time.Now().Before(until); { // the first decision is pushed after the port opened
		get("/api/ui/fleet", &fleet)
		wait(t.Context(), 50*time.Millisecond)
	}
	if len(fleet.Data.Commits) == 0 || fleet.Data.Commits[0].Hash != fleet.Ledger || len(fleet.Data.Contracts) == 0 || fleet.Data.GPUs.Held == 0 {
		t.Errorf("the fleet is shown as %+v, its commits as %+v", fleet.Data.FleetPage, fleet.Data.Commits)
	}
	var contracts struct{ Data view.List[view.ContractRow] }
	get("/api/ui/contracts", &contracts)
	if len(contracts.Data.Items) == 0 {
		t.Fatal("no contract is shown")
	}
	get("/ui/contracts/"+contracts.Data.Items[0].Name, nil)

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+d.operators+"/ui/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	intent := "apiVersion: fleetbroker.io/v1alpha1\nkind: ResourceIntent\nmetadata: {name: never, namespace: " + contracts.Data.Items[0].Tenant + "}\nspec:\n  resources: {cpu: \"1\", memory: 1Gi, gpu: {count: 2, models: [nvidia-h200]}}\n"
	if err := os.WriteFile(filepath.Join(work, "intents", contracts.Data.Items[0].Tenant, "never.yaml"), []byte(intent), 0o600); err != nil {
		t.Fatal(err)
	}
	git("add", ".")
	git("commit", "-q", "-m", "never")
	git("push", "-q", "origin", "main")
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		if version, ok := strings.CutPrefix(lines.Text(), "data: "); ok && version != fleet.Version {
			var queue struct{ Data view.List[view.QueueRow] }
			if get("/api/ui/queue", &queue); queue.Data.Total == 1 && queue.Data.Items[0].Name == "never" {
				break
			}
		}
	}
	if err := lines.Err(); err != nil {
		t.Errorf("the new intent is not shown: %v\n%s", err, d.logged())
	}
	cancel()
	d.end()
}
