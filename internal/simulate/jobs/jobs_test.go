package jobs_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/child"
	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner/plantest"
	"github.com/fleetbroker/fleetbroker/internal/simulate/jobs"
	"github.com/fleetbroker/fleetbroker/internal/simulate/scenario"
)

// clock is a time that tests move.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.now }
func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// fleet is one whose replicas came and went: n of them, each for some hours.
func fleet(n int) *scenario.Input {
	b := plantest.New()
	b.Provider("paris", "milan").Consumer("rome")
	b.Offer("paris/h100", plantest.Cards("nvidia-h100", 64, "80Gi"), plantest.Costs("2.85"))
	b.Offer("milan/h100", plantest.Cards("nvidia-h100", 64, "80Gi"), plantest.Costs("2.85"))
	b.Tenant("vision", "rome")
	b.Tenant("nlp", "rome")
	var ch ledger.Changes
	for i := range n {
		tenant := []string{"vision", "nlp"}[i%2]
		first := v1alpha1.FirstSeen{At: plantest.Start, Commit: "0123456789abcdef0123456789abcdef01234567", Author: "Ada"}
		intent := fmt.Sprintf("job-%d", i)
		c := &v1alpha1.Contract{Metadata: v1alpha1.Metadata{Name: ledger.ContractName(tenant, intent, first, 0, 0, 0), Namespace: tenant}}
		c.Spec.Intent = v1alpha1.ContractIntent{Name: intent, Path: "intents/" + tenant + "/" + intent + ".yaml", Commit: first.Commit, Author: first.Author}
		c.Spec.Consumer, c.Spec.Provider, c.Spec.Flavor, c.Spec.Slice = "rome", "paris", "h100", c.Metadata.Name
		c.Spec.Resources = plantest.Amounts("cpu=8 memory=64Gi nvidia.com/gpu=2")
		c.Spec.GPUs = &v1alpha1.ContractGPU{Count: 2, Model: "nvidia-h100", ResourceName: "nvidia.com/gpu"}
		c.Spec.Price = v1alpha1.ContractPrice{Hourly: *plantest.Money("5.70"), List: *plantest.Money("5.70"), Currency: "EUR", Class: v1alpha1.OnDemand}
		begun := v1alpha1.TimeOf(plantest.Start.Add(time.Duration(i) * 7 * time.Minute))
		c.Spec.Term.Start = begun
		c.Status = v1alpha1.ContractStatus{Phase: v1alpha1.PhaseReleased, Since: v1alpha1.TimeOf(begun.Add(time.Duration(2+i%5) * time.Hour))}
		ch.Contracts = append(ch.Contracts, model.Change{After: c})
	}
	b.W.Ledger = b.W.Ledger.With(ch)
	return &scenario.Input{
		Now: v1alpha1.TimeOf(plantest.Start.Add(time.Duration(n)*7*time.Minute + 12*time.Hour)), Policy: b.W.Fleet, Clusters: b.W.Clusters, Tenants: b.W.Tenants, Intents: b.W.Intents,
		Ledger: b.W.Ledger, Offers: b.W.Offers, Commit: "abc",
	}
}

func open(t *testing.T, o jobs.Options) (*jobs.Jobs, *clock) {
	t.Helper()
	c := &clock{now: plantest.Start.Time}
	o.Now = c.Now
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	j := jobs.New(o)
	t.Cleanup(j.Close)
	return j, c
}

func ended(t *testing.T, j *jobs.Jobs, who, id string) scenario.Job {
	t.Helper()
	for until := time.Now().Add(3 * time.Minute); time.Now().Before(until); <-time.After(10 * time.Millisecond) {
		s, ok := j.Job(who, id)
		if !ok {
			t.Fatal("the job is gone")
		}
		if s.State != scenario.Running {
			return s
		}
	}
	t.Fatal("the job does not end")
	return scenario.Job{}
}

// What was is replayed as it was: each replica for as long as it held, at its offer's
// price; twice the demand costs twice as much where there is room.
func TestJobs_ReplaysThePast(t *testing.T) {
	j, _ := open(t, jobs.Options{})
	in := fleet(40)
	s, err := j.Start("ada", in, scenario.Change{Days: 30, Growth: "2"})
	if err != nil {
		t.Fatal(err)
	}
	s = ended(t, j, "ada", s.ID)
	if s.State != scenario.Done || s.Rows != 40 {
		t.Fatalf("%+v", s)
	}
	hours := int64(0)
	for i := range 40 {
		hours += int64(2 + i%5)
	}
	// 2 cards at 2.85: cores and memory have no price.
	want := plantest.Money("5.70").MulInt(hours).Text()
	if s.AsIs.NeverPlaced != 0 || s.AsIs.WaitMax != 0 || s.AsIs.Cost.Text() != want {
		t.Errorf("as it was: %+v, want cost %s", s.AsIs, want)
	}
	if twice := s.AsIs.Cost.MulInt(2); s.Changed.Arrived != 80 || s.Changed.Cost.Cmp(twice) != 0 {
		t.Errorf("twice: %+v, want cost %s", s.Changed, twice)
	}
}

