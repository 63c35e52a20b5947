//go:build e2e

package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/fleetbroker/fleetbroker/internal/agent/transport"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/market/store"
	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/rig"
	"github.com/fleetbroker/fleetbroker/test/env/rigtest"
)

// What BenchmarkReplicas' fleet has beside its providers (-sites), of which the first
// report over mTLS (agents) and the others straight into the store.
const (
	teams   = 40
	asked   = 250 // intents of each
	unmet   = 25  // of them for a model that nobody has
	changes = 200 // reports whose way is timed
)

// replicated is a fleet on three daemons behind one address.
type replicated struct {
	*counter
	hub     *rigtest.Hub
	daemons []*rig.Daemon
	broker  string
	// straight has the reports of the providers without a connection.
	straight *sharer
}

// BenchmarkReplicas is three daemons with one market of -sites providers on a real API
// server and 10,000 intents: a thousand agents report over mTLS behind one balancer, the
// other providers straight into the store, each every 30 s, every tenth time with a change.
// It times a change's way to every replica, what servers and replicas use, a fourth replica's
// start, and a decision after the one that decides was killed.
func BenchmarkReplicas(b *testing.B) {
	ctx, cancel := context.WithTimeout(b.Context(), 60*time.Minute)
	defer cancel()
	for b.Loop() {
		fleet := fmt.Sprintf("three replicas, %d intents, %d providers", teams*asked, *sites)
		all, stop := context.WithCancel(ctx)
		var group errgroup.Group
		r := openReplicated(ctx, b)
		group.Go(func() error { return r.straightOn(all) })
		r.decided(ctx, b, fleet)
		callers := r.connect(ctx, b)
		for _, c := range callers {
			group.Go(func() error { follow(all, c.line, func(wire.Instructions) {}); return nil })
			group.Go(func() error { return c.run(all) })
		}
		wait(ctx, interval) // what the beginning cost is over
		r.share(ctx, b, fleet)
		r.ways(ctx, b, fleet, callers)
		r.fresh(ctx, b, fleet)
		r.takeover(ctx, b, fleet)
		stop()
		if err := group.Wait(); err != nil {
			b.Error(err)
		}
	}
}

// openReplicated prepares it: the repository, and what the providers without a connection offer.
func openReplicated(ctx context.Context, b *testing.B) *replicated {
	b.Helper()
	files := map[string]string{}
	for i := range *sites {
		name := said(i, 0).Cluster
		files["clusters/"+name+".yaml"] = "apiVersion: fleetbroker.io/v1alpha1\nkind: Cluster\nmetadata: {name: " + name + "}\n" +
			"spec: {roles: [provider], endpoint: \"https://p.example.org:6443\", defaultPrice: {currency: EUR, perHour: {cpu: \"0.02\", memoryGi: \"0.003\", gpu: \"2.80\"}}}\n"
	}
	for t := range teams {
		team := fmt.Sprintf("team-%02d", t)
		files["tenants/"+team+".yaml"] = "apiVersion: fleetbroker.io/v1alpha1\nkind: Tenant\nmetadata: {name: " + team + "}\nspec: {consumers: [rome]}\n"
		for i := range asked {
			model := "nvidia-h100"
			if i < unmet {
				model = "nvidia-b300"
			}
			files[fmt.Sprintf("intents/%s/i%03d.yaml", team, i)] = asks(team, fmt.Sprintf("i%03d", i), model)
		}
	}
	r := &replicated{counter: openRig(ctx, b, files), hub: rigtest.NewHub(ctx, b)}
	r.straight = sharing(ctx, b, r.hub, 0)
	if err := fill(ctx, []*sharer{r.straight}, agents); err != nil {
		b.Fatal(err)
	}
	return r
}

// decided starts the replicas, and waits until what is asked for is decided.
func (r *replicated) decided(ctx context.Context, b *testing.B, fleet string) {
	b.Helper()
	begun := time.Now()
	for _, name := range []string{"one", "two", "three"} {
		r.daemons = append(r.daemons, r.start(ctx, b, name, r.hub.Args("")...))
	}
	r.broker = "https://" + rigtest.NewGate(b, func() string { return r.daemons[rand.IntN(len(r.daemons))].Agents }).Address //nolint:gosec // any of them
	if _, err := env.Until(ctx, 20*time.Minute, func() error {
		n, err := r.contracts(ctx)
		if err == nil && n < teams*(asked-unmet) {
			err = fmt.Errorf("%d contracts are on the ledger", n)
		}
		return err
	}); err != nil {
		b.Fatal(err)
	}
	results.note(fleet+": from the first replica's start until all three are ready and all is decided", time.Since(begun).Round(time.Second).String())
}

// asks is an intent for one GPU.
func asks(team, name, model string) string {
	return "apiVersion: fleetbroker.io/v1alpha1\nkind: ResourceIntent\nmetadata: {name: " + name + ", namespace: " + team + "}\n" +
		"spec:\n  consumer: rome\n  resources: {cpu: \"4\", memory: 16Gi, gpu: {count: 1, models: [" + model + "]}}\n"
}

