//go:build e2e

package enforce

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/storage/filesystem"
	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/test/checker"
	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/envtest"
	"github.com/fleetbroker/fleetbroker/test/env/rig"
)

// patience bounds every wait. Nothing here takes a tenth of it on an idle
// machine.
const patience = time.Minute

var bin string

func TestMain(m *testing.M) { envtest.Main(m, &bin, env.BuildTools) }

// fleet is a rig: paris gives 16 H100, rome takes, and Liqo's stand-in is
// between them.
type fleet struct {
	*rig.Rig
	t           *testing.T
	ctx         context.Context
	daemon      *rig.Daemon
	agents      map[string]*env.Program
	rome, paris client.Client
	twin        *twin
}

// start brings a fleet up, with one daemon and an agent in each cluster.
func start(t *testing.T, change func(*rig.Options)) *fleet {
	t.Helper()
	f := prepare(t, change)
	for _, name := range []string{"paris", "rome"} {
		f.agent(name, f.daemon)
	}
	f.ready()
	return f
}

// prepare is start without agents.
func prepare(t *testing.T, change func(*rig.Options)) *fleet {
	t.Helper()
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	t.Cleanup(cancel)
	node := func(name string) env.GPUNode {
		return env.GPUNode{Name: name, GPUs: 8, Labels: map[string]string{"fleetbroker.io/pool": "h100"}}
	}
	o := rig.Options{
		Dir: t.TempDir(), Bin: bin, Consumers: []string{"rome"},
		Providers: map[string][]env.GPUNode{"paris": {node("paris-1"), node("paris-2")}},
		AgentArgs: []string{"--advertisement-requeue-interval", "1s", "--denial-delay", "2s"},
		Inputs: map[string]string{
			"clusters/rome.yaml": "apiVersion: fleetbroker.io/v1alpha1\nkind: Cluster\nmetadata: {name: rome}\nspec:\n  roles: [consumer]\n" +
				"  reservations: {tenant: vision, defaultDuration: 24h}\n",
		},
	}
	if change != nil {
		change(&o)
	}
	r, err := rig.Start(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	f := &fleet{Rig: r, t: t, ctx: ctx, agents: map[string]*env.Program{}}
	t.Cleanup(func() {
		if t.Failed() {
			f.logs()
		}
		if err := r.Stop(); err != nil {
			t.Errorf("stop the rig: %v", err)
		}
	})
	f.rome, f.paris = newClient(t, r.Clusters["rome"].Config), newClient(t, r.Clusters["paris"].Config)
	f.twin = startTwin(t, f.rome, f.paris, "rome", "paris")
	if f.daemon, err = r.Daemon(ctx, "one", "--poll-interval", "1s"); err != nil {
		t.Fatal(err)
	}
	f.daemon.NotifyPushes(ctx)
	return f
}

// agent starts the agent of a cluster.
func (f *fleet) agent(cluster string, to ...*rig.Daemon) {
	f.t.Helper()
	p, err := f.Agent(f.ctx, cluster, to...)
	if err != nil {
		f.t.Fatal(err)
	}
	f.agents[cluster] = p
}

// ready waits until the daemon hears paris, as an agent that enforces.
func (f *fleet) ready() {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.ctx, patience)
	defer cancel()
	if err := f.daemon.AwaitReady(ctx); err != nil {
		f.t.Fatal(err)
	}
	f.eventually("paris sells and enforces", func() error {
		market, err := f.daemon.Market(f.ctx)
		if err == nil && (!strings.Contains(market, "namespace: paris") || !strings.Contains(market, "class: fleetbroker")) {
			err = fmt.Errorf("the market is\n%s", market)
		}
		return err
	})
}

func (f *fleet) logs() {
	for name, c := range f.Clusters {
		out, err := c.Kubectl(f.ctx, f.Dir, "get", "resourceslices.authentication.liqo.io,quotas.offloading.liqo.io,virtualnodes.offloading.liqo.io,nodes", "-A", "-o", "yaml")
		f.t.Logf("%s: %v\n%s", name, err, out[max(0, len(out)-8000):])
	}
	for _, p := range f.agents {
		f.log(p.LogFile())
	}
	if f.daemon != nil {
		f.log(f.daemon.LogFile())
	}
}

func (f *fleet) log(path string) {
	text, err := os.ReadFile(path)
	if err != nil {
		f.t.Log(err)
		return
	}
	const end = 6000
	f.t.Logf("%s:\n%s", path, text[max(0, len(text)-end):])
}

// intent is one of team vision for some GPUs in rome.
func intent(name string, gpus int, more ...string) string {
	return fmt.Sprintf("apiVersion: fleetbroker.io/v1alpha1\nkind: ResourceIntent\nmetadata: {name: %s, namespace: vision}\nspec:\n"+
		"  consumer: rome\n  resources: {cpu: \"4\", memory: 16Gi, pods: \"4\", ephemeral-storage: 10Gi, gpu: {count: %d, models: [nvidia-h100]}}\n%s", name, gpus, strings.Join(more, ""))
}