// Growth takes every row as often, spread evenly; a cluster that goes leaves the other.
func TestJobs_GrowthAndLoss(t *testing.T) {
	j, _ := open(t, jobs.Options{})
	for growth, want := range map[string]int{"0.5": 20, "1.25": 50, "1": 40} {
		s, err := j.Start("ada", fleet(40), scenario.Change{Growth: growth, Without: []string{"paris"}, Days: 30})
		if err != nil {
			t.Fatal(err)
		}
		s = ended(t, j, "ada", s.ID)
		if s.State != scenario.Done || s.Changed.Arrived != want || len(s.Changed.Providers) != 1 || s.Changed.Providers[0].Name != "milan" {
			t.Errorf("× %s: %+v %+v", growth, s, s.Changed)
		}
	}
}

// One at a time; who cancels, and who stops the daemon, ends the process; results go after
// an hour.
func TestJobs_Bounds(t *testing.T) {
	j, now := open(t, jobs.Options{})
	in := fleet(4000) // long enough to be cancelled
	long := scenario.Change{Days: 90, Growth: "2"}
	first, err := j.Start("ada", in, long)
	if err != nil {
		t.Fatal(err)
	}
	var busy *scenario.Busy
	if _, err := j.Start("ada", in, long); !errors.As(err, &busy) || !strings.Contains(err.Error(), "yours") {
		t.Errorf("a second of one person: %v", err)
	}
	if _, err := j.Start("bo", in, long); !errors.As(err, &busy) || strings.Contains(err.Error(), "yours") {
		t.Errorf("a second: %v", err)
	}
	if j.Cancel("bo", first.ID) {
		t.Error("bo cancels ada's")
	}
	if !j.Cancel("ada", first.ID) {
		t.Error("ada cannot cancel")
	}
	if s := ended(t, j, "ada", first.ID); s.State != scenario.Cancelled || s.Changed != nil {
		t.Errorf("cancelled: %+v", s)
	}
	if s, err := j.Start("cy", fleet(5), scenario.Change{Days: 30}); err != nil {
		t.Errorf("after it: %v", err)
	} else if s = ended(t, j, "cy", s.ID); s.State != scenario.Done {
		t.Errorf("after it: %+v", s)
	}
	now.add(jobs.Keep + time.Minute)
	if got := j.Of("ada"); len(got) != 0 {
		t.Errorf("kept for longer than an hour: %+v", got)
	}
	second, err := j.Start("bo", in, long)
	if err != nil {
		t.Fatal(err)
	}
	j.Close()
	if s, ok := j.Job("bo", second.ID); !ok || s.State != scenario.Cancelled {
		t.Errorf("after the end: %+v %v", s, ok)
	}
	if _, err := j.Start("ada", in, long); !errors.As(err, &busy) {
		t.Errorf("after the end: %v", err)
	}
}

// However many ask at once, one makes its request: the others are told before the work.
func TestJobs_OneCopyAtATime(t *testing.T) {
	in, change := fleet(6000), scenario.Change{Days: 90, Growth: "2"}
	cost := func(people int) uint64 {
		j, _ := open(t, jobs.Options{})
		var all sync.WaitGroup
		var begun atomic.Int32
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for i := range people {
			all.Go(func() {
				_, err := j.Start(fmt.Sprint("person ", i), in, change)
				var busy *scenario.Busy
				if err == nil {
					begun.Add(1)
				} else if !errors.As(err, &busy) {
					t.Error(err)
				}
			})
		}
		all.Wait()
		runtime.ReadMemStats(&after)
		j.Close()
		if begun.Load() != jobs.Most {
			t.Errorf("of %d people %d have begun", people, begun.Load())
		}
		return after.TotalAlloc - before.TotalAlloc
	}
	one := cost(1)
	if many := cost(12); many > 2*one {
		t.Errorf("12 people at once took %d KiB, one takes %d", many>>10, one>>10)
	}
}

// A job that does not begin takes no place, and is not listed.
func TestJobs_PlaceIsGivenBack(t *testing.T) {
	j, _ := open(t, jobs.Options{})
	huge := fleet(5)
	vision := *huge.Tenants["vision"]
	vision.Metadata.Annotations = map[string]string{"note": strings.Repeat("x", 65<<20)}
	huge.Tenants = maps.Clone(huge.Tenants)
	huge.Tenants["vision"] = &vision
	var bad *scenario.Bad
	if _, err := j.Start("ada", huge, scenario.Change{Days: 30}); !errors.As(err, &bad) || !strings.Contains(err.Error(), "65 MiB") {
		t.Errorf("a request of more than 64 MiB: %v", err)
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("an input without a ledger does not panic: try another one here")
			}
		}()
		_, _ = j.Start("ada", &scenario.Input{Offers: huge.Offers, Ledger: nil}, scenario.Change{Days: 30})
	}()
	if got := j.Of("ada"); len(got) > 0 {
		t.Errorf("listed: %+v", got)
	}
	s, err := j.Start("ada", fleet(5), scenario.Change{Days: 30})
	if err != nil {
		t.Fatal(err)
	}
	if s = ended(t, j, "ada", s.ID); s.State != scenario.Done || s.Rows != 5 {
		t.Errorf("%+v", s)
	}
}

