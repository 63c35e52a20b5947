//go:build e2e

package liqo

import (
	"fmt"
	"maps"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/rig"
)

// piece is a contract of so many GPUs on one node, or instances of a MIG profile, and the pod
// that uses all of them.
type piece struct {
	tenant, consumer string
	gpus             int
	profile          string
	// contract, and the provider's node that it lies on.
	contract, node string
}

// name of the intent and of its pod, and the label that the pod bears.
func (p *piece) name() string {
	if p.profile != "" {
		return fmt.Sprintf("mig%d", p.gpus)
	}
	return fmt.Sprintf("gpu%d", p.gpus)
}

// resource is what the piece's pod asks for by name, and asks what its intent asks for.
func (p *piece) resource() string {
	if p.profile != "" {
		return "nvidia.com/mig-" + p.profile
	}
	return "nvidia.com/gpu"
}

func (p *piece) asks() string {
	if p.profile != "" {
		return "profile: " + p.profile
	}
	return "models: [nvidia-h100]"
}

// pod asks for GPUs of a piece.
func (p *piece) pod(name string, gpus int) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: %s, namespace: %s, labels: {piece: %s}}\n"+
		"spec: {containers: [{name: main, image: example.org/train, resources: {limits: {%s: %d, cpu: 500m, memory: 1Gi}}}]}\n", name, p.tenant, p.name(), p.resource(), gpus)
}

// intent asks for the piece; only its own pod may use it.
func (p *piece) intent() string {
	return fmt.Sprintf(`apiVersion: fleetbroker.io/v1alpha1
kind: ResourceIntent
metadata: {name: %s, namespace: %s}
spec:
  consumer: %s
  resources: {cpu: "1", memory: 2Gi, pods: "5", ephemeral-storage: 1Gi, gpu: {count: %d, %s}}
  offload:
    namespaces: [{name: %[2]s, create: true, podOffloadingStrategy: Remote, podSelector: {matchLabels: {piece: %[1]s}}}]
`, p.name(), p.tenant, p.consumer, p.gpus, p.asks())
}

// remote is where the piece's pods are on the provider.
func (p *piece) remote() string { return p.tenant + "-" + p.consumer }

// own is a pod of the provider's own, of one GPU unless said otherwise, on a node.
func own(name, node string, gpus int) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: %s, namespace: default}\n"+
		"spec: {nodeSelector: {kubernetes.io/hostname: %s}, containers: [{name: main, image: example.org/own, resources: {limits: {nvidia.com/gpu: %d}}}]}\n", name, node, gpus)
}

// contractOf reads a contract of the ledger's head.
func (f *fleet) contractOf(tenant, intent, name string) *v1alpha1.Contract {
	f.t.Helper()
	if _, err := f.Platform.Git(f.ctx, "fetch", "-q", "origin", rig.Ledger); err != nil {
		f.t.Fatal(err)
	}
	c := &v1alpha1.Contract{Metadata: v1alpha1.Metadata{Name: name, Namespace: tenant}, Spec: v1alpha1.ContractSpec{Intent: v1alpha1.ContractIntent{Name: intent}}}
	text, err := f.Platform.Git(f.ctx, "show", "FETCH_HEAD:"+ledger.ContractPath(c))
	if err != nil {
		f.t.Fatal(err)
	}
	c = &v1alpha1.Contract{}
	if err := ledger.Decode([]byte(text), c); err != nil {
		f.t.Fatal(err)
	}
	return c
}

// nodeOf is the provider's node that bears a hash.
func (f *fleet) nodeOf(hash string) string {
	f.t.Helper()
	name, err := f.kubectl("paris", "get", "nodes", "-l", v1alpha1.LabelNode+"="+hash, "-o", "jsonpath={.items[*].metadata.name}")
	if err != nil {
		f.t.Fatal(err)
	}
	return name
}

