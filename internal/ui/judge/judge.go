package judge

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/audit"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
)

// Repo is the history that is judged. *gitrepo.Repo is one.
type Repo interface {
	Tree(commit tree.Hash) (tree.Tree, error)
	RawCommit(h tree.Hash) ([]byte, error)
	// Offered is the commit that waits for review, zero for none.
	Offered() (gitrepo.Commit, error)
}

const (
	// runFor bounds a run, which is for what hangs: a long ledger takes hours, at half a
	// processor. pause is how long there is none after one; after one that failed twice as
	// long as before, up to longest, and never less than the run took.
	runFor  = 24 * time.Hour
	pause   = time.Minute
	longest = time.Hour
	// most is how many violations are kept.
	most = 1000
)

// Options of a Judge.
type Options struct {
	Repo Repo
	// Base of each run: the root of trust.
	Base audit.Options
	Now  func() time.Time
	Log  *slog.Logger
	// Done is called after a run; may be nil.
	Done func()
}

// Judge judges.
type Judge struct {
	opts Options

	mu        sync.Mutex
	running   bool
	done, all int
	ended     time.Time
	rest      time.Duration // until the next run
	state     State
}

// State is what is known.
type State struct {
	// Head is the newest commit that was judged, From the one that was taken as it stands
	// (zero: the first was judged too); zero before the first run.
	Head, From tree.Hash
	// At is when the last run ended.
	At time.Time
	// Running: a run is under way; Done are the commits that it has judged, of All.
	Running   bool
	Done, All int
	// Commits that were judged, Decisions those of them that changed the ledger, Unsigned
	// those that are taken for the daemon's without a signature.
	Commits, Decisions, Unsigned int
	// Signers of them.
	Signers []string
	// Violations by commit.
	Violations map[string][]audit.Violation
	// Notes are what was not judged, and why.
	Notes []audit.Note
	// Trouble is why the last run did not end.
	Trouble string
}

// New makes a judge.
func New(o Options) *Judge { return &Judge{opts: o} }

// Of is what is known of a ledger, and has the rest of it judged. window is its newest
// commits, newest first, as far as anybody looks; whole says that they are all.
func (j *Judge) Of(ctx context.Context, branch string, ledger, inputs tree.Hash, window []tree.Hash, whole bool) State {
	j.mu.Lock()
	defer j.mu.Unlock()
	now := j.opts.Now()
	if !j.running && len(window) > 0 && j.state.Head != ledger && (j.ended.IsZero() || now.Sub(j.ended) >= j.rest || now.Before(j.ended)) {
		from := tree.Hash{}
		restart := j.state.Head.IsZero() || !slices.Contains(window, j.state.Head)
		switch {
		case !restart:
			from = j.state.Head
		case !whole:
			from = window[len(window)-1]
		}
		o := j.opts.Base
		o.Ledger, o.Inputs, o.From, o.Branch, o.All = ledger, inputs, from, branch, true
		j.running, j.done, j.all = true, 0, 0
		go j.run(context.WithoutCancel(ctx), o, restart)
	}
	s := j.state
	s.Running, s.Done, s.All = j.running, j.done, j.all
	return s
}

// history is a repository as the audit reads it.
type history struct {
	tree.Store
	repo Repo
}

// Commit implements audit.History.
func (h history) Commit(at tree.Hash) ([]byte, error) {
	return h.repo.RawCommit(at) //nolint:wrapcheck // names the commit
}

// progress notes how far a run is. It rests for as long as a commit took, so that the run
// takes half a processor at most.
func (j *Judge) progress(ctx context.Context) func(done, all int) {
	last := time.Now()
	return func(done, all int) {
		j.mu.Lock()
		j.done, j.all = done, all
		j.mu.Unlock()
		rest := time.NewTimer(min(time.Since(last), time.Second))
		select {
		case <-ctx.Done():
		case <-rest.C:
		}
		rest.Stop()
		last = time.Now()
	}
}

// run judges what is new. A mistake of the audit's costs its page and never the daemon.
func (j *Judge) run(ctx context.Context, o audit.Options, restart bool) {
	began := time.Now()
	report, err := j.verify(ctx, o)
	j.mu.Lock()
	j.running, j.ended = false, j.opts.Now()
	if err == nil {
		j.rest = 0
	}
	j.rest = max(min(2*j.rest, longest), pause, min(time.Since(began), longest))
	j.state.At = j.ended
	if err != nil {
		j.opts.Log.Warn("the ledger cannot be audited for the dashboard", "error", err)
		j.state = State{At: j.ended, Trouble: err.Error()} // from the window's end next time
	} else {
		if restart {
			j.state = State{At: j.ended, From: o.From, Violations: map[string][]audit.Violation{}}
		}
		j.state.take(o.Ledger, &report)
	}
	j.mu.Unlock()
	if j.opts.Done != nil {
		j.opts.Done()
	}
}

func (j *Judge) verify(ctx context.Context, o audit.Options) (report audit.Report, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("audit the ledger: %v\n%s", p, debug.Stack())
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, runFor)
	defer cancel()
	o.Progress = j.progress(ctx) // the run's context: that of who asked ends with the answer
	t, err := j.opts.Repo.Tree(o.Ledger)
	if err != nil {
		return report, fmt.Errorf("audit the ledger: %w", err)
	}
	if offer, err := j.opts.Repo.Offered(); err == nil && !offer.IsZero() {
		o.Offers = []tree.Hash{offer.Hash}
	}
	report, err = audit.Verify(ctx, history{t.Store, j.opts.Repo}, o)
	if err != nil {
		return report, fmt.Errorf("audit the ledger: %w", err)
	}
	return report, nil
}

// take adds what a run found. Those who read a State share none of what changes.
func (s *State) take(head tree.Hash, r *audit.Report) {
	s.Head, s.Trouble = head, ""
	s.Commits, s.Decisions, s.Unsigned = s.Commits+r.Commits, s.Decisions+r.Decisions, s.Unsigned+r.Unsigned
	s.Signers, s.Notes = slices.Clone(s.Signers), slices.Clone(s.Notes)
	for _, by := range r.Signers {
		if name := by.Principal + " " + by.Key; !slices.Contains(s.Signers, name) {
			s.Signers = append(s.Signers, name)
		}
	}
	for _, n := range r.Notes {
		if len(s.Notes) < most {
			s.Notes = append(s.Notes, n)
		}
	}
	all, n := map[string][]audit.Violation{}, 0
	for commit, list := range s.Violations {
		all[commit] = list
		n += len(list)
	}
	for _, v := range r.Violations {
		if n++; n <= most {
			all[v.Commit] = append(slices.Clip(all[v.Commit]), v)
		} else if all[v.Commit] == nil {
			all[v.Commit] = []audit.Violation{{Commit: v.Commit, Rule: v.Rule, Message: "further violations are not kept"}}
		}
	}
	s.Violations = all
}
