package store_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/market/store"
)

// refuses makes a replica's store refuse some writes.
func (one *replica) refuses(why store.Refusal, cause string, which func(kind, name string) bool) {
	one.api.Refuse = func(kind, name string) error {
		if which(kind, name) {
			return &store.RefusedError{Why: why, Cause: errors.New(cause)}
		}
		return nil
	}
}

// refused is the refusal of an error, nil for none.
func refused(err error) *store.RefusedError {
	var out *store.RefusedError
	errors.As(err, &out)
	return out
}

// What a quota refuses concerns the provider that is too many: it is told why, all
// others go on, and status has it until it is taken.
func TestRefused_OneProviderTooMany(t *testing.T) {
	r := newReplicas(t, "a", "b")
	a := r.all[0]
	must(t, a.report("paris", 7, 1, flavors("paris", 8, 0)))
	a.refuses(store.RefusalQuota, "exceeded quota: market", func(kind, name string) bool { return kind == "advertisement" && name == "oslo" })
	for range 10 {
		r.tick(30)
		must(t, a.report("paris", 7, 1, nil))
		if err := a.report("oslo", 7, 1, flavors("oslo", 4, 0)); refused(err) == nil || refused(err).Why != store.RefusalQuota || !strings.Contains(err.Error(), "ResourceQuota") {
			t.Fatalf("oslo is told %v", err)
		}
		if got := a.state("paris"); got != model.Fresh || a.gpus("oslo") != -1 {
			t.Fatalf("paris is %s, and oslo has %d GPUs", got, a.gpus("oslo"))
		}
	}
	if st := a.store.Status(); st.Cut != "" || len(st.Refused) != 1 || st.Err() == nil || !strings.Contains(st.Err().Error(), "advertisement oslo") {
		t.Errorf("status: cut %q, %v", st.Cut, st.Err())
	}
	a.api.Refuse = nil
	must(t, a.report("oslo", 7, 1, flavors("oslo", 4, 0)))
	r.tick(1)
	if err := a.store.Status().Err(); err != nil || r.all[1].gpus("oslo") != 4 {
		t.Errorf("after it is taken: %v, b has %d GPUs", err, r.all[1].gpus("oslo"))
	}
	r.lines.Wants(t, "FB1095")
}

// A provider whose newest list is refused sells nothing, and is not silent, in every
// replica: what it offers is not known, and it lives.
func TestRefused_AChange(t *testing.T) {
	r := newReplicas(t, "a", "b")
	a, b := r.all[0], r.all[1]
	must(t, a.report("paris", 7, 1, flavors("paris", 8, 0)))
	r.tick(12)
	a.refuses(store.RefusalForbidden, "an admission policy", func(kind, _ string) bool { return kind == "advertisement" })
	for range 20 {
		if err := a.report("paris", 7, 2, flavors("paris", 4, 0)); refused(err) == nil {
			t.Fatalf("paris is told %v", err)
		}
		r.tick(30)
		for _, one := range r.all {
			if got := one.state("paris"); got == model.Fresh || got == model.Silent || got == model.Lost {
				t.Fatalf("to %s paris, whose list is refused, is %s", one.name, got)
			}
		}
	}
	a.api.Refuse = nil
	must(t, a.report("paris", 7, 2, flavors("paris", 4, 0)))
	r.tick(1)
	for _, one := range []*replica{a, b} {
		if got := one.state("paris"); got != model.Fresh || one.gpus("paris") != 4 {
			t.Errorf("to %s paris is %s with %d GPUs", one.name, got, one.gpus("paris"))
		}
	}
}

// A replica whose heartbeat is refused is of no use to agents: the others do not hear
// of whom it hears. It says why, and that it is a refusal.
func TestRefused_Everything(t *testing.T) {
	r := newReplicas(t, "a", "b")
	a, b := r.all[0], r.all[1]
	must(t, b.report("paris", 7, 1, flavors("paris", 8, 0)))
	a.refuses(store.RefusalFull, "etcdserver: mvcc: database space exceeded", func(string, string) bool { return true })
	r.tick(25)
	st := a.store.Status()
	if st.Cut == "" || !strings.Contains(st.Cut, "database space exceeded") || !strings.Contains(st.Err().Error(), "heartbeat a") || !strings.Contains(st.Err().Error(), "defragment") {
		t.Errorf("status: cut %q, %v", st.Cut, st.Err())
	}
	if got := b.store.Status(); got.Cut != "" || len(got.Refused) != 0 {
		t.Errorf("b, of which nothing is refused: %+v", got)
	}
	a.api.Refuse = nil
	r.tick(3)
	if st := a.store.Status(); st.Cut != "" || st.Err() != nil {
		t.Errorf("after it: cut %q, %v", st.Cut, st.Err())
	}
}
