package consumers

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/delivery/access"
)

// askTimeout bounds what one cluster may take.
const askTimeout = 10 * time.Second

// State says whether a consumer could be asked.
type State struct {
	Cluster string `json:"cluster"`
	Error   string `json:"error,omitempty"`
}

// Answer is what one consumer says.
type Answer struct {
	State State
	// Modules are Liqo's with their health, by the provider's Liqo id.
	Modules map[string]map[string]string
	Nodes   []Node
}

// Node is a virtual node of a consumer.
type Node struct {
	Consumer string `json:"consumer"`
	Node     string `json:"node"`
	Ready    bool   `json:"ready"`
	CPU      string `json:"cpu"`
	Memory   string `json:"memory"`
	GPUs     string `json:"gpus,omitempty"`
}

// What is asked for: Liqo v1.2.0's ForeignCluster, whose modules look at real
// readiness, and the Nodes that virtual nodes became. (VirtualNode.status is no
// evidence: it says Running before there is a Node.)
var (
	foreignClusters = schema.GroupVersionResource{Group: "core.liqo.io", Version: "v1beta1", Resource: "foreignclusters"}
	nodes           = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
)

// Ask asks all consumers among some clusters at once, by kubeconfigs;
// one that cannot be asked has an Error. The answers are in the order of the names.
func Ask(ctx context.Context, clusters map[string]*v1alpha1.Cluster, ways access.Kubeconfigs) []Answer {
	var answers []Answer
	for _, name := range slices.Sorted(maps.Keys(clusters)) {
		if clusters[name].HasRole("consumer") {
			answers = append(answers, Answer{State: State{Cluster: name}})
		}
	}
	var wg sync.WaitGroup
	for i := range answers {
		a := &answers[i]
		wg.Go(func() {
			var err error
			if a.Modules, a.Nodes, err = askOne(ctx, clusters[a.State.Cluster], ways); err != nil {
				a.State.Error = err.Error()
			}
		})
	}
	wg.Wait()
	return answers
}

func askOne(ctx context.Context, c *v1alpha1.Cluster, ways access.Kubeconfigs) (map[string]map[string]string, []Node, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	config, err := ways.RESTConfig(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	config.Timeout = askTimeout
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, nil, fmt.Errorf("connect: %w", err)
	}
	list, err := client.Resource(nodes).List(ctx, metav1.ListOptions{LabelSelector: "liqo.io/type=virtual-node"})
	if err != nil {
		return nil, nil, fmt.Errorf("list virtual nodes: %w", err)
	}
	var out []Node
	for i := range list.Items {
		out = append(out, nodeOf(c.Metadata.Name, &list.Items[i]))
	}
	peers, err := client.Resource(foreignClusters).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, out, fmt.Errorf("list peerings (is Liqo installed?): %w", err)
	}
	modules := map[string]map[string]string{}
	for i := range peers.Items {
		id, health := modulesOf(&peers.Items[i])
		modules[id] = health
	}
	return modules, out, nil
}

func nodeOf(consumer string, n *unstructured.Unstructured) Node {
	out := Node{Consumer: consumer, Node: n.GetName()}
	conditions, _, _ := unstructured.NestedSlice(n.Object, "status", "conditions")
	out.Ready = conditionOf(conditions, "Ready") == "True"
	allocatable, _, _ := unstructured.NestedStringMap(n.Object, "status", "allocatable")
	out.CPU, out.Memory = allocatable["cpu"], allocatable["memory"]
	var gpus []string
	for name, amount := range allocatable {
		if strings.Contains(name, "/") && amount != "0" && !strings.HasPrefix(name, "hugepages") {
			gpus = append(gpus, amount+" "+name)
		}
	}
	sort.Strings(gpus)
	out.GPUs = strings.Join(gpus, ", ")
	return out
}

// modulesOf is the health of a peering, by Liqo's module.
func modulesOf(fc *unstructured.Unstructured) (id string, health map[string]string) {
	id, _, _ = unstructured.NestedString(fc.Object, "spec", "clusterID")
	health = map[string]string{}
	conditions, _, _ := unstructured.NestedSlice(fc.Object, "status", "conditions")
	if s := conditionOf(conditions, "APIServerStatus"); s != "" {
		health["api"] = s
	}
	for _, module := range []string{"networking", "authentication", "offloading"} {
		enabled, _, _ := unstructured.NestedBool(fc.Object, "status", "modules", module, "enabled")
		if !enabled {
			continue
		}
		list, _, _ := unstructured.NestedSlice(fc.Object, "status", "modules", module, "conditions")
		health[module] = worst(list)
	}
	return id, health
}

func conditionOf(conditions []any, kind string) string {
	for _, c := range conditions {
		if m, ok := c.(map[string]any); ok && m["type"] == kind {
			s, _ := m["status"].(string)
			return s
		}
	}
	return ""
}

// worst is the first status that is not good, else the good one; of a module of which
// Liqo says no more than that it is enabled, that.
func worst(conditions []any) string {
	if len(conditions) == 0 {
		return "Enabled"
	}
	good := ""
	for _, c := range conditions {
		m, ok := c.(map[string]any)
		if !ok {
			continue
		}
		switch s, _ := m["status"].(string); s {
		case "Established", "Ready", "True":
			good = s
		case "":
		default:
			return s
		}
	}
	if good == "" {
		return "Pending"
	}
	return good
}
