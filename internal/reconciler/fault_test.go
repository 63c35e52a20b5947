package reconciler

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/memremote"
)

// counted counts faults.
type counted struct {
	nobody
	faults int
}

func (c *counted) Forgot() { c.faults++ }

// emptyRepo is a repository without a commit.
func emptyRepo(t *testing.T) *gitrepo.Repo {
	t.Helper()
	repo, err := gitrepo.Open(t.Context(), memremote.New(), gitrepo.Options{Inputs: "main", Ledger: "main"})
	if err != nil {
		t.Fatal(err)
	}
	return repo
}

// Every fault of the planner's memory is counted, and one a minute logged.
func TestFaultsAreCountedAndLoggedOnceAMinute(t *testing.T) {
	var log bytes.Buffer
	seen, now := &counted{}, time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	r := New(Options{Repo: emptyRepo(t), Observer: seen, Now: func() time.Time { return now }, Log: slog.New(slog.NewTextHandler(&log, nil))})
	for range 4 {
		r.memory.Fault("index out of range in offersChanged")
		now = now.Add(25 * time.Second)
	}
	if lines := strings.Count(log.String(), "offersChanged"); lines != 2 || seen.faults != 4 {
		t.Errorf("4 faults in 75 s: counted %d, logged %d\n%s", seen.faults, lines, &log)
	}
}
