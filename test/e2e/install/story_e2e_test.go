//go:build e2e

package install

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/rig"
)

const train = `apiVersion: fleetbroker.io/v1alpha1
kind: ResourceIntent
metadata: {name: train, namespace: vision}
spec:
  consumer: rome
  resources: {cpu: "4", memory: 16Gi, pods: "4", gpu: {count: 4, models: [nvidia-h100]}}
  offload: {namespaces: [{name: vision, create: true}]}
`

// TestTheMainStoryWithTheInstallBasesRights: from an intent to a slice and back,
// with two replicas of the agent of which one speaks, and nothing denied.
func TestTheMainStoryWithTheInstallBasesRights(t *testing.T) {
	f := start(t)
	d, err := f.Daemon(f.ctx, "one", "--poll-interval", "1s")
	if err != nil {
		t.Fatal(err)
	}
	var agents []*env.Program
	for range 2 {
		a, err := f.Agent(f.ctx, "paris", d)
		if err != nil {
			t.Fatal(err)
		}
		agents = append(agents, a)
	}
	offered := func() error {
		market, err := d.Market(f.ctx)
		if err == nil && !strings.Contains(market, "namespace: paris") {
			err = fmt.Errorf("the market is %q", market)
		}
		return err
	}
	f.eventually("the agent's report", offered)
	if err := d.AwaitReady(f.ctx); err != nil {
		t.Fatal(err)
	}
	slice := func() (string, error) {
		return f.Clusters["rome"].Kubectl(f.ctx, f.Dir, "get", "resourceslices.authentication.liqo.io", "-n", "liqo-tenant-paris", "-o", "name")
	}
	f.push("Ask", map[string]string{"intents/vision/train.yaml": train})
	f.eventually("the slice on the consumer", func() error {
		out, err := slice()
		if err == nil && !strings.Contains(out, "vision-train-0-") {
			err = fmt.Errorf("there are %q", out)
		}
		return err
	})
	f.eventually("the peering, for which the daemon's rights suffice on both sides", func() error {
		out, err := f.Clusters["rome"].Kubectl(f.ctx, f.Dir, "get", "secrets", "-n", "liqo-tenant-paris", "-l", "liqo.io/identity-type=ControlPlane", "-o", "name")
		if err == nil && out == "" {
			err = errors.New("there is no Secret for Liqo")
		}
		return err
	})
	f.counted(d)
	f.push("Give back", map[string]string{"intents/vision/train.yaml": ""})
	f.eventually("the contract's end", func() error {
		out, err := f.ledger("log", "--format=%B", rig.Ledger)
		if err == nil && !strings.Contains(out, "-> Released") {
			err = fmt.Errorf("the ledger says %s", out)
		}
		return err
	})
	f.eventually("the slice's end", func() error {
		out, err := slice()
		if err == nil && strings.Contains(out, "vision-train") {
			err = fmt.Errorf("there are %q", out)
		}
		return err
	})
	f.nothingDenied("rome", "fleetbroker")
	f.nothingDenied("paris", "fleetbroker")
	f.oneSpeaks(d, agents)
	f.nothingDenied("paris", "fleet-agent")
}

// nothingDenied fails for every call of a ServiceAccount that RBAC refused.
func (f *fleet) nothingDenied(cluster, account string) {
	f.t.Helper()
	calls, err := f.Clusters[cluster].Calls("system:serviceaccount:fleetbroker:" + account)
	if err != nil {
		f.t.Fatal(err)
	}
	if len(calls) == 0 {
		f.t.Errorf("%s called nothing on %s: it was somebody else who acted", account, cluster)
	}
	for _, c := range calls {
		if c.Status == 403 || c.Status == 401 {
			f.t.Errorf("denied: %s", c)
		}
	}
}

// oneSpeaks stops one replica after the other's start, changes the cluster, and
// expects the news from the one that is left.
func (f *fleet) oneSpeaks(d *rig.Daemon, agents []*env.Program) {
	f.t.Helper()
	holder, err := f.Clusters["paris"].Kubectl(f.ctx, f.Dir, "get", "lease", "-n", "fleetbroker", "fleet-agent", "-o", "jsonpath={.spec.holderIdentity}")
	if err != nil || holder == "" {
		f.t.Fatalf("nobody holds the Lease: %v", err)
	}
	if err := agents[0].Stop(); err != nil {
		f.t.Fatal(err)
	}
	if _, err := env.CreateGPUNode(f.ctx, f.Clusters["paris"].Config, env.GPUNode{Name: "paris-2", GPUs: 8, Labels: map[string]string{"fleetbroker.io/pool": "h100"}}); err != nil {
		f.t.Fatal(err)
	}
	f.eventually("news from the replica that is left", func() error {
		market, err := d.Market(f.ctx)
		if err == nil && !strings.Contains(market, `gpu: "16"`) {
			err = fmt.Errorf("the market is\n%s", market)
		}
		return err
	})
}

// counted waits until the daemon's metrics tell the story.
func (f *fleet) counted(d *rig.Daemon) {
	f.t.Helper()
	moves := []string{
		`fleetbroker_advert_total{cluster="paris",result="accepted"} `, `fleetbroker_reservations_total{phase="Reserved",requester="vision"} `,
		`fleetbroker_decision_seconds_count `, `fleetbroker_commit_seconds_count `, `fleetbroker_time_to_reserve_seconds_count `,
		`fleetbroker_spend_total{currency="EUR",tenant="vision"} `,
	}
	f.eventually("metrics that have moved", func() error {
		r, err := http.NewRequestWithContext(f.ctx, http.MethodGet, "http://"+d.Operators+"/metrics", nil)
		if err != nil {
			return err
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			return err
		}
		for _, name := range moves {
			_, rest, ok := strings.Cut(string(text), "\n"+name)
			value, _, _ := strings.Cut(rest, "\n")
			if n, err := strconv.ParseFloat(value, 64); !ok || err != nil || n <= 0 {
				return fmt.Errorf("%s is %q", name, value)
			}
		}
		return nil
	})
}
