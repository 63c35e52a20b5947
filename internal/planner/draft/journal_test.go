package draft

import "testing"

// Nothing is written down while no mark is open, and nothing is left when the last one
// is closed.
func TestJournal_WritesDownUnderMarks(t *testing.T) {
	r := New(Facts{W: &World{}}, Base{}, &Plan{})
	j := &Job{}
	change := func() {
		r.EditJob(j)
		j.Later++
		SetKey(&r, r.Claimed, "a", !r.Claimed["a"])
		r.NoteProgress()
	}
	change()
	if n := r.entries(); n != 0 {
		t.Errorf("%d entries without a mark, want none", n)
	}
	outer := r.Mark()
	change()
	first := r.entries()
	inner := r.Mark()
	change()
	r.Keep(inner)
	change()
	if n := r.entries(); first == 0 || n <= first {
		t.Errorf("%d entries after one change, %d after three", first, n)
	}
	r.Keep(outer)
	if n := r.entries(); n != 0 || r.Trying() {
		t.Errorf("%d entries after the last mark was kept, want none", n)
	}
	if j.Later != 4 || r.Claimed["a"] {
		t.Errorf("kept %d and %v, want 4 and false", j.Later, r.Claimed["a"])
	}
}

// A job is written down once under a mark, and again under each within it.
func TestJournal_WritesJobsDownOnce(t *testing.T) {
	r := New(Facts{W: &World{}}, Base{}, &Plan{})
	j := &Job{}
	edit := func() {
		r.EditJob(j)
		j.Later++
	}
	outer := r.Mark()
	edit()
	edit()
	inner := r.Mark()
	edit()
	edit()
	if n := r.entries(); n != 2 {
		t.Errorf("%d entries, want 2", n)
	}
	r.Rollback(inner)
	if j.Later != 2 {
		t.Errorf("%d after the inner rollback, want 2", j.Later)
	}
	edit()
	r.Rollback(outer)
	if j.Later != 0 || r.entries() != 0 {
		t.Errorf("%d with %d entries after the outer rollback, want 0 with none", j.Later, r.entries())
	}
}

// Rolling back closes the marks within; a mark is kept from the inside out.
func TestJournal_ChecksMarks(t *testing.T) {
	r := New(Facts{W: &World{}}, Base{}, &Plan{})
	fails := func(what string, f func()) {
		t.Helper()
		defer func() {
			if recover() == nil {
				t.Errorf("%s was let through", what)
			}
		}()
		f()
	}
	outer := r.Mark()
	inner := r.Mark()
	fails("keeping the outer mark before the inner", func() { r.Keep(outer) })
	r.Rollback(outer)
	fails("keeping a mark that is closed", func() { r.Keep(inner) })
	fails("rolling back to a mark that is closed", func() { r.Rollback(inner) })
	if r.Trying() {
		t.Error("a mark is open after the outer was rolled back")
	}
}

func (r *Draft) entries() int { return len(r.journal.kinds) }
