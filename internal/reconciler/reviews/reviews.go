package reviews

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/fleetbroker/fleetbroker/internal/api/child"
	"github.com/fleetbroker/fleetbroker/internal/api/escape"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/forge"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/ancestry"
	"github.com/fleetbroker/fleetbroker/internal/reconciler"
	"github.com/fleetbroker/fleetbroker/internal/review"
)

// Check is the name of the status; branch protection requires it by this.
const Check = "fleetbroker/plan"

// Repo is what is read of the fleet repo.
type Repo interface {
	Side(ctx context.Context, ref string, onto tree.Hash, bounds gitrepo.SideBounds) (gitrepo.Side, error)
	Tree(commit tree.Hash) (tree.Tree, error)
	Said(commit tree.Hash) (tree.Tree, error)
	Vetter() *tree.Vetter
	Graph() *ancestry.Graph
	Info(commit tree.Hash) (gitrepo.Commit, error)
	Offered() (gitrepo.Commit, error)
}

// Options are what it works with.
type Options struct {
	Forge forge.Forge
	Repo  Repo
	// View is the reconciler's newest.
	View func() *reconciler.View
	// Branch of the inputs, into which pull requests go.
	Branch string
	// Source is the repository of a tenant whose pull requests these are; nil: the fleet
	// repo's.
	Source Source
	// Common is what the reviews of several repositories share; nil: these are the only
	// ones.
	Common *Common
	// Poll is how often the forge is asked when nobody wakes us. Default 30 s.
	Poll time.Duration
	// Refresh is how often what is posted for one head changes at most. Default
	// one minute.
	Refresh time.Duration
	// Speaks reports whether this daemon is the one of several that posts; nil
	// always is.
	Speaks func() bool
	// Now is the clock. Default the real one.
	Now func() time.Time
	Log *slog.Logger
}

// Reviews looks after the pull requests of one repository.
type Reviews struct {
	*Common

	opts   Options
	wake   chan struct{}
	open   map[int64]*entry
	merged map[int64]*merged
	looked tree.Hash     // the inputs up to which merged pull requests were looked for
	asking *rate.Limiter // of requests for forks
}

// Common is what the reviews of several repositories share, so that many cost what one
// costs: a reader, a base, and a child process. One pull request is planned at a time.
type Common struct {
	// planning is held while anything is read or planned, and while no forge and no git
	// server is waited for.
	planning sync.Mutex

	repo   Repo
	reader *fleet.Reader
	base   *base
	trials *child.Parent
	bounds child.Bounds // of a trial
}

// NewCommon makes what reviews on one fleet repo share.
func NewCommon(repo Repo) *Common {
	return &Common{repo: repo, reader: fleet.NewReader(), trials: &child.Parent{Name: trialName}, bounds: forkBounds}
}

// entry is what is known of an open pull request.
type entry struct {
	pr      forge.PullRequest
	told    told
	view    *reconciler.View // it was planned with
	at      time.Time        // when
	result  review.Result
	status  forge.Status
	named   string    // the head of a fork that a person with write access named
	looked  string    // the head for which comments were looked at last
	asks    time.Time // when they may be looked at next
	unasked string    // why that failed
	tried   tried     // what came of reading and planning it alone
}

// told is what a status is bound to, but for the plan.
type told struct {
	head   string
	inputs tree.Hash
	// copied is the commit of the source's copy, zero for the fleet repo's.
	copied tree.Hash
}

