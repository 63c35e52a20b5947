package reviews

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/forge/forgetest"
)

// A fork's pull request is planned only for the very head that a person with
// write access named; the next push needs it again.
func TestForkIsPlannedOnlyWhenItsHeadIsNamed(t *testing.T) {
	s := newStory(t)
	s.rounds()
	n := s.fake.Add(forgetest.Pull{Title: "Ask", Author: "mallory", Branch: "ask", Base: "main", Fork: true})
	push := func(gpus int) string {
		return s.head(n, map[string]string{"intents/vision/a1.yaml": intent("a1", gpus)})
	}
	planned := func(head string) bool {
		t.Helper()
		s.at = s.at.Add(time.Minute)
		if _, err := s.reviews.Pass(t.Context()); err != nil {
			t.Fatal(err)
		}
		list := s.fake.Statuses(head)
		if len(list) == 0 {
			t.Fatal("no status")
		}
		return list[len(list)-1].State != "pending"
	}
	first := push(1)
	for _, c := range []struct{ who, body string }{
		{"mallory", "/plan " + first}, {"grace", "please do not /plan " + first}, {"grace", "/plan"}, {"grace", "/plan " + first[:12]}, {"grace", "/plan " + strings.Repeat("0", 40)},
	} {
		s.fake.Say(n, c.who, c.body)
		if planned(first) {
			t.Fatalf("planned after %q by %s", c.body, c.who)
		}
	}
	s.fake.Say(n, "grace", "/plan "+first)
	if !planned(first) {
		t.Error("not planned though the head was named")
	}
	second := push(2)
	if planned(second) {
		t.Error("the next push was planned too")
	}
	s.fake.Say(n, "grace", "/plan "+second)
	if !planned(second) {
		t.Error("the second head was not planned")
	}
}

// head puts a commit over main with files at the head of a pull request.
func (s *story) head(n int64, files map[string]string) string {
	s.t.Helper()
	head, err := s.remote.Rewrite(fmt.Sprintf("refs/pull/%d/head", n), s.remote.Head("main"), mallory, "ask\n", puts(files))
	if err != nil {
		s.t.Fatal(err)
	}
	s.fake.Change(n, func(p *forgetest.Pull) { p.Head = head.String() })
	return head.String()
}

// A comment that comes in between two looks is read when the forge may be asked
// next, not at the next poll; and one fork whose comments cannot be read keeps no
// other pull request waiting.
func TestForksWaitForWhatTheForgeBears(t *testing.T) {
	s := newStory(t)
	s.rounds()
	s.reviews.opts.Poll = 10 * time.Minute
	pass := func() time.Duration {
		t.Helper()
		next, err := s.reviews.Pass(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return next
	}
	n := s.fake.Add(forgetest.Pull{Author: "mallory", Branch: "ask", Base: "main", Fork: true})
	first := s.head(n, map[string]string{"intents/vision/a1.yaml": intent("a1", 1)})
	pass()
	before := s.fake.Requests()
	s.fake.Say(n, "grace", "/plan "+first)
	next := pass()
	if got := s.fake.Requests() - before; got != 1 || next <= 0 || next > time.Minute {
		t.Errorf("%d requests, and the next look in %s: want the list alone, and a look within a minute", got, next)
	}
	s.at = s.at.Add(next)
	pass()
	if list := s.fake.Statuses(first); list[len(list)-1].State != "success" {
		t.Errorf("not planned at that look: %v", list)
	}

	crowded := s.fake.Add(forgetest.Pull{Author: "mallory", Branch: "crowded", Base: "main", Fork: true})
	second := s.head(crowded, map[string]string{"intents/vision/a2.yaml": intent("a2", 1)})
	s.fake.Fault(func(w http.ResponseWriter, r *http.Request) bool {
		fails := r.Method == http.MethodGet && strings.Contains(r.URL.Path, fmt.Sprintf("/%d/", crowded)) // its comments
		if fails {
			w.WriteHeader(http.StatusConflict)
		}
		return fails
	})
	third := s.ask(map[string]string{"intents/vision/a3.yaml": intent("a3", 1)})
	s.at = s.at.Add(time.Minute)
	pass()
	if list := s.fake.Statuses(second); len(list) != 1 || !strings.HasPrefix(list[0].Description, "its comments cannot be asked for; fork: planned once") {
		t.Errorf("the crowded one: %v", list)
	}
	s.expect(third, "pending success", "1 place")
}

// Who opens hundreds of pull requests from forks and pushes to all of them again and again
// has the forge asked as little as few would, and others do not wait for them: those of the
// repository's own branches come first, and of the forks those whose author has fewest.
func TestForksCrowdNobodyOut(t *testing.T) {
	s := newStory(t)
	s.rounds()
	const forks = 300
	var numbers []int64
	for i := range forks {
		numbers = append(numbers, s.fake.Add(forgetest.Pull{Author: "mallory", Branch: fmt.Sprintf("b%d", i), Base: "main", Fork: true}))
	}
	push := func(turn int) {
		for i, n := range numbers {
			s.fake.Change(n, func(p *forgetest.Pull) { p.Head = fmt.Sprintf("%040x", turn*forks+i+1) })
		}
	}
	push(0)
	fork := s.fake.Add(forgetest.Pull{Author: "ada", Branch: "ask", Base: "main", Fork: true})
	named := s.head(fork, map[string]string{"intents/vision/a1.yaml": intent("a1", 1)})
	s.fake.Say(fork, "grace", "/plan "+named)
	own := s.fake.Add(forgetest.Pull{Author: "ada", Branch: "own", Base: "main"})
	s.head(own, map[string]string{"intents/vision/a2.yaml": intent("a2", 1)})

	before := s.fake.Requests()
	if _, err := s.reviews.Pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.expect(own, "pending success", "1 place")
	if list := s.fake.Statuses(named); len(list) == 0 || list[len(list)-1].State != "success" {
		t.Errorf("the fork whose head was named: %v", list)
	}
	first := s.fake.Requests() - before
	for turn := range 5 {
		push(turn + 1)
		s.at = s.at.Add(10 * time.Second)
		if _, err := s.reviews.Pass(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	lists := (forks + 2 + 1) / 2 // pages of two
	if later := s.fake.Requests() - before - first; first > lists+150 || later > 5*lists+60 {
		t.Errorf("the first look took %d requests, five more %d; of those %d are for a list of pull requests", first, later, lists)
	}
}
