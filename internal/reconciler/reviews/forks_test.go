package reviews

import (
	"fmt"
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
	for range 30 {
		s.fake.Say(crowded, "mallory", "first")
	}
	third := s.ask(map[string]string{"intents/vision/a3.yaml": intent("a3", 1)})
	s.at = s.at.Add(time.Minute)
	pass()
	if list := s.fake.Statuses(second); len(list) != 1 || !strings.HasPrefix(list[0].Description, "its comments cannot be asked for; fork: planned once") {
		t.Errorf("the crowded one: %v", list)
	}
	s.expect(third, "pending success", "1 place")
}