// The container's limit has room for the daemon's heap, what it has beyond it, the child
// that builds kustomizations and all simulations.
func TestJobs_ContainerHasRoom(t *testing.T) {
	text, err := os.ReadFile("../../../fleet-repo-template/install/broker/statefulset.yaml")
	if err != nil {
		t.Fatal(err)
	}
	mib := func(form string) int {
		m := regexp.MustCompile(form).FindSubmatch(text)
		if m == nil {
			t.Fatalf("no %s", form)
		}
		n, err := strconv.Atoi(string(m[1]))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	limit, heap := mib(`limits: \{memory: (\d+)Mi\}`), mib(`GOMEMLIMIT, value: (\d+)MiB`)
	const beyond = 200 // test/bench measured 63 over GOMEMLIMIT
	if need := heap + beyond + (1+jobs.Most)*int(child.Default().Memory>>20); limit < need {
		t.Errorf("the limit is %d MiB, and %d may be used", limit, need)
	}
}

// A simulation that takes too much memory or time fails by itself, and says so.
func TestJobs_DeathIsSaid(t *testing.T) {
	small, _ := open(t, jobs.Options{Memory: 96 << 20})
	s, err := small.Start("ada", fleet(4000), scenario.Change{Days: 90, Growth: "2"})
	if err != nil {
		t.Fatal(err)
	}
	if s = ended(t, small, "ada", s.ID); s.State != scenario.Failed || !strings.Contains(s.Error, "memory") {
		t.Errorf("with little memory: %+v", s)
	}
	short, _ := open(t, jobs.Options{Time: 300 * time.Millisecond})
	if s, err = short.Start("ada", fleet(4000), scenario.Change{Days: 90, Growth: "2"}); err != nil {
		t.Fatal(err)
	}
	if s = ended(t, short, "ada", s.ID); s.State != scenario.Failed || !strings.Contains(s.Error, "it took more than 300ms") {
		t.Errorf("with little time: %+v", s)
	}
}

// What a fleet does not remember, there is no demand of.
func TestJobs_WithoutDemand(t *testing.T) {
	j, _ := open(t, jobs.Options{})
	var bad *scenario.Bad
	if _, err := j.Start("ada", fleet(0), scenario.Change{}); !errors.As(err, &bad) || !strings.Contains(err.Error(), "no demand") {
		t.Errorf("%v", err)
	}
	in := fleet(3)
	in.Offers = slices.DeleteFunc(slices.Clone(in.Offers), func(o *model.Offer) bool { return o.Flavor.Metadata.Namespace == "milan" })
	if _, err := j.Start("ada", in, scenario.Change{Without: []string{"paris"}}); !errors.As(err, &bad) {
		t.Errorf("%v", err)
	}
}

// Who began what, who cancelled it and what failed is in the log.
func TestJobs_Logged(t *testing.T) {
	var text bytes.Buffer // of a handler that locks; read when all jobs have ended
	j, _ := open(t, jobs.Options{Log: slog.New(slog.NewTextHandler(&text, nil)), Memory: 96 << 20})
	in, long := fleet(4000), scenario.Change{Days: 90, Growth: "2"}
	cancelled, err := j.Start("ada", in, long)
	if err != nil {
		t.Fatal(err)
	}
	j.Cancel("ada", cancelled.ID)
	ended(t, j, "ada", cancelled.ID)
	j.Cancel("ada", cancelled.ID) // it does not run
	failed, err := j.Start("bo", in, long)
	if err != nil {
		t.Fatal(err)
	}
	ended(t, j, "bo", failed.ID)
	j.Close()
	got := text.String()
	for _, want := range []string{
		`msg="a simulation of the dashboard begins" who=ada change="demand × 2" days=90 id=` + cancelled.ID,
		`msg="a simulation of the dashboard is cancelled" who=ada change="demand × 2" id=` + cancelled.ID,
		`msg="a simulation of the dashboard begins" who=bo change="demand × 2" days=90 id=` + failed.ID,
		`msg="a simulation of the dashboard failed" who=bo id=` + failed.ID + ` change="demand × 2" error=`,
	} {
		if strings.Count(got, want) != 1 {
			t.Errorf("%s\nis not in\n%s", want, got)
		}
	}
	if n := strings.Count(got, "\n"); n != 4 {
		t.Errorf("%d lines:\n%s", n, got)
	}
}