// Contracts of 1, 2 and 4 GPUs from two consumers fill two nodes of eight on which the
// provider runs pods of its own. Whatever comes first, each pod runs on the node that its
// contract names: pinned to the pool alone, two pods of 2 would take the place of one of 4.
func TestPiecesOfNodes(t *testing.T) {
	f := startWith(t, func(o *rig.Options) {
		o.Consumers = []string{"rome", "milan"}
		o.Inputs["tenants/nlp.yaml"] = "apiVersion: fleetbroker.io/v1alpha1\nkind: Tenant\nmetadata: {name: nlp}\nspec: {consumers: [milan], namespaces: [nlp]}\n"
		pool := map[string]string{"fleetbroker.io/pool": "h100"}
		o.Providers["paris"] = append([]env.GPUNode{{Name: "paris-a", GPUs: 8, Labels: pool}, {Name: "paris-b", GPUs: 8, Labels: pool}}, cutNodes()...)
	}, func(f *fleet) {
		f.apply("paris", own("own-a", "paris-a", 1))
		f.apply("paris", own("own-b", "paris-b", 1))
		f.Spread("paris", "default", map[string]int{"paris-a": 1, "paris-b": 1})
	}, "paris")
	f.Eventually("both nodes are told with one GPU less", func() error {
		market, err := f.daemon.Market(f.ctx)
		if err == nil && strings.Count(market, `gpu: "7"`) < 1 {
			err = fmt.Errorf("the market is\n%s", market)
		}
		return err
	})

	var pieces []*piece
	for _, gpus := range []int{4, 2, 1} {
		pieces = append(pieces, &piece{tenant: "vision", consumer: "rome", gpus: gpus}, &piece{tenant: "nlp", consumer: "milan", gpus: gpus})
	}
	for _, p := range pieces {
		f.Put(p.tenant, p.name(), p.intent())
		p.contract = f.Contract(p.tenant, p.name(), "Reserved", "Peering", "Active")
	}
	taken := map[string]int{}
	for _, p := range pieces {
		f.Contract(p.tenant, p.name(), "Active")
		c := f.contractOf(p.tenant, p.name(), p.contract)
		if len(c.Spec.Nodes) != 1 {
			t.Fatalf("contract %s names nodes %v, want one", p.contract, c.Spec.Nodes)
		}
		p.node = f.nodeOf(c.Spec.Nodes[0].Node)
		taken[p.node] += p.gpus
		f.says(p.consumer, c.Spec.Nodes[0].Node, "get", "virtualnodes.offloading.liqo.io", p.contract, "-n", "liqo-tenant-paris", "-o", `jsonpath={.spec.offloadingPatch.nodeSelector.fleetbroker\.io/node}`)
	}
	if !maps.Equal(taken, map[string]int{"paris-a": 7, "paris-b": 7}) {
		t.Fatalf("the contracts take %v", taken)
	}

	began := time.Now()
	orders := ordersOf(len(pieces) + 2)
	for i, order := range orders {
		f.runsInOrder(pieces, order, i > 0)
	}
	t.Logf("%d orders of %d pods: %s", len(orders), len(pieces)+2, time.Since(began).Round(time.Millisecond))
	f.well(pieces[0].contract)

	// A pod that is bigger than its piece is refused where it is asked for, although as
	// many GPUs are sold to the consumer on that node.
	small := pieces[2] // of 2 GPUs
	f.apply(small.consumer, small.pod("bigger", small.gpus+1))
	f.Eventually("a pod bigger than its piece is refused with that reason", func() error {
		why, err := f.kubectl(small.consumer, "get", "pod", "bigger", "-n", small.tenant, "-o", `jsonpath={.status.conditions[?(@.type=="PodScheduled")].message}`)
		if err == nil && !strings.Contains(why, "Insufficient nvidia.com/gpu") {
			err = fmt.Errorf("it is told %q", why)
		}
		return err
	})
	f.run(small.consumer, "delete", "pod", "bigger", "-n", small.tenant)

	// Own pods that come later take the piece of who has no pod there: its contract is
	// Degraded, with the node's hash, and no other is.
	loser := pieces[0]
	f.run(loser.consumer, "delete", "pod", loser.name(), "-n", loser.tenant)
	f.says("paris", "", "get", "pods", "-n", loser.remote(), "-l", "piece="+loser.name(), "-o", "name")
	f.apply("paris", own("own-later", loser.node, 2))
	f.Contract(loser.tenant, loser.name(), "Degraded")
	hash := f.contractOf(loser.tenant, loser.name(), loser.contract).Spec.Nodes[0].Node
	f.reason(loser.contract, "Degraded", "node "+hash+": 2 of 4 gpu are left there for contract "+loser.contract)
	for _, p := range pieces[1:] {
		if got := f.Phases(p.tenant, p.name()); got[p.contract] != "Active" {
			t.Errorf("%s/%s: %v, want Active", p.tenant, p.name(), got)
		}
	}
	f.run("paris", "delete", "pod", "own-later", "-n", "default")
	f.Contract(loser.tenant, loser.name(), "Active")
	f.remaps(loser, pieces[1])
	f.instances()
	f.Sound()
}

