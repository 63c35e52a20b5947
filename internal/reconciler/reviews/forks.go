package reviews

import (
	"context"
	"errors"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/forge"
)

// eachRequest is how much time there is on average between two requests for
// comments of forks: anybody can open pull requests and write comments, and what
// a forge is asked is counted.
const eachRequest = 2 * time.Second

// admitted reports whether a pull request is planned: one from a fork only when a
// person with write access named this very head. A push after that needs it
// again. again is when to look for it next, at the latest.
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
	naming, err := r.opts.Forge.Named(ctx, e.pr.Number, e.pr.Head)
	var limited *forge.Limited
	if errors.As(err, &limited) || ctx.Err() != nil {
		return false, again, err
	}
	if e.unasked = ""; err != nil { // the others do not wait for what strangers may have caused
		naming.Requests = max(naming.Requests, 12)
		e.unasked = "its comments cannot be asked for; "
		r.opts.Log.Warn("it is not known whether a fork's pull request may be planned", "pull request", e.pr.Number, "error", err)
	}
	e.asks, e.looked = now.Add(eachRequest*time.Duration(max(naming.Requests, 1)*len(r.open))), e.pr.Head
	if naming.By == "" {
		return false, again, r.pend(ctx, e, e.unasked+why)
	}
	e.named = e.pr.Head
	r.opts.Log.Info("a fork's pull request is planned", "pull request", e.pr.Number, "head", e.pr.Head, "named by", naming.By)
	return true, 0, nil
}
