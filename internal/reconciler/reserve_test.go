package reconciler

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/memremote"
)

// newDesk is a story in which rome may ask for team vision.
func newDesk(t *testing.T) *story {
	t.Helper()
	s := newStory(t, "ledger")
	s.push(map[string]string{
		"clusters/rome.yaml":  "apiVersion: fleetbroker.io/v1alpha1\nkind: Cluster\nmetadata: {name: rome}\nspec: {roles: [consumer], reservations: {tenant: vision, defaultDuration: 24h}}\n",
		"clusters/paris.yaml": "apiVersion: fleetbroker.io/v1alpha1\nkind: Cluster\nmetadata: {name: paris}\nspec: {roles: [provider], endpoint: \"https://paris.example.org:6443\"}\n",
	})
	s.rest()
	return s
}

func wants(cpu, memory, gpu string) wire.ReservationRequest {
	return wire.ReservationRequest{RequestedResources: &wire.Quantities{CPU: cpu, Memory: memory, GPU: gpu}}
}

// told is what a client was answered.
type told struct {
	reservation wire.Reservation
	err         error
}

func (o told) refusal(t *testing.T) *wire.Refusal {
	t.Helper()
	var r *wire.Refusal
	if !errors.As(o.err, &r) {
		t.Fatalf("answered %+v, %v; want a refusal", o.reservation, o.err)
	}
	return r
}

// start asks as a client does, and returns once the request waits. What it is
// answered comes over the channel, 2xx noted as the server does.
func (s *story) ask(ctx context.Context, cluster, key string, q wire.ReservationRequest) <-chan told {
	s.t.Helper()
	out := make(chan told, 1)
	before := s.waiting()
	done := make(chan struct{})
	go func() {
		defer close(done)
		res, err := s.r.Reserve(ctx, wire.Ask{Cluster: cluster, Key: key, Request: q})
		if err == nil {
			s.r.Answered(res.ID, true)
		}
		out <- told{res, err}
	}()
	s.until(done, func() bool { return s.waiting() > before })
	return out
}

func (s *story) waiting() int {
	s.r.intake.mu.Lock()
	defer s.r.intake.mu.Unlock()
	return len(s.r.intake.waiting)
}

func (s *story) until(done <-chan struct{}, is func() bool) {
	s.t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-done:
			return
		case <-tick.C:
		}
	}
}

// reserve asks and makes rounds until there is an answer.
func (s *story) reserve(cluster, key string, q wire.ReservationRequest) told {
	s.t.Helper()
	return s.decide(s.ask(context.Background(), cluster, key, q))
}

func (s *story) decide(answer <-chan told) told {
	s.t.Helper()
	for range 20 {
		s.at = s.at.Add(time.Second)
		_, _ = s.r.Round(context.Background())
		select {
		case o := <-answer:
			return o
		case <-time.After(20 * time.Millisecond):
		}
	}
	s.t.Fatal("no answer after 20 rounds")
	return told{}
}

// files are the paths on the remote's ledger below a directory.
func (s *story) files(dir string) []string {
	s.t.Helper()
	t, err := s.remote.Tree(s.remote.Head("ledger"))
	if err != nil {
		s.t.Fatal(err)
	}
	sub, err := t.Sub(dir)
	if err != nil {
		s.t.Fatal(err)
	}
	out := []string{}
	_ = sub.Walk(func(name string, _ tree.Entry) error { out = append(out, name); return nil })
	return out
}

