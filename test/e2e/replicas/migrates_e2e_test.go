//go:build e2e

package replicas

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"github.com/fleetbroker/fleetbroker/test/checker"
	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/rig"
)

// An installation with one daemon, whose market is in its memory, becomes one of three
// replicas that share theirs: by the runbook's order nothing that is held moves, and
// a former daemon that comes back by mistake decides nothing.
func TestFromAMarketOfItsOwnToTheShared(t *testing.T) {
	inputs := fleetOf(2)
	maps.Copy(inputs, map[string]string{"tenants/vision.yaml": asking["tenants/vision.yaml"], "clusters/rome.yaml": asking["clusters/rome.yaml"]})
	ctx, h := newHub(t, inputs, 0)
	daemon := func(name string, args ...string) *replica {
		d, err := h.rig.Daemon(ctx, name, append([]string{"--poll-interval", "2s"}, args...)...)
		if err != nil {
			t.Fatal(err)
		}
		return &replica{Daemon: d}
	}
	team, err := h.rig.Team(ctx, "ada")
	if err != nil {
		t.Fatal(err)
	}
	ask := func(name string) {
		t.Helper()
		file := "apiVersion: fleetbroker.io/v1alpha1\nkind: ResourceIntent\nmetadata: {name: " + name + ", namespace: vision}\n" +
			"spec:\n  consumer: rome\n  resources: {cpu: \"4\", gpu: {count: 1, models: [nvidia-h100]}}\n"
		if _, err := team.CommitAndPush(ctx, "Ask for "+name, map[string]string{"intents/vision/" + name + ".yaml": file}); err != nil {
			t.Fatal(err)
		}
	}
	placed := func(name string, within time.Duration) {
		t.Helper()
		began := time.Now()
		for !h.placed(ctx, name) {
			if time.Since(began) > within*slack {
				h.logs(ctx)
				t.Fatalf("%s is not placed after %s", name, time.Since(began))
			}
			rest(ctx, 100*time.Millisecond)
		}
		t.Logf("%s was placed after %s", name, time.Since(began).Round(10*time.Millisecond))
	}

	old := daemon("old", "--market-store", "memory")
	h.all = []*replica{old}
	h.awaitStore(ctx, old)
	agents := []*agent{h.agent(provider(0)), h.agent(provider(1))}
	for _, a := range agents {
		a.report(ctx)
	}
	h.agree(ctx, "both have reported", agents, old)
	ask("before")
	placed("before", takeover)
	if err := old.Stop(); err != nil {
		t.Fatal(err)
	}

	t.Log("three replicas that share a market, and agents with one address")
	ask("between")
	h.all = []*replica{daemon("r0", h.Args("")...), daemon("r1", h.Args("")...), daemon("r2", h.Args("")...)}
	h.awaitStore(ctx, h.all...)
	for _, a := range agents {
		a.report(ctx)
	}
	h.agree(ctx, "each replica has both", agents, h.all...)
	placed("between", takeover)

	t.Log("the former daemon is started again, by mistake")
	back := daemon("old-again", "--market-store", "memory")
	ask("after")
	placed("after", takeover)
	rest(ctx, 3*interval)
	got, err := back.Readiness(ctx)
	if err != nil || !strings.Contains(fmt.Sprint(got.Checks), "stands by") {
		t.Errorf("the former daemon says %+v, %v", got, err)
	}

	log, err := env.Git(ctx, h.rig.Git.RepoDir(rig.Repo), "log", "--format=%s %(trailers:key=Replica,valueonly,separator=%x2C)", rig.Ledger)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(log)
	for _, name := range []string{"before", "between", "after"} {
		if n := strings.Count(log, "place vision/"+name+" "); n != 1 {
			t.Errorf("%s was placed %d times", name, n)
		}
	}
	for _, word := range []string{"release", "move", "fail", "lost"} {
		if strings.Contains(log, word) {
			t.Errorf("something held was touched: %q", word)
		}
	}
	if strings.Contains(log, "old-again") {
		t.Error("the former daemon has decided")
	}
	res, err := checker.Check(filesystem.NewStorage(osfs.New(h.rig.Git.RepoDir(rig.Repo)), cache.NewObjectLRUDefault()), rig.Ledger)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range res.Violations {
		t.Errorf("invariant broken in %s", v)
	}
}
