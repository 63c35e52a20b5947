package sim

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
)

// client is what asks for capacity in one consumer cluster, as its agent does:
// one key a wish, sent again to whichever daemon answers until there is an
// answer, over crashes, cut connections and answers that are lost.
type client struct {
	s       *sim
	cluster string
	tenant  string
	wanted  []*wanted
	next    int
}

// wanted is one reservation and what its client knows of it.
type wanted struct {
	c    *client
	key  string
	id   string
	ask  wire.ReservationRequest
	call *call // under way

	// known: answered 2xx. refused: answered that nothing is reserved.
	known, refused bool
	// leaving: its client wants to be rid of it; left: it was told so.
	leaving, left bool
	// swept: it ended, and its request was taken out after the fleet's retention.
	swept bool
}

// call is one request to one daemon. over says that its goroutine has ended.
type call struct {
	d       *daemon
	life    int
	release bool
	cancel  context.CancelFunc

	over bool
	res  wire.Reservation
	err  error
}

func newClient(s *sim, i int) *client {
	c := &client{s: s, cluster: consumerName(i), tenant: tenantName(i % s.knobs.tenants)}
	s.clients = append(s.clients, c)
	s.after(span(s.rng, time.Second, 2*time.Minute), c.want)
	return c
}

// want thinks of something new now and then.
func (c *client) want() {
	s := c.s
	if s.healed {
		return
	}
	if len(c.wanted) < s.knobs.requests {
		c.next++
		w := &wanted{c: c, key: fmt.Sprintf("key%d", c.next)}
		w.id = wire.ReservationID(c.cluster, w.key)
		q := &wire.Quantities{CPU: fmt.Sprint(1 + s.rng.IntN(6)), Memory: fmt.Sprintf("%dGi", 2+s.rng.IntN(30)), Storage: "5Gi"}
		if s.rng.IntN(3) == 0 {
			q.GPU = fmt.Sprint(1 + s.rng.IntN(3))
		}
		w.ask.RequestedResources = q
		if s.rng.IntN(3) == 0 {
			w.ask.Queue = &v1alpha1.Queue{Policy: "wait"}
		}
		c.wanted = append(c.wanted, w)
		s.log("%s wants %s as %s", c.cluster, w.key, w.id)
		w.send()
	}
	s.after(span(s.rng, 5*time.Second, 90*time.Second), c.want)
}

// open reports whether a client still owes itself an answer.
func (w *wanted) open() bool {
	return w.call != nil || w.leaving && !w.left || !w.leaving && !w.known && !w.refused
}

// send asks some daemon that is up, or waits until one is.
func (w *wanted) send() {
	s := w.c.s
	if w.call != nil || !w.open() {
		return
	}
	up := slices.DeleteFunc(slices.Clone(s.daemons), func(d *daemon) bool { return !d.up })
	if len(up) == 0 {
		w.again()
		return
	}
	d := up[s.rng.IntN(len(up))]
	ctx, cancel := context.WithCancel(context.Background())
	one := &call{d: d, life: d.life, release: w.leaving, cancel: cancel}
	w.call = one
	loop, cluster := d.loop, w.c.cluster
	go func() {
		if one.release {
			one.err = loop.Release(ctx, cluster, w.id)
		} else {
			one.res, one.err = loop.Reserve(ctx, wire.Ask{Cluster: cluster, Key: w.key, Request: w.ask})
		}
		one.over = true
	}()
	synctest.Wait() // it lies on the daemon's desk now, or is refused
	d.wake()
	s.after(span(s.rng, 2*time.Second, 40*time.Second), func() {
		if w.call == one && !one.over {
			s.log("%s waits no longer for %s", w.c.cluster, w.key)
			one.cancel()
		}
	})
}

func (w *wanted) again() {
	w.c.s.after(span(w.c.s.rng, 500*time.Millisecond, 10*time.Second), w.send)
}

// leave lets go of a reservation some time after it was made.
func (w *wanted) leave() {
	if !w.leaving && !w.c.s.healed {
		w.leaving = true
		w.c.s.log("%s lets go of %s", w.c.cluster, w.key)
		w.send()
	}
}

// hear takes in what was answered. The connections of a daemon that is no more
// are cut.
func (s *sim) hear() {
	waiting := false
	for _, c := range s.clients {
		for _, w := range c.wanted {
			if w.call == nil {
				continue
			}
			if d := w.call.d; !d.up || d.life != w.call.life {
				w.call.cancel()
			}
			waiting = true
		}
	}
	if !waiting {
		return
	}
	synctest.Wait()
	for _, c := range s.clients {
		for _, w := range c.wanted {
			if w.call != nil && w.call.over {
				w.hear()
			}
		}
	}
}

