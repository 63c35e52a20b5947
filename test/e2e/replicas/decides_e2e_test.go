//go:build e2e

package replicas

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/rig"
	"github.com/fleetbroker/fleetbroker/test/env/rigtest"
)

// asking is a fleet with one provider from a file, and a team that asks.
var asking = map[string]string{
	"tenants/vision.yaml": "apiVersion: fleetbroker.io/v1alpha1\nkind: Tenant\nmetadata: {name: vision}\nspec: {consumers: [rome]}\n",
	"clusters/rome.yaml": "apiVersion: fleetbroker.io/v1alpha1\nkind: Cluster\nmetadata: {name: rome}\n" +
		"spec: {roles: [consumer], delivery: none, reservations: {tenant: vision, defaultDuration: 24h}}\n",
	"clusters/paris.yaml": "apiVersion: fleetbroker.io/v1alpha1\nkind: Cluster\nmetadata: {name: paris}\n" +
		"spec: {roles: [provider], endpoint: \"https://paris.example.org:6443\", defaultPrice: {currency: EUR, perHour: {cpu: \"0.02\", memoryGi: \"0.003\", gpu: \"2.80\"}}}\n",
	"flavors/paris/h100.yaml": "apiVersion: fleetbroker.io/v1alpha1\nkind: Flavor\nmetadata: {name: h100, namespace: paris}\nspec:\n" +
		"  capacity: {cpu: \"4000\", memory: 40Ti, gpu: 300}\n  gpu: {vendor: nvidia, model: nvidia-h100, memory: 80Gi, resourceName: nvidia.com/gpu}\n",
}

// takeover is how long it may take until another replica has decided: the Lease of
// one that is gone runs out after 9 s, and a round follows.
const takeover = 15 * time.Second

// Who decides is killed, cut off from the API server, cut off from git, frozen: another one
// decides, in time, and each intent is decided once.
func TestWhoDecides(t *testing.T) {
	t.Parallel() // most of it is waiting
	ctx, h := newHub(t, asking, 3)
	team, err := h.rig.Team(ctx, "ada")
	if err != nil {
		t.Fatal(err)
	}
	h.awaitStore(ctx, h.all...)
	first := h.decider(ctx, nil)
	ask := func(name string, within time.Duration) {
		t.Helper()
		file := "apiVersion: fleetbroker.io/v1alpha1\nkind: ResourceIntent\nmetadata: {name: " + name + ", namespace: vision}\n" +
			"spec:\n  consumer: rome\n  resources: {cpu: \"4\", memory: 16Gi, gpu: {count: 1, models: [nvidia-h100]}}\n"
		if _, err := team.CommitAndPush(ctx, "Ask for "+name, map[string]string{"intents/vision/" + name + ".yaml": file}); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		for !h.placed(ctx, name) {
			if time.Since(began) > within+patience {
				h.logs(ctx)
				t.Fatalf("%s is not placed", name)
			}
			rest(ctx, 50*time.Millisecond)
		}
		took := time.Since(began)
		t.Logf("%s was placed after %s", name, took.Round(10*time.Millisecond))
		if took > within*slack {
			t.Errorf("%s was placed after %s, and should be within %s", name, took, within)
		}
	}
	ask("calm", takeover)

	if err := first.Kill(); err != nil {
		t.Fatal(err)
	}
	ask("killed", takeover)
	second := h.decider(ctx, first)
	if err := first.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	h.awaitStore(ctx, h.all...)

	second.api.Set(true) // it cannot renew its Lease, and notices
	ask("cut-off", takeover)
	third := h.decider(ctx, second)
	second.api.Set(false)
	h.awaitStore(ctx, h.all...)

	third.git.Set(true) // it keeps the Lease until git has been away for half a minute
	ask("no-git", 30*time.Second+takeover)
	fourth := h.decider(ctx, third)
	h.reserves(ctx, third) // which takes no part any more, and knows who does
	third.git.Set(false)
	if fourth == third {
		t.Error("who cannot read git still decides")
	}
	ask("calm-again", takeover)

	// It is frozen, keeps its connections and answers nothing; when it goes on it has
	// decided nothing meanwhile, and finds that another one does.
	frozen := h.freeze(ctx)
	ask("frozen", takeover)
	fifth := h.decider(ctx, frozen)
	if err := frozen.Resume(); err != nil {
		t.Fatal(err)
	}
	h.awaitStore(ctx, h.all...)
	if now := h.decider(ctx, nil); now != fifth {
		t.Errorf("%s decides after the frozen one goes on, and %s did", now.Name, fifth.Name)
	}
	ask("goes-on", takeover)

	log, err := env.Git(ctx, h.rig.Git.RepoDir(rig.Repo), "log", "--format=%s", rig.Ledger)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"calm", "killed", "cut-off", "no-git", "calm-again", "frozen", "goes-on"} {
		if n := strings.Count(log, "place vision/"+name+" "); n != 1 {
			t.Errorf("%s was placed %d times:\n%s", name, n, log)
		}
	}
}

