package delivery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/fleetbroker/fleetbroker/internal/api/logs/logtest"
	"github.com/fleetbroker/fleetbroker/test/env/envtest"
)

// countedLock is a Lease that only counts how often it is written.
type countedLock struct {
	resourcelock.Interface
	writes int
	err    error
}

func (l *countedLock) Update(context.Context, resourcelock.LeaderElectionRecord) error {
	l.writes++
	return l.err
}

// A Lease is renewed every eight seconds though the library would every two; what
// is more than a renewal, and what failed, is written at once.
func TestLeaseIsRenewedSparingly(t *testing.T) {
	clock, under := clocktesting.NewFakeClock(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)), &countedLock{}
	held := 0
	lock := &sparingLock{Interface: under, clock: clock, every: 8 * time.Second, held: func(at time.Time) {
		held++
		if at != clock.Now() {
			t.Errorf("held since %s at %s", at, clock.Now())
		}
	}}
	ours := resourcelock.LeaderElectionRecord{HolderIdentity: "ours", LeaseDurationSeconds: 30}
	renew := func(want int, record resourcelock.LeaderElectionRecord) {
		t.Helper()
		record.RenewTime.Time = clock.Now()
		if err := lock.Update(t.Context(), record); !errors.Is(err, under.err) || under.writes != want {
			t.Errorf("after %s: %d writes, %v, want %d", clock.Now().Format(time.TimeOnly), under.writes, err, want)
		}
	}
	renew(1, ours)
	for _, want := range []int{1, 1, 1, 2, 2, 2, 2, 3} {
		clock.Step(2 * time.Second)
		renew(want, ours)
	}
	taken := ours
	taken.LeaderTransitions++
	renew(4, taken)
	renew(5, resourcelock.LeaderElectionRecord{LeaseDurationSeconds: 1}) // given up
	under.err = errors.New("the Lease is another's")
	renew(6, ours)
	renew(7, ours)
	under.err = nil
	renew(8, ours)
	renew(8, ours)
	if held != 5 { // eight writes less the two that failed and the one that gave it up
		t.Errorf("the Lease was held anew %d times", held)
	}
}

// A daemon that hung for longer than its Lease neither writes nor speaks, though
// nobody has told it yet; if nobody took the Lease, its next renewal begins a
// term.
func TestLapsedLease(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))
	w := newWorker("rome", &Options{Clock: clock, Log: slog.New(slog.DiscardHandler), LeaseDuration: 30 * time.Second}, func() {})
	is := func(leads bool) {
		t.Helper()
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.leads() != leads || w.speaks() != leads {
			t.Errorf("at %s it leads: %v, speaks: %v; want %v", clock.Now().Format(time.TimeOnly), w.leads(), w.speaks(), leads)
		}
	}
	is(false)
	term, end := context.WithCancel(t.Context())
	w.renew(clock.Now())
	w.lead(term)
	is(true)
	slice := key{Kind: kindContract, Name: "vision-train-0-aaaa"}
	w.loaded = 7
	clock.Step(29 * time.Second)
	is(true)
	w.renew(clock.Now())
	if clock.Step(29 * time.Second); w.loaded != 7 {
		t.Error("a renewal in time began a term")
	}
	is(true)
	clock.Step(time.Second)
	is(false)
	w.dirty[slice] = fresh
	if lead := w.take(); lead != nil {
		t.Error("it would write")
	}
	if w.renew(clock.Now()); w.loaded != 0 || w.dirty[slice] != drift {
		t.Error("others may have written since, and it goes on as if not")
	}
	is(true)
	end()
	is(false)
	w.renew(clock.Now())
	is(false)
}

// A daemon that could not take part in the election for a while does not go on
// saying so beside the one that was elected.
func TestElectionProblemPasses(t *testing.T) {
	w := newWorker("rome", &Options{Clock: clocktesting.NewFakeClock(time.Now()), Log: slog.New(slog.DiscardHandler), LeaseDuration: 30 * time.Second}, func() {})
	w.problems.lease = "take part in the election for the Lease: forbidden"
	if w.saw(resourcelock.LeaderElectionRecord{HolderIdentity: "other"}); w.problems.lease != "" {
		t.Errorf("it still says: %s", w.problems.lease)
	}
}