func (w *wanted) hear() {
	s, one := w.c.s, w.call
	one.cancel()
	w.call = nil
	lost := !one.d.up || one.d.life != one.life || !s.healed && s.rng.Float64() < s.knobs.lostReports
	if !one.release && one.err == nil && one.d.up && one.d.life == one.life {
		one.d.loop.Answered(one.res.ID, !lost)
	}
	var refused *wire.Refusal
	switch {
	case lost:
		// Whatever it was, it did not come through.
	case one.release && (one.err == nil || errors.As(one.err, &refused) && refused.Status == http.StatusNotFound):
		w.left = true
		s.log("%s is told that %s is released", w.c.cluster, w.key)
		w.checkLeft(one.err == nil)
		return
	case one.err == nil:
		w.known = true
		s.log("%s is told that %s is %s on %s", w.c.cluster, w.key, one.res.Status.Phase, one.res.TargetClusterID)
		w.checkAnswer(&one.res)
		if s.rng.IntN(2) == 0 {
			s.after(span(s.rng, time.Second, 5*time.Minute), w.leave)
		}
		return
	case errors.As(one.err, &refused) && refused.Status == http.StatusConflict:
		s.log("%s is told that %s gets nothing: %s", w.c.cluster, w.key, refused.Body.Reason)
		if refused.Body.Reason == wire.ReasonKeyReused {
			s.fail("desk", "%s sends %s again as it was, and is told that the key stands for something else", w.c.cluster, w.key)
		}
		w.refused = true
		w.checkRefused()
		return
	}
	w.again()
}

// checkAnswer: what is answered stands on the remote's ledger, in the commit
// that the answer names.
func (w *wanted) checkAnswer(res *wire.Reservation) {
	s := w.c.s
	h, err := tree.ParseHash(res.Commit)
	switch {
	case res.ID != w.id || res.RequesterID != w.c.cluster:
		s.fail("desk", "%s asks for %s and is answered for %s of %s", w.c.cluster, w.id, res.ID, res.RequesterID)
	case err != nil || !s.books.landed[h]:
		s.fail("1", "%s is told that %s stands in commit %q, and the ledger has no such commit", w.c.cluster, w.id, res.Commit)
	default:
		t, err := s.remote.Tree(h)
		if err != nil {
			s.fail("sim", "%v", err)
			return
		}
		if requestIn(t, res.Path) == nil {
			s.fail("1", "%s is told that %s stands as %s in %s, and it does not", w.c.cluster, w.id, res.Path, h.Short())
		}
		for _, k := range res.Contracts {
			if !s.hasContract(t, w.c.tenant, w.id, k.Name) {
				s.fail("1", "%s is told of contract %s in %s, and it is not there", w.c.cluster, k.Name, h.Short())
			}
		}
		if res.Status.Phase == wire.PhaseReserved && len(res.Contracts) == 0 {
			s.fail("1", "%s is told that %s is reserved by no contract", w.c.cluster, w.id)
		}
	}
}

// checkLeft: what is released is suspended on the ledger, or was swept.
func (w *wanted) checkLeft(found bool) {
	s := w.c.s
	if s.stopped != nil {
		return
	}
	on := s.requests()[w.id]
	if found && on != nil && !on.Spec.Suspend {
		s.fail("1", "%s is told that %s is released, and it stands as before", w.c.cluster, w.id)
	}
	if !found && on != nil && !on.Spec.Suspend {
		s.fail("desk", "%s is told that there is no %s, and it stands on the ledger", w.c.cluster, w.id)
	}
}

// checkRefused: what is refused is not on the ledger.
func (w *wanted) checkRefused() {
	if s := w.c.s; s.stopped == nil && s.requests()[w.id] != nil {
		s.fail("1", "%s is told that %s gets nothing, and it stands on the ledger", w.c.cluster, w.id)
	}
}

func (s *sim) hasContract(t tree.Tree, tenant, intent, name string) bool {
	sub, err := t.Sub("contracts/" + tenant)
	found := false
	if err == nil {
		err = sub.Walk(func(path string, _ tree.Entry) error {
			found = found || strings.HasSuffix(path, "/"+intent+"/"+name+".yaml")
			return nil
		})
	}
	if err != nil {
		s.fail("sim", "%v", err)
	}
	return found
}