func TestReserve(t *testing.T) {
	s := newDesk(t)
	o := s.reserve("rome", "k1", wants("4", "16Gi", "2"))
	if o.err != nil {
		t.Fatal(o.err)
	}
	got := o.reservation
	if got.Status.Phase != wire.PhaseReserved || got.TargetClusterID != "paris" || got.RequesterID != "rome" || got.Tenant != "vision" || len(got.Contracts) != 1 {
		t.Fatalf("answered %+v", got)
	}
	if got.Commit != s.remote.Head("ledger").String() {
		t.Errorf("the answer names commit %s, the remote has %s", got.Commit, s.remote.Head("ledger"))
	}
	if files := s.files("requests"); len(files) != 1 || "requests/"+files[0] != got.Path {
		t.Errorf("requests/ holds %q, the answer names %s", files, got.Path)
	}
	if end := got.Status.ExpiresAt; end == nil || end.Sub(*got.Status.ReservedAt) != 24*time.Hour {
		t.Errorf("expires at %v, want the default of 24 h", end)
	}
	if e := got.Contracts[0].Endpoint; e != "https://paris.example.org:6443" {
		t.Errorf("the provider's endpoint is %q", e)
	}
	if d := got.Contracts[0].Decision; d == nil || d.Considered != 1 {
		t.Errorf("the decision is %+v", d)
	}
	c := s.r.standing.Load().ledger.Contract(got.Contract)
	if c == nil || c.Spec.Intent.Author != "cluster rome" {
		t.Errorf("the contract says %+v of who asked", c)
	}
	s.expect(s.rest(), "peering vision/"+got.ID+" on paris/h100: nothing is granted yet")
}

// Both sides hear of a contract as soon as it is acknowledged, and only they.
func TestInstructions(t *testing.T) {
	s := newDesk(t)
	_, rome := s.r.Instructions("rome")
	before, paris := s.r.Instructions("paris")
	_, other := s.r.Instructions("milan")
	waits := s.ask(context.Background(), "rome", "k1", wants("4", "16Gi", "2"))
	if _, err := s.r.Round(context.Background()); err != nil {
		t.Fatal(err)
	}
	got := <-waits
	for name, ch := range map[string]<-chan struct{}{"rome": rome, "paris": paris} {
		select {
		case <-ch:
		default:
			t.Errorf("%s was not woken by the commit", name)
		}
	}
	select {
	case <-other:
		t.Error("milan was woken by a commit that is nothing to it")
	default:
	}
	gives, _ := s.r.Instructions("paris")
	takes, _ := s.r.Instructions("rome")
	if gives.Version == before.Version || len(gives.Provide) != 1 || len(gives.Consume) != 0 || len(takes.Consume) != 1 || len(takes.Requests) != 1 {
		t.Fatalf("paris is told %+v, rome %+v", gives, takes)
	}
	i := gives.Provide[0]
	if i.Contract != got.reservation.Contract || i.Consumer != "rome" || !i.Request || i.ProviderEndpoint != "https://paris.example.org:6443" || i.Phase != v1alpha1.PhaseReserved {
		t.Errorf("paris is told %+v", i)
	}
	if again, _ := s.r.Instructions("paris"); &again.Provide[0] != &gives.Provide[0] {
		t.Error("instructions that have not changed are made again for each who asks")
	}
	if held := s.r.Held("paris"); held.GPU != "2" || s.r.Held("paris") != held {
		t.Errorf("paris holds %+v, then %+v", held, s.r.Held("paris"))
	}
	if q := takes.Requests[0]; q.ID != got.reservation.ID || q.Key != "k1" || q.State != v1alpha1.IntentPlaced {
		t.Errorf("rome is told %+v", q)
	}
	owed := s.r.Owed("paris")
	if len(owed) != 1 || owed[0].Status.Phase != wire.PhaseReserved || owed[0].Requested.GPU != "2" || owed[0].RequesterID != "rome" || s.r.Owed("rome") != nil {
		t.Errorf("in the first form paris owes %+v", owed)
	}
	s.rest()
	gives, _ = s.r.Instructions("paris")
	s.start()
	s.rest()
	if again, _ := s.r.Instructions("paris"); again.Version != gives.Version {
		t.Errorf("after a restart the same list has version %s, not %s", again.Version, gives.Version)
	}
}