// remaps takes GPUs of a piece whose pod is gone, once the other piece of its size has left
// the other node: the piece alone is given its place there, after the grace.
func (f *fleet) remaps(p, other *piece) {
	f.t.Helper()
	policy, err := os.ReadFile(filepath.Join(f.Platform.Dir, "fleet.yaml"))
	if err != nil {
		f.t.Fatal(err)
	}
	if _, err := f.Platform.CommitAndPush(f.ctx, "A grace of seconds", map[string]string{"fleet.yaml": string(policy) + "  defaults: {gracePeriod: 3s}\n"}); err != nil {
		f.t.Fatal(err)
	}
	f.Remove(other.tenant, other.name())
	f.Contract(other.tenant, other.name(), "Released")
	f.apply("paris", own("own-later", p.node, 2))
	f.Eventually("the piece is given the other node", func() error {
		c := f.contractOf(p.tenant, p.name(), p.contract)
		if on := f.nodeOf(c.Spec.Nodes[0].Node); on != other.node || c.Spec.Nodes[0].Part != 2 {
			return fmt.Errorf("it lies on %s, part %d", on, c.Spec.Nodes[0].Part)
		}
		return nil
	})
	f.Contract(p.tenant, p.name(), "Active")
	const pinned = `jsonpath={.spec.offloadingPatch.nodeSelector.fleetbroker\.io/node}`
	f.says(p.consumer, f.contractOf(p.tenant, p.name(), p.contract).Spec.Nodes[0].Node, "get", "virtualnodes.offloading.liqo.io", p.contract+".2", "-n", "liqo-tenant-paris", "-o", pinned)
	f.says(p.consumer, "", "get", "nodes", p.contract, "--ignore-not-found", "-o", "name")
	f.apply(p.consumer, p.pod(p.name(), p.gpus))
	f.says("paris", other.node+" Running", "get", "pods", "-n", p.remote(), "-l", "piece="+p.name(), "-o", "jsonpath={.items[*].spec.nodeName} {.items[*].status.phase}")
	f.well(p.contract)
}

// ordersOf are an order of n things at random and its reverse: each comes before each
// other in one of them.
func ordersOf(n int) [][]int {
	order := rand.New(rand.NewSource(20261127)).Perm(n)
	reverse := slices.Clone(order)
	slices.Reverse(reverse)
	return [][]int{order, reverse}
}

// runsInOrder makes the pods of all pieces and the provider's own two one after the other,
// each a moment after the one before was taken, and waits until all run where they belong.
func (f *fleet) runsInOrder(pieces []*piece, order []int, again bool) {
	f.t.Helper()
	if again {
		for _, consumer := range []string{"rome", "milan"} {
			f.run(consumer, "delete", "pods", "-A", "-l", "piece", "--wait=false")
		}
	}
	f.run("paris", "delete", "pod", "own-a", "own-b", "-n", "default", "--wait=false")
	f.Eventually("all pods are gone", func() error {
		left, err := f.kubectl("paris", "get", "pods", "-A", "-o", "jsonpath={.items[*].metadata.name}")
		if err == nil && left != "" {
			err = fmt.Errorf("%s are there", left)
		}
		return err
	})
	want := map[string]string{"default/own-a": "paris-a", "default/own-b": "paris-b"}
	for _, i := range order {
		if i >= len(pieces) {
			node := []string{"a", "b"}[i-len(pieces)]
			f.apply("paris", own("own-"+node, "paris-"+node, 1))
			continue
		}
		p := pieces[i]
		want[p.remote()+"/"+p.name()] = p.node
		f.apply(p.consumer, p.pod(p.name(), p.gpus))
		f.Eventually(p.name()+" is taken", func() error {
			node, err := f.kubectl(p.consumer, "get", "pod", p.name(), "-n", p.tenant, "-o", "jsonpath={.spec.nodeName}")
			if err == nil && node != p.contract {
				err = fmt.Errorf("it is on %q, its virtual node is %s", node, p.contract)
			}
			return err
		})
	}
	f.Eventually(fmt.Sprintf("in order %v all pods run on the nodes of their contracts", order), func() error {
		out, err := f.kubectl("paris", "get", "pods", "-A", "--field-selector", "status.phase=Running", "-o", `jsonpath={range .items[*]}{.metadata.namespace}/{.metadata.name} {.spec.nodeName}{"\n"}{end}`)
		got := map[string]string{}
		for line := range strings.Lines(out) {
			pod, node, _ := strings.Cut(strings.TrimSpace(line), " ")
			got[pod] = node
		}
		if err == nil && !maps.Equal(got, want) {
			err = fmt.Errorf("they run on %v, want %v", got, want)
		}
		return err
	})
}
