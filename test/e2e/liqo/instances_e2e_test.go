//go:build e2e

package liqo

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/rig"
)

const migProfile = "1g.10gb"

// cutNodes are two nodes with four instances of a MIG profile each, as the GPU operator shows
// them with the strategy mixed.
func cutNodes() (out []env.GPUNode) {
	for _, name := range []string{"paris-c", "paris-d"} {
		out = append(out, env.GPUNode{
			Name:     name,
			Labels:   map[string]string{"fleetbroker.io/pool": "mig", "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "nvidia.com/mig.strategy": "mixed"},
			Extended: map[corev1.ResourceName]int64{"nvidia.com/mig-" + migProfile: 4},
		})
	}
	return out
}

// instances: contracts of 3 and 2 instances of MIG lie on a node each, where their pods run;
// for one pod of 3 more there is no room, although 3 are free on both nodes together.
func (f *fleet) instances() {
	f.t.Helper()
	pieces := []*piece{{tenant: "vision", consumer: "rome", gpus: 3, profile: migProfile}, {tenant: "nlp", consumer: "milan", gpus: 2, profile: migProfile}}
	for _, p := range pieces {
		f.Put(p.tenant, p.name(), p.intent())
		p.contract = f.Contract(p.tenant, p.name(), "Active")
		c := f.contractOf(p.tenant, p.name(), p.contract)
		if len(c.Spec.Nodes) != 1 {
			f.t.Fatalf("contract %s names nodes %v, want one", p.contract, c.Spec.Nodes)
		}
		p.node = f.nodeOf(c.Spec.Nodes[0].Node)
		f.apply(p.consumer, p.pod(p.name(), p.gpus))
	}
	for _, p := range pieces {
		f.says("paris", p.node+" Running", "get", "pods", "-n", p.remote(), "-l", "piece="+p.name(), "-o", "jsonpath={.items[*].spec.nodeName} {.items[*].status.phase}")
		f.well(p.contract)
	}
	if pieces[0].node == pieces[1].node {
		f.t.Errorf("both lie on %s, which has 4 instances", pieces[0].node)
	}
	more := &piece{tenant: "nlp", consumer: "milan", gpus: 3, profile: migProfile}
	f.Put(more.tenant, more.name(), more.intent())
	f.Eventually("3 instances in one pod wait", func() error {
		if _, err := f.Platform.Git(f.ctx, "fetch", "-q", "origin", rig.Ledger); err != nil {
			return err
		}
		state, err := f.Platform.Git(f.ctx, "show", "FETCH_HEAD:"+ledger.StatePath(more.tenant, more.name()))
		if err == nil && !strings.Contains(state, "state: Queued") {
			err = fmt.Errorf("its state is\n%s", state)
		}
		return err
	})
}
