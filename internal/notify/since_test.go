package notify

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
)

var noon = v1alpha1.TimeOf(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))

func later(d time.Duration) v1alpha1.Time { return v1alpha1.TimeOf(noon.Add(d)) }

// contract is one of vision/llm that was reserved at noon.
func contract(name, flavor string, replica int32) *v1alpha1.Contract {
	c := &v1alpha1.Contract{Metadata: v1alpha1.Metadata{Name: name, Namespace: "vision"}}
	c.Spec = v1alpha1.ContractSpec{
		Intent:   v1alpha1.ContractIntent{Name: "llm", Replica: replica},
		Consumer: "rome", Provider: "paris", Flavor: flavor, Slice: name,
		GPUs:  &v1alpha1.ContractGPU{Count: 4, Model: "nvidia-h100"},
		Price: v1alpha1.ContractPrice{Hourly: v1alpha1.MustDecimal("12"), Currency: "EUR"},
		Term:  v1alpha1.Term{Start: noon, End: later(10 * time.Hour)},
	}
	ledger.Begin(c, ledger.Reason{}, noon)
	return c
}

// to is a contract in its next phase, because of "<code>: <message>".
func to(t *testing.T, c *v1alpha1.Contract, phase v1alpha1.Phase, because string, at v1alpha1.Time) *v1alpha1.Contract {
	t.Helper()
	code, message, _ := strings.Cut(because, ": ")
	reason := ledger.Reason{Code: code, Message: message}
	books, err := ledger.BooksOf(nil)
	if err != nil {
		t.Fatal(err)
	}
	if ledger.Ended(phase) && c.Status.Phase != v1alpha1.PhaseReleasing {
		next, err := books.Release(c, phase, reason, at)
		if err != nil {
			t.Fatal(err)
		}
		return next
	}
	next, err := books.Transition(c, phase, reason, at)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

func state(s v1alpha1.IntentPhase, message string, at v1alpha1.Time) *v1alpha1.IntentState {
	return &v1alpha1.IntentState{
		Metadata: v1alpha1.Metadata{Name: "llm", Namespace: "vision"},
		Status:   v1alpha1.IntentStatus{State: s, Since: at, Message: message, Reason: "NothingFits"},
	}
}

// holding is a ledger of contracts and a state.
func holding(s *v1alpha1.IntentState, contracts ...*v1alpha1.Contract) *ledger.Ledger {
	ch := ledger.Changes{}
	for _, c := range contracts {
		ch.Contracts = append(ch.Contracts, model.Change{After: c})
	}
	if s != nil {
		ch.States = append(ch.States, model.StateChange{After: s})
	}
	return ledger.Empty().With(ch)
}

func lines(events []Event) string {
	var out []string
	for _, e := range events {
		out = append(out, fmt.Sprintf("%s [%s] %s", e.At.Format("15:04"), e.Kind, e.Text))
	}
	return strings.Join(out, "\n")
}

func TestSince(t *testing.T) {
	a := contract("a", "h100", 0)
	active := to(t, a, v1alpha1.PhaseActive, "", later(time.Minute))
	degraded := to(t, active, v1alpha1.PhaseDegraded, "NodeNotReady: kubelet stopped", later(time.Hour))
	again := to(t, degraded, v1alpha1.PhaseActive, "", later(2*time.Hour))
	longer := *active
	longer.Spec.Term.End = later(20 * time.Hour)
	noticed := *active
	noticed.Status.Displaced = &v1alpha1.Displacement{Cause: v1alpha1.Preempted, By: "nlp/serve", Noticed: later(time.Hour), Leaves: later(2 * time.Hour)}
	taken := noticed
	taken.Status.Displaced = &v1alpha1.Displacement{Cause: v1alpha1.Interrupted, Noticed: later(time.Hour), Leaves: later(2 * time.Hour)}
	b := contract("b", "a100", 0)
	b.Status.History[0].At = later(3 * time.Hour)
	for _, c := range []struct {
		name        string
		before, now *ledger.Ledger
		want        string
	}{
		{"nothing", holding(nil, a), holding(nil, a), ""},
		{"placed", holding(nil), holding(nil, a), "12:00 [placed] vision/llm is placed on paris/h100 (4x nvidia-h100, 12.00 EUR/h)"},
		{"all that was missed", holding(nil), holding(nil, again), `12:00 [placed] vision/llm is placed on paris/h100 (4x nvidia-h100, 12.00 EUR/h)
12:01 [active] vision/llm is active on paris/h100 (4x nvidia-h100, 12.00 EUR/h)
13:00 [degraded] vision/llm is degraded on paris/h100: NodeNotReady: kubelet stopped
14:00 [active] vision/llm is active on paris/h100 (4x nvidia-h100, 12.00 EUR/h)`},
		{"the last of it", holding(nil, degraded), holding(nil, again), "14:00 [active] vision/llm is active on paris/h100 (4x nvidia-h100, 12.00 EUR/h)"},
		{"extended", holding(nil, active), holding(nil, &longer), "12:01 [extended] vision/llm is extended until 2026-11-21T08:00:00Z"},
		{"shortened", holding(nil, &longer), holding(nil, active), ""},
		{"preempted, with notice", holding(nil, active), holding(nil, &noticed), "13:00 [preempted] vision/llm on paris/h100 gives way to nlp/serve, until 2026-11-20T14:00:00Z"},
		{"noticed once", holding(nil, &noticed), holding(nil, to(t, &noticed, v1alpha1.PhasePreempted, "Preempted: by nlp/serve", later(2*time.Hour))), ""},
		{"preempted at once", holding(nil, active), holding(nil, to(t, active, v1alpha1.PhasePreempted, "Preempted: by nlp/serve", later(time.Hour))),
			"13:00 [preempted] vision/llm gives way on paris/h100: Preempted: by nlp/serve"},
		{"interrupted", holding(nil, active), holding(nil, &taken), "13:00 [interrupted] vision/llm on paris/h100 is taken back by its provider, until 2026-11-20T14:00:00Z"},
		{"moved", holding(nil, active), holding(nil, to(t, active, v1alpha1.PhaseReleased, "ProviderLost: paris is silent", later(3*time.Hour)), b),
			"15:00 [moved] vision/llm moves from paris/h100 to paris/a100 (4x nvidia-h100, 12.00 EUR/h): ProviderLost: paris is silent"},
		{"moved, new first", holding(nil, active, b), holding(nil, to(t, active, v1alpha1.PhaseReleased, "better offer", later(4*time.Hour)), b),
			"16:00 [moved] vision/llm moves from paris/h100 to paris/a100 (4x nvidia-h100, 12.00 EUR/h): better offer"},
		{"a broken sla", holding(nil, a), holding(nil, to(t, a, v1alpha1.PhaseReleased, "SLABroken: not usable within 10m", later(time.Hour))),
			"13:00 [sla] vision/llm breaks its sla on paris/h100: SLABroken: not usable within 10m"},
		{"queued", holding(nil), holding(state(v1alpha1.IntentQueued, "none of 3 fits", noon)), "12:00 [queued] vision/llm is queued: none of 3 fits"},
		{"refused", holding(state(v1alpha1.IntentQueued, "", noon)), holding(state(v1alpha1.IntentRefused, "line one\nline two", later(time.Hour))),
			"13:00 [refused] vision/llm is refused: line one line two"},
		{"completed", holding(state(v1alpha1.IntentPlaced, "", noon)), holding(state(v1alpha1.IntentDone, "", later(time.Hour))), "13:00 [completed] vision/llm is done"},
		{"still queued", holding(state(v1alpha1.IntentQueued, "none of 3 fits", noon)), holding(state(v1alpha1.IntentQueued, "none of 4 fits", noon)), ""},
	} {
		if got := lines(Since("acme", c.before, c.now, nil)); got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
}

// A contract that was down for an hour of two breaks an availability of 99 %:
// that is told once, when it is usable again, and not of a contract whose file
// does not reach back to its beginning.
func TestSinceTellsOfAvailability(t *testing.T) {
	asked := func(tenant, intent string) *v1alpha1.SLA {
		if tenant != "vision" || intent != "llm" {
			t.Errorf("asked for %s/%s", tenant, intent)
		}
		availability := v1alpha1.MustDecimal("99")
		return &v1alpha1.SLA{Availability: &availability}
	}
	sla := func(before, now *v1alpha1.Contract) string {
		return lines(slices.DeleteFunc(Since("acme", holding(nil, before), holding(nil, now), asked), func(e Event) bool { return e.Kind != "sla" }))
	}
	active := to(t, contract("a", "h100", 0), v1alpha1.PhaseActive, "", later(time.Hour))
	down := to(t, active, v1alpha1.PhaseDegraded, ledger.DegradedNodeNotReady, later(2*time.Hour))
	again := to(t, down, v1alpha1.PhaseActive, "", later(3*time.Hour))
	worse := to(t, again, v1alpha1.PhaseDegraded, ledger.DegradedNodeNotReady, later(4*time.Hour))
	want := "15:00 [sla] vision/llm breaks its sla on paris/h100: SLABroken: usable 50 % of 2h0m0s since it first was, 99 % was asked for, after an outage of 1h0m0s"
	for _, c := range []struct {
		name        string
		before, now *v1alpha1.Contract
		want        string
	}{
		{"not yet", active, down, ""},
		{"usable again", down, again, want},
		{"all that was missed", active, worse, want},
		{"told before", again, worse, ""},
	} {
		if got := sla(c.before, c.now); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
	cut := *again
	cut.Status.History = cut.Status.History[1:]
	if got := sla(down, &cut); got != "" {
		t.Errorf("without its beginning: %q", got)
	}
}

// An outage that goes on, and a contract that is late and kept, are told once while they
// last, and at their end with how long they were.
func TestBreachesThatGoOn(t *testing.T) {
	books, err := ledger.BooksOf(nil)
	if err != nil {
		t.Fatal(err)
	}
	availability := v1alpha1.MustDecimal("90")
	sla := &v1alpha1.SLA{Availability: &availability, MaxTimeToActive: v1alpha1.Duration{Duration: 30 * time.Minute}}
	asked := func(string, string) *v1alpha1.SLA { return sla }
	box, was := newOutbox(), holding(nil)
	var told []string
	at := func(after time.Duration, c *v1alpha1.Contract) {
		now := holding(nil, c)
		for _, e := range append(Since("acme", was, now, asked), box.fresh(Due("acme", now, nil, books, asked, later(after)))...) {
			if e.Kind == "sla" {
				told = append(told, fmt.Sprintf("after %s: %s", after, lines([]Event{e})))
			}
		}
		was = now
	}
	reserved := contract("a", "h100", 0)
	active := to(t, reserved, v1alpha1.PhaseActive, "", later(time.Hour))
	down := to(t, active, v1alpha1.PhaseDegraded, ledger.DegradedNodeNotReady, later(2*time.Hour))
	again := to(t, down, v1alpha1.PhaseActive, "", later(5*time.Hour))
	at(time.Minute, reserved)
	at(31*time.Minute, reserved)
	at(59*time.Minute, reserved)
	at(time.Hour, active)
	at(2*time.Hour, down)
	at(2*time.Hour+5*time.Minute, down)
	at(2*time.Hour+10*time.Minute, down)
	at(4*time.Hour, down)
	at(5*time.Hour, again)
	at(6*time.Hour, again)
	at(7*time.Hour, to(t, again, v1alpha1.PhaseDegraded, ledger.DegradedNodeNotReady, later(6*time.Hour)))
	want := []string{
		"after 31m0s: 12:30 [sla] vision/llm breaks its sla on paris/h100: SLABroken: not usable within 30m0s: it takes 31m0s so far",
		"after 1h0m0s: 13:00 [sla] vision/llm is usable on paris/h100 after 1h0m0s: its sla asks for 30m",
		"after 2h10m0s: 14:00 [sla] vision/llm breaks its sla on paris/h100: SLABroken: usable 85.7143 % of 1h10m0s since it first was, 90 % was asked for, and is out since 2026-11-20T14:00:00Z",
		"after 5h0m0s: 17:00 [sla] vision/llm breaks its sla on paris/h100: SLABroken: usable 25 % of 4h0m0s since it first was, 90 % was asked for, after an outage of 3h0m0s",
	}
	if !slices.Equal(told, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(told, "\n"), strings.Join(want, "\n"))
	}
	if got := Due("acme", holding(nil, down), nil, books, nil, later(4*time.Hour)); len(got) != 0 {
		t.Errorf("without an sla: %v", got)
	}
}

// What is told again has the same id, what is told of something else another.
func TestIDs(t *testing.T) {
	a := contract("a", "h100", 0)
	var ids []string
	for _, now := range []*ledger.Ledger{holding(nil, a), holding(nil, a), holding(nil, contract("b", "h100", 1))} {
		ids = append(ids, Since("acme", ledger.Empty(), now, nil)[0].ID)
	}
	if ids[0] != ids[1] || ids[0] == ids[2] || len(ids[0]) != 32 {
		t.Errorf("got %v", ids)
	}
}

func TestDue(t *testing.T) {
	books, err := ledger.BooksOf(nil)
	if err != nil {
		t.Fatal(err)
	}
	monthly := v1alpha1.MustDecimal("100")
	tenants := map[string]*v1alpha1.Tenant{"vision": {Metadata: v1alpha1.Metadata{Name: "vision"}, Spec: v1alpha1.TenantSpec{Budget: &v1alpha1.TenantBudget{Monthly: &monthly}}}}
	l := holding(nil, contract("a", "h100", 0)) // 12 an hour, for ten hours
	var told []string
	for _, after := range []time.Duration{time.Hour, 7 * time.Hour, 7*time.Hour + time.Minute, 8*time.Hour + 30*time.Minute, 9 * time.Hour} {
		for _, e := range Due("acme", l, tenants, books, nil, later(after)) {
			told = append(told, fmt.Sprintf("%s %s %s", after, e.ID, e.Text))
		}
	}
	want := []string{
		"7h0m0s vision has spent 84.00 of 100.00 EUR of 2026-11: 80 % of its budget",
		"7h1m0s vision has spent 84.20 of 100.00 EUR of 2026-11: 80 % of its budget",
		"8h30m0s vision has spent 102.00 of 100.00 EUR of 2026-11: 100 % of its budget",
		"9h0m0s vision/llm ends 2026-11-20T22:00:00Z on paris/h100: a longer schedule.duration extends it",
		"9h0m0s vision has spent 108.00 of 100.00 EUR of 2026-11: 100 % of its budget",
	}
	var got []string
	for _, line := range told {
		parts := strings.SplitN(line, " ", 3)
		got = append(got, parts[0]+" "+parts[2])
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %s", strings.Join(told, "\n"))
	}
	box, fresh := newOutbox(), 0
	for _, after := range []time.Duration{7 * time.Hour, 7*time.Hour + time.Minute, 8*time.Hour + 30*time.Minute, 9 * time.Hour, 9 * time.Hour} {
		fresh += len(box.fresh(Due("acme", l, tenants, books, nil, later(after))))
	}
	if fresh != 3 {
		t.Errorf("%d events are told, want 80 %%, 100 %% and the term's end, once each", fresh)
	}
}

// What is set aside is told to the tenant whose it is, once; what belongs to none
// is for operators.
func TestSince_TellsWhatIsSetAside(t *testing.T) {
	with := func(paths ...string) *ledger.Ledger {
		t.Helper()
		list := v1alpha1.SetAside{TypeMeta: v1alpha1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindSetAside}}
		for _, p := range paths {
			list.Pieces = append(list.Pieces, v1alpha1.SetAsidePiece{Path: p, Hash: "sha256:00", Why: "took more than 2048 MiB of memory", At: noon})
		}
		content, err := ledger.Encode(list)
		if err != nil {
			t.Fatal(err)
		}
		l, problems, err := ledger.Read(t.Context(), tree.NewMemory().Build(map[string][]byte{ledger.Root + "/" + ledger.SetAsideFile: content}), nil)
		if err != nil || len(problems) > 0 {
			t.Fatal(problems, err)
		}
		return l
	}
	before, now := with("intents/nlp/a.yaml"), with("intents/nlp/a.yaml", "intents/vision/k/", "tenants/vision.yaml")
	events := Since("acme", before, now, nil)
	want := "12:00 [refused] intents/vision/k/ is set aside and what it last said stays in force: the process that reads it ended twice (took more than 2048 MiB of memory). Change it, or ask the fleet's operator to have it tried again"
	if got := lines(events); got != want || events[0].Tenant != "vision" || events[0].Reason != "SetAside" {
		t.Errorf("got %q, want %q", got, want)
	}
	if again := Since("acme", now, now, nil); len(again) > 0 {
		t.Errorf("told again: %v", again)
	}
}

// What a daemon that was killed while it wrote its state has left is removed at the
// next start.
func TestNew_RemovesTemporaryFiles(t *testing.T) {
	w := newWorld(t)
	left, kept := filepath.Join(w.dir, "."+stateFile+"-123"), filepath.Join(w.dir, stateFile+".damaged-20261123T100000Z")
	for _, name := range []string{left, kept} {
		if err := os.WriteFile(name, []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, stop := w.start()
	stop()
	if _, err := os.Stat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is still there: %v", left, err)
	}
	if _, err := os.Stat(kept); err != nil {
		t.Errorf("what was set aside is gone: %v", err)
	}
}
