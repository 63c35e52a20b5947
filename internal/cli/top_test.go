package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/simulate/scenario"
	"github.com/fleetbroker/fleetbroker/internal/ui"
)

// pipe is what a command that goes on has written.
type pipe struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (p *pipe) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.b.Write(text)
}

func (p *pipe) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.b.String()
}

// within waits for something that comes.
func within(t *testing.T, what string, is func() bool, context func() string) {
	t.Helper()
	for until := time.Now().Add(time.Minute); !is(); <-time.After(50 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("%s does not come:\n%s", what, context())
		}
	}
}

// TestTop: of a directory, of a daemon, and of the directory again once the daemon is gone;
// a pipe gets what has changed. The same daemon simulates for who asks it.
func TestTop(t *testing.T) {
	dir, work, bare, git := initFleet(t)
	code, out := command(t, "top", "--once", "-C", work)
	if code != 0 || !strings.Contains(out, "from the ledger\n") || !strings.Contains(out, "GPUs: ") || !strings.Contains(out, " an hour; ") || !strings.Contains(out, "MODEL\tREGION\tFREE") {
		t.Fatalf("%d\n%s", code, out)
	}
	if !strings.Contains(out, "\nWarning:   ") { // of the picture: what is said beside it a redrawn terminal wipes
		t.Fatalf("nothing warns that whose signatures count is not known, or that there is no ledger:\n%s", out)
	}
	d := startRun(t, "--state-dir", filepath.Join(dir, "state"), "--repo", "file://"+bare, "--poll-interval", "200ms")
	end := sync.OnceFunc(d.end)
	defer end()
	at := "http://" + d.operators
	within(t, "the daemon", func() bool { s, _ := d.probe("/readyz"); return s == http.StatusOK }, d.logged)
	if code, out = command(t, "top", "--once", "-C", work, "--market", at); code != 0 || !strings.Contains(out, "from the daemon at "+d.operators) {
		t.Fatalf("%d\n%s", code, out)
	}
	code, out = command(t, "top", "--once", "-C", work, "--market", at, "-o", "json")
	var p struct {
		Fleet, From string
		Data        struct{ Money struct{ Currency string } }
	}
	if err := json.Unmarshal([]byte(out), &p); code != 0 || err != nil || p.Data.Money.Currency == "" || p.From != "the daemon at "+d.operators {
		t.Fatalf("%d %v\n%s", code, err, out)
	}

	var live, errs pipe
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() {
		ended <- Run(ctx, Streams{In: strings.NewReader(""), Out: &live, Err: &errs, Now: time.Now}, []string{"top", "-C", work, "--market", at, "--watch-interval", "200ms"})
	}()
	said := func() string { return live.String() + errs.String() + d.logged() }
	within(t, "the first picture", func() bool { return strings.Contains(live.String(), "Placed 1") }, said)
	first := live.String()
	if err := os.WriteFile(filepath.Join(work, "intents", "vision", "late.yaml"), []byte("apiVersion: fleetbroker.io/v1alpha1\nkind: ResourceIntent\nmetadata: {name: late, namespace: vision}\nspec:\n  resources: {cpu: 1, memory: 1Gi, gpu: {count: 7000, models: [nvidia-h100]}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	git("add", ".")
	git("commit", "-q", "-m", "late")
	git("push", "-q", "origin", "main")
	within(t, "what has changed", func() bool { return strings.Contains(strings.TrimPrefix(live.String(), first), "Placed 1, Refused 1") }, said)
	if rest := strings.TrimPrefix(live.String(), first); strings.Contains(rest, "GPUs:") || strings.Contains(rest, "from the daemon") {
		t.Errorf("what has not changed is written again:\n%s", rest)
	}

	get := func(method, path, body, token string) (int, []byte) {
		r, err := http.NewRequestWithContext(t.Context(), method, at+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-CSRF-Token", token)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, text
	}
	var page struct{ Data ui.CapacityAnswer }
	if status, text := get("GET", "/api/ui/capacity", "", ""); status != http.StatusOK || json.Unmarshal(text, &page) != nil {
		t.Fatalf("%d %s", status, text)
	}
	if status, text := get("POST", "/api/ui/capacity", "{}", ""); status != http.StatusForbidden {
		t.Errorf("without a token: %d %s", status, text)
	}
	var job struct{ Data ui.CapacityJobAnswer }
	if status, text := get("POST", "/api/ui/capacity", `{"growth": "2"}`, page.Data.Token); status != http.StatusAccepted || json.Unmarshal(text, &job) != nil {
		t.Fatalf("%d %s", status, text)
	}
	within(t, "the simulation", func() bool {
		status, text := get("GET", "/api/ui/capacity/"+job.Data.Job.ID, "", "")
		return status == http.StatusOK && json.Unmarshal(text, &job) == nil && job.Data.Job.State != scenario.Running
	}, d.logged)
	if j := job.Data.Job; j.State != scenario.Done || j.AsIs.Arrived != 1 || j.Changed.Arrived != 2 {
		t.Errorf("%+v", j)
	}

	end()
	within(t, "that the daemon is gone", func() bool {
		return strings.Contains(live.String(), "from the ledger, because the daemon does not show it")
	}, said)
	stop()
	if code := <-ended; code != 0 {
		t.Errorf("it ends with %d: %s", code, errs.String())
	}
}