// requestIn is a request's file in a tree, nil when there is none that can be
// read.
func requestIn(t tree.Tree, path string) *v1alpha1.ResourceIntent {
	raw, err := t.ReadFile(path, 0)
	it := new(v1alpha1.ResourceIntent)
	if err != nil || yaml.Unmarshal(raw, it) != nil {
		return nil
	}
	return it
}

// requests are those on the remote's ledger now, by name.
func (s *sim) requests() map[string]*v1alpha1.ResourceIntent { return s.requestsIn(s.ledgerTree()) }

func (s *sim) requestsIn(t tree.Tree) map[string]*v1alpha1.ResourceIntent {
	out := map[string]*v1alpha1.ResourceIntent{}
	sub, err := t.Sub("requests")
	if err == nil {
		err = sub.Walk(func(path string, _ tree.Entry) error {
			it := requestIn(sub, path)
			if it == nil {
				return fmt.Errorf("requests/%s cannot be read", path)
			}
			if out[it.Metadata.Name] != nil {
				s.fail("desk", "%s stands twice under requests/", it.Metadata.Name)
			}
			out[it.Metadata.Name] = it
			return nil
		})
	}
	if err != nil {
		s.fail("desk", "read the requests: %v", err)
	}
	return out
}

// forgetLost lets clients ask again for what a rewritten ledger has lost, and
// let go again of what it brought back.
func (s *sim) forgetLost() {
	on := s.requests()
	for _, c := range s.clients {
		for _, w := range c.wanted {
			switch it := on[w.id]; {
			case it == nil && w.known && !w.leaving:
				w.known = false
			case it != nil && !it.Spec.Suspend && w.left:
				w.left = false
			default:
				continue
			}
			s.log("what became of %s of %s is lost with the ledger's history", w.key, c.cluster)
			w.again()
		}
	}
}

// hangUp ends all calls, at the end of a run.
func (s *sim) hangUp() {
	for _, c := range s.clients {
		for _, w := range c.wanted {
			if w.call != nil {
				w.call.cancel()
			}
		}
	}
	synctest.Wait()
}

// checkSweep: requests are taken out only when they hold nothing.
func (s *sim) checkSweep(before, t tree.Tree) {
	was, on := s.requestsIn(before), s.requestsIn(t)
	for _, c := range s.clients {
		for _, w := range c.wanted {
			w.swept = w.swept || was[w.id] != nil && on[w.id] == nil
		}
	}
	for name, k := range s.books.contracts {
		if isRequest(k) && k.Status.Phase.Held() && on[k.Spec.Intent.Name] == nil {
			s.fail("1", "request %s is taken out, and contract %s is %s", k.Spec.Intent.Name, name, k.Status.Phase)
		}
	}
}

// isRequest tells a contract of a request.
func isRequest(k *v1alpha1.Contract) bool { return under(k.Spec.Intent.Path, "requests") }

// waiting says which client still waits for an answer, "" when none does.
func (s *sim) waiting() string {
	for _, c := range s.clients {
		for _, w := range c.wanted {
			if w.open() {
				return fmt.Sprintf("%s waits for an answer about %s (%s)", c.cluster, w.key, w.id)
			}
		}
	}
	return s.unseen()
}

// judgeRequests: every client knows what it has, and nobody else has anything.
func (s *sim) judgeRequests() {
	on := s.requests()
	for _, c := range s.clients {
		for _, w := range c.wanted {
			it := on[w.id]
			delete(on, w.id)
			switch {
			case w.left:
				if it != nil && !it.Spec.Suspend {
					s.fail("1", "%s let go of %s, and it stands on the ledger", c.cluster, w.id)
				}
			case w.known && it == nil && !w.swept:
				s.fail("1", "%s was told that it has %s, and the ledger does not", c.cluster, w.id)
			case w.refused && it != nil:
				s.fail("1", "%s was told that it gets nothing for %s, and the ledger has it", c.cluster, w.id)
			}
		}
	}
	for id := range on {
		s.fail("1", "request %s is on the ledger, and no client sent it", id)
	}
	for name, k := range s.books.contracts {
		if w := s.wantedOf(k); isRequest(k) && k.Status.Phase.Charged() && (w == nil || w.left || w.refused) {
			s.fail("liveness", "contract %s is %s, and nobody asks for %s", name, k.Status.Phase, k.Spec.Intent.Name)
		}
	}
}

func (s *sim) wantedOf(k *v1alpha1.Contract) *wanted {
	for _, c := range s.clients {
		for _, w := range c.wanted {
			if w.id == k.Spec.Intent.Name {
				return w
			}
		}
	}
	return nil
}
