package reviews

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/forge"
	"github.com/fleetbroker/fleetbroker/internal/forge/forges"
	"github.com/fleetbroker/fleetbroker/internal/forge/forgetest"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/memremote"
	"github.com/fleetbroker/fleetbroker/internal/market"
	"github.com/fleetbroker/fleetbroker/internal/reconciler"
	"github.com/fleetbroker/fleetbroker/internal/review"
)

// story is a daemon on a repository in memory and a faked forge beside it, with
// a clock that is moved by hand.
type story struct {
	t       *testing.T
	remote  *memremote.Remote
	fake    *forgetest.Fake
	repo    *gitrepo.Repo
	loop    *reconciler.Reconciler
	reviews *Reviews
	mute    bool // another daemon posts
	at      time.Time
}

var (
	ada     = gitobj.Person{Name: "Ada L.", Email: "ada@example.org", When: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
	mallory = gitobj.Person{Name: "Mallory", Email: "mallory@example.org", When: ada.When}
)

const kind = "apiVersion: fleetbroker.io/v1alpha1\nkind: "

// ground is a fleet with eight GPUs at 2.50 EUR/h and a tenant that may spend
// 25.
var ground = map[string]string{
	"fleet.yaml":              kind + "Fleet\nmetadata: {name: acme}\nspec:\n  writeBack: {inputs: main, branch: ledger, author: {name: fleetbroker, email: broker@example.org}}\n",
	"clusters/rome.yaml":      kind + "Cluster\nmetadata: {name: rome}\nspec: {roles: [consumer], access: {kubeconfigSecretRef: {name: rome-kubeconfig, key: kubeconfig}}}\n",
	"clusters/paris.yaml":     kind + "Cluster\nmetadata: {name: paris}\nspec: {roles: [provider]}\n",
	"tenants/vision.yaml":     kind + "Tenant\nmetadata: {name: vision}\nspec: {consumers: [rome], budget: {hourly: \"25\", currency: EUR}}\n",
	"flavors/paris/h100.yaml": kind + "Flavor\nmetadata: {name: h100, namespace: paris}\nspec:\n  capacity: {cpu: \"64\", memory: 512Gi, gpu: 8}\n  gpu: {vendor: nvidia, model: nvidia-h100, memory: 80Gi, resourceName: nvidia.com/gpu}\n  price: {currency: EUR, perHour: {gpu: \"2.50\"}}\n",
}

func intent(name string, gpus int) string {
	return kind + fmt.Sprintf("ResourceIntent\nmetadata: {name: %s, namespace: vision}\nspec:\n  resources: {cpu: \"4\", memory: 16Gi, pods: \"4\", gpu: \"H100:%d\"}\n", name, gpus)
}

func newStory(t *testing.T) *story {
	t.Helper()
	s := &story{t: t, remote: memremote.New(), fake: forgetest.GitHub(t), at: ada.When.Add(time.Minute)}
	s.fake.Writer("grace")
	s.push(ground)
	s.daemon("ledger")
	return s
}

// daemon makes one that writes a branch, and knows nothing yet.
func (s *story) daemon(ledger string) {
	s.t.Helper()
	now := func() time.Time { return s.at }
	var err error
	s.repo, err = gitrepo.Open(s.t.Context(), s.remote, gitrepo.Options{
		Inputs: "main", Ledger: ledger, Now: now, Sleep: func(context.Context, time.Duration) error { return nil },
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.loop = reconciler.New(reconciler.Options{Repo: s.repo, Ledger: ledger, Market: market.New(market.Options{Now: now}), Now: now, PullRequests: s.client()})
	s.start()
}

// start makes the part under test anew, as after a restart.
func (s *story) start() {
	s.t.Helper()
	s.reviews = New(Options{Forge: s.client(), Repo: s.repo, View: s.loop.View, Branch: "main", Now: func() time.Time { return s.at }, Speaks: func() bool { return !s.mute }})
}

func (s *story) client() forge.Forge {
	s.t.Helper()
	token := filepath.Join(s.t.TempDir(), "token")
	if err := os.WriteFile(token, []byte(forgetest.Token), 0o600); err != nil {
		s.t.Fatal(err)
	}
	f, err := forges.Open(forge.Config{Kind: forge.GitHub, URL: s.fake.URL, Repo: "acme/fleet", TokenFile: token}, "")
	if err != nil {
		s.t.Fatal(err)
	}
	return f
}

func puts(files map[string]string) gitobj.Change {
	c := gitobj.Change{Puts: map[string][]byte{}}
	for name, content := range files {
		c.Puts[name] = []byte(content)
	}
	return c
}

// push commits to main, and returns the commit before.
func (s *story) push(files map[string]string) (before tree.Hash) {
	s.t.Helper()
	before = s.remote.Head("main")
	if _, err := s.remote.Commit("main", ada, "Ask", puts(files)); err != nil {
		s.t.Fatal(err)
	}
	return before
}

// ask opens a pull request with these files over main.
func (s *story) ask(files map[string]string) int64 {
	s.t.Helper()
	n := s.fake.Add(forgetest.Pull{Title: "Ask", Author: "mallory", Branch: "ask", Base: "main", Fork: true})
	s.change(n, files)
	return n
}

// change replaces what a pull request brings.
func (s *story) change(n int64, files map[string]string) {
	s.t.Helper()
	head, err := s.remote.Rewrite(fmt.Sprintf("refs/pull/%d/head", n), s.remote.Head("main"), mallory, "ask\n", puts(files))
	if err != nil {
		s.t.Fatal(err)
	}
	s.fake.Change(n, func(p *forgetest.Pull) { p.Head = head.String() })
	s.fake.Say(n, "grace", "/plan "+head.String()+"\nLooks harmless.")
}

// merge puts a pull request's files on main.
func (s *story) merge(n int64, files map[string]string) {
	s.t.Helper()
	s.push(files)
	s.fake.Change(n, func(p *forgetest.Pull) { p.Merged, p.MergeCommit = true, s.remote.Head("main").String() })
}

// rounds lets the daemon come to rest, some minutes later.
func (s *story) rounds() {
	s.t.Helper()
	for range 20 {
		s.at = s.at.Add(time.Minute)
		s.loop.Reread()
		o, err := s.loop.Round(s.t.Context())
		if err != nil {
			s.t.Fatal(err)
		}
		if len(o.Committed) == 0 && !o.Again {
			return
		}
	}
	s.t.Fatal("the reconciler does not come to rest")
}

func (s *story) pass() {
	s.t.Helper()
	if _, err := s.reviews.Pass(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

// comment is our only one with a marker; "" is none.
func (s *story) comment(n int64, marker string) string {
	s.t.Helper()
	found := ""
	for _, c := range s.fake.Comments(n, false) {
		if strings.HasPrefix(c.Body, marker) {
			if found != "" {
				s.t.Errorf("pull request %d has two comments with %s", n, marker)
			}
			found = c.Body
		}
	}
	return found
}

// states are the statuses of a pull request's head, in order.
func (s *story) states(n int64) (states []string, newest string) {
	head := ""
	s.fake.Change(n, func(p *forgetest.Pull) { head = p.Head })
	for _, st := range s.fake.Statuses(head) {
		if st.Context != Check {
			s.t.Errorf("a status is called %q", st.Context)
		}
		states, newest = append(states, st.State), st.Description
	}
	return states, newest
}

func (s *story) expect(n int64, states, description string, comment ...string) {
	s.t.Helper()
	got, newest := s.states(n)
	if strings.Join(got, " ") != states || !strings.Contains(newest, description) {
		s.t.Errorf("pull request %d: statuses %q, the last %q; want %q with %q", n, got, newest, states, description)
	}
	text := s.comment(n, marker)
	for _, want := range comment {
		if !strings.Contains(text, want) {
			s.t.Errorf("pull request %d: no %q in the comment:\n%s", n, want, text)
		}
	}
}

func TestAPullRequestFromAskingToReserved(t *testing.T) {
	s := newStory(t)
	path := "intents/vision/a.yaml"
	n := s.ask(map[string]string{path: intent("a", 4)})
	s.pass()
	s.expect(n, "pending", "no plan yet: the daemon has just started")
	s.rounds()
	s.pass()
	s.expect(n, "pending pending success", "1 place (+10.00 EUR/h); at base "+s.remote.Head("main").Short(),
		"**Plan: 1 place (+10.00 EUR/h)**", "| + place | vision/a | paris/h100 -> rome | +10.00 |", "| vision | 0.00 | 10.00 | 0.00 | 7300.00 | 15.00 of 25.00 EUR/h |", "<details>",
		"; UNSIGNED: whoever may push gives rights and writes the ledger; market ")

	s.change(n, map[string]string{path: strings.Replace(intent("a", 4), "cpu:", "cpus:", 1)})
	s.pass()
	s.expect(n, "pending failure", "1 refuse, 1 problem", "| x refuse |", path+":5:15", "cpus")
	lines := s.fake.Comments(n, true)
	if len(lines) != 1 || lines[0].Path != path || lines[0].Line != 5 || !strings.Contains(lines[0].Body, "cpus") {
		t.Errorf("comments on lines: %+v", lines)
	}

	s.change(n, map[string]string{path: intent("a", 12)})
	s.pass()
	s.expect(n, "pending success", "1 queue", "? queue", "too few GPUs free", "**What would fit**", "vision/a would be placed with `resources.gpu.count: 8`")
	if lines := s.fake.Comments(n, true); len(lines) > 0 {
		t.Errorf("comments on lines of a problem that is mended: %+v", lines)
	}

	s.change(n, map[string]string{path: intent("a", 8)})
	s.pass()
	s.expect(n, "pending success", "1 place (+20.00 EUR/h)", "5.00 of 25.00 EUR/h")
	s.merge(n, map[string]string{path: intent("a", 8)})
	s.pass() // the round that reads the merge is still to come
	if got := s.comment(n, review.ReservedMarker); got != "" {
		t.Errorf("told before anything is reserved:\n%s", got)
	}
	s.rounds()
	s.pass()
	want := "| vision/a | `vision-a-0-"
	if got := s.comment(n, review.ReservedMarker); !strings.Contains(got, want) || !strings.Contains(got, "paris/h100 -> rome | 20.00 EUR") {
		t.Errorf("on the merged pull request: %q, want %q", got, want)
	}
	// A restart finds it again and writes nothing anew.
	before := len(s.fake.Comments(n, false))
	s.start()
	s.pass()
	if after := len(s.fake.Comments(n, false)); after != before || len(s.reviews.merged) != 0 {
		t.Errorf("%d comments after a restart, before %d", after, before)
	}
}

func TestMergedWhileNoDaemonRan(t *testing.T) {
	s := newStory(t)
	files := map[string]string{"intents/vision/a.yaml": intent("a", 4)}
	n := s.ask(files)
	s.merge(n, files)
	s.rounds()
	s.pass()
	if got := s.comment(n, review.ReservedMarker); !strings.Contains(got, "vision-a-0-") {
		t.Errorf("got %q", got)
	}
}

// One that is opened and merged between two looks was never planned.
func TestMergedBeforeItWasSeen(t *testing.T) {
	s := newStory(t)
	s.rounds()
	s.pass()
	files := map[string]string{"intents/vision/a.yaml": intent("a", 4)}
	n := s.ask(files)
	s.merge(n, files)
	s.rounds()
	s.pass()
	if got := s.comment(n, review.ReservedMarker); !strings.Contains(got, "vision-a-0-") {
		t.Errorf("got %q", got)
	}
}

// Of several daemons one posts; who takes over finds what the other has posted.
func TestOneOfSeveralPosts(t *testing.T) {
	s := newStory(t)
	s.rounds()
	files := map[string]string{"intents/vision/a.yaml": intent("a", 4)}
	n := s.ask(files)
	one := s.reviews
	s.mute = true
	before := s.fake.Requests()
	s.pass()
	if got := s.fake.Requests() - before; got != 0 {
		t.Errorf("one that does not speak asks the forge %d times", got)
	}
	s.mute = false
	s.pass()
	s.expect(n, "pending success", "1 place")
	s.start() // another one
	s.pass()
	s.comment(n, marker) // is one
	s.mute = true
	s.merge(n, files)
	s.rounds()
	s.pass()
	s.mute = false
	s.reviews = one
	s.pass()
	if got := s.comment(n, review.ReservedMarker); !strings.Contains(got, "vision-a-0-") {
		t.Errorf("got %q", got)
	}
}

func TestTwoWantTheLastGPUs(t *testing.T) {
	s := newStory(t)
	s.rounds()
	one, two := map[string]string{"intents/vision/one.yaml": intent("one", 8)}, map[string]string{"intents/vision/two.yaml": intent("two", 6)}
	a, b := s.ask(one), s.ask(two)
	s.pass()
	s.expect(a, "pending success", "1 place")
	s.expect(b, "pending success", "1 place")
	s.merge(a, one)
	s.rounds()
	s.pass()
	s.expect(b, "pending success pending success", "1 queue", "? queue", "too few GPUs free")
	_, newest := s.states(b)
	if !strings.Contains(newest, s.remote.Head("main").Short()) {
		t.Errorf("the status does not name the base that it holds for: %q", newest)
	}
	if got := s.comment(b, marker); strings.Contains(got, "vision/one") {
		t.Errorf("what the other one did stands in this comment:\n%s", got)
	}
}

func TestPolicyIsTheBases(t *testing.T) {
	s := newStory(t)
	s.push(map[string]string{"flavors/paris/more.yaml": strings.NewReplacer("h100", "more", "H100", "more").Replace(strings.Replace(ground["flavors/paris/h100.yaml"], "gpu: 8", "gpu: 64", 1))})
	s.push(map[string]string{"flavors/paris/h100.yaml": strings.Replace(ground["flavors/paris/h100.yaml"], "gpu: 8", "gpu: 64", 1)})
	s.rounds()
	files := map[string]string{"intents/vision/a.yaml": intent("a", 16) + "  queue: {policy: fail}\n", "tenants/vision.yaml": strings.Replace(ground["tenants/vision.yaml"], `"25"`, `"4000"`, 1)}
	n := s.ask(files)
	s.pass()
	s.expect(n, "pending failure", "1 refuse", "x refuse", "its tenant's hourly budget", "**Policy changes:** `tenants/vision.yaml`", "By its own policy, once merged, these are planned otherwise: 1 place (+40.00 EUR/h)")
}

func TestWhatIsPostedRests(t *testing.T) {
	s := newStory(t)
	s.rounds()
	n := s.ask(map[string]string{"intents/vision/a.yaml": intent("a", 4)})
	s.pass()
	before := s.fake.Requests()
	for range 5 {
		s.pass()
	}
	if got := s.fake.Requests() - before; got != 5 { // one list each
		t.Errorf("%d requests in five passes without news, want 5", got)
	}
	// The base moves, within the same minute: pending at once, as it holds no more.
	s.push(map[string]string{"intents/vision/b.yaml": intent("b", 1)})
	s.loop.Reread()
	if _, err := s.loop.Round(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.pass()
	s.expect(n, "pending success pending success", "1 place")
	// Another view of the same base does not change the plan, and posts nothing.
	s.rounds()
	before = s.fake.Requests()
	s.pass()
	if got := s.fake.Requests() - before; got != 1 {
		t.Errorf("%d requests for a plan that stays as it was, want the list alone", got)
	}
	// An outage of the forge is survived.
	s.fake.Fault(func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusNotImplemented)
		return true
	})
	if _, err := s.reviews.Pass(t.Context()); err == nil {
		t.Error("an outage passes for a look")
	}
	s.fake.Fault(nil)
	s.pass()
}

func TestHostilePullRequests(t *testing.T) {
	many := map[string]string{}
	for i := range 10_000 {
		many[fmt.Sprintf("intents/vision/%d.yaml", i)] = "x"
	}
	bomb := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'k'; c++ {
		bomb += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat("*"+string(c-1)+",", 9), ","))
	}
	for name, c := range map[string]struct {
		files       map[string]string
		description string
		comment     string
	}{
		"10,000 files":         {many, "no plan: broken tree", "entries more than the inputs, at most 2000 are read"},
		"a YAML bomb":          {map[string]string{"intents/vision/bomb.yaml": bomb}, "refuse, 1 problem", "intents/vision/bomb.yaml:"},
		"a generated file":     {map[string]string{"contracts/vision/aa/a/vision-a-0-aaaaaaaa.yaml": kind + "Contract\n"}, "1 problem", "written by fleetbroker alone"},
		"another's Secret":     {map[string]string{"clusters/evil.yaml": kind + "Cluster\nmetadata: {name: evil}\nspec: {roles: [consumer], access: {kubeconfigSecretRef: {name: rome-kubeconfig, key: kubeconfig}}}\n"}, "1 problem", "is that of cluster rome"},
		"a remote base":        {map[string]string{"intents/vision/k/kustomization.yaml": "resources: [https://example.org/evil.git]\n"}, "refuse, 2 problems", "intents/vision/k/"},
		"a base of another":    {map[string]string{"intents/vision/k/kustomization.yaml": "resources: [../../other/secret.yaml]\n"}, "refuse, 1 problem", "intents/vision/k/"},
		"markup and a mention": {map[string]string{"intents/vision/x.yaml": kind + "ResourceIntent\nmetadata: {name: x, namespace: vision}\nspec: {consumer: \"<img src=x> @everyone | **b**\", resources: {cpu: \"1\", memory: 1Gi}}\n"}, "refuse", "&lt;img src=x> @\u200deveryone"},
		"nothing it reads":     {map[string]string{"README.md": "hello"}, "changes nothing that is planned", "it changes nothing that fleetbroker reads"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			s.push(map[string]string{"intents/vision/mine.yaml": intent("mine", 2)})
			s.rounds()
			heads := maps.Clone(s.remote.AllRefs())
			n := s.ask(c.files)
			s.pass()
			verdict := "failure"
			if name == "nothing it reads" {
				verdict = "success"
			}
			s.expect(n, "pending "+verdict, c.description, c.comment)
			for ref, h := range heads {
				if s.remote.AllRefs()[ref] != h {
					t.Errorf("%s moved", ref)
				}
			}
			s.rounds()
			if v := s.loop.View(); v.Trouble != "" || v.Contracts.Held() != 1 {
				t.Errorf("the daemon is in trouble %q, or holds %d contracts", v.Trouble, v.Contracts.Held())
			}
		})
	}
}

func TestConflictsAreSaid(t *testing.T) {
	s := newStory(t)
	s.push(map[string]string{"intents/vision/a.yaml": intent("a", 1)})
	s.rounds()
	n := s.ask(map[string]string{"intents/vision/a.yaml": intent("a", 2)})
	s.push(map[string]string{"intents/vision/a.yaml": intent("a", 3)})
	s.rounds()
	s.pass()
	s.expect(n, "pending failure", "1 file was changed since on main as well", "intents/vision/a.yaml", "merge or rebase")
}

func TestDeletingIsPlanned(t *testing.T) {
	s := newStory(t)
	s.push(map[string]string{"intents/vision/a.yaml": intent("a", 4)})
	s.rounds()
	n := s.fake.Add(forgetest.Pull{Title: "Give up", Author: "ada", Branch: "ask", Base: "main"})
	head, err := s.remote.Rewrite("refs/pull/1/head", s.remote.Head("main"), ada, "give up\n", gitobj.Change{Deletes: []string{"intents/vision/a.yaml"}})
	if err != nil {
		t.Fatal(err)
	}
	s.fake.Change(n, func(p *forgetest.Pull) { p.Head = head.String() })
	s.pass()
	s.expect(n, "pending success", "1 release (-10.00 EUR/h)", "- release", "ada in pull request 1")
}
