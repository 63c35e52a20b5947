//go:build e2e

package spine

import (
	"context"
	"errors"
	"fmt"
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

// patience bounds every wait. Nothing here takes a tenth of it on an idle
// machine.
const patience = 3 * time.Minute

var bin string

func TestMain(m *testing.M) { envtest.Main(m, &bin, env.BuildTools) }

// h100 is a node with eight H100 in the pool of that name.
func h100(name string) env.GPUNode {
	return env.GPUNode{Name: name, GPUs: 8, Labels: map[string]string{"fleetbroker.io/pool": "h100"}}
}

// fleet is a rig with a team, and what the tests ask of it.
type fleet struct {
	*rig.Rig
	t       *testing.T
	ctx     context.Context
	team    *env.Team
	daemons []*rig.Daemon
	// ledger is the branch that the daemons write.
	ledger string
	// behind makes the team push behind the git server's back, which then fails
	// the daemons alone.
	behind bool
}

// start brings a fleet up: paris gives 16 H100 (unless told otherwise), rome
// takes. Each test has a rig of its own, and most of the time it waits.
func start(t *testing.T, change func(*rig.Options)) *fleet {
	t.Helper()
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	t.Cleanup(cancel)
	o := rig.Options{
		Dir: t.TempDir(), Bin: bin, Consumers: []string{"rome"},
		Providers: map[string][]env.GPUNode{"paris": {h100("paris-1"), h100("paris-2")}},
		// A daemon that was restarted is deaf until the agents' next reports.
		AgentArgs: []string{"--advertisement-requeue-interval", "1s"},
	}
	if change != nil {
		change(&o)
	}
	o.Lent = true
	r, err := rig.Start(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	f := &fleet{Rig: r, t: t, ctx: ctx, ledger: rig.Ledger}
	t.Cleanup(func() {
		if t.Failed() {
			f.logs()
		}
		if err := r.Stop(); err != nil {
			t.Errorf("stop the rig: %v", err)
		}
	})
	if f.team, err = r.Team(ctx, "ada"); err != nil {
		t.Fatal(err)
	}
	return f
}

// up starts one daemon that hears pushes, and every provider's agent.
func (f *fleet) up(args ...string) *rig.Daemon {
	f.t.Helper()
	d := f.daemon("one", args...)
	d.NotifyPushes(f.ctx)
	f.agents()
	f.await(d)
	return d
}

// pair starts two daemons that hear pushes and share a market, and every provider's
// agent.
func (f *fleet) pair() (one, two *rig.Daemon) {
	f.t.Helper()
	hub := rigtest.NewHub(f.ctx, f.t)
	one, two = f.daemon("one", hub.Args("")...), f.daemon("two", hub.Args("")...)
	one.NotifyPushes(f.ctx)
	two.NotifyPushes(f.ctx)
	f.agents()
	f.await(one)
	f.await(two)
	return one, two
}

func (f *fleet) daemon(name string, args ...string) *rig.Daemon {
	f.t.Helper()
	d, err := f.Daemon(f.ctx, name, append([]string{"--poll-interval", "1s"}, args...)...)
	if err != nil {
		f.t.Fatal(err)
	}
	f.daemons = append(f.daemons, d)
	return d
}

func (f *fleet) agents() map[string]*env.Program {
	f.t.Helper()
	out := map[string]*env.Program{}
	for name := range f.Providers {
		p, err := f.Agent(f.ctx, name, f.daemons...)
		if err != nil {
			f.t.Fatal(err)
		}
		out[name] = p
	}
	return out
}

func (f *fleet) await(d *rig.Daemon) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.ctx, patience)
	defer cancel()
	if err := d.AwaitReady(ctx); err != nil {
		f.t.Fatal(err)
	}
	if err := d.AwaitNodes(ctx, f.Providers); err != nil {
		f.t.Fatal(err)
	}
}

// intent is an intent of team vision for some GPUs.
func intent(name string, gpus int, more ...string) string {
	return fmt.Sprintf("apiVersion: fleetbroker.io/v1alpha1\nkind: ResourceIntent\nmetadata: {name: %s, namespace: vision}\nspec:\n"+
		"  consumer: rome\n  resources: {cpu: \"4\", memory: 16Gi, pods: \"4\", gpu: {count: %d, models: [nvidia-h100]}}\n"+
		"  offload: {namespaces: [{name: vision, create: true}]}\n%s", name, gpus, strings.Join(more, ""))
}

func intentPath(name string) string { return "intents/vision/" + name + ".yaml" }

// push commits files of the team on the newest main and pushes them; a nil
// value removes the file.
func (f *fleet) push(message string, files map[string]*string) {
	f.t.Helper()
	server := "origin"
	if f.behind {
		server = f.Git.RepoDir(rig.Repo)
	}
	pull := func() {
		if _, err := f.team.Git(f.ctx, "pull", "-q", "--rebase", server, env.DefaultBranch); err != nil {
			f.t.Fatal(err)
		}
	}
	pull()
	write := map[string]string{}
	for path, content := range files {
		if content == nil {
			if err := os.Remove(filepath.Join(f.team.Dir, path)); err != nil && !errors.Is(err, os.ErrNotExist) {
				f.t.Fatal(err)
			}
			continue
		}
		write[path] = *content
	}
	if _, err := f.team.Commit(f.ctx, message, write); err != nil {
		f.t.Fatal(err)
	}
	for range 20 {
		if _, err := f.team.Git(f.ctx, "push", "-q", server, env.DefaultBranch); err == nil {
			return
		}
		pull()
	}
	f.t.Fatal("the team could not push in 20 tries")
}

func (f *fleet) put(name, content string) {
	f.t.Helper()
	f.push("Ask for "+name, map[string]*string{intentPath(name): &content})
}

