package cli

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/test/bounded"
)

// built is the real program, a fleet and its remote.
type built struct {
	t                     *testing.T
	program, work, remote string
}

// TestSetAside is of the real program: what a team pushes really kills its child.
func TestSetAside(t *testing.T) {
	t.Parallel()
	t.Run("ByTheRealProgram", func(t *testing.T) { setAsideWhileRunning(newBuilt(t)) })
	t.Run("AfterADeath", func(t *testing.T) { setAsideAfterADeath(newBuilt(t)) })
}

func newBuilt(t *testing.T) *built {
	t.Helper()
	dir := t.TempDir()
	b := &built{t: t, program: program(t), work: filepath.Join(dir, "fleet"), remote: filepath.Join(dir, "fleet.git")}
	b.run("", b.program, "init", b.work)
	b.git("init", "-q", "-b", "main", ".")
	b.push()
	b.run("", "git", "clone", "-q", "--bare", b.work, b.remote)
	b.git("remote", "add", "origin", b.remote)
	return b
}

// run runs a program and returns what it says. It must succeed, but for consumer
// clusters, of which there are none.
func (b *built) run(dir, name string, args ...string) string {
	b.t.Helper()
	cmd := exec.CommandContext(b.t.Context(), name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_AUTHOR_NAME=Ada L.", "GIT_AUTHOR_EMAIL=ada@example.org", "GIT_COMMITTER_NAME=Ada L.", "GIT_COMMITTER_EMAIL=ada@example.org", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	out, err := cmd.CombinedOutput()
	if err != nil && !strings.Contains(string(out), "fleetbroker: cluster rome: no kubeconfig of cluster rome") {
		b.t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (b *built) git(args ...string) string { b.t.Helper(); return b.run(b.work, "git", args...) }

// push commits files of the inputs, path and content in turn.
func (b *built) push(files ...string) {
	b.t.Helper()
	for i := 0; i < len(files); i += 2 {
		name := filepath.Join(b.work, files[i])
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			b.t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(files[i+1]), 0o600); err != nil {
			b.t.Fatal(err)
		}
	}
	b.git("add", ".")
	b.git("commit", "-q", "-m", "Ask")
	if b.git("remote") != "" {
		b.git("push", "-q", "origin", "main")
	}
}

// once makes rounds until nothing is left to do, with a state directory.
func (b *built) once(state string, args ...string) string {
	b.t.Helper()
	return b.run("", b.program, append([]string{"reconcile", "--once", "--unsigned", "--repo", "file://" + b.remote, "--state-dir", filepath.Join(filepath.Dir(b.remote), state)}, args...)...)
}

// ledger is what git says of the ledger.
func (b *built) ledger(args ...string) string {
	b.t.Helper()
	return b.run(b.remote, "git", args...)
}

const (
	askPlain = "apiVersion: fleetbroker.io/v1alpha1\nkind: ResourceIntent\nmetadata: {name: NAME, namespace: vision}\nspec: {resources: {cpu: 1, memory: 1Gi}}\n"
	bombDir  = "intents/vision/k/"
)

// bomb is a kustomization that no count refuses and that no memory suffices for.
func bomb() string {
	return "resources: [i.yaml]\n" + bounded.Bomb("ResourceIntent", "metadata")
}

// The real program, its child really killed by what a team pushed: the daemon
// goes on and decides others' intents, the ledger lists the piece, a second
// daemon agrees without trying, audit and replay make the same again, and change
// and operator lift it.
func setAsideWhileRunning(b *built) {
	t := b.t
	b.push(bombDir+"kustomization.yaml", bomb(), bombDir+"i.yaml", strings.ReplaceAll(askPlain, "NAME", "made"),
		"intents/vision/other.yaml", strings.ReplaceAll(askPlain, "NAME", "other"))
	state := filepath.Join(filepath.Dir(b.remote), "a")
	daemon := exec.CommandContext(t.Context(), b.program, "run", "--unsigned", "--repo", "file://"+b.remote, "--state-dir", state,
		"--agents-address", "", "--operators-address", freeAddress(t), "--notify=false", "--poll-interval", "1s")
	said := &strings.Builder{}
	daemon.Stderr = said
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(time.Minute)
	for out := ""; !strings.Contains(out, "/other/"); {
		if time.Now().After(deadline) {
			_ = daemon.Process.Kill()
			_ = daemon.Wait()
			t.Fatalf("nothing is decided\n%s", said)
		}
		tick := time.NewTimer(200 * time.Millisecond)
		<-tick.C
		raw, _ := exec.CommandContext(t.Context(), "git", "-C", b.remote, "ls-tree", "-r", "--name-only", "refs/heads/ledger").Output()
		out = string(raw)
	}
	if err := daemon.Process.Kill(); err != nil { // it lives, and is now killed as an eviction kills
		t.Fatal(err)
	}
	_ = daemon.Wait()
	list := b.ledger("show", "ledger:contracts/_set-aside.yaml")
	if !strings.Contains(list, "path: "+bombDir) || !strings.Contains(list, "took more than 256 MiB of memory") {
		t.Errorf("the ledger lists %s", list)
	}
	if got := b.ledger("log", "--format=%(trailers:key=Set-Aside,valueonly)", "ledger"); !strings.HasPrefix(strings.TrimSpace(got), bombDir+" sha256:") {
		t.Errorf("trailers %q", got)
	}

	// A second daemon, whose children could build nothing, agrees without trying.
	head := b.ledger("rev-parse", "ledger:contracts/_set-aside.yaml")
	b.once("b", "--child-memory", "1Mi")
	if now := b.ledger("rev-parse", "ledger:contracts/_set-aside.yaml"); now != head {
		t.Errorf("the second daemon wrote %s", b.ledger("log", "-1", "--format=%B", "ledger"))
	}

	// audit and replay, in a fresh clone.
	b.git("fetch", "-q", "origin")
	b.git("branch", "-f", "ledger", "origin/ledger")
	if out := b.run(b.work, b.program, "audit", "verify", "-o", "json"); strings.Contains(out, `"rule"`) {
		t.Errorf("audit: %s", out)
	}
	decided := b.ledger("log", "-1", "--grep=^Round: ", "--format=%H", "ledger")
	var replayed struct{ Same bool }
	if out := b.run(b.work, b.program, "audit", "replay", decided, "-o", "json"); json.Unmarshal([]byte(out[max(0, strings.Index(out, "{")):]), &replayed) != nil || !replayed.Same { // after a warning: no trust root is named
		t.Errorf("replay: %s", out)
	}
	if out := b.run(b.work, b.program, "status"); !strings.Contains(out, bombDir) || !strings.Contains(out, "--lift "+bombDir) {
		t.Errorf("status does not say it: %s", out)
	}

	// An operator lifts it, and it ends its process again; then a change does.
	if out := b.once("a", "--lift", bombDir); !strings.Contains(out, "read "+bombDir+" again") || !strings.Contains(out, "set aside "+bombDir) {
		t.Errorf("lifted: %s", out)
	}
	b.push(bombDir+"kustomization.yaml", "resources: [i.yaml]\n")
	b.once("b")
	if out := b.ledger("ls-tree", "-r", "--name-only", "ledger"); strings.Contains(out, "_set-aside") || !strings.Contains(out, "/made/") {
		t.Errorf("after the change the ledger has %s", out)
	}
	b.git("fetch", "-q", "origin")
	b.git("branch", "-f", "ledger", "origin/ledger")
	if out := b.run(b.work, b.program, "audit", "verify", "-o", "json"); strings.Contains(out, `"rule"`) {
		t.Errorf("audit at the end: %s", out)
	}
}

// denseFile is of a size that is allowed, and what it makes when it is read is far
// more than a child of 1 MiB has left, whatever that needs for itself.
const denseFile = "intents/dense/dense.yaml"

func dense() string {
	return strings.ReplaceAll(askPlain, "NAME", "dense") + "x: [" + strings.Repeat("1,", 200_000) + "1]\n"
}

// The notes of a process that was killed while it read lead to a trial alone in
// the child, which convicts nobody it can read, and sets aside what ends it.
func setAsideAfterADeath(b *built) {
	t := b.t
	b.push("intents/vision/plain.yaml", strings.ReplaceAll(askPlain, "NAME", "plain"), denseFile, dense())
	pieces := map[string]string{}
	for _, piece := range []string{"intents/vision/", "intents/dense/"} {
		pieces[piece] = b.git("rev-parse", "HEAD:"+strings.TrimSuffix(piece, "/"))
	}
	killed := func(state string, read ...string) {
		dir := filepath.Join(filepath.Dir(b.remote), state)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		open := map[string]string{}
		for _, piece := range read {
			open[piece] = pieces[piece]
		}
		notes, err := json.Marshal(map[string]any{"version": 1, "program": "x", "open": map[string]any{"read": open}})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "reading.json"), notes, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	killed("a", "intents/vision/", "intents/dense/")
	b.once("a")
	if out := b.ledger("ls-tree", "-r", "--name-only", "ledger"); strings.Contains(out, "_set-aside") || !strings.Contains(out, "/plain/") {
		t.Fatalf("an innocent is set aside: %s", out)
	}
	killed("b", "intents/dense/")
	b.once("b", "--child-memory", "1Mi")
	if list := b.ledger("show", "ledger:contracts/_set-aside.yaml"); !strings.Contains(list, "path: "+denseFile) {
		t.Errorf("the ledger lists %s", list)
	}
	b.once("c") // has no note, and agrees
	if list := b.ledger("show", "ledger:contracts/_set-aside.yaml"); !strings.Contains(list, "path: "+denseFile) {
		t.Errorf("after another daemon the ledger lists %s", list)
	}
	if out := b.once("c", "--lift", denseFile); !strings.Contains(out, "read "+denseFile+" again") {
		t.Errorf("lifted: %s", out)
	}
	if out := b.ledger("ls-tree", "-r", "--name-only", "ledger"); strings.Contains(out, "_set-aside") {
		t.Errorf("after the lift the ledger has %s", out)
	}
}
