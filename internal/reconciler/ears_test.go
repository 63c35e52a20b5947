package reconciler

import (
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Of two daemons one does not hear a provider that the other one hears: it says
// so once, is contradicted once, and then leaves to the other what the provider
// holds. When nobody hears the provider any more, both act.
func TestHeardByTheOtherDaemon(t *testing.T) {
	s, busy, idle := newMarket(t)
	s.push(map[string]string{
		"intents/vision/more.yaml": "apiVersion: fleetbroker.io/v1alpha1\nkind: ResourceIntent\nmetadata: {name: more, namespace: vision}\nspec:\n  stage: reserve\n  resources: {cpu: \"2\", memory: 2Gi}\n  placement: {providers: {allow: [idle]}}\n",
		"intents/vision/wait.yaml": "apiVersion: fleetbroker.io/v1alpha1\nkind: ResourceIntent\nmetadata: {name: wait, namespace: vision}\nspec:\n  resources: {cpu: \"100\", memory: 2Gi}\n  placement: {providers: {allow: [busy]}}\n",
	})
	hears := s.r
	s.start()
	deaf := s.r
	both := map[*Reconciler][]*agent{hears: {busy, idle}, deaf: {busy, idle}}
	pass := func(d time.Duration) (subjects []string) {
		t.Helper()
		for end := s.at.Add(d); s.at.Before(end); {
			s.at = s.at.Add(30 * time.Second)
			for r, agents := range both {
				s.r = r
				for _, a := range agents {
					a.report(nil)
				}
			}
			for range 3 { // each reads what the other one wrote
				for _, r := range []*Reconciler{deaf, hears} {
					out, err := r.Round(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					for _, c := range out.Committed {
						subjects = append(subjects, c.Commit.Subject())
					}
					r.Reread()
				}
			}
		}
		return subjects
	}
	job := func() *v1alpha1.Contract {
		t.Helper()
		s.r = hears
		list := hears.View().Contracts.ByIntent("vision", "job")
		return list[len(list)-1]
	}
	pass(5 * time.Minute)
	before := job()
	if before.Spec.Provider != "busy" || before.Status.Phase != v1alpha1.PhaseReserved || len(hears.View().Contracts.HeldBy("idle")) != 1 {
		t.Fatalf("%s on %s", before.Status.Phase, before.Spec.Provider)
	}
	both[deaf] = []*agent{idle}
	said := pass(10 * time.Minute)
	if len(said) != 2 || !strings.HasPrefix(said[0], "degraded vision/job on busy/cpu: busy is not heard since ") {
		t.Errorf("the one that does not hear busy, and the other one, write %q", said)
	}
	if said := pass(time.Hour); len(said) > 0 {
		t.Errorf("they write again and again: %q", said)
	}
	if now := job(); now.Metadata.Name != before.Metadata.Name || now.Status.Phase != v1alpha1.PhaseReserved {
		t.Errorf("%s is %s: %s", now.Metadata.Name, now.Status.Phase, now.Status.Reason)
	}
	both[hears] = []*agent{idle}
	pass(20 * time.Minute)
	if now := job(); now.Spec.Provider != "idle" {
		t.Errorf("nobody hears busy any more, and its contract is %s on %s: %s", now.Status.Phase, now.Spec.Provider, now.Status.Reason)
	}
	both[hears], both[deaf] = []*agent{busy, idle}, []*agent{busy, idle}
	pass(10 * time.Minute)
	for _, r := range []*Reconciler{deaf, hears} {
		if elsewhere, _ := r.ears.Elsewhere(); len(elsewhere) > 0 {
			t.Errorf("all are heard by both, and elsewhere are %v", elsewhere)
		}
	}
}

// A daemon takes its own word for nobody else's: a provider that is heard again,
// and then lost while no round can be made, is lost.
func TestOwnWordIsNoRumour(t *testing.T) {
	s, busy, idle := newMarket(t)
	pass := func(agents ...*agent) {
		t.Helper()
		s.at = s.at.Add(30 * time.Second)
		for _, a := range agents {
			a.report(nil)
		}
		s.rounds()
	}
	s.push(map[string]string{
		"intents/vision/more.yaml": "apiVersion: fleetbroker.io/v1alpha1\nkind: ResourceIntent\nmetadata: {name: more, namespace: vision}\nspec:\n  stage: reserve\n  resources: {cpu: \"2\", memory: 2Gi}\n  placement: {providers: {allow: [idle]}}\n",
	})
	s.r.Reread()
	job := func() *v1alpha1.Contract {
		list := s.r.View().Contracts.ByIntent("vision", "job")
		return list[len(list)-1]
	}
	for range 6 {
		pass(idle)
	}
	if c := job(); c.Status.Phase != v1alpha1.PhaseDegraded {
		t.Fatalf("busy is silent, and its contract %s: %s", c.Status.Phase, c.Status.Reason)
	}
	s.at = s.at.Add(30 * time.Second)
	busy.report(nil)
	idle.report(nil)
	if out, err := s.r.Round(t.Context()); err != nil || len(out.Committed) != 1 {
		t.Fatalf("%d commits, %v", len(out.Committed), err)
	}
	for range 4 { // and no round is made
		s.at = s.at.Add(30 * time.Second)
		idle.report(nil)
	}
	for range 20 {
		pass(idle)
	}
	if c := job(); c.Spec.Provider != "idle" {
		t.Errorf("busy is lost, and its contract is %s on %s: %s", c.Status.Phase, c.Spec.Provider, c.Status.Reason)
	}
}

// unreached is a Delivery that reaches no cluster.
type unreached struct{ clusters }

func (u *unreached) Observe() (v1alpha1.ConsumerObservations, uint64) {
	all, n := u.clusters.Observe()
	for _, contracts := range all {
		for name := range contracts {
			contracts[name] = v1alpha1.ConsumerObservation{Message: "no route to host"}
		}
	}
	return all, n + 1000 // other words than those of clusters
}

// Of two daemons one does not reach a consumer that the other one serves: it
// says so once, and is silent when it was contradicted.
func TestReachedByTheOtherDaemon(t *testing.T) {
	s := newStory(t, "ledger")
	s.push(map[string]string{"intents/vision/train.yaml": intentOf("train", "4")})
	s.expect(s.rest(), placed, peering)
	serves, delivers := s.r, s.clusters
	s.start()
	cut := s.r
	cut.opts.Delivery = &unreached{}
	said := map[*Reconciler][]string{}
	pass := func() int {
		n := 0
		for range 10 {
			for _, r := range []*Reconciler{cut, serves} {
				s.r = r
				list := s.rest()
				said[r] = append(said[r], list...)
				n += len(list)
			}
		}
		return n
	}
	if n := pass(); n != 2 {
		t.Errorf("the one that does not reach rome writes %q, the other one %q", said[cut], said[serves])
	}
	s.expect(said[cut], "peering vision/train on paris/h100: no route to host")
	s.expect(said[serves], peering)
	serves.opts.Delivery = &unreached{*delivers}
	said = map[*Reconciler][]string{}
	if n := pass(); n != 1 {
		t.Errorf("nobody reaches rome, and they write %q and %q", said[cut], said[serves])
	}
	serves.opts.Delivery = delivers
	n := pass()
	if _, elsewhere := cut.ears.Elsewhere(); n != 1 || len(elsewhere) != 1 {
		t.Errorf("one of them reaches rome again, and they write %q and %q", said[cut], said[serves])
	}
}