// A cluster that nobody has tried to reach has no problem yet: who waits until all clusters
// have what they shall have, or are given up, waits for it too.
func TestUntriedClusterIsNotGivenUp(t *testing.T) {
	w := newWorker("rome", &Options{Clock: clocktesting.NewFakeClock(time.Now()), Log: slog.New(slog.DiscardHandler), LeaseDuration: 30 * time.Second}, func() {})
	if st := w.status(); st.Problem != "" || st.Reachable {
		t.Errorf("its problem is %q, reachable: %t", st.Problem, st.Reachable)
	}
}

// A Lease that this account may not write is the cluster's problem until it may, though
// it can be read.
func TestRefusedLeaseIsAProblem(t *testing.T) {
	lines := &logtest.Lines{}
	w := newWorker("rome", &Options{Identity: "ours", Clock: clocktesting.NewFakeClock(time.Now()), Log: lines.Logger(), LeaseDuration: 30 * time.Second}, func() {})
	under := &countedLock{err: apierrors.NewForbidden(schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}, "fleetbroker", errors.New("no"))}
	lock := &sparingLock{Interface: under, clock: w.options.Clock, every: time.Second, saw: w.saw, held: w.renew, refused: w.leaseRefused}
	if err := lock.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "ours"}); !apierrors.IsForbidden(err) {
		t.Fatal(err)
	}
	w.saw(resourcelock.LeaderElectionRecord{}) // nobody has it
	w.problems.reach = "connection refused"
	if got := w.status().Problem; !strings.Contains(got, "connection refused") { // what is first wrong is shown first
		t.Errorf("its problem is %q", got)
	}
	w.problems.reach = ""
	if got := w.status().Problem; !strings.Contains(got, "Lease is refused") || !strings.Contains(got, "kubeconfig's user") {
		t.Errorf("its problem is %q", got)
	}
	w.saw(resourcelock.LeaderElectionRecord{HolderIdentity: "ours"}) // of before it was refused
	if got := w.status().Problem; !strings.Contains(got, "Lease is refused") {
		t.Errorf("it holds a Lease that it may not renew, and its problem is %q", got)
	}
	w.saw(resourcelock.LeaderElectionRecord{HolderIdentity: "other"})
	if got := w.status().Problem; got != "" {
		t.Errorf("another daemon delivers, and its problem is %q", got)
	}
	w.leaseRefused(under.err)
	under.err = nil
	if err := lock.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "ours"}); err != nil {
		t.Fatal(err)
	}
	if got := w.status().Problem; got != "" {
		t.Errorf("it may write the Lease again, and its problem is %q", got)
	}
	lines.Wants(t, "FB1075")
}

// A cluster that did what it was asked is there; one that refused says nothing of
// that, and one that did not answer is asked at once.
func TestSilence(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	c := &conn{clock: clock, doubt: make(chan struct{}, 1)}
	doubted := func() bool {
		select {
		case <-c.doubt:
			return true
		default:
			return false
		}
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://rome.example.org/version", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if code := c.heard(request, &http.Response{StatusCode: http.StatusOK}, nil); code != http.StatusOK || c.silentFor() != 0 {
		t.Errorf("code %d, silent for %s", code, c.silentFor())
	}
	clock.Step(time.Second)
	if c.heard(request, &http.Response{StatusCode: http.StatusForbidden}, nil); c.silentFor() != time.Second || doubted() {
		t.Errorf("after a refusal: silent for %s", c.silentFor())
	}
	if code := c.heard(request, nil, errors.New("connection refused")); code != 0 || !doubted() {
		t.Errorf("without an answer: code %d, and nobody asks", code)
	}
	given, cancel := context.WithCancel(t.Context())
	cancel()
	if c.heard(request.WithContext(given), nil, context.Canceled); doubted() {
		t.Error("a call that we gave up is held against the cluster")
	}
}