func (f *fleet) remove(name string) {
	f.t.Helper()
	f.push("Give up "+name, map[string]*string{intentPath(name): nil})
}

// step runs a subtest whose failures are its own.
func (f *fleet) step(name string, run func(t *testing.T)) {
	parent := f.t
	defer func() { f.t = parent }()
	parent.Run(name, func(t *testing.T) {
		f.t = t
		run(t)
	})
}

// eventually waits for a condition that is not yet an error.
func (f *fleet) eventually(what string, condition func() error) {
	f.t.Helper()
	f.within(patience, what, condition)
}

func (f *fleet) within(limit time.Duration, what string, condition func() error) {
	f.t.Helper()
	if _, err := env.Until(f.ctx, limit, condition); err != nil {
		f.t.Fatalf("%s: %v", what, err)
	}
}

// check judges the remote's whole history.
func (f *fleet) check() *checker.Result {
	f.t.Helper()
	dir := f.Git.RepoDir(rig.Repo)
	st := filesystem.NewStorage(osfs.New(dir), cache.NewObjectLRUDefault())
	res, err := checker.Check(st, f.ledger)
	if err != nil {
		f.t.Fatal(err)
	}
	return res
}

// sound fails the test for every invariant that was broken.
func (f *fleet) sound() *checker.Result {
	f.t.Helper()
	res := f.check()
	for _, v := range res.Violations {
		f.t.Errorf("invariant broken in %s", v)
	}
	f.wellFormed()
	return res
}

// wellFormed has git judge all that the remote's refs reach. Refs are read
// first: git fsck reads them after the objects, and would miss what a daemon
// that still runs pushes between.
func (f *fleet) wellFormed() {
	f.t.Helper()
	at := []string{"-C", f.Git.RepoDir(rig.Repo)}
	refs, err := f.Platform.Git(f.ctx, append(at, "for-each-ref", "--format=%(objectname)")...)
	if err != nil {
		f.t.Errorf("refs of the remote: %v", err)
		return
	}
	fsck := append(at, "fsck", "--strict", "--no-dangling")
	if _, err := f.Platform.Git(f.ctx, append(fsck, strings.Fields(refs)...)...); err != nil {
		f.t.Errorf("git fsck of the remote: %v", err)
	}
}

// phases are the contracts of an intent at the remote's head, held or ended,
// by name.
func (f *fleet) phases(name string) map[string]string {
	f.t.Helper()
	out := map[string]string{}
	res := f.check()
	for _, list := range []map[string]string{res.Held, res.Ended} {
		for contract, phase := range list {
			if strings.HasPrefix(contract, "vision-"+name+"-") {
				out[contract] = phase
			}
		}
	}
	return out
}

// inPhase is an error unless the intent has exactly n contracts in the phases.
func (f *fleet) inPhase(name string, n int, phases ...string) error {
	got := f.phases(name)
	count := 0
	for _, p := range got {
		for _, want := range phases {
			if p == want {
				count++
			}
		}
	}
	if count != n {
		return fmt.Errorf("want %d contracts of %s in %v, have %v", n, name, phases, got)
	}
	return nil
}

// slices are the names of the slices on a consumer.
func (f *fleet) slices(consumer string) (map[string]bool, error) {
	out, err := f.Clusters[consumer].Kubectl(f.ctx, f.Dir, "get", "resourceslices.authentication.liqo.io", "-A", "-o", "name")
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, line := range strings.Fields(out) {
		names[line[strings.LastIndexByte(line, '/')+1:]] = true
	}
	return names, nil
}

// applied waits until rome has exactly the slices of the contracts that are
// held at the remote's head.
func (f *fleet) applied() {
	f.t.Helper()
	f.eventually("slices on rome as on the ledger", func() error {
		have, err := f.slices("rome")
		if err != nil {
			return err
		}
		want := f.check().Slices
		for name := range want {
			if !have[name] {
				return fmt.Errorf("slice %s is missing: want %v, have %v", name, want, have)
			}
		}
		for name := range have {
			if !want[name] {
				return fmt.Errorf("slice %s is left over: want %v, have %v", name, want, have)
			}
		}
		return nil
	})
}

// subjects are the first lines of the ledger's commits, newest first.
func (f *fleet) subjects() []string {
	f.t.Helper()
	out, err := env.Git(f.ctx, f.Git.RepoDir(rig.Repo), "log", "--format=%s", f.ledger)
	if err != nil {
		return nil
	}
	return strings.Split(strings.TrimSpace(out), "\n")
}

// said is an error unless some commit of the ledger contains the text.
func (f *fleet) said(text string) error {
	out, err := env.Git(f.ctx, f.Git.RepoDir(rig.Repo), "log", "--format=%B", f.ledger)
	if err != nil {
		return err
	}
	if !strings.Contains(out, text) {
		return fmt.Errorf("no commit says %q; subjects are %q", text, f.subjects())
	}
	return nil
}

// quiet fails the test when the ledger moves though nothing happens.
func (f *fleet) quiet(d time.Duration) {
	f.t.Helper()
	before := f.subjects()
	<-time.After(d)
	if after := f.subjects(); len(after) != len(before) {
		f.t.Errorf("nothing happened, and the ledger got %d commits: %q", len(after)-len(before), after[:len(after)-len(before)])
	}
}

// logs prints the end of every program's log.
func (f *fleet) logs() {
	files, _ := filepath.Glob(filepath.Join(f.Dir, "logs", "*.log"))
	for _, file := range files {
		b, _ := os.ReadFile(file)
		if n := len(b); n > 4000 {
			b = b[n-4000:]
		}
		f.t.Logf("end of %s:\n%s", filepath.Base(file), b)
	}
	f.t.Logf("ledger: %q", f.subjects())
}

func ptr(s string) *string { return &s }
