//go:build e2e

package enforce

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetbroker/fleetbroker/internal/ui/view"
	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/envtest"
	"github.com/fleetbroker/fleetbroker/test/env/rig"
	"github.com/fleetbroker/fleetbroker/test/env/rigtest"
)

// patience is how long the daemon may take to get ready.
const patience = 3 * time.Minute

var bin string

func TestMain(m *testing.M) { envtest.Main(m, &bin, env.BuildTools) }

// fleet is a rig: paris gives 16 H100, rome takes, and Liqo's stand-in is
// between them.
type fleet struct {
	*rigtest.Fleet
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
	f := &fleet{t: t, ctx: ctx, agents: map[string]*env.Program{}}
	f.Fleet = rigtest.Start(ctx, t, o, func(r *rigtest.Fleet) {
		f.Fleet = r
		f.logs()
	})
	f.rome, f.paris = newClient(t, f.Clusters["rome"].Config), newClient(t, f.Clusters["paris"].Config)
	f.twin = startTwin(t, f.rome, f.paris, "rome", "paris")
	var err error
	if f.daemon, err = f.Daemon(ctx, "one", "--poll-interval", "1s"); err != nil {
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
	f.Eventually("paris sells and enforces", func() error {
		market, err := f.daemon.Market(f.ctx)
		if err == nil && (!strings.Contains(market, "namespace: paris") || !strings.Contains(market, "class: fleetbroker") || !strings.Contains(market, "free:") && strings.Contains(market, "nodes: {}")) {
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
		f.Log(p.LogFile(), 6000)
	}
	if f.daemon != nil {
		f.Log(f.daemon.LogFile(), 6000)
	}
}

// intent is one of team vision for some GPUs in rome.
func intent(name string, gpus int, more ...string) string {
	return fmt.Sprintf("apiVersion: fleetbroker.io/v1alpha1\nkind: ResourceIntent\nmetadata: {name: %s, namespace: vision}\nspec:\n"+
		"  consumer: rome\n  resources: {cpu: \"4\", memory: 16Gi, pods: \"4\", ephemeral-storage: 10Gi, gpu: {count: %d, models: [nvidia-h100]}}\n%s", name, gpus, strings.Join(more, ""))
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
		var page struct{ Data view.List[view.ContractRow] }
		if err := json.Unmarshal(body, &page); err != nil {
			return err
		}
		if !slices.ContainsFunc(page.Data.Items, func(s view.ContractRow) bool {
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
	f.Eventually(fmt.Sprintf("%s is %s %s with %d GPUs", name, status, reason, count), func() error {
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