// New makes one that has seen nothing yet.
func New(o Options) *Reviews {
	if o.Poll <= 0 {
		o.Poll = 30 * time.Second
	}
	if o.Refresh <= 0 {
		o.Refresh = time.Minute
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Common == nil {
		o.Common = NewCommon(o.Repo)
	}
	r := &Reviews{Common: o.Common, opts: o, wake: make(chan struct{}, 1), asking: rate.NewLimiter(rate.Every(eachRequest), atOnce)}
	r.forget()
	return r
}

// forget makes it know no more than after a start.
func (r *Reviews) forget() {
	r.open, r.merged, r.looked = map[int64]*entry{}, map[int64]*merged{}, tree.Hash{}
}

// Wake asks for a look at the forge now: a webhook came.
func (r *Reviews) Wake() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Run looks at the forge until the context ends.
func (r *Reviews) Run(ctx context.Context) error {
	failures := 0
	for {
		wait, seen := r.opts.Poll, r.opts.View()
		if next, err := r.Pass(ctx); err != nil {
			failures++
			wait = min(time.Second<<min(failures, 6), time.Minute)
			var limited *forge.Limited
			if errors.As(err, &limited) {
				wait = max(limited.Until.Sub(r.opts.Now()), time.Second)
			}
			if ctx.Err() == nil {
				r.opts.Log.Warn("pull requests are not looked after", "error", err, "retryIn", wait)
			}
		} else {
			failures, wait = 0, min(wait, next)
		}
		if !r.sleep(ctx, wait, seen) {
			return nil
		}
	}
}

// sleep waits for a call, for as long as said, or until the rounds have come
// further than what was seen, which is looked at as often as news of the market
// are planned with.
func (r *Reviews) sleep(ctx context.Context, wait time.Duration, seen *reconciler.View) bool {
	t := time.NewTimer(wait)
	defer t.Stop()
	every := soon
	if r.opts.Source != nil {
		every = later
	}
	news := time.NewTicker(every)
	defer news.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-r.wake:
			return true
		case <-t.C:
			return true
		case <-news.C:
			if r.opts.View() != seen {
				return true
			}
		}
	}
}

// soon is when to look again at what was put off, or waits for the next round.
const soon = 2 * time.Second

// later is how often what was put off, or news of the rounds, leads to a look at the forge
// of a source: there may be many, and one that is frozen is put off for as long as it is.
const later = 10 * time.Second

// Pass looks at all pull requests once, and says when to look again at the
// latest. One that fails does not keep the others from being looked at.
func (r *Reviews) Pass(ctx context.Context) (next time.Duration, err error) {
	next, err = r.pass(ctx)
	if r.opts.Source != nil {
		next = max(next, min(later, r.opts.Poll))
	}
	return next, err
}

func (r *Reviews) pass(ctx context.Context) (next time.Duration, err error) {
	next = r.opts.Poll
	if r.opts.Speaks != nil && !r.opts.Speaks() {
		r.forget() // another one posts, and what we know grows old
		return soon, nil
	}
	list, err := r.opts.Forge.Open(ctx, r.opts.Branch)
	if err != nil {
		return next, err
	}
	r.inTurn(list)
	view := r.opts.View()
	var errs []error
	here := map[int64]bool{}
	for _, pr := range list {
		here[pr.Number] = true
		again, err := r.look(ctx, view, pr)
		if ctx.Err() != nil {
			return next, ctx.Err()
		}
		var limited *forge.Limited
		if errors.As(err, &limited) {
			return next, err
		}
		if err != nil {
			errs = append(errs, err)
		}
		next = min(next, again)
	}
	for number, e := range r.open {
		if !here[number] {
			if err := r.gone(ctx, e); err != nil {
				errs = append(errs, err)
			}
		}
	}
	again, err := r.follow(ctx, view)
	return min(next, again), errors.Join(append(errs, err)...)
}

