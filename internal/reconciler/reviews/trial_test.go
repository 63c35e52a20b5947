package reviews

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/child"
	"github.com/fleetbroker/fleetbroker/test/bounded"
)

// many are intents of a fork, each with something more in its specification.
func many(n int, more string) map[string]string {
	files := map[string]string{}
	for i := range n {
		name := fmt.Sprintf("m%d", i)
		files["intents/vision/"+name+".yaml"] = intent(name, 1) + more
	}
	return files
}

// What a fork brings is counted, and a branch of the repository may bring more.
func TestForksHaveASmallBudget(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"files":    {many(501, ""), "it changes 501 files, and at most 500 are read of a fork"},
		"intents":  {many(201, ""), "it adds or changes 201 intents, and at most 200 are read of a fork"},
		"replicas": {many(2, "  replicas: 600\n"), "its intents ask for 1200 replicas, and at most 1000 are planned of a fork"},
		"a range":  {many(1, "  replicas: {min: 1, max: 2000}\n"), "its intents ask for 2000 replicas"},
		"a fork's": {many(150, ""), ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			s.push(map[string]string{"intents/vision/mine.yaml": intent("mine", 2)})
			s.rounds()
			n := s.ask(c.files)
			s.pass()
			got := s.comment(n, marker)
			if c.want == "" {
				if !strings.Contains(got, "**Plan: ") {
					t.Errorf("no plan: %s", got)
				}
				return
			}
			s.expect(n, "pending failure", "no plan: ", c.want, "split it")
		})
	}
}

// What kills the process in which it is tried, twice, is refused, and never read
// by the daemon; that another ends that process says nothing.
func TestForkThatKillsItsTrial(t *testing.T) {
	s := newStory(t)
	s.rounds()
	s.reviews.bounds = child.Bounds{Memory: 8 << 20, CPU: 1} // less than any work takes
	// More than fits into what a process has mapped before it is bound.
	large := map[string]string{}
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		large["intents/vision/"+name+".yaml"] = "# " + strings.Repeat("long ", 150_000) + "\n" + intent(name, 1)
	}
	n := s.ask(large)
	s.pass()
	s.expect(n, "pending failure", "no plan: ", "reading and planning its files alone failed twice", "a branch of this repository")
	// The same head on the same inputs is not tried again.
	s.reviews.bounds = forkBounds
	s.at = s.at.Add(2 * time.Minute)
	s.pass()
	s.expect(n, "pending failure", "no plan: ")
	// Another one is.
	s.change(n, map[string]string{"intents/vision/a.yaml": intent("a", 2)})
	s.at = s.at.Add(2 * time.Minute)
	s.pass()
	s.expect(n, "pending success", "1 place")
}

// What conditions cost counts as if all offers of the fleet were there.
func TestTrialCountsConditions(t *testing.T) {
	files := map[string][]byte{}
	for _, list := range []map[string]string{ground, many(2, "  placement: {where: 'flavor.name != \"x\"'}\n")} {
		for name, text := range list {
			files[name] = []byte(text)
		}
	}
	files["intents/vision/m1.yaml"] = []byte(strings.ReplaceAll(string(files["intents/vision/m1.yaml"]), `"x"`, `"y"`))
	s := newStory(t)
	s.rounds()
	tr := &trial{Now: s.loop.View().World.Now, Files: files, Offers: s.loop.View().World.Offers, Market: 1}
	if why, err := tr.run(); err != nil || why != "" {
		t.Errorf("on one offer: %q, %v", why, err)
	}
	tr.Market = forkConditions // each condition costs that and more
	if why, err := tr.run(); err != nil || !strings.Contains(why, "cost more than 1000000 units of work") {
		t.Errorf("on a million offers: %q, %v", why, err)
	}
}

// The daemon and the processes that it starts keep within memory and processor
// time, whatever a fork brings.
func TestHostileForksAreBounded(t *testing.T) {
	laughs := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'n'; c++ {
		laughs += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat("*"+string(c-1)+",", 9), ","))
	}
	patch := "resources: [a.yaml]\n" + bounded.Bomb("ConfigMap", "data")
	wide := map[string]string{}
	for i := range 450 {
		wide[fmt.Sprintf("intents/vision/w%d.yaml", i)] = "labels: {" + strings.Repeat(fmt.Sprintf("k%d: v, ", i), 1) + strings.Repeat("? [x] : [y], ", 1000) + "}\n"
	}
	for name, files := range map[string]map[string]string{
		"billion laughs": {"intents/vision/l.yaml": laughs},
		"patches that copy": {"intents/vision/k/kustomization.yaml": patch,
			"intents/vision/k/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {text: " + strings.Repeat("x", 1000) + "}\n"},
		"deep":  {"intents/vision/d.yaml": strings.Repeat("[", 200_000) + strings.Repeat("]", 200_000)},
		"wide":  wide,
		"plain": many(200, "  replicas: 5\n"),
	} {
		t.Run(name, func(t *testing.T) {
			bounded.Run(t, bounded.Bounds{CPU: 60 * time.Second, Memory: 512 << 20}, func(t *testing.T) {
				s := newStory(t)
				s.rounds()
				n := s.ask(files)
				s.pass()
				if states, said := s.states(n); len(states) != 2 || states[1] == "pending" {
					t.Errorf("statuses %v: %s", states, said)
				}
			})
		})
	}
}
