package draft

// Rollback takes back everything since a mark, the newest change first, and closes
// it with all within it.
func (r *Draft) Rollback(m Mark) {
	d := &r.journal
	i := d.find(m)
	at := d.marks[i].at
	for n := len(d.kinds) - 1; n >= at; n-- {
		r.undo(d.kinds[n])
	}
	d.state = d.marks[i].state
	d.kinds, d.marks = d.kinds[:at], d.marks[:i]
}

// RollbackButDue takes back everything since a mark but when the next round is due: what
// a failed try, or a look, found to change at an instant (a window that opens, a notice that
// ends) changes then, whether or not anything was placed. A due time too many costs a round
// in which nothing happens; one too few leaves an intent waiting for no reason.
func (r *Draft) RollbackButDue(m Mark) {
	due := r.Plan.Due
	r.Rollback(m)
	r.setDue(due)
}

// Try keeps what f did if f returns true, and takes it back otherwise.
func (r *Draft) Try(f func() bool) bool {
	m := r.Mark()
	if !f() {
		r.Rollback(m)
		return false
	}
	r.Keep(m)
	return true
}

// undo takes back the newest change, which is of a kind.
func (r *Draft) undo(k kind) {
	d := &r.journal
	switch k {
	case kindJob:
		e := &d.jobs[len(d.jobs)-1]
		*e.job, *e = e.was, jobWas{}
		d.jobs = d.jobs[:len(d.jobs)-1]
	case kindPut:
		e := pop(&d.puts)
		r.unput(&e)
	case kindPlan:
		e := pop(&d.plans)
		r.Plan.Due, r.Advances = e.due, e.progress
		r.Plan.reworded, r.Plan.solved, r.Plan.reordered = e.reworded, e.solved, e.reordered
	case kindOrdinal:
		e := pop(&d.ordinals)
		if e.of[e.key] = e.was; !e.known {
			delete(e.of, e.key)
		}
	case kindLoan:
		e := pop(&d.loans)
		r.Inventory.Unlend(e.place, e.of)
	case kindCharge:
		ch := pop(&d.charges)
		ch.Undo()
	case kindOther:
		pop(&d.others)()
	}
}

// pop takes the last of a list off it.
func pop[T any](list *[]T) (last T) {
	l := *list
	n := len(l) - 1
	last, l[n] = l[n], last
	*list = l[:n]
	return last
}