// reserves demands that a replica has a reservation decided in time, whoever decides.
func (h *hub) reserves(ctx context.Context, r *replica) {
	h.t.Helper()
	began := time.Now()
	answer, err := h.client("rome", r).Reserve(ctx, "by-way-of-"+r.Name, aGPU)
	if err != nil {
		h.t.Errorf("a reservation by way of %s: %v", r.Name, err)
		return
	}
	h.t.Logf("%s was reserved by way of %s after %s", answer.Contract, r.Name, time.Since(began).Round(10*time.Millisecond))
	if took := time.Since(began); took > takeover {
		h.t.Errorf("a reservation by way of %s took %s", r.Name, took)
	}
}

// slack is for machines that do other things too.
const slack = 2

// decider is who decides, once it is another one than was.
func (h *hub) decider(ctx context.Context, was *replica) *replica {
	h.t.Helper()
	names := make([]string, len(h.all))
	for i, r := range h.all {
		names[i] = r.Name
	}
	for end := time.Now().Add(patience); time.Now().Before(end); rest(ctx, 100*time.Millisecond) {
		name, err := h.Decides(ctx, names...)
		if err != nil {
			h.t.Fatal(err)
		}
		if i := slices.Index(names, name); i >= 0 && h.all[i] != was {
			return h.all[i]
		}
	}
	h.t.Fatal("nobody decides")
	return nil
}

// freeze stops who decides, without ending it.
func (h *hub) freeze(ctx context.Context) *replica {
	h.t.Helper()
	for range 10 {
		r := h.decider(ctx, nil)
		if err := r.Pause(); err != nil {
			h.t.Fatal(err)
		}
		if h.decider(ctx, nil) == r { // it can give nothing up any more
			return r
		}
		if err := r.Resume(); err != nil {
			h.t.Fatal(err)
		}
	}
	h.t.Fatal("who decides is another one each time")
	return nil
}

// logs shows what the replicas say, and what the ledger has.
func (h *hub) logs(ctx context.Context) {
	h.t.Helper()
	for _, r := range h.all {
		text, err := os.ReadFile(r.LogFile())
		h.t.Logf("--- %s (%v)\n%s", r.Name, err, text)
	}
	files, err := env.Git(ctx, h.rig.Git.RepoDir(rig.Repo), "ls-tree", "-r", "--name-only", rig.Ledger)
	h.t.Logf("--- ledger (%v)\n%s", err, files)
}

// placed reports whether the ledger has a contract of an intent.
func (h *hub) placed(ctx context.Context, intent string) bool {
	h.t.Helper()
	files, err := env.Git(ctx, h.rig.Git.RepoDir(rig.Repo), "ls-tree", "-r", "--name-only", rig.Ledger)
	return err == nil && strings.Contains(files, "/"+intent+"/vision-"+intent)
}

// through is a URL by way of a gate.
func through(address string, g *rigtest.Gate) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", fmt.Errorf("address of the fleet repo: %w", err)
	}
	u.Host = g.Address
	return u.String(), nil
}
