//go:build e2e && full

package replicas

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/cli"
	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/rig"
)

// A replica whose clock is an hour ahead serves agents, says that its clock is wrong, and
// decides nothing, though the one that did is killed; nobody is silent to any replica by its
// clock. When it is right again it decides like any other.
func TestClockSkew(t *testing.T) {
	t.Parallel() // most of it is waiting
	inputs := maps.Clone(asking)
	maps.Copy(inputs, fleetOf(2))
	ctx, h := newHub(t, inputs, 3, "--agent-silence", silence.String())
	team, err := h.rig.Team(ctx, "ada")
	if err != nil {
		t.Fatal(err)
	}
	f := &faulty{hub: h, team: team}
	skewed := h.all[2]
	if err := skewed.Stop(); err != nil {
		t.Fatal(err)
	}
	var ahead atomic.Int64
	ahead.Store(int64(time.Hour))
	running, stop := context.WithCancel(ctx)
	var wait sync.WaitGroup
	defer wait.Wait()
	defer stop()
	wait.Go(func() { // the same daemon, by another clock
		code := cli.Run(running, cli.Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard, Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }}, skewed.Args())
		if code != 0 {
			t.Errorf("the skewed replica ends with code %d", code)
		}
	})
	h.awaitStore(ctx, h.all...)
	f.awaitReason(ctx, t, skewed, "fleet", "clock")
	for i := range 2 {
		f.agents = append(f.agents, h.agent(provider(i)))
		wait.Go(func() { f.agents[i].run(running) })
	}
	f.await(ctx, "all to be known to all", time.Minute, func() error {
		for _, r := range h.all {
			got, err := h.shown(ctx, r)
			if err != nil || !strings.Contains(got, "p00=8 p01=8") {
				return fmt.Errorf("%s shows %s (%w)", r.Name, got, err)
			}
		}
		return nil
	})
	leader := h.decider(ctx, nil)
	if leader == skewed {
		t.Error("who decides has a wrong clock")
	}
	if err := leader.Kill(); err != nil {
		t.Fatal(err)
	}
	f.ask(ctx, "skewed", "nvidia-h100", 1)
	f.await(ctx, "skewed to be placed", takeover*slack, f.isPlaced(ctx, "skewed"))
	second := h.decider(ctx, leader)
	if second == skewed {
		t.Error("who decides after the kill has a wrong clock")
	}
	times, err := env.Git(ctx, h.rig.Git.RepoDir(rig.Repo), "log", "--format=%ct", rig.Ledger)
	if err != nil {
		t.Fatal(err)
	}
	for at := range strings.FieldsSeq(times) {
		if n, err := strconv.ParseInt(at, 10, 64); err != nil || time.Until(time.Unix(n, 0)) > time.Minute {
			t.Errorf("a commit of the ledger is of %s (%v)", time.Unix(n, 0), err)
		}
	}
	for _, r := range h.all {
		if got, err := h.shown(ctx, r); r != leader && (err != nil || strings.Contains(got, "(silent") || strings.Contains(got, "(lost")) {
			t.Errorf("%s shows %s (%v)", r.Name, got, err)
		}
	}
	// Its clock is right again, and it is the only one left.
	ahead.Store(0)
	if err := second.Kill(); err != nil {
		t.Fatal(err)
	}
	f.ask(ctx, "right-again", "nvidia-h100", 1)
	f.await(ctx, "right-again to be placed", time.Minute, f.isPlaced(ctx, "right-again"))
	f.await(ctx, "the replica to say that its clock is right", time.Minute, func() error {
		if why := f.reason(ctx, skewed, "fleet"); strings.Contains(why, "clock") {
			return errors.New(why)
		}
		return nil
	})
}
