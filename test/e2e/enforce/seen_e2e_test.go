//go:build e2e

package enforce

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/test/env/rig"
)

// fleetFile is the rig's, with more of a policy.
func fleetFile(more string) string {
	return "apiVersion: fleetbroker.io/v1alpha1\nkind: Fleet\nmetadata: {name: acme}\nspec:\n  currency: EUR\n" +
		"  writeBack: {mode: push, inputs: main, branch: " + rig.Ledger + ", statusInterval: 1s, author: {name: fleetbroker, email: fleetbroker@example.org}}\n" + more
}

// written is a contract as the ledger has it.
func (f *fleet) written(tenant, name string) *v1alpha1.Contract {
	f.t.Helper()
	repo := f.Git.RepoDir(rig.Repo)
	path, err := f.Platform.Git(f.ctx, "-C", repo, "ls-tree", "-r", "--name-only", rig.Ledger, "contracts/"+tenant+"/")
	if err != nil {
		f.t.Fatal(err)
	}
	for line := range strings.Lines(path) {
		if line = strings.TrimSpace(line); !strings.HasSuffix(line, "/"+name+".yaml") {
			continue
		}
		text, err := f.Platform.Git(f.ctx, "-C", repo, "show", rig.Ledger+":"+line)
		if err != nil {
			f.t.Fatal(err)
		}
		c := &v1alpha1.Contract{}
		if err := yaml.Unmarshal([]byte(text), c); err != nil {
			f.t.Fatal(err)
		}
		return c
	}
	f.t.Fatalf("the ledger has no %s in\n%s", name, path)
	return nil
}

// entered is when a contract came into a phase, as its history says.
func entered(c *v1alpha1.Contract, phase v1alpha1.Phase) time.Time {
	for _, h := range c.Status.History {
		if h.Phase == phase {
			return h.At.Time
		}
	}
	return time.Time{}
}

// elsewhere is the node of paris on which a contract of one node has no part.
func (f *fleet) elsewhere(contract string) string {
	f.t.Helper()
	parts := f.written("vision", contract).Spec.Nodes
	if len(parts) != 1 {
		f.t.Fatalf("contract %s lies on nodes %v, want one", contract, parts)
	}
	var nodes corev1.NodeList
	if err := f.paris.List(f.ctx, &nodes); err != nil {
		f.t.Fatal(err)
	}
	for i := range nodes.Items {
		if hash := nodes.Items[i].Labels[v1alpha1.LabelNode]; hash != "" && hash != parts[0].Node {
			return nodes.Items[i].Name
		}
	}
	f.t.Fatal("paris has no other node with a hash")
	return ""
}

// sells waits until the market has a provider's flavor h100 with so many GPUs.
func (f *fleet) sells(provider, gpus string) {
	f.t.Helper()
	f.Eventually(provider+" sells "+gpus+" GPUs", func() error {
		market, err := f.daemon.Market(f.ctx)
		if err != nil {
			return err
		}
		for document := range strings.SplitSeq(market, "\n---\n") {
			o := &v1alpha1.Flavor{}
			if err := yaml.Unmarshal([]byte(document), o); err != nil {
				return err
			}
			if o.Metadata.Namespace == provider && o.Spec.Capacity[v1alpha1.GPU].Canonical(v1alpha1.GPU) == gpus {
				return nil
			}
		}
		return fmt.Errorf("the market is\n%s", market)
	})
}
