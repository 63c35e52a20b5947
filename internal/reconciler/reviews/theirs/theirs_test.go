package theirs

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/logs/logtest"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/forge/forgetest"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/memremote"
	"github.com/fleetbroker/fleetbroker/internal/market"
	"github.com/fleetbroker/fleetbroker/internal/planner/report"
	"github.com/fleetbroker/fleetbroker/internal/reconciler"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/reviews"
	"github.com/fleetbroker/fleetbroker/internal/review"
	"github.com/fleetbroker/fleetbroker/internal/sources"
	"github.com/fleetbroker/fleetbroker/test/env"
)

// story is a daemon on a fleet repo in memory, whose tenants keep intents on a real git
// server, with a faked forge of each; a clock that is moved by hand.
type story struct {
	t      *testing.T
	remote *memremote.Remote
	git    *env.GitServer
	tls    *httptest.Server
	creds  string
	fakes  map[string]*forgetest.Fake
	gates  map[string]*httptest.Server
	repo   *gitrepo.Repo
	keeper *sources.Keeper
	loop   *reconciler.Reconciler
	set    *Set

	mu sync.Mutex
	at time.Time
}

const kind = "apiVersion: fleetbroker.io/v1alpha1\nkind: "

func intent(tenant, name string, gpus int) string {
	return kind + fmt.Sprintf("ResourceIntent\nmetadata: {name: %s, namespace: %s}\nspec:\n  resources: {cpu: \"4\", memory: 16Gi, pods: \"4\", gpu: \"H100:%d\"}\n", name, tenant, gpus)
}

func (s *story) now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at
}

func (s *story) pass(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at = s.at.Add(d)
}

// newStory has a source for each tenant, named like it. more is put into an entry.
func newStory(t *testing.T, tenants []string, more map[string]string) *story {
	t.Helper()
	s := &story{
		t: t, remote: memremote.New(), creds: t.TempDir(), fakes: map[string]*forgetest.Fake{}, gates: map[string]*httptest.Server{},
		at: time.Date(2026, 11, 20, 12, 1, 0, 0, time.UTC),
	}
	var err error
	if s.git, err = env.StartGitHTTP(t.Context(), t.TempDir()); err != nil {
		t.Fatal(err)
	}
	s.tls = httptest.NewTLSServer(s.git)
	t.Cleanup(func() {
		s.tls.Close()
		if err := s.git.Stop(); err != nil {
			t.Error(err)
		}
	})
	files := map[string]string{
		"clusters/rome.yaml":      kind + "Cluster\nmetadata: {name: rome}\nspec: {roles: [consumer]}\n",
		"clusters/paris.yaml":     kind + "Cluster\nmetadata: {name: paris}\nspec: {roles: [provider]}\n",
		"flavors/paris/h100.yaml": kind + "Flavor\nmetadata: {name: h100, namespace: paris}\nspec:\n  capacity: {cpu: \"64\", memory: 512Gi, gpu: 8}\n  gpu: {vendor: nvidia, model: nvidia-h100, memory: 80Gi, resourceName: nvidia.com/gpu}\n  price: {currency: EUR, perHour: {gpu: \"2.50\"}}\n",
	}
	entries, hosts := "", []string{s.host(s.tls)}
	for _, name := range tenants {
		if err := s.git.Init(t.Context(), name+".git"); err != nil {
			t.Fatal(err)
		}
		fake := forgetest.GitHub(t)
		fake.Writer("grace")
		at, err := url.Parse(fake.URL)
		if err != nil {
			t.Fatal(err)
		}
		proxy := httputil.NewSingleHostReverseProxy(at)
		gate := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if got := r.Header.Get("Authorization"); !strings.HasSuffix(got, forgetest.Token) {
				t.Errorf("the forge of %s was asked with %q", name, got)
			}
			proxy.ServeHTTP(w, r)
		}))
		t.Cleanup(gate.Close)
		s.fakes[name], s.gates[name], hosts = fake, gate, append(hosts, s.host(gate))
		for key, value := range map[string]string{
			"ca.crt": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.tls.Certificate().Raw})), "forge-token": forgetest.Token,
		} {
			s.credential(name, key, value)
		}
		entries += fmt.Sprintf("  - {name: %[1]s, url: \"%[2]s/%[1]s.git\", tenants: [%[1]s], forge: {type: github, url: \"%[3]s\", repository: acme/fleet}%[4]s}\n", name, s.tls.URL, gate.URL, more[name])
		files["tenants/"+name+".yaml"] = kind + "Tenant\nmetadata: {name: " + name + "}\nspec: {consumers: [rome], budget: {hourly: \"25\", currency: EUR}}\n"
	}
	files["fleet.yaml"] = kind + "Fleet\nmetadata: {name: acme}\nspec:\n  writeBack: {inputs: main, branch: ledger, author: {name: fleetbroker, email: broker@example.org}}\n  sources:\n" + entries
	puts := map[string][]byte{}
	for name, content := range files {
		puts[name] = []byte(content)
	}
	if _, err := s.remote.Commit("main", gitobj.Person{Name: "Bob", Email: "bob@example.org", When: s.at}, "Begin", gitobj.Change{Puts: puts}); err != nil {
		t.Fatal(err)
	}
	if s.repo, err = gitrepo.Open(t.Context(), s.remote, gitrepo.Options{Inputs: "main", Ledger: "ledger", Now: s.now, Sleep: func(context.Context, time.Duration) error { return nil }}); err != nil {
		t.Fatal(err)
	}
	if s.keeper, err = sources.New(sources.Options{Dir: t.TempDir(), Hosts: hosts, Credentials: sources.Credentials{Dir: s.creds}, Now: s.now}); err != nil {
		t.Fatal(err)
	}
	s.loop = reconciler.New(reconciler.Options{Repo: s.repo, Ledger: "ledger", Market: market.New(market.Options{Now: s.now}), Now: s.now, Sources: s.keeper})
	s.set = New(Options{Keeper: s.keeper, Common: reviews.NewCommon(s.repo), View: s.loop.View, Now: s.now, Poll: 20 * time.Millisecond, Refresh: time.Millisecond})
	return s
}