// contracts is how many the ledger has.
func (r *replicated) contracts(ctx context.Context) (int, error) {
	out, err := env.Git(ctx, r.Git.RepoDir(rig.Repo), "ls-tree", "-r", "--name-only", rig.Ledger, "contracts/")
	return strings.Count(out, "\n"), err
}

// caller is an agent of a made cluster: its reports go to whom the balancer chooses.
type caller struct {
	line transport.Transport
	site int

	mu      sync.Mutex
	version int
	known   bool // somebody acknowledged the version
}

// connect opens the agents' connections, and lets each report.
func (r *replicated) connect(ctx context.Context, b *testing.B) []*caller {
	b.Helper()
	out := make([]*caller, agents)
	var group errgroup.Group
	group.SetLimit(8)
	for i := range out {
		files, err := r.Files(said(i, 0).Cluster)
		if err != nil {
			b.Fatal(err)
		}
		line, err := transport.NewHTTP(r.broker, said(i, 0).Cluster, files)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(line.Close)
		out[i] = &caller{line: line, site: i}
		group.Go(func() error { return out[i].report(ctx, false) })
	}
	if err := group.Wait(); err != nil {
		b.Fatal(err)
	}
	return out
}

// report says that all is as before, or changes something, until that is acknowledged. It
// comes again when it is told to, or its replica is gone, as agents do.
func (c *caller) report(ctx context.Context, change bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if change {
		c.version, c.known = c.version+1, false
	}
	r := said(c.site, c.version)
	for began := time.Now(); ; {
		var packed []byte
		if !c.known {
			var err error
			if packed, err = pack(*r.Content); err != nil {
				return err
			}
		}
		err := c.line.Put(ctx, r.Generation, packed, 0)
		switch {
		case err == nil:
			c.known = true
			return nil
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, transport.ErrUnknownBase):
			c.known = false
		case time.Since(began) > 2*time.Minute:
			return fmt.Errorf("%s reports: %w", r.Cluster, err)
		default:
			wait(ctx, 200*time.Millisecond)
		}
	}
}

// run reports each interval, every tenth time with a change, agents evenly apart.
func (c *caller) run(ctx context.Context) error {
	wait(ctx, interval*time.Duration(c.site)/agents)
	for n := c.site; ctx.Err() == nil; n++ {
		if err := c.report(ctx, n%changedOne == 0); err != nil {
			return err
		}
		wait(ctx, interval)
	}
	return nil
}

// straightOn reports for the providers without a connection, as agents would.
func (r *replicated) straightOn(ctx context.Context) error {
	of := *sites - agents
	begun := time.Now()
	versions := make([]int, of)
	for n := 0; ; n++ {
		wait(ctx, time.Until(begun.Add(interval*time.Duration(n)/time.Duration(of))))
		if ctx.Err() != nil {
			return nil
		}
		site := n % of
		changed := (site+n/of)%changedOne == 0
		if changed {
			versions[site]++
		}
		report := said(agents+site, versions[site])
		if !changed {
			report.Content = nil
		}
		if err := put(ctx, r.straight, report); err != nil && ctx.Err() == nil {
			return fmt.Errorf("%s reports: %w", report.Cluster, err)
		}
	}
}

// share notes what the store's servers and each replica use of processors.
func (r *replicated) share(ctx context.Context, b *testing.B, fleet string) {
	b.Helper()
	servers, used, from := usedBy(b, r.hub), make([]time.Duration, len(r.daemons)), time.Now()
	for i, d := range r.daemons {
		used[i] = processorTime(b, d.PID())
	}
	wait(ctx, measured)
	took, both := time.Since(from), 0.0
	after := usedBy(b, r.hub)
	for _, program := range []string{"etcd", "kube-apiserver"} {
		of := (after[program] - servers[program]).Seconds() / took.Seconds()
		both += of
		results.note(fleet+": "+program, fmt.Sprintf("%.3g of a core", of))
	}
	results.below(fleet+": both together", both, 0.4, "of a core")
	for i, d := range r.daemons {
		results.note(fleet+": replica "+d.Name, fmt.Sprintf("%.3g of a core", (processorTime(b, d.PID())-used[i]).Seconds()/took.Seconds()))
	}
}

// ways times changes from their acknowledgement over mTLS until every replica shows them.
func (r *replicated) ways(ctx context.Context, b *testing.B, fleet string, callers []*caller) {
	b.Helper()
	var took []time.Duration
	for i := range changes {
		c := callers[i*len(callers)/changes]
		if err := c.report(ctx, true); err != nil {
			b.Fatal(err)
		}
		acknowledged := time.Now()
		c.mu.Lock()
		want := said(c.site, c.version)
		c.mu.Unlock()
		for _, d := range r.daemons {
			if err := shows(ctx, d, want); err != nil {
				b.Fatal(err)
			}
		}
		took = append(took, time.Since(acknowledged))
	}
	slices.Sort(took)
	results.note(fleet+": a change acknowledged over mTLS, until every replica shows it, median", fmt.Sprintf("%.4g ms", ms(median(took))))
	results.below(fleet+": the same, of 99 in a hundred", ms(took[len(took)*99/100]), 1000, "ms")
}

