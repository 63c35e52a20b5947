//go:build e2e

package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/rig"
)

// pushes whose way to the consumer is measured.
const pushes = 40

// seldom is longer than any of this takes: what happens, happens by webhook.
const seldom = "1h"

var slicesResource = schema.GroupVersionResource{Group: "authentication.liqo.io", Version: "v1beta1", Resource: "resourceslices"}

// BenchmarkPushToObjects measures from the moment at which a team's git push
// returns, and from the moment at which it starts, until a watch on the
// consumer sees the intent's slice. Then it counts what rounds without news
// cost the clusters and the repository.
func BenchmarkPushToObjects(b *testing.B) {
	ctx, cancel := context.WithTimeout(b.Context(), 10*time.Minute)
	defer cancel()
	if err := env.BuildTools(ctx, os.Stderr); err != nil {
		b.Fatal(err)
	}
	var nodes []env.GPUNode
	for i := range 8 {
		nodes = append(nodes, env.GPUNode{Name: fmt.Sprintf("paris-%d", i), GPUs: 8, Labels: map[string]string{"fleetbroker.io/pool": "h100"}})
	}
	r, err := rig.Start(ctx, rig.Options{
		Dir: b.TempDir(), Bin: programs(b), Consumers: []string{"rome"}, Audit: true, Providers: map[string][]env.GPUNode{"paris": nodes},
	})
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := r.Stop(); err != nil {
			b.Errorf("stop the rig: %v", err)
		}
	}()
	awaitDaemon(ctx, b, r)
	team, err := r.Team(ctx, "ada")
	if err != nil {
		b.Fatal(err)
	}
	client, err := dynamic.NewForConfig(r.Clusters["rome"].Config)
	if err != nil {
		b.Fatal(err)
	}
	events, err := client.Resource(slicesResource).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		b.Fatal(err)
	}
	defer events.Stop()
	for b.Loop() {
		var fromStart, fromEnd []time.Duration
		for i := range pushes {
			start, end, seen := pushOne(ctx, b, team, events, i)
			if i > 0 { // the first one makes namespaces and policies
				fromStart, fromEnd = append(fromStart, seen.Sub(start)), append(fromEnd, seen.Sub(end))
			}
		}
		results.below("git push returned, until the slice is on the consumer", ms(median(fromEnd)), 500, "ms")
		results.below("git push started, until the slice is on the consumer", ms(median(fromStart)), 500, "ms")
		quiet(ctx, b, r)
	}
}

// awaitDaemon starts daemon and agent, and waits until they know each other.
func awaitDaemon(ctx context.Context, b *testing.B, r *rig.Rig) {
	d, err := r.Daemon(ctx, "one", "--poll-interval", seldom)
	if err != nil {
		b.Fatal(err)
	}
	d.NotifyPushes(ctx)
	if _, err := r.Agent(ctx, "paris", d); err != nil {
		b.Fatal(err)
	}
	if err := d.AwaitReady(ctx); err != nil {
		b.Fatal(err)
	}
	until(ctx, b, "paris is heard", func() bool {
		market, err := d.Market(ctx)
		return err == nil && strings.Contains(market, "namespace: paris")
	})
}

// pushOne pushes an intent and waits for its slice.
func pushOne(ctx context.Context, b *testing.B, team *env.Team, events watch.Interface, i int) (start, end, seen time.Time) {
	name := fmt.Sprintf("job-%03d", i)
	text := fmt.Sprintf("apiVersion: fleetbroker.io/v1alpha1\nkind: ResourceIntent\nmetadata: {name: %s, namespace: vision}\nspec:\n"+
		"  consumer: rome\n  resources: {cpu: \"1\", memory: 1Gi, pods: \"4\", gpu: {count: 1, models: [nvidia-h100]}}\n"+
		"  offload: {namespaces: [{name: vision, create: true}]}\n", name)
	if _, err := team.Commit(ctx, "Ask for "+name, map[string]string{filepath.Join("intents", "vision", name+".yaml"): text}); err != nil {
		b.Fatal(err)
	}
	found := make(chan time.Time, 1)
	go func() {
		for e := range events.ResultChan() {
			meta, ok := e.Object.(metav1.Object)
			if ok && e.Type == watch.Added && meta.GetLabels()["fleetbroker.io/intent"] == "vision."+name {
				found <- time.Now()
				return
			}
		}
	}()
	start = time.Now()
	if err := team.Push(ctx); err != nil {
		b.Fatal(err)
	}
	end = time.Now()
	select {
	case seen = <-found:
	case <-time.After(30 * time.Second):
		b.Fatalf("%s is not on the consumer after 30 s", name)
	}
	return start, end, seen
}

// quiet pushes commits that change no input while all is at rest, and counts
// what the daemon does to clusters and repository because of them.
func quiet(ctx context.Context, b *testing.B, r *rig.Rig) {
	calls := func() int {
		list, err := r.Clusters["rome"].Calls("")
		if err != nil {
			b.Fatal(err)
		}
		n := 0
		for _, c := range list {
			if !background(c) {
				n++
			}
		}
		return n
	}
	ledger := func() string {
		out, err := env.Git(ctx, r.Git.RepoDir(rig.Repo), "rev-parse", "refs/heads/"+rig.Ledger)
		if err != nil {
			b.Fatal(err)
		}
		return out
	}
	still(ctx, b, func() string { return fmt.Sprint(ledger(), calls()) })
	before, head := calls(), ledger()
	for i := range 10 {
		asked := r.Git.Stats().Requests
		if _, err := r.Platform.Git(ctx, "push", "--quiet", "origin", fmt.Sprintf("HEAD:refs/heads/other-%d", i)); err != nil {
			b.Fatal(err)
		}
		// The push itself is two requests.
		until(ctx, b, "the daemon asks because of the webhook", func() bool { return r.Git.Stats().Requests > asked+2 })
	}
	still(ctx, b, func() string { return fmt.Sprint(ledger(), calls(), r.Git.Stats().Requests) })
	text, err := env.Git(ctx, r.Git.RepoDir(rig.Repo), "rev-list", "--count", strings.TrimSpace(head)+"..refs/heads/"+rig.Ledger)
	if err != nil {
		b.Fatal(err)
	}
	commits, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil {
		b.Fatal(err)
	}
	results.below("API calls to the consumer by ten rounds without news", float64(calls()-before), 1, "calls")
	results.below("commits by ten rounds without news", float64(commits), 1, "commits")
}

// background are calls that time makes and no round: the Lease is renewed, the
// cluster asked whether it is there, a watch begun again.
func background(c env.Call) bool {
	return c.Resource == "leases" || c.Resource == "" || c.Verb == "watch"
}

// still waits until something has not changed for three seconds.
func still(ctx context.Context, b *testing.B, what func() string) {
	last, since := what(), time.Now()
	until(ctx, b, "all is at rest", func() bool {
		if now := what(); now != last {
			last, since = now, time.Now()
		}
		return time.Since(since) > 3*time.Second
	})
}

func until(ctx context.Context, b *testing.B, what string, condition func() bool) {
	b.Helper()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-ctx.Done():
			b.Fatalf("%s: not within a minute", what)
		case <-tick.C:
		}
	}
}
