package cli

import (
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/test/env"
)

// owner is a tenant with a repository of its own, on a real git server.
type owner struct {
	*built
	own    string // its checkout
	server *env.GitServer
	creds  string
	flags  []string
}

// newOwner has the entry of a source with more in it.
func newOwner(t *testing.T, more string, hosts ...string) *owner {
	t.Helper()
	git, err := env.StartGitHTTP(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewTLSServer(git)
	t.Cleanup(func() {
		server.Close()
		if err := git.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := git.Init(t.Context(), "own.git"); err != nil {
		t.Fatal(err)
	}
	creds := t.TempDir()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := errors.Join(os.Mkdir(filepath.Join(creds, "own"), 0o700), os.WriteFile(filepath.Join(creds, "own", "ca.crt"), ca, 0o600)); err != nil {
		t.Fatal(err)
	}
	hosts = append(hosts, strings.TrimPrefix(server.URL, "https://"))
	o := &owner{
		built: newBuilt(t), own: t.TempDir(), server: git, creds: filepath.Join(creds, "own"),
		flags: []string{"--source-hosts", strings.Join(hosts, ","), "--source-credentials-dir", creds},
	}
	policy, err := os.ReadFile(filepath.Join(o.work, "fleet.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	o.push("fleet.yaml", strings.Replace(string(policy), "\nspec:\n", "\nspec:\n  sources: [{name: own, url: \""+server.URL+"/own.git\", tenants: [vision]"+more+"}]\n", 1))
	o.run(o.own, "git", "init", "-q", "-b", "main")
	o.run(o.own, "git", "remote", "add", "origin", git.RepoDir("own.git"))
	return o
}

// ask commits an intent to the tenant's repository, by force, and returns the commit.
func (o *owner) ask(name string, args ...string) string {
	o.t.Helper()
	file := filepath.Join(o.own, "intents", "vision", name+".yaml")
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(strings.ReplaceAll(askPlain, "NAME", name)), 0o600)); err != nil {
		o.t.Fatal(err)
	}
	o.run(o.own, "git", "add", ".")
	o.run(o.own, "git", append([]string{"commit", "-q", "-m", "Ask for " + name}, args...)...)
	o.run(o.own, "git", "push", "-q", "--force", "origin", "main")
	return o.run(o.own, "git", "rev-parse", "HEAD")
}

// accept is what the command says, and whether it failed for another reason than that
// there are no consumer clusters.
func (o *owner) accept(args ...string) (said string, failed bool) {
	o.t.Helper()
	full := append([]string{"accept", "--unsigned", "--repo", "file://" + o.remote, "--state-dir", filepath.Join(filepath.Dir(o.remote), "operator")}, append(args, o.flags...)...)
	out, err := exec.CommandContext(o.t.Context(), o.program, full...).CombinedOutput()
	return string(out), err != nil && strings.Contains(string(out), "accept source")
}

// copied are the names of intents that the ledger has of the source.
func (o *owner) copied() string {
	return o.ledger("ls-tree", "-r", "--name-only", "ledger", "sources/own/intents/")
}

// TestAccept_GoesOnFromARewrittenHistory: of the real program on real git servers. A
// rewritten source is frozen, another commit than its head is not accepted, its head is,
// and the daemon goes on from there; audit and replay hold over all of it.
func TestAccept_GoesOnFromARewrittenHistory(t *testing.T) {
	t.Parallel()
	o := newOwner(t, "")
	first := o.ask("first")
	o.once("daemon", o.flags...)
	if got := o.copied(); !strings.Contains(got, "first.yaml") {
		t.Fatalf("the ledger has %q", got)
	}
	rewritten := o.ask("second", "--amend")
	out := o.once("daemon", o.flags...)
	if got := o.copied(); strings.Contains(got, "second.yaml") || !strings.Contains(out, "source is frozen") || !strings.Contains(out, "accept --source own="+rewritten) {
		t.Fatalf("a rewritten history was taken, or not frozen: %q\n%s", got, out)
	}
	before := o.ledger("rev-parse", "ledger")
	for source, want := range map[string]string{
		"own=" + first:                   "its history was rewritten",
		"own=" + strings.Repeat("a", 40): "its history was rewritten",
		"other=" + rewritten:             "fleet.yaml names no such source",
	} {
		if said, failed := o.accept("--source", source); !failed || !strings.Contains(said, want) {
			t.Errorf("accept %s: no %q in\n%s", source, want, said)
		}
	}
	for _, source := range []string{"own=" + rewritten[:12], "own"} {
		if said, _ := o.accept("--source", source); strings.Contains(said, "copy source") {
			t.Errorf("accept %s: %s", source, said)
		}
	}
	if after := o.ledger("rev-parse", "ledger"); after != before || strings.Contains(o.copied(), "second.yaml") {
		t.Fatalf("another commit was accepted: the ledger went from %s to %s", before, after)
	}
	if said, failed := o.accept("--source", "own="+rewritten); failed {
		t.Fatalf("the head is not accepted:\n%s", said)
	}
	if got := o.copied(); !strings.Contains(got, "second.yaml") {
		t.Errorf("the ledger has %q", got)
	}

	// The daemon, with the mirror of before, goes on.
	o.ask("third")
	if out := o.once("daemon", o.flags...); strings.Contains(out, "source is frozen") || !strings.Contains(o.copied(), "third.yaml") {
		t.Errorf("the daemon does not go on: %s", out)
	}
	if record := o.ledger("show", "ledger:sources/own/source.yaml"); !strings.Contains(record, o.run(o.own, "git", "rev-parse", "HEAD")) {
		t.Errorf("the copy is of\n%s", record)
	}

	// audit and replay, in a fresh clone, which knows nothing of the tenant's repository.
	o.git("fetch", "-q", "origin")
	o.git("branch", "-f", "ledger", "origin/ledger")
	if out := o.run(o.work, o.program, "audit", "verify", "-o", "json"); strings.Contains(out, `"rule"`) {
		t.Errorf("audit: %s", out)
	}
	decided := strings.Fields(o.ledger("log", "--grep=^Round: ", "--format=%H", "ledger"))
	if len(decided) < 3 {
		t.Errorf("%d decisions, want those of three heads", len(decided))
	}
	for _, commit := range decided {
		var replayed struct{ Same bool }
		out := o.run(o.work, o.program, "audit", "replay", commit, "-o", "json")
		if json.Unmarshal([]byte(out[max(0, strings.Index(out, "{")):]), &replayed) != nil || !replayed.Same {
			t.Errorf("replay %s: %s", commit, out)
		}
	}

	// Status shows what is acted on.
	if out := o.run(o.work, o.program, "status"); !strings.Contains(out, "Tenants' repositories") || !strings.Contains(out, "own") {
		t.Errorf("status does not show the source:\n%s", out)
	}
	var page struct {
		Sources []struct{ Name, State, Copied string }
	}
	out = o.run(o.work, o.program, "status", "-o", "json")
	if err := json.Unmarshal([]byte(out[max(0, strings.Index(out, "{")):]), &page); err != nil || len(page.Sources) != 1 || page.Sources[0].State != "Unknown" || page.Sources[0].Copied == "" {
		t.Errorf("status -o json: %+v, %v", page, err)
	}
}