func (s *story) host(of *httptest.Server) string { return strings.TrimPrefix(of.URL, "https://") }

func (s *story) credential(source, key, value string) {
	s.t.Helper()
	dir := filepath.Join(s.creds, source)
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, key), []byte(value), 0o600)); err != nil {
		s.t.Fatal(err)
	}
}

// run reviews until the test ends.
func (s *story) run() {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	done := make(chan error)
	go func() { done <- s.set.Run(ctx) }()
	s.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			s.t.Error(err)
		}
	})
}

// push commits files to a ref of a source, on top of its main ("" deletes a file), and
// returns the commit.
func (s *story) push(source, ref string, files map[string]string, with ...string) string {
	s.t.Helper()
	work := s.t.TempDir()
	git := func(args ...string) string {
		s.t.Helper()
		cmd := exec.CommandContext(s.t.Context(), "git", args...)
		cmd.Dir = work
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.org", "GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.org")
		out, err := cmd.CombinedOutput()
		if err != nil {
			s.t.Fatalf("git %q: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	git("init", "-q", "-b", "main")
	git("remote", "add", "origin", s.git.RepoDir(source+".git"))
	if git("ls-remote", "origin", "main") != "" {
		git("pull", "-q", "origin", "main")
	}
	for name, content := range files {
		full := filepath.Join(work, name)
		err := os.Remove(full)
		if content != "" {
			err = errors.Join(os.MkdirAll(filepath.Dir(full), 0o750), os.WriteFile(full, []byte(content), 0o600))
		}
		if err != nil {
			s.t.Fatal(err)
		}
	}
	git("add", "-A")
	git(append(append([]string{}, with...), "commit", "-q", "--allow-empty", "-m", "Ask")...)
	git("push", "-q", "--force", "origin", "HEAD:"+ref)
	return git("rev-parse", "HEAD")
}

// rounds reads the sources and lets the daemon come to rest.
func (s *story) rounds() {
	s.t.Helper()
	for quiet := 0; quiet < 2; {
		s.pass(time.Minute)
		s.loop.Reread()
		o, err := s.loop.Round(s.t.Context())
		if err != nil {
			s.t.Fatal(err)
		}
		if quiet++; len(o.Committed) > 0 || o.Again {
			quiet = 0
		}
		s.keeper.ReadAll(s.t.Context())
	}
}

// ask opens a pull request of a source.
func (s *story) ask(source string, files map[string]string, fork bool) (n int64, head string) {
	s.t.Helper()
	n = s.fakes[source].Add(forgetest.Pull{Title: "Ask", Author: "ada", Branch: "ask", Base: "main", Fork: fork, Head: strings.Repeat("0", 40)})
	head = s.push(source, fmt.Sprintf("refs/pull/%d/head", n), files)
	s.fakes[source].Change(n, func(p *forgetest.Pull) { p.Head = head })
	return n, head
}

// await waits until the newest status of a head has a state, and returns its description.
func (s *story) await(source, head, state string) string {
	s.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(time.Minute); ; <-tick.C {
		list := s.fakes[source].Statuses(head)
		if len(list) > 0 && list[len(list)-1].State == state && list[len(list)-1].Context == reviews.Check {
			return list[len(list)-1].Description
		}
		if time.Now().After(end) {
			s.t.Fatalf("the pull request of %s is not %s within a minute: %+v", source, state, list)
		}
	}
}

func (s *story) comment(source string, n int64, marker string) string {
	for _, c := range s.fakes[source].Comments(n, false) {
		if strings.HasPrefix(c.Body, marker) {
			return c.Body
		}
	}
	return ""
}

func (s *story) contains(what, text string, want ...string) {
	s.t.Helper()
	for _, w := range want {
		if !strings.Contains(text, w) {
			s.t.Errorf("%s: no %q in\n%s", what, w, text)
		}
	}
}

// A pull request of a source is planned as one of the fleet repo: what it would place,
// problems at their lines by the paths of the source, and the contracts once merged.
func TestSet_PlansAPullRequestOfASource(t *testing.T) {
	s := newStory(t, []string{"vision"}, nil)
	s.push("vision", "main", map[string]string{"intents/vision/old.yaml": intent("vision", "old", 2)})
	s.run()
	s.rounds()
	acted := s.keeper.Status()[0].Copied

	n, head := s.ask("vision", map[string]string{"intents/vision/new.yaml": intent("vision", "new", 4), "intents/vision/old.yaml": "", "intents/other/evil.yaml": intent("other", "evil", 8), "fleet.yaml": "kind: Evil\n"}, false)
	s.contains("status", s.await("vision", head, "success"), "1 place, 1 release (+5.00 EUR/h); at base "+acted[:7])
	text := s.comment("vision", n, report.Marker)
	s.contains("comment", text, "| + place | vision/new | paris/h100 -> rome | +10.00 |", "vision/old")
	s.contains("comment", text, "| vision | 5.00 | 10.00 |")
	if strings.Contains(text, "**fleet**") {
		t.Errorf("a tenant is shown what the fleet pays:\n%s", text)
	}
	if strings.Contains(text, "evil") || strings.Contains(text, "sources/vision/") {
		t.Errorf("the comment plans what is not taken, or has the ledger's paths:\n%s", text)
	}

	bad, head := s.ask("vision", map[string]string{"intents/vision/bad.yaml": strings.Replace(intent("vision", "bad", 1), "cpu:", "cpus:", 1)}, false)
	s.contains("status", s.await("vision", head, "failure"), "1 problem")
	if lines := s.fakes["vision"].Comments(bad, true); len(lines) != 1 || lines[0].Path != "intents/vision/bad.yaml" || lines[0].Line != 5 {
		t.Errorf("comments on lines: %+v", lines)
	}

	merged := s.push("vision", "main", map[string]string{"intents/vision/new.yaml": intent("vision", "new", 4), "intents/vision/old.yaml": ""})
	s.fakes["vision"].Change(n, func(p *forgetest.Pull) { p.Merged, p.MergeCommit = true, merged })
	s.rounds()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(time.Minute); !strings.Contains(s.comment("vision", n, review.ReservedMarker), "paris/h100 -> rome | 10.00 EUR"); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("not told what was reserved: %q", s.comment("vision", n, review.ReservedMarker))
		}
	}
}

// What other tenants pay is not shown in a source's pull request: neither in sums nor with
// what becomes of their intents, which is named.
func TestSet_ShowsNothingOfWhatOthersPay(t *testing.T) {
	s := newStory(t, []string{"vision", "speech"}, nil)
	s.push("speech", "main", map[string]string{"intents/speech/talk.yaml": intent("speech", "talk", 6)})
	s.push("vision", "main", map[string]string{"intents/vision/old.yaml": intent("vision", "old", 1)})
	s.run()
	s.rounds()
	urgent := strings.Replace(intent("vision", "new", 4), "spec:\n", "spec:\n  priority: 50\n  preemption: {preempts: lower}\n", 1)
	n, head := s.ask("vision", map[string]string{"intents/vision/new.yaml": urgent}, false)
	status := s.await("vision", head, "success")
	s.contains("status", status, "1 preempt, 1 queue; at base")
	text := s.comment("vision", n, report.Marker)
	s.contains("comment", text, "| - preempt | speech/talk | paris/h100 -> rome |  | priority 0 &lt; 50 of vision/new |", "Cost: 2.50 -> 2.50 EUR/h")
	for _, figure := range []string{"15.00", "17.50"} {
		if strings.Contains(text+status, figure) {
			t.Errorf("%s EUR/h is what others pay:\n%s\n%s", figure, status, text)
		}
	}
}

// A source of which nothing is acted on, and may not be for days, has its forge asked no
// more often than others.
func TestSet_ASourceThatIsPutOffIsNotPolled(t *testing.T) {
	s := newStory(t, []string{"vision"}, nil)
	s.rounds()
	s.ask("vision", map[string]string{"intents/vision/new.yaml": intent("vision", "new", 4)}, false)
	client, err := s.set.open("vision")
	if err != nil {
		t.Fatal(err)
	}
	r := reviews.New(reviews.Options{Forge: client, Source: source{s.keeper, "vision"}, Common: s.set.opts.Common, View: s.loop.View, Branch: "main", Now: s.now, Poll: time.Minute})
	if next, err := r.Pass(t.Context()); err != nil || next < 10*time.Second {
		t.Errorf("the forge is asked again in %s, want at least 10 s: %v", next, err)
	}
}

// A fork's head is planned once somebody with write access named it, within the bounds
// of a fork, in the child process.
func TestSet_ForksNeedTheirHeadNamed(t *testing.T) {
	s := newStory(t, []string{"vision"}, nil)
	s.push("vision", "main", map[string]string{"intents/vision/old.yaml": intent("vision", "old", 2)})
	s.run()
	s.rounds()
	many := map[string]string{}
	for i := range 201 {
		many[fmt.Sprintf("intents/vision/m%d.yaml", i)] = intent("vision", fmt.Sprintf("m%d", i), 1)
	}
	n, head := s.ask("vision", map[string]string{"intents/vision/new.yaml": intent("vision", "new", 4)}, true)
	s.contains("status", s.await("vision", head, "pending"), "fork: planned once someone with write access comments")
	s.fakes["vision"].Say(n, "mallory", "/plan "+head)
	s.pass(time.Minute)
	s.set.Wake("vision")
	s.contains("status", s.await("vision", head, "pending"), "fork")
	s.fakes["vision"].Say(n, "grace", "/plan "+head)
	s.pass(time.Minute)
	s.set.Wake("vision")
	s.contains("status", s.await("vision", head, "success"), "1 place")
	n, head = s.ask("vision", many, true)
	s.fakes["vision"].Say(n, "grace", "/plan "+head)
	s.contains("status", s.await("vision", head, "failure"), "it adds or changes 201 intents, and at most 200 are read of a fork")
}

// Where heads must be signed, one that is not fails, with what would be planned.
func TestSet_UnsignedHeadsFail(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key")
	if out, err := exec.CommandContext(t.Context(), "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "ada@example.org", "-f", key).CombinedOutput(); err != nil {
		t.Fatalf("ssh-keygen: %v\n%s", err, out)
	}
	public, err := os.ReadFile(key + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	sign := []string{"-c", "gpg.format=ssh", "-c", "user.signingkey=" + key, "-c", "commit.gpgsign=true"}
	s := newStory(t, []string{"vision"}, map[string]string{"vision": ", signers: [{principal: ada@example.org, publicKey: \"" + strings.TrimSpace(string(public)) + "\"}]"})
	s.push("vision", "main", map[string]string{"intents/vision/old.yaml": intent("vision", "old", 2)}, sign...)
	s.run()
	s.rounds()
	n, head := s.ask("vision", map[string]string{"intents/vision/new.yaml": intent("vision", "new", 4)}, false)
	s.contains("status", s.await("vision", head, "failure"), "1 commit not verified")
	s.contains("comment", s.comment("vision", n, report.Marker), "**Not acted on until verified**", "| `intents/vision/new.yaml` |", "is not signed by one of its signers", "Once verified: 1 place (+10.00 EUR/h)", "git commit -S --allow-empty")
	signed := s.push("vision", fmt.Sprintf("refs/pull/%d/head", n), map[string]string{"intents/vision/new.yaml": intent("vision", "new", 4)}, sign...)
	s.fakes["vision"].Change(n, func(p *forgetest.Pull) { p.Head = signed })
	s.pass(time.Minute)
	s.set.Wake("vision")
	s.contains("status", s.await("vision", signed, "success"), "1 place")
	s.contains("comment", s.comment("vision", n, report.Marker), "merge by fast-forward")
}

// A forge that hangs, or whose token is wrong, keeps no other source waiting, and an
// entry that goes ends the reviews of its source.
func TestSet_SourcesWaitForNoOther(t *testing.T) {
	s := newStory(t, []string{"ml", "vision"}, nil)
	for _, name := range []string{"ml", "vision"} {
		s.push(name, "main", map[string]string{"intents/" + name + "/old.yaml": intent(name, "old", 1)})
	}
	release := make(chan struct{})
	s.gates["ml"].Config.Handler = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	t.Cleanup(func() { close(release) })
	s.run()
	s.rounds()
	_, head := s.ask("vision", map[string]string{"intents/vision/new.yaml": intent("vision", "new", 4)}, false)
	s.contains("status", s.await("vision", head, "success"), "1 place")

	// Another tenant's intents are not planned from here, whatever it proposes.
	_, head = s.ask("vision", map[string]string{"intents/ml/old.yaml": intent("ml", "old", 8)}, false)
	s.contains("status", s.await("vision", head, "success"), "changes nothing that is planned")

	view := *s.loop.View()
	fleet := *view.Fleet
	policy := *fleet.Policy
	policy.Sources = []v1alpha1.IntentSource{policy.Sources[0]}
	fleet.Policy = &policy
	var wg sync.WaitGroup
	s.set.follow(t.Context(), policy.Sources, &wg)
	s.set.mu.Lock()
	left := len(s.set.running)
	s.set.mu.Unlock()
	if left != 1 {
		t.Errorf("%d sources are reviewed, want 1", left)
	}
}

// A source whose forge cannot be asked is in the log with the reason, and its pull requests
// are looked after once it can be.
func TestSet_SaysWhyItDoesNotReview(t *testing.T) {
	s := newStory(t, []string{"vision"}, nil)
	s.push("vision", "main", map[string]string{"intents/vision/old.yaml": intent("vision", "old", 1)})
	var lines logtest.Lines
	s.set.opts.Log = lines.Logger()
	if err := os.Remove(filepath.Join(s.creds, "vision", "forge-token")); err != nil {
		t.Fatal(err)
	}
	s.run()
	s.rounds()
	for until := time.Now().Add(time.Minute); !strings.Contains(lines.String(), "forge-token"); <-time.After(20 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("the log does not name the file that is missing:\n%s", lines.String())
		}
	}
	lines.Wants(t, "FB1126")
	s.credential("vision", "forge-token", forgetest.Token)
	_, head := s.ask("vision", map[string]string{"intents/vision/new.yaml": intent("vision", "new", 4)}, false)
	s.set.Wake("vision")
	s.contains("status", s.await("vision", head, "success"), "1 place")
}
