package manifests

import (
	"bytes"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

var update = flag.Bool("update", false, "rewrite golden files")

type ns = v1alpha1.OffloadNamespace

// goldenCase is what a golden file is rendered from.
type goldenCase struct {
	reason    string
	contracts []*v1alpha1.Contract
	clusters  func(map[string]*v1alpha1.Cluster)
}

func (c goldenCase) fleet() map[string]*v1alpha1.Cluster {
	clusters := fleet()
	if c.clusters != nil {
		c.clusters(clusters)
	}
	return clusters
}

func goldens() map[string]goldenCase {
	vision := ns{Name: "vision", Create: true, PodOffloadingStrategy: "Remote"}
	return map[string]goldenCase{
		"remote":           {reason: "pods run on the provider only", contracts: []*v1alpha1.Contract{contract("vision", "train", "aaaa", offload(vision))}},
		"local":            {reason: "pods stay at home", contracts: []*v1alpha1.Contract{contract("vision", "train", "aaaa", offload(ns{Name: "vision", PodOffloadingStrategy: "Local"}))}},
		"localandremote":   {reason: "the default; a soft taint keeps pods at home", contracts: []*v1alpha1.Contract{contract("vision", "train", "aaaa", offload(ns{Name: "vision"}))}},
		"enforcesamename":  {reason: "the remote namespace has the same name", contracts: []*v1alpha1.Contract{contract("vision", "train", "aaaa", offload(ns{Name: "vision", NamespaceMappingStrategy: "EnforceSameName"}))}},
		"selectedname":     {reason: "the remote namespace has a chosen name", contracts: []*v1alpha1.Contract{contract("vision", "train", "aaaa", offload(ns{Name: "vision", NamespaceMappingStrategy: "SelectedName", RemoteNamespaceName: "rome-vision"}))}},
		"no-namespace":     {reason: "capacity without offloading", contracts: []*v1alpha1.Contract{contract("vision", "train", "aaaa")}},
		"class":            {reason: "the provider's agent grants", contracts: []*v1alpha1.Contract{contract("vision", "train", "aaaa", offload(vision), func(c *v1alpha1.Contract) { c.Spec.Class = "fleetbroker" })}},
		"two-intents":      {reason: "one namespace, both tolerations", contracts: []*v1alpha1.Contract{contract("vision", "train", "aaaa", offload(vision)), contract("vision", "serve", "bbbb", offload(vision), later(time.Minute))}},
		"two-providers":    {reason: "the selector names both; one has another Liqo id", contracts: []*v1alpha1.Contract{contract("vision", "train", "aaaa", offload(vision)), contract("vision", "train", "bbbb", offload(vision), provider("milan"))}},
		"two-tenants":      {reason: "a namespace belongs to the tenant that came first", contracts: []*v1alpha1.Contract{contract("vision", "train", "aaaa", offload(vision)), contract("nlp", "serve", "bbbb", offload(vision), later(time.Minute))}},
		"strategies-clash": {reason: "the oldest contract decides", contracts: []*v1alpha1.Contract{contract("vision", "train", "aaaa", offload(ns{Name: "vision", PodOffloadingStrategy: "Local"}), later(time.Minute)), contract("vision", "serve", "bbbb", offload(vision))}},
		"quota": {reason: "the sum of what is contracted", contracts: []*v1alpha1.Contract{
			contract("vision", "train", "aaaa", offload(ns{Name: "vision", Quota: true})),
			contract("vision", "serve", "bbbb", offload(ns{Name: "vision", Quota: true})),
			contract("vision", "batch", "cccc", offload(ns{Name: "vision"})),
			contract("vision", "old", "dddd", offload(ns{Name: "vision", Quota: true}), inPhase(v1alpha1.PhaseReleasing)),
		}},
		"pod-selector": {reason: "only some pods may use it", contracts: []*v1alpha1.Contract{contract("vision", "train", "aaaa", offload(ns{Name: "vision", PodSelector: &v1alpha1.LabelSelector{MatchLabels: map[string]string{"tier": "gpu", "app": "llm"}}}))}},
		"pod-expressions": {reason: "only some pods may use it, chosen by conditions on their labels", contracts: []*v1alpha1.Contract{contract("vision", "train", "aaaa", offload(ns{Name: "vision", PodSelector: &v1alpha1.LabelSelector{
			MatchLabels: map[string]string{"app": "llm"},
			MatchExpressions: []v1alpha1.LabelExpression{
				{Key: "tier", Operator: "In", Values: []string{"gpu", "accelerated"}}, {Key: "team.example.org/stage", Operator: "NotIn", Values: []string{"trial", "old"}},
				{Key: "owner", Operator: "Exists"}, {Key: "debug", Operator: "DoesNotExist"},
			},
		}}))}},
		"virtual-node": {reason: "labels, taints and runtime class of the intent; ours cannot be taken", contracts: []*v1alpha1.Contract{contract("vision", "train", "aaaa", func(c *v1alpha1.Contract) {
			c.Spec.VirtualNode = &v1alpha1.VirtualNodeSpec{
				Labels:           map[string]string{"team": "vision", v1alpha1.LabelIntent: "nlp.serve"},
				Taints:           []v1alpha1.Taint{{Key: "gpu", Value: "only", Effect: "NoSchedule"}, {Key: v1alpha1.TaintIntent, Value: "x", Effect: "NoSchedule"}},
				RuntimeClassName: "nvidia",
			}
		})}},
		"shares": {reason: "two virtual nodes of one slice, which Liqo does not make; what no share names is divided", contracts: []*v1alpha1.Contract{
			contract("vision", "train", "aaaa", offload(vision), func(c *v1alpha1.Contract) {
				c.Spec.VirtualNode = &v1alpha1.VirtualNodeSpec{RuntimeClassName: "nvidia", Shares: []v1alpha1.Resources{
					{v1alpha1.CPU: v1alpha1.AmountOf(4000), v1alpha1.GPU: v1alpha1.AmountOf(1)}, {v1alpha1.CPU: v1alpha1.AmountOf(12000), v1alpha1.GPU: v1alpha1.AmountOf(2)},
				}}
				c.Spec.GPUs = &v1alpha1.ContractGPU{Count: 4, Model: "nvidia-h100", Tier: "premium", ResourceName: "nvidia.com/gpu"}
				c.Spec.NodeSelector = map[string]string{"fleetbroker.io/pool": "h100-pool"}
			}),
		}},
		"shares-released": {reason: "the slice stays as it was, without virtual nodes", contracts: []*v1alpha1.Contract{
			contract("vision", "train", "aaaa", offload(vision), inPhase(v1alpha1.PhaseReleasing), func(c *v1alpha1.Contract) {
				c.Spec.VirtualNode = &v1alpha1.VirtualNodeSpec{Shares: []v1alpha1.Resources{res(8000, 64, 2), res(8000, 64, 2)}}
			}),
		}},
		"nodes": {reason: "a virtual node for each node that the contract lies on, pinned to it; one alone is called as its slice", contracts: []*v1alpha1.Contract{
			contract("vision", "train", "aaaa", offload(vision), onNodes(4, 1, 3), func(c *v1alpha1.Contract) {
				c.Spec.GPUs = &v1alpha1.ContractGPU{Count: 4, Model: "nvidia-h100", ResourceName: "nvidia.com/gpu"}
				c.Spec.NodeSelector = map[string]string{"fleetbroker.io/pool": "h100-pool"}
			}),
			contract("vision", "serve", "bbbb", offload(vision), later(time.Minute), onNodes(4, 4), func(c *v1alpha1.Contract) {
				c.Spec.NodeSelector = map[string]string{"fleetbroker.io/pool": "h100-pool"}
				c.Spec.VirtualNode = &v1alpha1.VirtualNodeSpec{RuntimeClassName: "nvidia"}
			}),
		}},
		"nodes-shares": {reason: "shares divide the part of one node", contracts: []*v1alpha1.Contract{
			contract("vision", "train", "aaaa", offload(vision), onNodes(4, 4), func(c *v1alpha1.Contract) {
				c.Spec.VirtualNode = &v1alpha1.VirtualNodeSpec{Shares: []v1alpha1.Resources{res(4000, 32, 1), res(12000, 96, 3)}}
				c.Spec.VirtualNode.Shares[1][v1alpha1.Pods], c.Spec.VirtualNode.Shares[1][v1alpha1.EphemeralStorage] = v1alpha1.AmountOf(0), v1alpha1.AmountOf(0)
			}),
		}},
		"nodes-numbered": {reason: "nodes of a file have no label: the pool's selector holds", contracts: []*v1alpha1.Contract{
			contract("vision", "train", "aaaa", offload(vision), onNodes(4, 1, 3), func(c *v1alpha1.Contract) {
				c.Spec.Nodes[0].Node, c.Spec.Nodes[1].Node = "0", "7"
				c.Spec.NodeSelector = map[string]string{"fleetbroker.io/pool": "h100-pool"}
			}),
		}},
		"nodes-released": {reason: "the slice stays as it was, without virtual nodes", contracts: []*v1alpha1.Contract{contract("vision", "train", "aaaa", offload(vision), inPhase(v1alpha1.PhaseReleasing), onNodes(4, 1, 3))}},
		"nodes-refused": {reason: "parts that do not add up, or are divided twice, are not written", contracts: []*v1alpha1.Contract{
			contract("vision", "sum", "aaaa", onNodes(4, 1, 2)),
			contract("vision", "shared", "bbbb", onNodes(4, 1, 3), func(c *v1alpha1.Contract) {
				c.Spec.VirtualNode = &v1alpha1.VirtualNodeSpec{Shares: []v1alpha1.Resources{res(1000, 1, 1)}}
			}),
		}},
		"own-secret": {reason: "a virtual node from a Secret of people's", contracts: []*v1alpha1.Contract{
			contract("vision", "train", "aaaa", offload(vision), func(c *v1alpha1.Contract) {
				c.Spec.VirtualNode = &v1alpha1.VirtualNodeSpec{KubeconfigSecretRef: &v1alpha1.SecretKeyRef{Name: "vision-at-paris"}}
			}),
		}},
		"release-1":    {reason: "no new pods, no new virtual node; the namespace stays", contracts: []*v1alpha1.Contract{contract("vision", "train", "aaaa", offload(vision), inPhase(v1alpha1.PhaseReleasing))}},
		"release-2":    {reason: "of a drained contract nothing is left; the other intent keeps the namespace", contracts: []*v1alpha1.Contract{contract("vision", "train", "aaaa", offload(vision), drained), contract("vision", "serve", "bbbb", offload(vision), provider("milan"))}},
		"resized-away": {reason: "a resource that is no longer wanted stays with 0", contracts: []*v1alpha1.Contract{contract("vision", "train", "aaaa", func(c *v1alpha1.Contract) { c.Spec.Resources["rdma/hca"] = v1alpha1.AmountOf(0) })}},
		"warm-before":  {reason: "a warm slice: nobody's pods tolerate its taint", contracts: []*v1alpha1.Contract{warm("aaaa")}},
		"warm-claimed": {reason: "claimed: the same slice, virtual node and Node; only labels, taints and the namespace follow", contracts: []*v1alpha1.Contract{
			warm("aaaa", inPhase(v1alpha1.PhaseReleased)),
			contract("vision", "train", "bbbb", offload(vision), func(c *v1alpha1.Contract) { c.Spec.Slice = warm("aaaa").Spec.Slice }),
			warm("cccc"),
		}},
		"long-names": {reason: "the taint's value is cut with a hash", contracts: []*v1alpha1.Contract{contract("vision", strings.Repeat("long-", 12)+"x", "aaaa", offload(vision))}},
		"own-tenant-namespace": {reason: "Liqo's namespace is set by the cluster", contracts: []*v1alpha1.Contract{contract("vision", "train", "aaaa"), contract("vision", "train", "bbbb", provider("milan"))},
			clusters: func(m map[string]*v1alpha1.Cluster) { m["rome"].Spec.Liqo.TenantNamespace = "peerings" }},
		"not-rendered": {reason: "what is not held or not to be peered has no manifests", contracts: []*v1alpha1.Contract{
			contract("vision", "train", "aaaa", inPhase(v1alpha1.PhaseReleased)),
			contract("vision", "train", "bbbb", func(c *v1alpha1.Contract) { c.Spec.Stage = v1alpha1.StageReserve }),
			contract("vision", "train", "cccc", drained),
		}},
		"refused": {reason: "what would break Liqo is not written", contracts: []*v1alpha1.Contract{
			contract("vision", "gpu", "aaaa", func(c *v1alpha1.Contract) { c.Spec.Resources[v1alpha1.GPU] = v1alpha1.AmountOf(1) }),
			contract("vision", "negative", "bbbb", func(c *v1alpha1.Contract) { c.Spec.Resources["nvidia.com/gpu"] = v1alpha1.AmountOf(-1) }),
			contract("vision", "empty", "cccc", func(c *v1alpha1.Contract) { c.Spec.Resources = nil }),
			contract("vision", "shares", "dddd", func(c *v1alpha1.Contract) {
				c.Spec.VirtualNode = &v1alpha1.VirtualNodeSpec{Shares: []v1alpha1.Resources{res(1000, 1, 3), res(1000, 1, 2)}}
			}),
			contract("vision", "reserved", "eeee", offload(ns{Name: "kube-system"})),
		}},
	}
}

func outsidePolicies(file string) bool { return !strings.Contains(file, "/policies/") }

func TestGolden(t *testing.T) {
	for name, tc := range goldens() {
		t.Run(name, func(t *testing.T) {
			out, err := All(NewIndex(tc.contracts), tc.fleet())
			if err != nil {
				t.Fatal(err)
			}
			golden(t, name, tc.reason, out, outsidePolicies)
		})
	}
}

func TestGoldenPolicies(t *testing.T) {
	out, err := All(NewIndex([]*v1alpha1.Contract{contract("vision", "train", "aaaa")}), fleet())
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "policies", "what keeps tenants apart, whoever applies", out, func(file string) bool { return strings.Contains(file, "/policies/") })
}

