package reconciler

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/genyaml"
	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/pushbudget"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/requests"
)

// desk is where requests lie between being taken and being answered. It
// belongs to the goroutine of Run. A request is answered
//
//   - at once, when nothing needs to be written: it may not ask, or what it
//     asks for stands on the ledger already (a retry);
//   - when nothing fits: after the push of the plan that gave to others what it
//     asked for, because until then nobody has it;
//   - after the push, by what landed;
//   - with 503 whenever a round fails: nothing is said of what became of it,
//     and a retry finds out.
//
// What is said without a push is said only when the remote was asked after the
// request had come: another daemon may have written since, and a refusal or an
// older answer would then be of the past.
type desk struct {
	waiting []*waiter
	// seen is the newest request that had come when the remote was last asked;
	// stale says that somebody waits for it to be asked again.
	seen  uint64
	stale bool
	// told is how many a commit of this round has answered.
	told int
	// refused are those that the plan gives nothing.
	refused []refusedRequest
	// files are what the requests of this round write, by path.
	files map[string][]byte
}

// refusedRequest is a request with why it gets nothing.
type refusedRequest struct {
	*waiter
	why *wire.Refusal
}

// openDesk takes in what came since the last round, and admits everything that
// waits: what has to be written joins the round's inputs as if it stood on the
// ledger. (Names derive from requests, so that a file that landed in a push
// whose answer was lost is found and not written twice.)
func (r *Reconciler) openDesk(ctx context.Context, in *inputs) error {
	d := &r.desk
	d.waiting = append(d.waiting, r.intake.take()...)
	d.files, d.stale, d.told = nil, false, 0
	if len(d.waiting) == 0 {
		return nil
	}
	index := r.standing.Load().requests()
	now := r.now(in)
	files := map[string][]byte{}
	d.waiting = slices.DeleteFunc(d.waiting, func(w *waiter) bool {
		w.file = nil
		if v := r.admit(in, index, w, now); v != nil {
			return r.say(w, *v)
		}
		if other, twice := files[w.path]; twice && !bytes.Equal(other, w.file) && w.release == "" {
			return r.say(w, verdict{err: keyReused(w)})
		}
		files[w.path] = w.file
		return false
	})
	if len(files) == 0 {
		return nil
	}
	if !r.mayPush(pushbudget.Urgent) { // what comes meanwhile goes in the same push
		d.waiting = slices.DeleteFunc(d.waiting, func(w *waiter) bool {
			late := r.late(w)
			return late != nil && w.file != nil && r.say(w, verdict{err: late})
		})
		return nil
	}
	d.files = files
	return r.overlay(ctx, in)
}

// say answers a request for which nothing is written, and reports whether it
// did: what is said must not be of the past.
func (r *Reconciler) say(w *waiter, v verdict) bool {
	var refused *wire.Refusal
	passing := errors.As(v.err, &refused) && refused.Status == http.StatusServiceUnavailable
	if w.nonce > r.desk.seen && !passing {
		r.desk.stale, w.file = true, nil
		return false
	}
	if !w.answer(v) || v.err != nil {
		r.intake.ended(w.id, false)
	}
	return true
}

// overlay reads the fleet as it will be with the requests of this round, less those with
// which nothing of their tenant would be read.
func (r *Reconciler) overlay(ctx context.Context, in *inputs) error {
	for before := in.fleet; len(r.desk.files) > 0; {
		top, err := tree.Overlay(in.heads.Ledger.Tree, r.desk.files)
		if err != nil {
			return fmt.Errorf("read requests: %w", err)
		}
		heads := in.heads
		heads.Ledger.Tree = top
		f, err := r.reader.ReadAll(ctx, fleet.Sources{Inputs: heads.Inputs.Tree, Ledger: top, Last: r.fleet})
		if err != nil {
			return fmt.Errorf("read requests: %w", err)
		}
		if refused := requests.Refused(before, f, r.desk.asked()); refused != nil {
			r.desk.waiting = slices.DeleteFunc(r.desk.waiting, func(w *waiter) bool {
				no := refused[w.path]
				if no == nil || w.file == nil {
					return false
				}
				delete(r.desk.files, w.path)
				return r.say(w, verdict{err: no})
			})
			continue
		}
		if in.key, err = inputsKey(heads); err != nil {
			return err
		}
		in.fleet = withFindings(f, r.state)
		return nil
	}
	return nil
}

// asked are the requests that are written in this round, without releases.
func (d *desk) asked() (out []requests.Request) {
	for _, w := range d.waiting {
		if w.file != nil && w.release == "" {
			out = append(out, requests.Request{Tenant: w.tenant, Path: w.path})
		}
	}
	return out
}

