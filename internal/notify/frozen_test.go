package notify

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
)

// frozenAt is vision's intent, frozen since some time after noon and as it is
// told later.
func frozenAt(name string, since, told time.Duration) *v1alpha1.IntentState {
	s := state(v1alpha1.IntentPlaced, "", noon)
	s.Metadata.Name = name
	s.Status.Frozen = &v1alpha1.Frozen{Since: later(since), Told: later(told), Reason: "intents/vision/" + name + ".yaml:9:3: unknown field \"gpus\""}
	return s
}

func remembering(states ...*v1alpha1.IntentState) *ledger.Ledger {
	c := contract("a", "h100", 0)
	c.Spec.Term.End = v1alpha1.Time{}
	ch := ledger.Changes{Contracts: []model.Change{{After: c}}}
	for _, s := range states {
		ch.States = append(ch.States, model.StateChange{After: s})
	}
	return ledger.Empty().With(ch)
}

// A tenant hears at once that an intent is frozen, and then once a day, however
// many are; whoever was away for days hears it once.
func TestFrozen_IsToldOnceADay(t *testing.T) {
	const day = 24 * time.Hour
	sound := state(v1alpha1.IntentPlaced, "", noon)
	crowd := []*v1alpha1.IntentState{}
	for i := range 8 {
		crowd = append(crowd, frozenAt(fmt.Sprint("c", i), time.Hour, time.Hour))
	}
	for name, c := range map[string]struct {
		before, now *ledger.Ledger
		want        string
	}{
		"at once": {remembering(sound), remembering(frozenAt("llm", time.Hour, time.Hour)),
			`13:00 [frozen] vision/llm is frozen since 2026-11-20T13:00:00Z: intents/vision/llm.yaml:9:3: unknown field "gpus"; from 2026-11-21T13:00:00Z on what has no end counts as preemptible at priority 0. Contracts stay on their own terms; fix or delete the file`},
		"the same day": {remembering(frozenAt("llm", 0, 0)), remembering(frozenAt("llm", 0, 0)), ""},
		"a day later": {remembering(frozenAt("llm", 0, 0)), remembering(frozenAt("llm", 0, day)),
			`12:00 [frozen] vision/llm is frozen since 2026-11-20T12:00:00Z: intents/vision/llm.yaml:9:3: unknown field "gpus". Contracts stay on their own terms; fix or delete the file`},
		"after days away": {remembering(frozenAt("llm", 0, 0)), remembering(frozenAt("llm", 0, 5*day)), "12:00 [frozen] vision/llm is frozen since"},
		"another's day": {remembering(frozenAt("llm", 0, 0), frozenAt("b", time.Hour, time.Hour)),
			remembering(frozenAt("llm", 0, 0), frozenAt("b", time.Hour, day+time.Hour)), ""},
		"the tenant's day": {remembering(frozenAt("llm", 0, 0), frozenAt("b", time.Hour, time.Hour)),
			remembering(frozenAt("llm", 0, day), frozenAt("b", time.Hour, time.Hour)), "12:00 [frozen] vision has 2 intents that are frozen: llm since 2026-11-20T12:00:00Z"},
		"many":       {remembering(), remembering(crowd...), "13:00 [frozen] vision has 8 intents that are frozen: c0 since"},
		"read again": {remembering(frozenAt("llm", 0, 0)), remembering(sound), ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := lines(freezes("acme", c.before, c.now, 24*time.Hour))
			if (c.want == "") != (got == "") || !strings.HasPrefix(got, c.want) {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if name == "many" && !strings.Contains(got, "; and 3 more. ") {
				t.Error(got)
			}
		})
	}
}

// A restart tells what froze meanwhile and the day's notice that fell into it,
// and nothing twice.
func TestFrozen_SurvivesARestart(t *testing.T) {
	w, hook := newWorld(t), newReceiver(t)
	w.tell("vision", "events", hook.URL, "frozen")
	show := func(n *Notifier, k byte, l *ledger.Ledger) {
		s := w.at(k)
		s.Ledger, s.FrozenFor = l, 24*time.Hour
		w.history[s.Head] = l
		n.Observe(s)
	}
	sound, first, second := remembering(state(v1alpha1.IntentPlaced, "", noon)), remembering(frozenAt("llm", 0, 0)), remembering(frozenAt("llm", 0, 24*time.Hour))
	n, stop := w.start()
	show(n, 1, sound)
	show(n, 2, first)
	w.until("the freezing is told", func() bool { return w.count("sent") == 1 })
	stop()
	n, stop = w.start()
	show(n, 2, first)
	show(n, 3, second)
	w.until("the day's notice is told", func() bool { return w.count("sent") == 2 })
	stop()
	n, stop = w.start()
	show(n, 3, second)
	stop()
	if got := hook.got(); len(got) != 2 || !strings.Contains(got[0], "vision/llm is frozen since") || !strings.Contains(got[1], "vision/llm is frozen since") {
		t.Errorf("told %q", got)
	}
}
