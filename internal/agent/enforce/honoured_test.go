package enforce

import "testing"

// What was carried out is what no slice is answered by anything older than: promises
// that came while one is being answered count when that is over, and whoever reports it
// is told then.
func TestHonoured(t *testing.T) {
	changes := 0
	r := &Reconciler{Book: &Book{}, Changed: func() { changes++ }}
	is := func(want uint64) {
		t.Helper()
		if got := r.Honoured(); got != want {
			t.Errorf("honoured is %d, want %d", got, want)
		}
	}
	standing, ends := []Promise{{Contract: "a", Slice: "a", Standing: true}}, []Promise{{Contract: "a", Slice: "a"}}
	is(0)
	r.Book.Tell("", standing, 3)
	is(0) // none ends: nothing waits to be told
	r.Book.Tell("", ends, 4)
	is(4)
	r.Book.Tell("", standing, 5)
	is(4)
	end := r.begin()
	r.Book.Tell("", ends, 6)
	is(4)
	if end(); changes != 1 {
		t.Errorf("%d changes are told after the answer, want 1", changes)
	}
	is(6)
	r.begin()()
	if changes != 1 {
		t.Errorf("nothing was told meanwhile, and %d changes", changes)
	}
	r.Book.Tell("", standing, 2) // the ledger was set back
	is(0)
	r.Book.Tell("", ends, 3)
	is(3)
	r.Book.Tell("", ends, 0) // its ledger has no numbers
	is(0)
}