// archived are the files that pick picks, and all problems.
func archived(out Output, pick func(string) bool) *txtar.Archive {
	archive := &txtar.Archive{}
	for _, file := range slices.Sorted(maps.Keys(out.Files)) {
		if pick(file) {
			archive.Files = append(archive.Files, txtar.File{Name: file, Data: out.Files[file]})
		}
	}
	if len(out.Problems) > 0 {
		var b bytes.Buffer
		for _, p := range out.Problems {
			b.WriteString(p.String() + "\n")
		}
		archive.Files = append(archive.Files, txtar.File{Name: "problems", Data: b.Bytes()})
	}
	return archive
}

// golden compares the files that pick picks, and all problems, with
// testdata/<name>.txtar.
func golden(t *testing.T, name, reason string, out Output, pick func(string) bool) {
	t.Helper()
	archive := archived(out, pick)
	archive.Comment = []byte(reason + "\n")
	got := txtar.Format(archive)
	file := filepath.Join("testdata", name+".txtar")
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v (write it with -update)", err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s: %s differs (rewrite with -update after looking):\n%s", reason, file, got)
	}
}

// Whom the Cluster file names may write what namespaces carry and pin virtual nodes,
// beside the others, and no other policy changes.
func TestDeliverersAreAdmitted(t *testing.T) {
	all := func(deliverers ...string) map[string][]byte {
		clusters := fleet()
		clusters["rome"].Spec.Deliverers = deliverers
		out, err := All(NewIndex([]*v1alpha1.Contract{contract("vision", "train", "aaaa")}), clusters)
		if err != nil {
			t.Fatal(err)
		}
		return out.Files
	}
	const argo, ci = "system:serviceaccount:kube-system:argocd-manager", "ci@example.org"
	guards := []string{"manifests/rome/namespaces/policies/namespace-guard.yaml", "manifests/rome/namespaces/policies/virtualnode-guard.yaml"}
	usual, more := all(), all(argo, ci)
	for name, text := range more {
		if !slices.Contains(guards, name) && string(text) != string(usual[name]) {
			t.Errorf("%s changed", name)
		}
	}
	for _, guard := range guards {
		added := strings.Replace(string(more[guard]), ",\n      '"+argo+"',\n      '"+ci+"'", "", 1)
		if added != string(usual[guard]) || added == string(more[guard]) {
			t.Errorf("the guard is\n%s", more[guard])
		}
	}
}
