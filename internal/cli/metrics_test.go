package cli

import (
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/cli/observing"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/memremote"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/planning"
	"github.com/fleetbroker/fleetbroker/internal/server"
)

func scraped(t *testing.T, m *server.Metrics) string {
	t.Helper()
	answer := httptest.NewRecorder()
	m.Handler().ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	return answer.Body.String()
}

// TestTheRoomsMoveTheMetrics: what the loop tells its observer is what
// Prometheus sees. The daemon's own are scraped in test/e2e/install.
func TestTheRoomsMoveTheMetrics(t *testing.T) {
	m := server.NewMetrics()
	o := &observing.Observer{Metrics: m, Log: slog.New(slog.DiscardHandler)}
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	contract := func(name, path, author string, phase v1alpha1.Phase) *v1alpha1.Contract {
		c := &v1alpha1.Contract{Metadata: v1alpha1.Metadata{Name: name, Namespace: "vision"}}
		c.Spec.Intent = v1alpha1.ContractIntent{Name: "train", Path: path, Author: author}
		c.Spec.Term.Start, c.Status.Phase = v1alpha1.TimeOf(at), phase
		return c
	}
	state := &v1alpha1.IntentState{Metadata: v1alpha1.Metadata{Name: "train", Namespace: "vision"}}
	state.Status.FirstSeen.At = v1alpha1.TimeOf(at.Add(-2 * time.Second))
	plan := &planner.Plan{Now: v1alpha1.TimeOf(at), States: []model.StateChange{{After: state}}}
	reserved := contract("a", "intents/vision/train.yaml", "Ada", v1alpha1.PhaseReserved)
	asked := contract("b", "requests/vision/202611/x.yaml", "cluster rome, for default/x (alice)", v1alpha1.PhaseReserved)
	o.Landed(plan, []model.Change{{After: reserved}, {After: asked}})
	later := &planner.Plan{Now: v1alpha1.TimeOf(at.Add(time.Minute))}
	active := contract("a", "intents/vision/train.yaml", "Ada", v1alpha1.PhaseActive)
	o.Landed(later, []model.Change{{Before: reserved, After: active}, {Before: active, After: active}})
	o.Decided(20*time.Millisecond, plan)
	o.RoundDone(time.Second, "error")
	o.RoundDone(time.Second, "committed")
	o.RoundDone(time.Second, "error")
	o.Forgot()
	o.Stepped(planner.StepServe, 3*time.Millisecond)
	o.Checked(planning.Check{Result: planning.Equal, Bytes: 4096})
	o.Checked(planning.Check{Result: planning.OverBudget})
	o.CommitDone(time.Second, 1, "refused")
	o.CommitDone(time.Second, 1, "committed")
	text := scraped(t, m)
	for _, want := range []string{
		`fleetbroker_reservations_total{phase="Reserved",requester="vision"} 1`,
		`fleetbroker_reservations_total{phase="Reserved",requester="rome"} 1`,
		`fleetbroker_reservations_total{phase="Active",requester="vision"} 1`,
		`fleetbroker_time_to_reserve_seconds_sum 4`, `fleetbroker_time_to_reserve_seconds_count 2`,
		`fleetbroker_time_to_active_seconds_sum 60`, `fleetbroker_time_to_active_seconds_count 1`,
		`fleetbroker_rounds_total{outcome="committed"} 1`, `fleetbroker_rounds_total{outcome="error"} 2`, `fleetbroker_rounds_total{outcome="again"} 0`,
		`fleetbroker_decision_seconds_count 1`, `fleetbroker_commit_seconds_count 1`,
		`fleetbroker_planner_faults_total 1`,
		`fleetbroker_planner_step_seconds_sum{step="serve"} 0.003`, `fleetbroker_planner_step_seconds_count{step="serve"} 1`,
		`fleetbroker_planner_checks_total{result="equal"} 1`, `fleetbroker_planner_checks_total{result="over_budget"} 1`, `fleetbroker_planner_check_bytes 4096`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}

// TestALostRaceIsCounted: by a real write-back that loses one.
func TestALostRaceIsCounted(t *testing.T) {
	m := server.NewMetrics()
	remote := memremote.New()
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	ada := gitobj.Person{Name: "Ada", Email: "ada@example.org", When: at}
	if _, err := remote.Commit("main", ada, "Begin", gitobj.Change{Puts: map[string][]byte{"fleet.yaml": []byte("kind: Fleet\n")}}); err != nil {
		t.Fatal(err)
	}
	repo, err := gitrepo.Open(t.Context(), remote, gitrepo.Options{
		Inputs: "main", Ledger: "main", Now: func() time.Time { return at }, Observer: &observing.Observer{Metrics: m, Log: slog.New(slog.DiscardHandler)},
		Identity: gitrepo.Identity{Name: "fleetbroker", Email: "fleetbroker@example.org"}, Backoff: time.Nanosecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	heads, err := repo.Fetch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// Somebody pushes another file between our reading and our push.
	if _, err := remote.Commit("main", ada, "Note", gitobj.Change{Puts: map[string][]byte{"README.md": []byte("hello\n")}}); err != nil {
		t.Fatal(err)
	}
	if _, err := repo.Commit(t.Context(), gitrepo.Request{
		Base: heads.Ledger.Commit.Hash, Inputs: heads.Inputs.Commit.Hash, When: at, Reads: []string{}, Trailers: []string{"Plan: sha256:00"},
		Items: []gitrepo.Item{{Key: "a", Line: "place a", Puts: map[string][]byte{"contracts/vision/aa/a/a.yaml": []byte("a\n")}}},
	}); err != nil {
		t.Fatal(err)
	}
	text := scraped(t, m)
	for _, want := range []string{"fleetbroker_push_conflicts_total 1", "fleetbroker_commit_seconds_count 1"} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	if err := repo.Close(); err != nil {
		t.Error(err)
	}
}