// shows waits until a replica's operators' port has what a report says, or something newer.
func shows(ctx context.Context, d *rig.Daemon, r store.Report) error {
	want := r.Content.Flavors[0].Spec.Capacity[v1alpha1.CPU]
	for ; ctx.Err() == nil; wait(ctx, 5*time.Millisecond) {
		has, err := offered(ctx, d, "?provider="+r.Cluster)
		if err != nil {
			return err
		}
		for i := range has {
			if has[i].Metadata.Name == r.Content.Flavors[0].Metadata.Name && has[i].Spec.Capacity[v1alpha1.CPU].Cmp(want) >= 0 {
				return nil
			}
		}
	}
	return fmt.Errorf("%s of %s: %w", d.Name, r.Cluster, ctx.Err())
}

// providersOf asks a replica's metrics of how many providers it knows a report: to list the
// flavors of all, again and again, would be a part of what is measured.
func providersOf(ctx context.Context, d *rig.Daemon) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+d.Operators+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("/metrics: %s", answer.Status)
	}
	all := 0
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		if rest, is := strings.CutPrefix(lines.Text(), "fleetbroker_providers{"); is && !strings.Contains(rest, `state="Unreported"`) {
			n, err := strconv.Atoi(rest[strings.LastIndexByte(rest, ' ')+1:])
			if err != nil {
				return 0, fmt.Errorf("/metrics: %q: %w", lines.Text(), err)
			}
			all += n
		}
	}
	return all, lines.Err()
}

// offered asks a replica's operators' port what is offered.
func offered(ctx context.Context, d *rig.Daemon, query string) ([]v1alpha1.Flavor, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+d.Operators+"/market"+query, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("/market%s: %s", query, answer.Status)
	}
	var out wire.MarketAnswer
	err = json.NewDecoder(answer.Body).Decode(&out)
	return out.Flavors, err
}

// fresh times a fourth replica, from its process's start until it has every flavor, and until
// it is ready: it has heard of half of the providers that hold contracts, each of which
// reports once an interval.
func (r *replicated) fresh(ctx context.Context, b *testing.B, fleet string) {
	b.Helper()
	// The install base sets 800MiB, which a fleet of this size needs more than (docs/scale.md);
	// where any is set a start is faster.
	b.Setenv("GOMEMLIMIT", "2GiB")
	begun := time.Now()
	d, err := r.Daemon(ctx, "four", r.hub.Args("")...)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := env.Until(ctx, 5*time.Minute, func() error {
		n, err := providersOf(ctx, d)
		if err == nil && n < *sites {
			err = fmt.Errorf("it has %d providers", n)
		}
		return err
	}); err != nil {
		b.Fatal(err)
	}
	took, used := time.Since(begun), processorTime(b, d.PID())
	if all, err := offered(ctx, d, ""); err != nil || len(all) < *sites*flavors {
		b.Fatalf("it has every provider, and %d flavors: %v", len(all), err)
	}
	results.below(fleet+": a fresh replica has all", took.Seconds(), 30, "s")
	results.note(fleet+": its processor time by then", used.Round(100*time.Millisecond).String())
	if err := d.AwaitReady(ctx); err != nil {
		b.Fatal(err)
	}
	results.note(fleet+": it is ready", time.Since(begun).Round(100*time.Millisecond).String())
	if err := d.Stop(); err != nil {
		b.Error(err)
	}
}

// takeover kills who decides just before an intent is pushed, and times its decision.
func (r *replicated) takeover(ctx context.Context, b *testing.B, fleet string) {
	b.Helper()
	team, err := r.Team(ctx, "ada")
	if err != nil {
		b.Fatal(err)
	}
	for i, what := range []string{"a decision after a push", "the same, and who decides is killed just before"} {
		if i == 1 {
			name, err := r.hub.Decides(ctx, "one", "two", "three")
			at := slices.IndexFunc(r.daemons, func(d *rig.Daemon) bool { return d.Name == name })
			if err != nil || at < 0 {
				b.Fatalf("who decides: %q, %v", name, err)
			}
			if err := r.daemons[at].Kill(); err != nil {
				b.Fatal(err)
			}
		}
		name := fmt.Sprintf("late-%d", i)
		if _, err := team.CommitAndPush(ctx, "Ask for "+name, map[string]string{"intents/team-00/" + name + ".yaml": asks("team-00", name, "nvidia-h100")}); err != nil {
			b.Fatal(err)
		}
		took, err := env.Until(ctx, 2*time.Minute, func() error {
			out, err := env.Git(ctx, r.Git.RepoDir(rig.Repo), "ls-tree", "-r", "--name-only", rig.Ledger, "contracts/team-00/")
			if err == nil && !strings.Contains(out, "/team-00-"+name) {
				err = fmt.Errorf("%s has no contract", name)
			}
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
		results.below(fleet+": "+what, took.Seconds(), 15, "s")
	}
}
