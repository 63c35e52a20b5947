//go:build e2e

package soak

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"github.com/fleetbroker/fleetbroker/test/checker"
	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/envtest"
	"github.com/fleetbroker/fleetbroker/test/env/rig"
	"github.com/fleetbroker/fleetbroker/test/env/rigtest"
)

var (
	full   = flag.Bool("full", false, "soak for 30 minutes instead of 2")
	length = flag.Duration("length", 2*time.Minute, "how long to soak, unless -full")
)

// patience bounds every wait.
const patience = 3 * time.Minute

// tenants ask, change and give back.
const tenants = 20

var bin string

func TestMain(m *testing.M) { envtest.Main(m, &bin, env.BuildTools) }

// soak is a rig under load and faults.
type soak struct {
	*rig.Rig
	t         *testing.T
	ctx       context.Context
	team      *env.Team
	temporary string // TMPDIR of all programs
	one, two  *rig.Daemon
	paris     *process // the agent that lives through all of it
	rome      *env.Program
	cycles    int
	damaged   int
}

// Nothing grows: after the warm-up and after the rest of the soak the daemon and
// the agent that lived through all of it hold the same, and nothing is left over.
func TestSoak(t *testing.T) {
	if *full {
		*length = 30 * time.Minute
	}
	s := start(t)
	began := time.Now()
	for s.cycles < len(faults) || time.Since(began) < *length/4 {
		s.cycle()
	}
	steady := []*process{{"the daemon", s.one.Operators, s.one.Program}, s.paris}
	s.rest()
	before := make([]figures, len(steady))
	for i, p := range steady {
		before[i] = s.least(p)
	}
	warm, shown := s.cycles, time.Now()
	for time.Since(began) < *length {
		s.cycle()
		if time.Since(shown) > time.Minute {
			shown = time.Now()
			s.show(steady)
		}
	}
	s.rest()
	for i, p := range steady {
		s.flat(p, before[i])
	}
	if left := s.leftOver(); len(left) > 0 {
		t.Errorf("files are left over: %s", strings.Join(left, "\n"))
	}
	s.sound()
	t.Logf("%d faults in %s, %d of them in the warm-up", s.cycles, time.Since(began).Round(time.Second), warm)
}

// start brings the fleet up: paris sells, rome takes and sells a little.
func start(t *testing.T) *soak {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), *length+15*time.Minute)
	t.Cleanup(cancel)
	s := &soak{t: t, ctx: ctx, temporary: filepath.Join(t.TempDir(), "tmp")}
	if err := os.Mkdir(s.temporary, 0o755); err != nil {
		t.Fatal(err)
	}
	inputs := map[string]string{
		"fleet.yaml": "apiVersion: fleetbroker.io/v1alpha1\nkind: Fleet\nmetadata: {name: acme}\nspec:\n  currency: EUR\n  retention: {ended: 5s}\n  safety: {maxEnds: 100}\n" +
			"  writeBack: {mode: push, inputs: main, branch: " + rig.Ledger + ", statusInterval: 1s, author: {name: fleetbroker, email: fleetbroker@example.org}}\n",
	}
	for i := range tenants {
		inputs["tenants/"+tenant(i)+".yaml"] = fmt.Sprintf("apiVersion: fleetbroker.io/v1alpha1\nkind: Tenant\nmetadata: {name: %s}\nspec: {consumers: [rome], namespaces: [%s]}\n", tenant(i), tenant(i))
	}
	node := func(name string) env.GPUNode {
		return env.GPUNode{Name: name, GPUs: 8, Labels: map[string]string{"fleetbroker.io/pool": "h100"}}
	}
	dir := t.TempDir()
	var err error
	s.Rig, err = rig.Start(ctx, rig.Options{
		Dir: dir, Bin: bin, Env: []string{"TMPDIR=" + s.temporary}, Consumers: []string{"rome"}, Inputs: inputs,
		Providers: map[string][]env.GPUNode{"paris": {node("paris-1"), node("paris-2"), node("paris-3")}, "rome": {node("rome-1")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			s.logs()
		}
		if err := s.Stop(); err != nil {
			t.Errorf("stop the rig: %v", err)
		}
	})
	if s.team, err = s.Team(ctx, "ada"); err != nil {
		t.Fatal(err)
	}
	hub := rigtest.NewHub(ctx, t)
	for name, d := range map[string]**rig.Daemon{"one": &s.one, "two": &s.two} {
		if *d, err = s.Daemon(ctx, name, append(hub.Args(""), "--poll-interval", "1s")...); err != nil {
			t.Fatal(err)
		}
	}
	address, release, err := env.ReserveAddress()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	every := []string{"--advertisement-requeue-interval", "1s"}
	s.AgentArgs = append(every[:2:2], "--metrics-bind-address", address)
	p, err := s.Agent(ctx, "paris", s.one, s.two)
	if err != nil {
		t.Fatal(err)
	}
	s.paris = &process{"the agent", address, p}
	s.AgentArgs = every
	s.startRome()
	s.ready()
	return s
}

func (s *soak) startRome() {
	s.t.Helper()
	var err error
	if s.rome, err = s.Agent(s.ctx, "rome", s.one, s.two); err != nil {
		s.t.Fatal(err)
	}
}

func tenant(i int) string { return fmt.Sprintf("team-%02d", i) }

// pass lets time pass.
func (s *soak) pass(d time.Duration) {
	s.t.Helper()
	select {
	case <-s.ctx.Done():
		s.t.Fatal("the soak took too long")
	case <-time.After(d):
	}
}

