package reconciler

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/replay"
)

// crowd is so many new intents of one tenant, which no flavor fits.
func crowd(n int) map[string]string {
	out := make(map[string]string, n)
	for i := range n {
		name := fmt.Sprintf("m%05d", i)
		out["intents/vision/more/"+name+".yaml"] = intentOf(name, "64")
	}
	return out
}

const (
	nlp   = "apiVersion: fleetbroker.io/v1alpha1\nkind: Tenant\nmetadata: {name: nlp}\nspec: {consumers: [rome]}\n"
	quick = "apiVersion: fleetbroker.io/v1alpha1\nkind: ResourceIntent\nmetadata: {name: quick, namespace: nlp}\nspec:\n  resources: {cpu: \"4\", memory: 16Gi, pods: \"4\", gpu: \"H100:1\"}\n"
)

// processorTime is what this process has used.
func processorTime(t testing.TB) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// kustomizedCrowd is so many kustomizations with so many intents each.
func kustomizedCrowd(n, each int) map[string]string {
	out := map[string]string{}
	for i := range n {
		dir, list := fmt.Sprintf("intents/vision/k%02d/", i), ""
		for j := range each {
			name := fmt.Sprintf("m%02d-%04d", i, j)
			out[dir+name+".yaml"] = intentOf(name, "64")
			list += name + ".yaml, "
		}
		out[dir+"kustomization.yaml"] = "resources: [" + list + "]\n"
	}
	return out
}

// BenchmarkCrowdArrives is the processor time (without the child's) and the time
// until another tenant's intent is placed that came together with 50,000 new ones of
// one tenant, or with 64 kustomizations of 1,000 each; and the rounds and the time
// until all of them are read. "start": a daemon that begins with them.
func BenchmarkCrowdArrives(b *testing.B) {
	for name, files := range map[string]func() map[string]string{
		"files":          func() map[string]string { return crowd(50_000) },
		"kustomizations": func() map[string]string { return kustomizedCrowd(64, 1000) },
	} {
		for _, start := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/start=%v", name, start), func(b *testing.B) {
				for range b.N {
					crowdArrives(b, files(), start)
				}
			})
		}
	}
}

func crowdArrives(b *testing.B, files map[string]string, starts bool) {
	b.Helper()
	s := newStory(&testing.T{}, "ledger")
	s.push(map[string]string{"tenants/nlp.yaml": nlp})
	s.rest()
	files["intents/nlp/quick.yaml"] = quick
	puts := map[string][]byte{}
	for name, content := range files {
		puts[name] = []byte(content)
	}
	if _, err := s.remote.Commit("main", ada, "Ask", gitobj.Change{Puts: puts}); err != nil {
		b.Fatal(err)
	}
	if starts {
		s.start()
	}
	start, began, rounds, longest := processorTime(b), time.Now(), 0, time.Duration(0)
	placed, waited := time.Duration(0), time.Duration(0)
	for {
		s.at = s.at.Add(time.Minute)
		s.r.Reread()
		before := processorTime(b)
		out, err := s.r.Round(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		rounds++
		took := processorTime(b) - before
		b.Logf("round %d: %s, unfinished %v, %d commits, %+v", rounds, took, s.r.fleet.Unfinished, len(out.Committed), out.Took)
		longest = max(longest, took)
		if waited == 0 && len(s.r.ledger.ByIntent("nlp", "quick")) > 0 {
			placed, waited = processorTime(b)-start, time.Since(began)
		}
		if waited > 0 && (len(s.r.fleet.Intents) > 60_000 || !out.Again && len(out.Committed) == 0) {
			break
		}
	}
	b.ReportMetric(placed.Seconds(), "s/placed")
	b.ReportMetric(waited.Seconds(), "s/waited")
	b.ReportMetric(longest.Seconds(), "s/longest-round")
	b.ReportMetric(float64(rounds), "rounds")
}

// Another tenant's intent that came together with thousands of new ones of one
// tenant is placed in the first round, each round replays, and the rounds go on
// by themselves until all are read.
func TestACrowdThatArrivesDelaysNobody(t *testing.T) {
	s := newStory(t, "ledger")
	s.push(map[string]string{"tenants/nlp.yaml": nlp})
	s.rest()
	files := crowd(5000)
	files["intents/nlp/quick.yaml"] = quick
	s.push(files)
	s.r.Reread()
	out, err := s.r.Round(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(s.r.ledger.ByIntent("nlp", "quick")) != 1 || !out.Again || !s.r.fleet.Unfinished {
		t.Fatalf("committed %d, again %v, unfinished %v", len(out.Committed), out.Again, s.r.fleet.Unfinished)
	}
	replayer := replay.Replayer{History: s.remote.Objects(), Published: func(ctx context.Context, when time.Time) (gitrepo.Published, error) {
		return gitrepo.ReadPublished(ctx, s.remote, when)
	}}
	for _, c := range out.Committed {
		if res, err := replayer.Replay(t.Context(), c.Commit.Hash); err != nil || !res.Same {
			t.Errorf("%s does not replay: %+v, %v", c.Commit.Subject(), res.Differences, err)
		}
	}
	for rounds := 0; s.r.fleet.Unfinished; rounds++ {
		if rounds > 5 {
			t.Fatal("it is never read whole")
		}
		s.at = s.at.Add(time.Second)
		if out, err = s.r.Round(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(s.r.fleet.Intents); n != 5001 {
		t.Errorf("%d intents are read", n)
	}
}