// admit answers a request that needs no plan, or names what it will write.
// A request whose client has gone is dropped: nothing of it stands anywhere.
func (r *Reconciler) admit(in *inputs, index requestIndex, w *waiter, now v1alpha1.Time) *verdict {
	if w.ctx.Err() != nil {
		return &verdict{err: unavailable(time.Second, "the client has gone")}
	}
	cluster := in.fleet.Clusters[w.ask.Cluster]
	if cluster == nil || cluster.Spec.Reservations == nil {
		return &verdict{err: refusal(http.StatusForbidden, wire.ReasonNotEnabled,
			"cluster %s may not ask for capacity: add `reservations: {tenant: …}` to the spec of clusters/%s.yaml", w.ask.Cluster, w.ask.Cluster)}
	}
	if r.standby {
		err := unavailable(time.Second, "another replica decides; ask again with the same %s", wire.HeaderIdempotencyKey)
		err.Body.Reason = wire.ReasonStandby
		return &verdict{err: err}
	}
	if why := r.silentNow(in); why != "" {
		return &verdict{err: unavailable(5*time.Second, "%s", why)}
	}
	if w.release != "" {
		return admitRelease(index, w)
	}
	w.tenant = cluster.Spec.Reservations.Tenant
	digest, err := digestOfAsk(&w.ask)
	if err != nil {
		return &verdict{err: err}
	}
	if w.id == "" && index.byName[w.ask.ID] != nil { // another replica handed it on before
		w.id = w.ask.ID
	}
	if w.ask.Key == "" && w.id == "" {
		if it := r.retried(index, w, digest, now); it != nil {
			w.id = it.Metadata.Name
		}
	}
	if w.id == "" {
		w.id = idOf(w, digest)
	}
	if w.ask.Key == "" {
		r.intake.open(w.id, w.ask.Handed, r.opts.Now())
	}
	if it := index.byName[w.id]; it != nil {
		return admitRetry(in, it, w, digest)
	}
	w.path = ledger.RequestPath(w.tenant, w.id, now)
	if w.file, err = intentFile(w, digest, w.tenant, cluster.Spec.Reservations.DefaultDuration, now); err != nil {
		return &verdict{err: err}
	}
	return nil
}

// silentNow says why this daemon may not write, "" when it may.
func (r *Reconciler) silentNow(in *inputs) string {
	switch {
	case r.offers(in):
		return "decisions of this fleet are merged by people (writeBack.mode: pull-request), so that nothing can be reserved at once: ask by an intent in the fleet repo"
	case !r.shadow(in):
		return ""
	case r.withheld(in.fleet.Policy) != "":
		return r.withheld(in.fleet.Policy)
	}
	return "this daemon plans and reports and writes nothing (shadow)"
}

// retried finds the request of which an equal one without a key is a retry.
func (r *Reconciler) retried(index requestIndex, w *waiter, digest string, now v1alpha1.Time) *model.Intent {
	for _, it := range index.byCluster[w.ask.Cluster] {
		notes := it.Metadata.Annotations
		if notes[v1alpha1.AnnotationRequestDigest] != digest || notes[v1alpha1.AnnotationIdempotencyKey] != "" || it.Spec.Suspend {
			continue
		}
		at, err := time.Parse(timeLayout, notes[v1alpha1.AnnotationRequestedAt])
		if err != nil || now.Sub(at) > retryWindow || !r.intake.retriable(it.Metadata.Name, r.opts.Now()) {
			continue
		}
		return it
	}
	return nil
}

// admitRetry answers a request that stands on the ledger.
func admitRetry(in *inputs, it *model.Intent, w *waiter, digest string) *verdict {
	if it.Metadata.Annotations[v1alpha1.AnnotationRequestDigest] != digest {
		return &verdict{err: keyReused(w)}
	}
	state := in.ledger.State(it.Metadata.Namespace, it.Metadata.Name)
	contracts := in.ledger.ByIntent(it.Metadata.Namespace, it.Metadata.Name)
	return &verdict{reservation: reservationOf(in.fleet, it, contracts, state, in.heads.Ledger.Commit.Hash)}
}

func keyReused(w *waiter) *wire.Refusal {
	return refusal(http.StatusConflict, wire.ReasonKeyReused,
		"%s %q stands for another request of %s, %s: use a new key for a new request", wire.HeaderIdempotencyKey, w.ask.Key, w.ask.Cluster, w.id)
}

// admitRelease suspends what a cluster asked for. The file stays for a while
// as the memory that this was released: a request that the network held back
// would else bring it to life again.
func admitRelease(index requestIndex, w *waiter) *verdict {
	it := index.byName[w.release]
	if it == nil || it.Metadata.Annotations[v1alpha1.AnnotationRequestedBy] != w.ask.Cluster {
		return &verdict{err: refusal(http.StatusNotFound, wire.ReasonNotFound, "cluster %s has no reservation %q", w.ask.Cluster, w.release)}
	}
	if it.Spec.Suspend {
		return &verdict{}
	}
	released := *it.ResourceIntent
	released.Spec.Suspend = true
	file, err := genyaml.Marshal(&released)
	if err != nil {
		return &verdict{err: fmt.Errorf("release %s: %w", w.release, err)}
	}
	w.id, w.tenant, w.path, w.file = it.Metadata.Name, it.Metadata.Namespace, it.Path, file
	return nil
}
