package progress

import (
	"strings"
	"testing"
	"time"
)

// TestWaitIsNoDelayOfTheRemote: what waits within a push does not make the remote look
// away, or a replica would give its Lease up for keeping to a budget.
func TestWaitIsNoDelayOfTheRemote(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	w := New(func() time.Time { return now }, time.Minute)
	w.Answered(true)
	round := w.Doing("read and plan", false)
	push := w.Doing("push", true)
	now = now.Add(5 * time.Second)
	wait := w.Doing("wait", false)
	now = now.Add(40 * time.Second)
	if out := w.RemoteOut(); out != 0 {
		t.Errorf("while something waits, the remote is out for %s", out)
	}
	wait()
	if out := w.RemoteOut(); out != 5*time.Second {
		t.Errorf("after the wait the remote is out for %s, want the 5s of before", out)
	}
	now = now.Add(26 * time.Second)
	if late := w.Late(); !strings.Contains(late, "for 31s: push") {
		t.Errorf("a push that takes 31s beside its wait: %q", late)
	}
	push()
	if out := w.RemoteOut(); out != 0 {
		t.Errorf("after the push the remote is out for %s", out)
	}
	now = now.Add(2 * time.Minute)
	if late := w.Late(); !strings.Contains(late, "a round has been under way") {
		t.Errorf("a round of three minutes: %q", late)
	}
	round()
	if late := w.Late(); late != "" {
		t.Errorf("after the round: %q", late)
	}
}