// cycle is one fault, with work before and during it.
func (s *soak) cycle() {
	s.t.Helper()
	f := faults[s.cycles%len(faults)]
	s.cycles++
	s.work()
	s.pass(300 * time.Millisecond)
	s.must(f.name, f.begin(s))
	s.look()
	s.pass(1500 * time.Millisecond)
	s.must(f.name, f.end(s))
	s.look()
	s.pass(500 * time.Millisecond)
	for _, p := range []*env.Program{s.one.Program, s.two.Program, s.paris.Program, s.rome} {
		select {
		case <-p.Done():
			s.t.Fatalf("%s: %v", f.name, p.Failure())
		default:
		}
	}
}

func (s *soak) must(what string, err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatalf("%s: %v", what, err)
	}
}

// work is what the tenants push: some ask, some change, some give back, one makes
// a mistake and one corrects it.
func (s *soak) work() {
	s.t.Helper()
	files := map[string]string{}
	for i := range tenants {
		path := "intents/" + tenant(i) + "/train.yaml"
		switch (i + s.cycles) % 4 {
		case 0, 1:
			files[path] = fmt.Sprintf("apiVersion: fleetbroker.io/v1alpha1\nkind: ResourceIntent\nmetadata: {name: train, namespace: %s}\nspec:\n  consumer: rome\n"+
				"  resources: {cpu: \"%d\", memory: 8Gi, pods: \"4\", gpu: {count: 1, models: [nvidia-h100]}}\n  offload: {namespaces: [{name: %s, create: true}]}\n", tenant(i), 1+s.cycles%3, tenant(i))
		case 3:
			s.remove(path)
		}
	}
	s.remove("intents/" + tenant((s.cycles+tenants-1)%tenants) + "/mistake.yaml")
	files["intents/"+tenant(s.cycles%tenants)+"/mistake.yaml"] = "kind: [\n"
	s.push(fmt.Sprintf("Work %d", s.cycles), files)
}

func (s *soak) remove(path string) {
	s.t.Helper()
	if err := os.RemoveAll(filepath.Join(s.team.Dir, path)); err != nil {
		s.t.Fatal(err)
	}
}

// push commits and pushes behind the git server's back, which fails the daemons
// alone.
func (s *soak) push(message string, files map[string]string) {
	s.t.Helper()
	_, err := s.team.Commit(s.ctx, message, files)
	s.must(message, err)
	_, err = s.team.Git(s.ctx, "push", "-q", s.Git.RepoDir(rig.Repo), env.DefaultBranch)
	s.must(message, err)
}

// look asks the daemons' pages as dashboards do; one that is frozen or starting
// does not answer.
func (s *soak) look() {
	client := &http.Client{Timeout: 500 * time.Millisecond}
	for _, d := range []*rig.Daemon{s.one, s.two} {
		for _, page := range []string{"/metrics", "/market", "/readyz", "/"} {
			resp, err := client.Get("http://" + d.Operators + page)
			if err != nil {
				break
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
	}
	client.CloseIdleConnections()
}

// show logs what the processes hold under load.
func (s *soak) show(steady []*process) {
	s.t.Helper()
	for _, p := range steady {
		f, _, err := p.now(s.ctx)
		s.t.Logf("after %d faults %s holds %s, %v", s.cycles, p.name, f, err)
	}
}

func (s *soak) ready() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, patience)
	defer cancel()
	for _, d := range []*rig.Daemon{s.one, s.two} {
		if err := d.AwaitReady(ctx); err != nil {
			s.t.Fatal(err)
		}
	}
}

// rest gives all back and waits until the ledger and the consumer hold nothing.
func (s *soak) rest() {
	s.t.Helper()
	s.remove("intents")
	s.push("Give all back", nil)
	s.ready()
	deadline := time.Now().Add(patience)
	for {
		err := s.empty()
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("the fleet does not come to rest: %v", err)
		}
		s.pass(200 * time.Millisecond)
	}
	s.pass(3 * time.Second) // connections of clients that are gone are closed
}

// empty is an error while something is held.
func (s *soak) empty() error {
	held, err := env.Git(s.ctx, s.Git.RepoDir(rig.Repo), "grep", "-h", "-E", "^  phase: (Reserved|Peering|Active|Degraded|Releasing)", rig.Ledger, "--", "contracts")
	if err == nil {
		return fmt.Errorf("the ledger holds\n%s", held)
	}
	out, err := s.Clusters["rome"].Kubectl(s.ctx, s.Dir, "get", "resourceslices.authentication.liqo.io", "-A", "-o", "name")
	if err == nil && strings.TrimSpace(out) != "" {
		err = fmt.Errorf("rome has\n%s", out)
	}
	return err
}

// sound judges the ledger's whole history, and that there was one.
func (s *soak) sound() {
	s.t.Helper()
	st := filesystem.NewStorage(osfs.New(s.Git.RepoDir(rig.Repo)), cache.NewObjectLRUDefault())
	res, err := checker.Check(st, rig.Ledger)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, v := range res.Violations {
		s.t.Errorf("invariant broken in %s", v)
	}
	if res.Placing < s.cycles/2 {
		s.t.Errorf("only %d commits placed something in %d cycles: the soak shows nothing", res.Placing, s.cycles)
	}
	s.t.Logf("%d commits on the ledger, %d of them placed something", res.Commits, res.Placing)
}

// logs prints the end of every program's log.
func (s *soak) logs() {
	list, _ := filepath.Glob(filepath.Join(s.Dir, "logs", "*.log"))
	for _, file := range list {
		b, _ := os.ReadFile(file)
		s.t.Logf("end of %s:\n%s", filepath.Base(file), b[max(0, len(b)-3000):])
	}
}
