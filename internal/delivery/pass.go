package delivery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetbroker/fleetbroker/internal/tracing"
)

// work is a unit with what is to be done for it.
type work struct {
	unit   key
	origin origin
	stage  int
	steps  []step
}

// pass looks at every dirty unit once.
func (w *worker) pass(ctx context.Context, c *conn) error {
	if ok, _ := c.synced(); !ok {
		return nil // awaitSync wakes the worker
	}
	loaded, err := w.load(c)
	if err != nil {
		w.mu.Lock()
		w.problems.manifests = err.Error()
		w.mu.Unlock()
		return err
	}
	lead := w.take()
	if lead == nil {
		err := w.besideTool(ctx, c, loaded)
		if loaded {
			w.bump()
		}
		return err
	}
	// What was unsure is known after the pass, also when there was nothing to
	// do: who observed while units were in flight was told Unknown.
	defer w.bump()
	if err := w.adopt(lead, c); err != nil {
		w.settle(err)
		w.log.Warn("cluster is not as wanted", "error", err)
		return err
	}
	w.tellRefused(lead, c)
	began := w.options.Clock.Now()
	todo := w.decide(c)
	if len(todo) == 0 {
		w.settle(nil)
		return nil
	}
	defer w.holdNews()()
	ctx, spans := w.traced(lead, todo)
	err = w.confirm(ctx, todo)
	if err == nil {
		err = w.act(ctx, c, todo)
	} else {
		w.putBack(todo)
	}
	w.settle(err)
	spans.End(err)
	w.options.Hooks.Passed(w.name, w.options.Clock.Since(began), err)
	if err != nil {
		w.log.WarnContext(ctx, "cluster is not as wanted", "error", err)
	}
	return err
}