// The same key is the same reservation: of the same daemon, of one that has
// started again, and of another one.
func TestRetryWithKey(t *testing.T) {
	s := newDesk(t)
	first := s.reserve("rome", "k1", wants("4", "16Gi", "2")).reservation
	again := s.reserve("rome", "k1", wants("4", "16Gi", "2"))
	if again.err != nil || again.reservation.ID != first.ID || again.reservation.Contract != first.Contract {
		t.Errorf("the retry was answered %+v, %v", again.reservation, again.err)
	}
	s.start()
	after := s.reserve("rome", "k1", wants("4", "16Gi", "2"))
	if after.err != nil || after.reservation.Contract != first.Contract || after.reservation.Commit == "" {
		t.Errorf("after a restart the retry was answered %+v, %v", after.reservation, after.err)
	}
	if files := s.files("requests"); len(files) != 1 {
		t.Errorf("requests/ holds %q", files)
	}
	if r := s.reserve("rome", "k1", wants("8", "16Gi", "2")).refusal(t); r.Status != http.StatusConflict || r.Body.Reason != wire.ReasonKeyReused {
		t.Errorf("another request under the same key was answered %+v", r)
	}
}

// A push whose answer is lost is found again by the retry, and nothing is
// reserved twice. Where it was not carried out, the retry reserves.
func TestRetryAfterALostAnswer(t *testing.T) {
	for name, persisted := range map[string]bool{"Persisted": true, "NotPersisted": false} {
		for what, key := range map[string]string{"Key": "k1", "NoKey": ""} {
			t.Run(name+what, func(t *testing.T) {
				s := newDesk(t)
				down := false
				s.remote.Fault = func(op memremote.Op) (bool, error) {
					if op.Kind == memremote.Push {
						down = true
						return persisted, errors.New("the line is down")
					}
					if down {
						return false, errors.New("the line is still down")
					}
					return true, nil
				}
				o := s.reserve("rome", key, wants("4", "16Gi", "2"))
				if r := o.refusal(t); r.Status != http.StatusServiceUnavailable || r.RetryAfter == 0 {
					t.Errorf("answered %+v", r)
				}
				s.remote.Fault = nil
				s.start()
				again := s.reserve("rome", key, wants("4", "16Gi", "2"))
				if again.err != nil || len(again.reservation.Contracts) != 1 {
					t.Fatalf("the retry was answered %+v, %v", again.reservation, again.err)
				}
				if files := s.files("requests"); len(files) != 1 {
					t.Errorf("requests/ holds %q", files)
				}
			})
		}
	}
}

// Without a key, an equal body is a retry only of a request that was not
// answered, and only within a minute.
func TestEqualBodiesWithoutKey(t *testing.T) {
	s := newDesk(t)
	body := wants("4", "16Gi", "1")
	first := s.reserve("rome", "", body)
	second := s.reserve("rome", "", body)
	if first.err != nil || second.err != nil || first.reservation.ID == second.reservation.ID {
		t.Fatalf("two requests, the first answered, are %s and %s (%v, %v)", first.reservation.ID, second.reservation.ID, first.err, second.err)
	}
	a, b := s.ask(context.Background(), "rome", "", body), s.ask(context.Background(), "rome", "", body)
	third, fourth := s.decide(a), s.decide(b)
	if third.reservation.ID == fourth.reservation.ID {
		t.Error("two requests at once were taken for one")
	}
	// A client that goes while its commit is pushed was not answered.
	ctx, cancel := context.WithCancel(context.Background())
	s.remote.Fault = func(op memremote.Op) (bool, error) {
		if op.Kind == memremote.Push {
			cancel()
		}
		return true, nil
	}
	gone := s.ask(ctx, "rome", "", body)
	if _, err := s.r.Round(context.Background()); err != nil {
		t.Fatal(err)
	}
	if o := <-gone; o.err == nil {
		t.Fatal("a client that had gone was answered 2xx")
	}
	s.remote.Fault = nil
	before := len(s.files("requests"))
	again := s.reserve("rome", "", body)
	if again.err != nil || len(s.files("requests")) != before {
		t.Errorf("the retry of a request whose client had gone made another: %v", again.err)
	}
	s.start()
	s.at = s.at.Add(2 * time.Minute)
	late := s.reserve("rome", "", body)
	if late.err != nil || len(s.files("requests")) != before+1 {
		t.Errorf("an equal body two minutes later is no retry: %v", late.err)
	}
}

