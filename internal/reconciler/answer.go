package reconciler

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/world"
)

// write adds the requests' files to the commit that carries what was decided
// of them: both land or neither.
func (d *desk) write(req *gitrepo.Request, in *inputs) {
	if len(d.files) == 0 {
		return
	}
	at := map[string]int{}
	for i := range req.Items {
		at[req.Items[i].Key] = i
	}
	written := map[string]bool{}
	for _, w := range d.waiting {
		if w.file == nil || written[w.path] {
			continue
		}
		written[w.path] = true
		key := w.tenant + "/" + w.id
		i, ok := at[key]
		if !ok {
			verb := "keep"
			if w.release != "" {
				verb = "release"
			}
			i = len(req.Items)
			at[key] = i
			req.Items = append(req.Items, gitrepo.Item{Key: key, Line: verb + " " + key})
		}
		item := &req.Items[i]
		puts := map[string][]byte{w.path: w.file}
		maps.Copy(puts, item.Puts)
		item.Puts = puts
		item.Trailers = append(slices.Clone(item.Trailers), requestTrailer(in, w))
	}
}

// requestTrailer tells history who asked, or let go.
func requestTrailer(in *inputs, w *waiter) string {
	verb, by := "Requested-By", "cluster "+w.ask.Cluster
	if w.release != "" {
		verb = "Released-By"
	} else if it := intentsCalled(in.fleet, intentKey{w.tenant, w.id}); len(it) > 0 {
		by = world.AskedBy(it[0].Metadata.Annotations)
	}
	return fmt.Sprintf("%s: %s/%s %s", verb, w.tenant, w.id, by)
}

// settle answers the requests whose fate a commit has decided. The others wait
// for the next round.
func (r *Reconciler) settle(in *inputs, plan *planner.Plan, res gitrepo.Result) {
	if len(r.desk.waiting) == 0 {
		return
	}
	commits := map[string]tree.Hash{}
	for _, c := range res.Commits {
		for _, key := range c.Keys {
			commits[key] = c.Commit.Hash
		}
	}
	refused := map[string]error{}
	for _, x := range res.Refused {
		refused[x.Key] = x.Cause
	}
	after := map[intentKey]*v1alpha1.IntentState{}
	for _, s := range plan.States {
		if s.After != nil {
			after[intentKey{s.After.Metadata.Namespace, s.After.Metadata.Name}] = s.After
		}
	}
	contracts := map[intentKey][]*v1alpha1.Contract{}
	for _, c := range plan.Contracts {
		if c.After != nil {
			k := intentKey{c.After.Metadata.Namespace, c.After.Spec.Intent.Name}
			contracts[k] = append(contracts[k], c.After)
		}
	}
	waited := len(r.desk.waiting)
	defer func() { r.desk.told = waited - len(r.desk.waiting) }()
	r.desk.waiting = slices.DeleteFunc(r.desk.waiting, func(w *waiter) bool {
		key := w.tenant + "/" + w.id
		commit, landed := commits[key]
		cause, no := refused[key]
		switch {
		case w.file == nil:
			return false // waits for the remote to be asked
		case landed && w.release != "":
			w.answer(verdict{})
		case landed:
			k := intentKey{w.tenant, w.id}
			it := intentsCalled(in.fleet, k)
			if !w.answer(verdict{reservation: reservationOf(in.fleet, it[0], contracts[k], after[k], commit)}) {
				r.intake.ended(w.id, false)
			}
		case no:
			w.refuse(unavailable(30*time.Second, "the fleet repository refuses this reservation: %v", cause))
			r.intake.ended(w.id, false)
		default:
			return false
		}
		return true
	})
}

// refuse answers those that the plan gave nothing, once what it gave to others
// is on the ledger, or lets them wait for another plan.
func (r *Reconciler) refuse(landed bool) {
	for _, one := range r.desk.refused {
		one.file = nil
		if !landed || !r.say(one.waiter, verdict{err: one.why}) {
			r.desk.waiting = append(r.desk.waiting, one.waiter)
		}
	}
	r.desk.refused = nil
}

// fail answers all that wait: the round failed, and nothing can be said of
// them. What was under way may have landed, and a retry finds it.
func (r *Reconciler) fail(cause error) {
	r.refuse(false)
	for _, w := range append(r.desk.waiting, r.intake.take()...) {
		w.refuse(unavailable(max(2*time.Second, r.opts.Pushes.Wait()), "nothing can be committed now (%s); ask again with the same %s", oneLineOf(cause), wire.HeaderIdempotencyKey))
		r.intake.ended(w.id, false)
	}
	r.desk.waiting, r.desk.files = nil, nil
}

// oneLineOf is an error without line breaks, for an answer.
func oneLineOf(err error) string {
	if err == nil || errors.Is(err, context.Canceled) {
		return "the daemon is stopping"
	}
	return strings.Join(strings.Fields(err.Error()), " ")
}