func (f *fleet) put(name, content string) {
	f.t.Helper()
	if _, err := f.Platform.CommitAndPush(f.ctx, "Ask for "+name, map[string]string{"intents/vision/" + name + ".yaml": content}); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fleet) remove(name string) {
	f.t.Helper()
	if _, err := f.Platform.Remove(f.ctx, "Give up "+name, "intents/vision/"+name+".yaml"); err != nil {
		f.t.Fatal(err)
	}
	if err := f.Platform.Push(f.ctx); err != nil {
		f.t.Fatal(err)
	}
}

// eventually waits for a condition that is not yet an error.
func (f *fleet) eventually(what string, condition func() error) {
	f.t.Helper()
	began := time.Now()
	for {
		err := condition()
		if err == nil {
			f.t.Logf("%s: %s", what, time.Since(began).Round(time.Millisecond))
			return
		}
		if time.Since(began) > patience || f.ctx.Err() != nil {
			f.t.Fatalf("%s: %v", what, err)
		}
		select {
		case <-f.ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// history judges the remote's whole history.
func (f *fleet) history() *checker.Result {
	f.t.Helper()
	st := filesystem.NewStorage(osfs.New(f.Git.RepoDir(rig.Repo)), cache.NewObjectLRUDefault())
	res, err := checker.Check(st, rig.Ledger)
	if err != nil {
		f.t.Fatal(err)
	}
	return res
}

// sound fails the test for every invariant that was broken.
func (f *fleet) sound() {
	f.t.Helper()
	for _, v := range f.history().Violations {
		f.t.Errorf("invariant broken in %s", v)
	}
}

// phases are the contracts of an intent at the remote's head, by name.
func (f *fleet) phases(intent string) map[string]string {
	f.t.Helper()
	res, out := f.history(), map[string]string{}
	for _, list := range []map[string]string{res.Held, res.Ended} {
		for contract, phase := range list {
			if strings.HasPrefix(contract, "vision-"+intent+"-") {
				out[contract] = phase
			}
		}
	}
	return out
}

// contract waits for the one contract of an intent in one of these phases and names it.
func (f *fleet) contract(intent string, phases ...string) string {
	f.t.Helper()
	found := ""
	f.eventually(intent+" is "+strings.Join(phases, " or "), func() error {
		got := f.phases(intent)
		for name, p := range got {
			if slices.Contains(phases, p) {
				found = name
				return nil
			}
		}
		return fmt.Errorf("its contracts are %v", got)
	})
	return found
}

// shownAs is an error unless the daemon shows a contract in a phase for a
// reason, on the ledger or not yet, to people and to Prometheus.
func (f *fleet) shownAs(name, phase, code string) error {
	for path, want := range map[string]string{"/api/ui/contracts": name, "/metrics": fmt.Sprintf("fleetbroker_contracts{phase=%q,reason=%q} 1", phase, code)} {
		request, err := http.NewRequestWithContext(f.ctx, http.MethodGet, "http://"+f.daemon.Operators+path, nil)
		if err != nil {
			return err
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil {
			return err
		}
		if path == "/metrics" && !strings.Contains(string(body), want) {
			return fmt.Errorf("metrics have no %s", want)
		}
		if path == "/metrics" {
			continue
		}
		var list []wire.ContractState
		if err := json.Unmarshal(body, &list); err != nil {
			return err
		}
		if !slices.ContainsFunc(list, func(s wire.ContractState) bool {
			return s.Name == name && string(s.Phase) == phase && strings.HasPrefix(s.Reason, code)
		}) {
			return fmt.Errorf("it shows %s", body)
		}
	}
	return nil
}

// copyOf is the provider's copy of a slice.
func (f *fleet) copyOf(name string) (*authv1beta1.ResourceSlice, error) {
	s := &authv1beta1.ResourceSlice{}
	return s, f.paris.Get(f.ctx, client.ObjectKey{Namespace: f.twin.providerSpace, Name: name}, s)
}

// gpus is how many a slice is granted, with the condition Resources.
func gpus(s *authv1beta1.ResourceSlice) (int64, authv1beta1.ResourceSliceCondition) {
	n := s.Status.Resources["nvidia.com/gpu"]
	for _, c := range s.Status.Conditions {
		if c.Type == authv1beta1.ResourceSliceConditionTypeResources {
			return n.Value(), c
		}
	}
	return n.Value(), authv1beta1.ResourceSliceCondition{}
}

// answered waits for an answer to a slice on paris.
func (f *fleet) answered(name string, status authv1beta1.ResourceSliceConditionStatus, reason string, count int64) *authv1beta1.ResourceSlice {
	f.t.Helper()
	var s *authv1beta1.ResourceSlice
	f.eventually(fmt.Sprintf("%s is %s %s with %d GPUs", name, status, reason, count), func() error {
		var err error
		if s, err = f.copyOf(name); err != nil {
			return err
		}
		if n, c := gpus(s); n != count || c.Status != status || (reason != "" && c.Reason != reason) {
			return fmt.Errorf("it has %d GPUs, %s %s: %s", n, c.Status, c.Reason, c.Message)
		}
		return nil
	})
	return s
}