func TestReserveIsRefused(t *testing.T) {
	cases := map[string]struct {
		cluster string
		body    wire.ReservationRequest
		status  int
		reason  string
		says    string
	}{
		"NothingFits":  {"rome", wants("4", "16Gi", "9"), 409, "NothingFits", "nothing is reserved"},
		"NotEnabled":   {"paris", wants("4", "16Gi", "1"), 403, wire.ReasonNotEnabled, "add `reservations"},
		"NoCPU":        {"rome", wants("", "16Gi", ""), 400, "BadRequest", "cpu"},
		"ZeroMemory":   {"rome", wants("4", "0", ""), 400, "BadRequest", "memory"},
		"NegativeCPU":  {"rome", wants("-4", "1Gi", ""), 400, "BadRequest", "cpu"},
		"BadDuration":  {"rome", wire.ReservationRequest{RequestedResources: &wire.Quantities{CPU: "1", Memory: "1Gi"}, Duration: "tomorrow"}, 400, "BadRequest", "duration"},
		"Nothing":      {"rome", wire.ReservationRequest{}, 400, "BadRequest", "nothing is asked for"},
		"OtherCluster": {"rome", wire.ReservationRequest{Spec: &v1alpha1.IntentSpec{Consumer: "paris"}}, 400, "BadRequest", "spec.consumer"},
		"BadSpec":      {"rome", wire.ReservationRequest{Spec: &v1alpha1.IntentSpec{Objective: "fame"}}, 400, "BadRequest", "objective"},
		"TooImportant": {"rome", func() wire.ReservationRequest {
			q := wants("1", "1Gi", "1")
			q.Priority = new(int32)
			*q.Priority = -1
			return q
		}(), 400, "BadRequest", "priority"},
	}
	s := newDesk(t)
	head := s.remote.Head("ledger")
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s.t = t
			r := s.reserve(tc.cluster, "", tc.body).refusal(t)
			if r.Status != tc.status || r.Body.Reason != tc.reason || !strings.Contains(r.Body.Error, tc.says) {
				t.Errorf("answered %+v, want %d %s …%s…", r, tc.status, tc.reason, tc.says)
			}
			if r.Status == http.StatusConflict && r.Body.Rejected["gpu.count"]+r.Body.Rejected["gpu"]+len(r.Body.Rejected) == 0 {
				t.Errorf("nothing explains the refusal: %+v", r.Body)
			}
		})
	}
	s.t = t
	s.expect(s.rest())
	if s.remote.Head("ledger") != head {
		t.Error("a refused request left something in the repository")
	}
	if len(s.r.View().Fleet.Intents) != 0 {
		t.Errorf("the view knows intents that nobody wrote: %v", s.r.View().Fleet.Intents)
	}
}

// One that may wait is written, answered as pending, and placed when there is
// room; whoever asks again is told.
func TestReserveQueues(t *testing.T) {
	s := newDesk(t)
	full := s.reserve("rome", "full", wants("4", "16Gi", "8")).reservation
	q := wants("4", "16Gi", "8")
	q.Queue = &v1alpha1.Queue{Policy: "wait"}
	o := s.reserve("rome", "later", q)
	if o.err != nil || o.reservation.Status.Phase != wire.PhasePending || o.reservation.Contract != "" {
		t.Fatalf("answered %+v, %v", o.reservation, o.err)
	}
	in, _ := s.r.Instructions("rome")
	if len(in.Requests) != 2 || len(in.Consume) != 1 {
		t.Errorf("rome is told %+v", in)
	}
	if err := s.release("rome", full.ID); err != nil {
		t.Fatal(err)
	}
	s.rest()
	again := s.reserve("rome", "later", q)
	if again.err != nil || len(again.reservation.Contracts) != 1 {
		t.Errorf("after room was made: %+v, %v", again.reservation, again.err)
	}
}

