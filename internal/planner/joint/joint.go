package joint

import (
	"cmp"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/bulk"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	"github.com/fleetbroker/fleetbroker/internal/planner/looks"
	"github.com/fleetbroker/fleetbroker/internal/planner/place"
)

// Turns are the turns of a round's jobs.
type Turns struct {
	*place.Placer
	// Wake is the job of an intent, made if it was thought to need nothing.
	Wake func(tenant, name string) *draft.Job
	// Left are jobs that have something to do now because they gave up what they had for
	// others' sake, and were not asked to their turn.
	Left []*draft.Job
	// failed are units that fit nowhere, and under what that was found.
	failed map[string]looks.At
}

// New has seen no turn yet.
func New(r *place.Placer, wake func(tenant, name string) *draft.Job) *Turns {
	return &Turns{Placer: r, Wake: wake, failed: map[string]looks.At{}}
}

// Fill is Placer.Fill for a job whose turn it is, and may do the tasks of others that it
// belongs together with.
func (t *Turns) Fill(j *draft.Job, q place.Request) (progressed bool) {
	names := t.Relations().Together[draft.KeyOfJob(j)]
	if len(names) == 0 || len(j.Tasks) == 0 || j.Finding() || !t.By(draft.RulesTogetherMoves) {
		return t.Placer.Fill(j, q)
	}
	before := t.Advances
	if c := place.TakenBack(t.Placer, j); c != nil && t.By(draft.RulesTogetherLeaves) {
		t.takenBack(j, names, q, t.GaveWay(c))
		return t.Advances != before
	}
	if unit := t.leaving(j, names); unit != nil {
		if t.move(unit, q, "leaves") {
			return true
		}
		if place.NamesOther(t.Placer, j, unit) {
			q.Nowhere = "no other provider has room for " + inWords(unit) + " together"
		}
	}
	t.Placer.Fill(j, q)
	if len(j.Tasks) > 0 && q.Nowhere == "" && place.MustFollow(t.Placer, j) {
		t.follow(j, names, q)
	}
	return t.Advances != before
}

// takenBack does the tasks of a job of which a provider takes back spot capacity: next to
// those that it belongs together with, else all of them move; else, where nothing of the job
// is left at the end of the notice, those that name it give way with it, and wait for one
// place.
func (t *Turns) takenBack(j *draft.Job, names []string, q place.Request, why string) {
	if t.Try(func() bool { t.Placer.Fill(j, q); return len(j.Tasks) == 0 }) {
		return
	}
	if goesWhole(t.Placer, j) && t.follow(j, names, q) {
		return
	}
	had := len(j.Live)
	t.Placer.Fill(j, q)
	if had == 0 || len(j.Live) > 0 {
		return
	}
	for _, name := range names {
		if t.JobOf(j.TenantName, name) == nil && !t.holds(j.TenantName, name) {
			continue
		}
		k := t.Wake(j.TenantName, name)
		if k.In == nil || k.Silent || k.Frozen || k.Refused || k.Dec.Action != "" || !place.NamesOther(t.Placer, k, []*draft.Job{j}) {
			continue // what it asks for is out of force, or not to be placed again, or can do without
		}
		t.EditJob(k)
		for _, c := range slices.Clone(k.Live) {
			t.Drop(k, c, v1alpha1.PhaseReleased, lifecycle.CodeTogether, "it gives way with "+j.Name+", which it belongs together with, and of which "+why)
			k.DropTasks(c)
			in := &c.Spec.Intent
			if !slices.ContainsFunc(k.Tasks, func(t draft.Task) bool { return t.Replica == in.Replica }) { // parts come to one replica
				k.AddTask(draft.Task{Kind: draft.TaskFresh, Replica: in.Replica, Old: c})
			}
		}
		if len(k.Tasks) > 0 {
			t.NoteProgress()
			t.Left = append(t.Left, k)
		}
	}
}

// goesWhole reports whether all of a job goes elsewhere where some of it must.
func goesWhole(r *place.Placer, j *draft.Job) bool {
	w, shares := place.Shares(r, j)
	return shares && w.Required && j.Gang() || place.AllLeave(r, j)
}

// leaving are the jobs that go elsewhere as one with a job: all that each of them has must,
// and at least one has something. nil where there are none.
func (t *Turns) leaving(j *draft.Job, names []string) []*draft.Job {
	unit, has := []*draft.Job{j}, len(j.Live) > 0
	if !place.AllLeave(t.Placer, j) {
		return nil
	}
	for _, name := range names {
		k := t.JobOf(j.TenantName, name)
		if k == nil {
			if t.holds(j.TenantName, name) {
				return nil
			}
			continue
		}
		if k.In == nil || !place.AllLeave(t.Placer, k) {
			return nil
		}
		if has = has || len(k.Live) > 0; draft.WaitsNow(&t.Draft, k) {
			unit = append(unit, k)
		}
	}
	if !has || len(unit) < 2 {
		return nil
	}
	return inOrder(unit)
}

// holds reports whether an intent that needs nothing has something.
func (t *Turns) holds(tenant, name string) bool {
	for _, c := range t.W.Ledger.ByIntent(tenant, name) {
		if t.Latest(c).Status.Phase.Charged() {
			return true
		}
	}
	return false
}

// inOrder are the jobs of a unit, the most important first.
func inOrder(unit []*draft.Job) []*draft.Job {
	slices.SortFunc(unit, func(a, b *draft.Job) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), strings.Compare(a.Name, b.Name))
	})
	return unit
}

// follow moves a job with all that it has, and all that those have that it belongs together
// with, or nothing.
func (t *Turns) follow(j *draft.Job, names []string, q place.Request) bool {
	return t.Try(func() bool {
		unit := []*draft.Job{j}
		for _, name := range names {
			if k := t.Wake(j.TenantName, name); k.In == nil || k.Silent || k.Frozen || k.Refused {
				return false
			} else if len(k.Live)+len(k.Tasks) > 0 && !k.Finding() {
				unit = append(unit, k)
			}
		}
		for _, k := range unit {
			t.EditJob(k)
			k.Follow()
		}
		return t.move(inOrder(unit), q, "follows")
	})
}

// move does all tasks of a unit on one provider, in one domain where one of it must share
// one, or nothing. how tells apart what was tried of the same jobs.
func (t *Turns) move(unit []*draft.Job, q place.Request, how string) bool {
	key := how + " " + unit[0].TenantName
	for _, k := range unit {
		key += "/" + k.Name
	}
	if at, tried := t.failed[key]; tried {
		if now := looks.Now(&t.Draft); !at.Touched(now) || !at.Moved(now) {
			return false
		}
	}
	for _, provider := range bulk.Providers(t.Inventory, unit, t.ClassOf, func(*draft.Job) bool { return true }) {
		for _, on := range place.OnEach(t.Placer, unit, provider, q) {
			if t.Try(func() bool { return t.fillAll(unit, on) }) {
				return true
			}
		}
	}
	t.failed[key] = looks.Now(&t.Draft)
	return false
}

func (t *Turns) fillAll(unit []*draft.Job, q place.Request) bool {
	for _, k := range unit {
		if t.Placer.Fill(k, q); len(k.Tasks) > 0 {
			return false
		}
	}
	return true
}

// inWords are the names of a unit's intents.
func inWords(unit []*draft.Job) string {
	names := make([]string, len(unit))
	for i, k := range unit {
		names[i] = k.Name
	}
	return strings.Join(names, " and ")
}