// load brings desired up to the target and notes what changed. It reports
// whether there was a new target.
func (w *worker) load(c *conn) (bool, error) {
	w.mu.Lock()
	target, sequence, all := w.target, w.sequence, w.loaded == 0
	done := w.loaded == sequence
	w.mu.Unlock()
	if done {
		return false, nil
	}
	changed, err := w.desired.load(w.name, target)
	if err != nil {
		return false, fmt.Errorf("read the manifests of cluster %s at %s: %w", w.name, target.Commit.Short(), err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.problems.manifests = ""
	w.loaded = sequence
	w.noteRefused(target)
	overlay := key{Kind: "Overlay", Name: w.name}
	delete(w.trouble, overlay)
	if w.desired.problem != "" {
		w.trouble[overlay] = w.desired.problem
	}
	for unit := range changed {
		w.dirty[unit] = fresh
	}
	if all {
		for k := range w.desired.objects {
			w.markLocked(k.unit())
		}
		for k := range c.informers {
			for _, obj := range c.informers[k].GetStore().List() {
				if u := obj.(*unstructured.Unstructured); w.ours(u) {
					w.markLocked(liveKey(k, u).unit())
				}
			}
		}
	}
	return true, nil
}

// noteRefused says what of the ledger's tree, or of what is rendered, does not
// reach the cluster, and whether nothing does: manifests of an older rendering
// stay as they are until the ledger has those of this one. mu is held.
func (w *worker) noteRefused(target Desired) {
	refused := slices.Clone(w.desired.differs)
	for _, name := range slices.Sorted(maps.Keys(w.desired.refused)) {
		refused = append(refused, w.desired.refused[name])
	}
	w.refusedOf = w.desired.byContract
	w.differs = len(w.desired.differs) > 0
	w.older = w.differs && target.Wait != ""
	if w.older {
		w.problems.manifests = target.Wait + ": nothing is touched until the ledger has what is rendered"
		refused, w.refusedOf = nil, nil
	}
	refused = append(refused, conflicts(target.Refused)...)
	if !slices.Equal(refused, w.refused) {
		told := newOnes(w.refused, refused)
		for _, text := range told {
			w.log.WarnContext(tracing.LineOf(text, w.refusedOf, target.Traces), "not delivered", "reason", text)
		}
		w.untold = append(w.untold, told...)
		w.untold = w.untold[:min(len(w.untold), maxToldRefusals)]
	}
	w.refused = refused
}

// take moves dirty units to inflight. It returns the context in which may be
// written, or nil where nothing is to be: no Lease, or not our task.
func (w *worker) take() context.Context {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.leads() || w.down || w.older {
		return nil
	}
	for unit := range w.dirty {
		w.inflight[unit] = true
	}
	return w.leading
}

// decide finds out what to do for the units in flight.
func (w *worker) decide(c *conn) []work {
	w.mu.Lock()
	units := make(map[key]origin, len(w.inflight))
	for unit := range w.inflight {
		units[unit] = w.dirty[unit]
		delete(w.dirty, unit)
		delete(w.waiting, unit)
	}
	w.mu.Unlock()
	var todo []work
	for unit, from := range units {
		d, wanted := w.decideUnit(c, unit)
		w.mu.Lock()
		if d.wait {
			w.waiting[unit] = true
		}
		if len(d.steps) == 0 {
			delete(w.inflight, unit)
		}
		if d.trouble != "" {
			w.trouble[unit] = d.trouble
		} else if len(d.steps) == 0 {
			delete(w.trouble, unit)
		}
		w.mu.Unlock()
		if len(d.steps) > 0 {
			todo = append(todo, work{unit, from, stage(unit, wanted), d.steps})
		}
	}
	slices.SortFunc(todo, func(a, b work) int {
		return cmp.Or(cmp.Compare(a.stage, b.stage), compareKeys(a.unit, b.unit))
	})
	return todo
}

// errLags says that the remote has moved on.
var errLags = errors.New("the ledger has moved on since these manifests were handed over: waiting for the newer ones")

// confirm asks the remote before anything is done that Deliver did not just
// bring.
func (w *worker) confirm(ctx context.Context, todo []work) error {
	if w.options.Confirm == nil || !slices.ContainsFunc(todo, func(t work) bool { return t.origin == drift }) {
		return nil
	}
	root, err := w.options.Confirm(ctx, w.name)
	problem := ""
	if err != nil {
		err = fmt.Errorf("confirm the ledger before correcting cluster %s: %w", w.name, err)
		problem = err.Error()
	}
	w.mu.Lock()
	w.problems.confirm = problem
	w.mu.Unlock()
	if err != nil {
		return err
	}
	if root != w.desired.root {
		return errLags
	}
	return nil
}

// act carries out the work, stage by stage, several units at once.
func (w *worker) act(ctx context.Context, c *conn, todo []work) error {
	if err := w.ensureParent(ctx, c); err != nil {
		w.putBack(todo)
		return err
	}
	var failures []error
	for from := range stages {
		now := make([]work, 0, len(todo))
		for _, t := range todo {
			if t.stage == from {
				now = append(now, t)
			}
		}
		if hopeless(failures) || unprotected(failures, from) {
			w.putBack(now)
			continue
		}
		failures = append(failures, w.actAll(ctx, c, now)...)
	}
	return errors.Join(failures...)
}

// hopeless reports whether the cluster has stopped answering: trying the rest
// would only wait for each call's timeout.
func hopeless(failures []error) bool {
	return slices.ContainsFunc(failures, func(err error) bool { return errors.Is(err, errNoAnswer) || errors.Is(err, context.Canceled) })
}

// unprotected reports whether contracts must wait because a policy failed.
func unprotected(failures []error, stage int) bool {
	if stage != stageContracts && stage != stageOffloadings {
		return false
	}
	return slices.ContainsFunc(failures, func(err error) bool {
		var failed *unitError
		return errors.As(err, &failed) && isPolicy(failed.unit.Kind)
	})
}

// unitError is the failure of one unit.
type unitError struct {
	unit key
	err  error
}

func (e *unitError) Error() string { return e.err.Error() }
func (e *unitError) Unwrap() error { return e.err }

// actAll carries out one stage. Failed units are put back.
func (w *worker) actAll(ctx context.Context, c *conn, todo []work) []error {
	var mu sync.Mutex
	var failures []error
	var group errgroup.Group
	group.SetLimit(w.options.Concurrency)
	for _, t := range todo {
		group.Go(func() error {
			if w.superseded() {
				w.putBack([]work{t})
				return nil
			}
			err := c.carryOut(ctx, t.steps)
			old := w.outdated(t.unit, c.get(t.unit), err)
			w.mu.Lock()
			delete(w.inflight, t.unit)
			if old != "" {
				w.trouble[t.unit], err = old, nil // its watch tells when it is applied
			} else if err != nil {
				w.trouble[t.unit] = err.Error()
				w.markLocked(t.unit)
			} else {
				delete(w.trouble, t.unit)
			}
			w.mu.Unlock()
			if old != "" {
				w.log.WarnContext(ctx, "not delivered", "reason", old)
			}
			if err != nil {
				mu.Lock()
				failures = append(failures, &unitError{t.unit, err})
				mu.Unlock()
			}
			return nil
		})
	}
	_ = group.Wait() // failures are collected
	return failures
}

// putBack marks units that were not tried.
func (w *worker) putBack(todo []work) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range todo {
		w.dirty[t.unit] = max(w.dirty[t.unit], t.origin)
	}
}

// superseded reports whether a newer target is waiting, or another daemon: a
// large set is not finished before that is looked at.
func (w *worker) superseded() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.loaded != w.sequence || !w.leads()
}

// settle ends a pass.
func (w *worker) settle(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.inflight)
	if err == nil && w.loaded == w.sequence && len(w.dirty) == 0 {
		w.applied = w.target.Commit
	}
}

// ensureParent writes the ApplySet's parent before its members.
func (w *worker) ensureParent(ctx context.Context, c *conn) error {
	namespaces := map[string]bool{}
	for k := range w.desired.objects {
		if k.Namespace != "" {
			namespaces[k.Namespace] = true
		}
	}
	members := slices.Sorted(maps.Keys(namespaces))
	w.mu.Lock()
	have := w.parented
	w.mu.Unlock()
	line := strings.Join(members, ",")
	if have == line && have != "" {
		return nil
	}
	if err := c.applyParent(ctx, w.own.Parent(memberKinds(), members)); err != nil {
		return fmt.Errorf("write the ApplySet of cluster %s: %w", w.name, explain(err))
	}
	w.mu.Lock()
	w.parented = line
	w.mu.Unlock()
	return nil
}

// markLocked marks a unit for looking at; mu is held.
func (w *worker) markLocked(unit key) {
	if _, ok := w.dirty[unit]; !ok {
		w.dirty[unit] = drift
	}
}

func compareKeys(a, b key) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

func sortedKeys[V any](m map[key]V) []key {
	return slices.SortedFunc(maps.Keys(m), compareKeys)
}