func (s *story) release(cluster, id string) error {
	s.t.Helper()
	done := make(chan struct{})
	var err error
	before := s.waiting()
	go func() {
		defer close(done)
		err = s.r.Release(context.Background(), cluster, id)
	}()
	s.until(done, func() bool { return s.waiting() > before })
	for range 20 {
		s.at = s.at.Add(time.Second)
		_, _ = s.r.Round(context.Background())
		select {
		case <-done:
			return err
		case <-time.After(20 * time.Millisecond):
		}
	}
	s.t.Fatal("no answer to a release after 20 rounds")
	return nil
}

func TestRelease(t *testing.T) {
	s := newDesk(t)
	got := s.reserve("rome", "k1", wants("4", "16Gi", "2")).reservation
	s.rest()
	var r *wire.Refusal
	if err := s.release("rome", "rq-nobody"); !errors.As(err, &r) || r.Status != http.StatusNotFound {
		t.Errorf("an unknown reservation: %v", err)
	}
	if err := s.release("rome", got.ID); err != nil {
		t.Fatal(err)
	}
	if c := s.r.standing.Load().ledger.Contract(got.Contract); c == nil || c.Status.Phase != v1alpha1.PhaseReleasing {
		t.Errorf("the contract is %+v", c)
	}
	if err := s.release("rome", got.ID); err != nil {
		t.Errorf("a second release: %v", err)
	}
	s.rest()
	// A retry that the network had held back does not bring it to life again.
	late := s.reserve("rome", "k1", wants("4", "16Gi", "2"))
	if late.err != nil || late.reservation.Status.Phase != wire.PhaseReleased {
		t.Errorf("a late retry was answered %+v, %v", late.reservation, late.err)
	}
	s.expect(s.rest())
}

