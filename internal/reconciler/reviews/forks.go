package reviews

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/forge"
)

// eachRequest is how much time there is on average between two requests for comments of
// forks and for what is said of them: anybody can open pull requests, push to them and write
// comments, and what a forge is asked is counted. atOnce is how many there may be at once.
const (
	eachRequest = 2 * time.Second
	atOnce      = 100
)

// inTurn puts the pull requests that are looked at first in front: the repository's own and
// forks that are named, then forks by how many of their author's there are, and who waits
// longest. It keeps the order of others.
func (r *Reviews) inTurn(list []forge.PullRequest) {
	strangers := map[string]int{}
	for i := range list {
		if list[i].Fork {
			strangers[list[i].Author]++
		}
	}
	type turn struct {
		many int
		asks time.Time
	}
	of := func(pr *forge.PullRequest) (t turn) {
		if e := r.open[pr.Number]; pr.Fork && (e == nil || e.named != pr.Head) {
			if t.many = strangers[pr.Author]; e != nil {
				t.asks = e.asks
			}
		}
		return t
	}
	slices.SortStableFunc(list, func(a, b forge.PullRequest) int {
		x, y := of(&a), of(&b)
		return cmp.Or(cmp.Compare(x.many, y.many), x.asks.Compare(y.asks))
	})
}

// admitted reports whether a pull request is planned: one from a fork only when a
// person with write access named this very head. A push after that needs it
// again. again is when to look for it next, at the latest. While the forge is asked enough
// for forks, nothing is said of a head that was not looked at.
func (r *Reviews) admitted(ctx context.Context, e *entry) (ok bool, again time.Duration, err error) {
	if !e.pr.Fork || e.named == e.pr.Head {
		return true, 0, nil
	}
	again = r.opts.Poll
	why := "fork: planned once someone with write access comments: " + forge.PlanCommand + " " + e.pr.Head
	now := r.opts.Now()
	if wait := e.asks.Sub(now); e.looked == e.pr.Head && wait > 0 {
		return false, min(again, wait), r.pend(ctx, e, e.unasked+why)
	}
	if !r.asking.AllowN(now, 2) { // a page of comments, and a status
		return false, min(again, 2*eachRequest), nil
	}
	naming, err := r.opts.Forge.Named(ctx, e.pr.Number, e.pr.Head)
	var limited *forge.Limited
	if errors.As(err, &limited) || ctx.Err() != nil {
		return false, again, err
	}
	if e.unasked = ""; err != nil { // the others do not wait for what strangers may have caused
		naming.Requests = max(naming.Requests, 12)
		e.unasked = "its comments cannot be asked for; "
		r.opts.Log.Warn("it is not known whether a fork's pull request may be planned", "pullRequest", e.pr.Number, "error", err)
	}
	r.asking.ReserveN(now, min(max(naming.Requests-1, 0), atOnce))
	e.asks, e.looked = now.Add(eachRequest*time.Duration(max(naming.Requests, 1)*len(r.open))), e.pr.Head
	if naming.By == "" {
		return false, again, r.pend(ctx, e, e.unasked+why)
	}
	e.named = e.pr.Head
	r.opts.Log.Info("a fork's pull request is planned", "pullRequest", e.pr.Number, "head", e.pr.Head, "namedBy", naming.By)
	return true, 0, nil
}