// look brings what is posted for one pull request up to date, if it is not.
func (r *Reviews) look(ctx context.Context, view *reconciler.View, pr forge.PullRequest) (next time.Duration, err error) {
	e := r.open[pr.Number]
	if e == nil {
		e = &entry{}
		r.open[pr.Number] = e
	}
	e.pr = pr
	if r.opts.Source == nil && pr.HeadBranch == gitrepo.OfferBranch && !pr.Fork {
		return r.opts.Poll, r.own(ctx, e)
	}
	why, at := unready(view), view.Inputs
	if why == "" && r.opts.Source != nil {
		if at = r.copied(view); at.IsZero() {
			why = "nothing of this repository is acted on yet" + because(r.opts.Source.Frozen())
		}
	}
	if why != "" {
		return soon, r.pend(ctx, e, "no plan yet: "+why)
	}
	if ok, again, err := r.admitted(ctx, e); !ok || err != nil {
		return again, err
	}
	b, err := r.baseOf(ctx, view)
	if err != nil {
		return soon, err
	}
	now := told{head: pr.Head, inputs: b.inputs.Root}
	if r.opts.Source != nil {
		now.copied = at
	}
	fresh := e.told != now
	if !fresh && e.view == view {
		return r.opts.Poll, nil
	}
	if wait := e.at.Add(r.opts.Refresh).Sub(r.opts.Now()); !fresh && wait > 0 {
		return wait, nil
	}
	if fresh {
		if err := r.pend(ctx, e, "planning at base "+at.Short()); err != nil {
			return soon, err
		}
	}
	result, err := r.plan(ctx, view, b, e)
	if errors.Is(err, errMoved) {
		return soon, nil // the forge and its git do not agree yet
	}
	if err != nil {
		_ = r.status(ctx, e, forge.Status{Context: Check, State: forge.Broken, Description: "no plan could be made: " + err.Error()})
		return soon, err
	}
	if err := r.post(ctx, e, result, fresh); err != nil {
		return soon, err
	}
	e.told, e.view, e.at, e.result = now, view, r.opts.Now(), result
	return r.opts.Poll, nil
}

// unready is why no plan can be made now, "" when one can.
func unready(v *reconciler.View) string {
	switch {
	case v.Fleet == nil || v.Plan == nil:
		return "the daemon has just started"
	case v.Stopped:
		return "the history was rewritten, and an operator must accept it"
	case v.Trouble != "":
		return "the daemon is in trouble"
	case v.Deaf:
		return "fewer than half of the providers report"
	}
	return ""
}

// post says the result: comment and lines first, the status last.
func (r *Reviews) post(ctx context.Context, e *entry, result review.Result, fresh bool) error {
	if !fresh && result.Digest == e.result.Digest {
		return nil
	}
	if _, err := r.opts.Forge.Comment(ctx, e.pr.Number, marker, result.Comment); err != nil {
		return err
	}
	var lines []forge.LineComment
	for _, p := range result.Lines {
		if p.File != "" && p.Line > 0 {
			lines = append(lines, forge.LineComment{Path: p.File, Line: p.Line, Body: escape.Markdown(p.Message)})
		}
	}
	if len(lines) > 0 || len(e.result.Lines) > 0 || e.at.IsZero() {
		if left, err := r.opts.Forge.Annotate(ctx, e.pr, lines); err != nil {
			// They stand in the comment too, and the status must not wait for them.
			r.opts.Log.Warn("problems could not be put next to their lines", "pullRequest", e.pr.Number, "error", err)
		} else if left > 0 {
			r.opts.Log.Debug("problems outside of the diff are in the comment alone", "pullRequest", e.pr.Number, "problems", left)
		}
	}
	state := forge.Failed
	if result.Verdict == review.Passed {
		state = forge.Success
	}
	if err := r.status(ctx, e, forge.Status{Context: Check, State: state, Description: result.Summary, URL: e.pr.URL}); err != nil {
		return err
	}
	r.opts.Log.Info("planned a pull request", "pullRequest", e.pr.Number, "head", e.pr.Head, "result", result.Summary)
	return nil
}

// pend puts the status on pending.
func (r *Reviews) pend(ctx context.Context, e *entry, why string) error {
	e.told = told{} // whatever was said is not said any more
	return r.status(ctx, e, forge.Status{Context: Check, State: forge.Pending, Description: why})
}

// status sets a status of the head, unless it stands there.
func (r *Reviews) status(ctx context.Context, e *entry, s forge.Status) error {
	s.Description = forge.Cut(s.Description, forge.MaxDescription)
	bound := s
	bound.URL = e.pr.Head // a status belongs to its commit
	if e.status == bound {
		return nil
	}
	if err := r.opts.Forge.SetStatus(ctx, e.pr.Head, s); err != nil {
		return err
	}
	e.status = bound
	return nil
}