// Whoever waits when the daemon is told to stop gets an answer, and so does who
// comes later.
func TestStoppingAnswersEverybody(t *testing.T) {
	s := newDesk(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	waits := s.ask(context.Background(), "rome", "k1", wants("4", "16Gi", "2"))
	if err := s.r.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if r := (<-waits).refusal(t); r.Status != http.StatusServiceUnavailable {
		t.Errorf("answered %+v", r)
	}
	if r := (<-s.ask(context.Background(), "rome", "k1", wants("4", "16Gi", "2"))).refusal(t); r.Status != http.StatusServiceUnavailable {
		t.Errorf("who came later was answered %+v", r)
	}
}

// Two daemons that hear the same request at once make one reservation of it.
func TestTwoDaemonsOneKey(t *testing.T) {
	s := newDesk(t)
	one := s.r
	s.start()
	two := s.r
	if _, err := two.Round(context.Background()); err != nil {
		t.Fatal(err)
	}
	b := s.ask(context.Background(), "rome", "k1", wants("4", "16Gi", "2"))
	s.r = one
	a := s.ask(context.Background(), "rome", "k1", wants("4", "16Gi", "2"))
	first := s.decide(a)
	s.r = two
	second := s.decide(b)
	if first.err != nil || second.err != nil || first.reservation.Contract != second.reservation.Contract {
		t.Errorf("answered %+v, %v and %+v, %v", first.reservation, first.err, second.reservation, second.err)
	}
	if files := s.files("requests"); len(files) != 1 {
		t.Errorf("requests/ holds %q", files)
	}
}

// Many that wait land in one commit.
func TestGroupCommit(t *testing.T) {
	s := newDesk(t)
	var answers []<-chan told
	for range 8 {
		answers = append(answers, s.ask(context.Background(), "rome", "", wants("1", "1Gi", "1")))
	}
	out, err := s.r.Round(context.Background())
	if err != nil || len(out.Committed) != 1 {
		t.Fatalf("%d commits, %v", len(out.Committed), err)
	}
	seen := map[string]bool{}
	for _, a := range answers {
		o := <-a
		if o.err != nil || o.reservation.Commit != out.Committed[0].Commit.Hash.String() {
			t.Errorf("answered %+v, %v", o.reservation, o.err)
		}
		seen[o.reservation.ID] = true
	}
	if len(seen) != 8 {
		t.Errorf("%d reservations of 8 requests", len(seen))
	}
	for id := range seen {
		if !strings.Contains(out.Committed[0].Commit.Message, "Requested-By: vision/"+id+" cluster rome") {
			t.Errorf("the commit does not say who asked for %s:\n%s", id, out.Committed[0].Commit.Message)
		}
	}
	if r := s.reserve("rome", "", wants("1", "1Gi", "1")).refusal(t); r.Status != http.StatusConflict {
		t.Errorf("the ninth of eight cards was answered %+v", r)
	}
}

// What the remote refuses is said to who asked for it and to nobody else.
func TestRemoteRefusesOneRequest(t *testing.T) {
	s := newDesk(t)
	a := s.ask(context.Background(), "rome", "evil", wants("1", "1Gi", "1"))
	b := s.ask(context.Background(), "rome", "good", wants("2", "1Gi", "1"))
	evil := idOf(&waiter{ask: wire.Ask{Cluster: "rome", Key: "evil"}}, "")
	s.remote.Hook = func(_ string, paths []string) error {
		for _, p := range paths {
			if strings.Contains(p, evil) {
				return errors.New("policy says no")
			}
		}
		return nil
	}
	if r := s.decide(a).refusal(t); r.Status != http.StatusServiceUnavailable || !strings.Contains(r.Body.Error, "policy says no") {
		t.Errorf("answered %+v", r)
	}
	if o := <-b; o.err != nil {
		t.Errorf("the other was answered %v", o.err)
	}
}

// What another daemon has written since counts: neither a refusal nor "there is
// none" is said of the past.
func TestNothingIsSaidOfThePast(t *testing.T) {
	s := newDesk(t)
	one := s.r
	full := s.reserve("rome", "full", wants("4", "16Gi", "8")).reservation
	s.rest()
	s.start()
	two := s.r
	s.rest()
	s.r = one
	if err := s.release("rome", full.ID); err != nil {
		t.Fatal(err)
	}
	s.rest()
	s.r = two // which has not asked the remote since
	if o := s.reserve("rome", "next", wants("4", "16Gi", "8")); o.err != nil {
		t.Errorf("with all released through the other daemon: %v", o.err)
	}
	s.r = one
	next := idOf(&waiter{ask: wire.Ask{Cluster: "rome", Key: "next"}}, "")
	if err := s.release("rome", next); err != nil {
		t.Errorf("a reservation made through the other daemon: %v", err)
	}
}

// Requests that ended leave the tree when their contracts do, and nothing is
// left of them but history.
func TestOldRequestsAreSwept(t *testing.T) {
	s := newDesk(t)
	got := s.reserve("rome", "k1", wants("4", "16Gi", "2")).reservation
	kept := s.reserve("rome", "k2", wants("4", "16Gi", "1")).reservation
	s.rest()
	if err := s.release("rome", got.ID); err != nil {
		t.Fatal(err)
	}
	s.rest()
	s.at = s.at.Add(23 * time.Hour)
	s.rest()
	if files := s.files("requests"); len(files) != 2 {
		t.Fatalf("after a day requests/ holds %q", files)
	}
	s.at = s.at.Add(8 * 24 * time.Hour)
	s.rest()
	s.rest()
	if files := s.files("requests"); len(files) != 1 && s.r.standing.Load().ledger.State("vision", kept.ID).Status.State != v1alpha1.IntentDone {
		t.Errorf("after nine days requests/ holds %q", files)
	}
	if st := s.r.standing.Load().ledger.State("vision", got.ID); st != nil {
		t.Errorf("the ledger still remembers %+v", st.Status)
	}
	s.at = s.at.Add(9 * 24 * time.Hour)
	s.rest()
	s.rest()
	if files := append(s.files("requests"), s.files("contracts")...); len(files) != 1 {
		t.Errorf("after all ended long ago the ledger holds %q", files) // the spend of the month
	}
}