// What a pass causes is told once a second and when it ends, not object by object.
func TestNewsWaitsForThePass(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	told := make(chan struct{}, 100)
	options := Options{Clock: clock}
	options.defaults()
	w := newWorker("rome", &options, func() { told <- struct{}{} })
	w.news()
	if len(told) != 1 {
		t.Fatal("news without a pass is not told at once")
	}
	release := w.holdNews()
	for range 10 {
		w.news()
	}
	if len(told) != 1 {
		t.Fatalf("told %d times while a pass writes", len(told)-1)
	}
	clock.Step(newsPatience)
	envtest.Eventually(t, "the pass's news to be told", func(context.Context) bool { return len(told) == 2 })
	clock.Step(newsPatience) // nothing new: nothing said
	release()
	w.news()
	if len(told) != 3 {
		t.Errorf("told %d times, want once more after the pass", len(told))
	}
}

// An object that came and went while its watch was broken is in no event. Who
// waits for its end, because the answer to a call was the last that was heard of
// it, looks again when that answer no longer counts.
func TestAnswerThatNoWatchShows(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	w := newWorker("rome", &Options{Clock: clock, Log: slog.New(slog.DiscardHandler)}, func() {})
	c := &conn{clock: clock, written: map[key]writtenObject{}, writtenOf: map[key][]key{}}
	node, unit := key{kindVirtualNode, "liqo-tenant-paris", "vision-train-0-aaaa"}, key{Kind: kindContract, Name: "vision-train-0-aaaa"}
	quota := key{Kind: kindQuota, Namespace: "vision", Name: "quota"}
	c.note(node, &unstructured.Unstructured{})
	w.waiting[unit], w.waiting[quota] = true, true
	if w.lapse(c); c.get(node) == nil || len(w.dirty) != 0 {
		t.Fatalf("an answer of now stands for %v, %v is looked at", c.get(node), w.dirty)
	}
	clock.Step(writtenFor + time.Second)
	if c.get(node) != nil {
		t.Error("it still stands for the object")
	}
	if w.lapse(c); !maps.Equal(w.dirty, map[key]origin{unit: drift, quota: drift}) || len(w.wake) != 1 || len(c.written)+len(c.writtenOf) != 0 {
		t.Errorf("%v is looked at, %d wakes, still kept: %v %v", w.dirty, len(w.wake), c.written, c.writtenOf)
	}
	if clear(w.dirty); len(c.lapse()) != 0 {
		t.Error("it lapses twice")
	}
}

// What is not delivered is logged when it is new, each reason once, and not while it stays.
func TestNotDelivered_IsLoggedOnce(t *testing.T) {
	lines := &logtest.Lines{}
	w := newWorker("rome", &Options{Clock: clocktesting.NewFakeClock(time.Now()), Log: lines.Logger()}, func() {})
	note := func(refused map[string]string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.noteRefused(Desired{Refused: refused})
	}
	first, second := "namespace vision is of another fleet", "namespace nlp of tenant nlp has that name"
	for range 3 {
		note(map[string]string{"vision": first})
	}
	lines.Wants(t, "FB1077")
	note(map[string]string{"vision": first, "nlp": second})
	if counted := w.status().Refused; counted != 2 {
		t.Errorf("%d things are counted, want 2", counted)
	}
	note(nil)
	counted := w.status().Refused
	if n := strings.Count(lines.String(), "msg=\"not delivered\""); n != 2 || strings.Count(lines.String(), first) != 1 || strings.Count(lines.String(), second) != 1 || counted != 0 {
		t.Errorf("logged %d times, %d are left; want each once, and none left:\n%s", n, counted, lines)
	}
}

// Names that come and go without end while nobody may write are not all remembered: then
// everything is looked at again.
func TestMarks_AreBounded(t *testing.T) {
	w := newWorker("rome", &Options{Clock: clocktesting.NewFakeClock(time.Now()), Log: slog.New(slog.DiscardHandler)}, func() {})
	w.loaded = 7
	for i := range maxMarks + 10 {
		w.lookAgain(key{Kind: kindNamespace, Name: fmt.Sprint("n", i)})
	}
	if len(w.dirty) != maxMarks || w.loaded != 0 {
		t.Errorf("%d units are marked, %d is loaded", len(w.dirty), w.loaded)
	}
	w.loaded = 7
	if w.lookAgain(key{Kind: kindNamespace, Name: "n0"}); w.loaded != 7 {
		t.Error("everything is looked at for one that is marked")
	}
}
