package onnodes

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

const (
	one = "n0000000000001"
	two = "n0000000000002"
)

func spec(t *testing.T, text string) *v1alpha1.FlavorSpec {
	t.Helper()
	var s v1alpha1.FlavorSpec
	if err := yaml.UnmarshalStrict([]byte(text), &s); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return &s
}

// what a report of two nodes of 8 GPUs has, and what each mistake in it is told.
func TestReport(t *testing.T) {
	const good = `{capacity: {gpu: 16, cpu: 200}, held: {c1: {gpu: 4}}, heldOn: {c1: {` + one + `: {gpu: 4}}},
nodes: {groups: [{shape: {gpu: 8, cpu: 96, pods: 110}, free: {gpu: 6, cpu: 90}, labels: {nvidia.com/gpu.clique: a.0}, nodes: [` + one + `, ` + two + `]}]}}`
	if err := Report(spec(t, good)); err != nil {
		t.Errorf("a good report: %v", err)
	}
	for _, empty := range []string{"{capacity: {gpu: 8}}", "{capacity: {gpu: 8}, nodes: {}}", "{capacity: {gpu: 8}, nodes: {count: 1, size: {gpu: 8}}}"} {
		if err := Report(spec(t, empty)); err != nil {
			t.Errorf("%s: %v", empty, err)
		}
	}
	long := strings.Repeat("x", 64)
	for _, tt := range []struct{ from, to, want string }{
		{"gpu: 16", "gpu: 15", "spec.nodes: all nodes together have 16 gpu, and spec.capacity has 15"},
		{"gpu: 16, ", "", "spec.nodes: all nodes together have 16 gpu, and spec.capacity has 0"},
		{two + "]", one + "]", "spec.nodes.groups[0].nodes: node " + one + " is listed twice"},
		{two + "]", "gpu-1]", `"gpu-1" is not a node's hash`},
		{two + "]", "N0000000000002]", "is not a node's hash"},
		{two + "]", "\"" + two + "\\n\"]", "is not a node's hash"},
		{"[" + one + ", " + two + "]", "[]", "spec.nodes.groups[0] has no nodes"},
		{"free: {gpu: 6", "free: {gpu: 9", "spec.nodes.groups[0].free.gpu is 9, and a node has 8"},
		{"free: {gpu: 6", "free: {amd.com/gpu: 1", "spec.nodes.groups[0].free.amd.com/gpu is 1, and a node has 0"},
		{"shape: {gpu: 8, cpu: 96, pods: 110}", "shape: {}", "spec.nodes.groups[0].shape is empty"},
		{"cpu: 96", `cpu: "1000000000000000"`, "spec.nodes.groups[0].shape.cpu is out of bounds"},
		{"pods: 110", `"a b": 1`, "is not a resource's name"},
		{"clique: a.0", "clique: " + long, "is not a label"},
		{"clique: a.0", `clique: "a\u0430"`, "is not a label"},
		{"nodes: {groups", "nodes: {count: 2, groups", "count and size go with a file, groups with a report"},
		{"heldOn: {c1:", "heldOn: {c2:", `spec.heldOn: "c2" is not in spec.held`},
		{"heldOn: {c1: {" + one, "heldOn: {c1: {paris-gpu", "is not a node's hash"},
		{"heldOn: {c1: {" + one + ": {gpu: 4}", "heldOn: {c1: {" + one + ": {gpu: 5}", "has 5 gpu, and spec.held.c1 has 4"},
		{"heldOn: {c1: {" + one + ": {gpu: 4}}", "heldOn: {c1: {" + one + ": {gpu: 4}, " + two + ": {gpu: 1}}", "spec.heldOn.c1: all nodes together have 5 gpu, and spec.held.c1 has 4"},
		{"heldOn: {c1: {" + one + ": {gpu: 4}}", "heldOn: {c1: {}", "spec.heldOn.c1: 0 nodes"},
	} {
		text := strings.Replace(good, tt.from, tt.to, 1)
		if text == good {
			t.Fatalf("%q is not in the report", tt.from)
		}
		if err := Report(spec(t, text)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s instead of %s: %v, want %q", tt.to, tt.from, err, tt.want)
		}
	}
}

// A flavor of 5,000 nodes is taken, one of more than MaxNodes is not.
func TestReport_Bounds(t *testing.T) {
	for n, want := range map[int]string{5_000: "", MaxNodes: "", MaxNodes + 1: "more than 10000 nodes"} {
		s := &v1alpha1.FlavorSpec{Capacity: v1alpha1.Resources{v1alpha1.GPU: v1alpha1.AmountOf(8 * int64(n))}, Nodes: &v1alpha1.FlavorNodes{}}
		for i := range n {
			s.Nodes.Groups = append(s.Nodes.Groups, v1alpha1.NodeGroup{Shape: v1alpha1.Resources{v1alpha1.GPU: v1alpha1.AmountOf(8)}, Nodes: []string{fmt.Sprintf("n%013d", i)}})
		}
		switch err := Report(s); {
		case (err == nil) != (want == ""), err != nil && !strings.Contains(err.Error(), want):
			t.Errorf("%d nodes: %v, want %q", n, err, want)
		}
	}
}

// Whatever is stated, what passes adds up, by arithmetic of its own.
func TestReport_WhatPassesAddsUp(t *testing.T) {
	passed := 0
	rapid.Check(t, func(t *rapid.T) {
		amount := rapid.SampledFrom([]int64{0, 1, 2, 8, 1 << 40, 1 << 59, 1<<63 - 1, -1})
		list := func(label string) v1alpha1.Resources {
			out := v1alpha1.Resources{}
			for _, name := range []string{"gpu", "cpu", "pods"} {
				if rapid.IntRange(0, 3).Draw(t, label+" has "+name) > 0 {
					out[name] = v1alpha1.AmountOf(amount.Draw(t, label+" "+name))
				}
			}
			return out
		}
		s := &v1alpha1.FlavorSpec{Capacity: list("capacity"), Nodes: &v1alpha1.FlavorNodes{}}
		hash := 0
		for i := range rapid.IntRange(0, 3).Draw(t, "groups") {
			g := v1alpha1.NodeGroup{Shape: list(fmt.Sprint("shape ", i)), Free: list(fmt.Sprint("free ", i))}
			for range rapid.IntRange(0, 3).Draw(t, "nodes") {
				g.Nodes = append(g.Nodes, fmt.Sprintf("n%013d", hash))
				hash += rapid.SampledFrom([]int{1, 1, 1, 1, 0}).Draw(t, "next")
			}
			s.Nodes.Groups = append(s.Nodes.Groups, g)
		}
		if Report(s) != nil {
			return
		}
		passed++
		seen, left := map[string]bool{}, map[string]float64{}
		for name, a := range s.Capacity {
			left[name] = float64(a.Int64())
		}
		for _, g := range s.Nodes.Groups {
			for _, node := range g.Nodes {
				if seen[node] {
					t.Fatalf("node %s counts twice", node)
				}
				seen[node] = true
				for name, a := range g.Shape {
					if left[name] -= float64(a.Int64()); a.Int64() < 0 || left[name] < 0 && (name != "pods" || s.Capacity["pods"].Int64() > 0) {
						t.Fatalf("more %s on nodes than there is: %+v", name, s)
					}
				}
			}
			for name, a := range g.Free {
				if a.Int64() < 0 || g.Shape[name].Less(a) {
					t.Fatalf("more %s is free than there is: %+v", name, s)
				}
			}
		}
	})
	if passed == 0 {
		t.Error("no report passed")
	}
}

func TestFile(t *testing.T) {
	for name, tt := range map[string]struct {
		spec string
		want string
		at   string
	}{
		"none":             {`{capacity: {gpu: 32}}`, "", ""},
		"right":            {`{capacity: {gpu: 32, cpu: 400, pods: 440}, nodes: {count: 4, size: {gpu: 8, cpu: 96, pods: 110, ephemeral-storage: 1Ti}}}`, "", ""},
		"too many":         {`{capacity: {gpu: 32}, nodes: {count: 8, size: {gpu: 8}}}`, `spec.nodes: 8 nodes of 8 gpu have 64 together, and spec.capacity has 32; write a size of at most "4", or the capacity of all nodes`, "[nodes size gpu]"},
		"too many, by all": {`{capacity: {gpu: 16, cpu: 256, memory: 4Ti, pods: 220}, nodes: {count: 5, size: {gpu: 8, cpu: 128, memory: 2Ti, pods: 110}}}`, "spec.nodes.count: 5 nodes of this size have more together than spec.capacity (640 cpu of 256, 40 gpu of 16, 10Ti memory of 4Ti, 550 pods of 220); write count: 2, or the capacity of all nodes", "[nodes count]"},
		"too big for one":  {`{capacity: {gpu: 4, cpu: 64}, nodes: {count: 1, size: {gpu: 8, cpu: 128}}}`, "write what one node has under size, and the capacity of all nodes", "[nodes count]"},
		"too much memory":  {`{capacity: {gpu: 40, memory: 4Ti}, nodes: {count: 5, size: {gpu: 8, memory: 2Ti}}}`, `write a size of at most "819Gi", or the capacity of all nodes`, "[nodes size memory]"},
		"too many cores":   {`{capacity: {gpu: 40, cpu: 256}, nodes: {count: 5, size: {gpu: 8, cpu: 128}}}`, `write a size of at most "51", or the capacity of all nodes`, "[nodes size cpu]"},
		"several missing":  {`{capacity: {gpu: 15, cpu: 64, memory: 64Gi}, nodes: {count: 3, size: {gpu: 5}}}`, `spec.nodes.size has no cpu, memory, so no pod could have any; write what one node has of it, such as cpu: "21", memory: "21Gi"`, "[nodes size]"},
		"too few":          {`{capacity: {gpu: 32}, nodes: {count: 2, size: {gpu: 8}}}`, "the others are on no node; write the nodes of all of them, or capacity.gpu: 16", "[nodes size gpu]"},
		"missing":          {`{capacity: {gpu: 32, memory: 4Ti}, nodes: {count: 4, size: {gpu: 8}}}`, `spec.nodes.size has no memory, so no pod could have any; write what one node has of it, such as memory: "1Ti"`, "[nodes size]"},
		"not in capacity":  {`{capacity: {gpu: 32}, nodes: {count: 4, size: {gpu: 8, rdma/hca: 8}}}`, "spec.nodes.size has rdma/hca, and spec.capacity does not list it; add it there, or take it out", "[nodes size rdma/hca]"},
		"bytes":            {`{capacity: {gpu: 32, memory: 4Ti}, nodes: {count: 4, size: {gpu: 8, memory: 960}}}`, "spec.nodes.size.memory: 960 is 960 bytes; write 960Gi", "[nodes size memory]"},
		"no count":         {`{capacity: {gpu: 32}, nodes: {size: {gpu: 8}}}`, "spec.nodes.count is missing; write how many equal nodes the capacity lies on", "[nodes count]"},
		"bad count":        {`{capacity: {gpu: 32}, nodes: {count: -4, size: {gpu: 8}}}`, "spec.nodes.count: -4 is not a number of nodes from 1 to 10000", "[nodes count]"},
		"groups":           {`{capacity: {gpu: 32}, nodes: {groups: [{shape: {gpu: 8}, nodes: []}]}}`, "spec.nodes.groups is what agents report", "[nodes groups]"},
		"held":             {`{capacity: {gpu: 32}, heldOn: {c: {}}}`, "spec.heldOn is what agents report; take it out", "[heldOn]"},
	} {
		got := File(spec(t, tt.spec))
		switch {
		case tt.want == "" && len(got) > 0:
			t.Errorf("%s: %+v", name, got)
		case tt.want != "" && (len(got) != 1 || !strings.Contains(got[0].Message, tt.want) || fmt.Sprint(got[0].Path) != tt.at):
			t.Errorf("%s: %+v, want %q at %s", name, got, tt.want, tt.at)
		}
	}
}

func TestCount(t *testing.T) {
	for text, want := range map[string]string{"{}": "-", "{nodes: {}}": "0", "{nodes: {count: 4}}": "4", "{nodes: {groups: [{shape: {}, nodes: [a, b]}, {shape: {}, nodes: [c]}]}}": "3"} {
		if got := Count(spec(t, text).Nodes); got != want {
			t.Errorf("%s: %s nodes, want %s", text, got, want)
		}
	}
}

func TestContract(t *testing.T) {
	const good = `{spec: {resources: {cpu: 8, memory: 8Gi, nvidia.com/gpu: 12, pods: 0}, nodes: [{node: ` + one + `, resources: {cpu: 4, memory: 4Gi, nvidia.com/gpu: 8}}, {node: ` + two + `, resources: {cpu: 4, memory: 4Gi, nvidia.com/gpu: 4}}]}}`
	read := func(text string) *v1alpha1.Contract {
		var c v1alpha1.Contract
		if err := yaml.Unmarshal([]byte(text), &c); err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		return &c
	}
	if err := Contract(read(good)); err != nil {
		t.Error(err)
	}
	numbered := strings.NewReplacer(one, `"0"`, two, `"11"`).Replace(good)
	if err := Contract(read(numbered)); err != nil {
		t.Error(err)
	}
	for _, tt := range []struct{ from, to, want string }{
		{two, one, "node " + one + " is listed twice"},
		{two, `"1"`, "is a hash or a number, and spec.nodes[0].node is the other"},
		{two, `"01"`, "is neither a node's hash nor a number"},
		{two, "gpu-1", "is neither a node's hash nor a number"},
		{"gpu: 12", "gpu: 13", "spec.nodes have 12 nvidia.com/gpu together, and spec.resources has 13"},
		{"gpu: 12", "gpu: 11", "spec.nodes have 12 nvidia.com/gpu together, and spec.resources has 11"},
		{"pods: 0", "pods: 10", "spec.nodes have 0 pods together, and spec.resources has 10"},
		{"{cpu: 4, memory: 4Gi, nvidia.com/gpu: 4}", "{cpu: 4, nvidia.com/gpu: 4}", "spec.nodes[1].resources: memory is 0"},
		{"{node: " + one, "{part: 2, node: " + one, "spec.nodes[1].part: 0 is no number from 1, or another part's"},
		{"{node: " + two, "{part: -1, node: " + two, "spec.nodes[1].part: -1 is no number from 1"},
		{"nodes: [", "virtualNode: {shares: [{cpu: 1}]}, nodes: [", "virtualNode.shares divide the part of one node, and the contract lies on 2"},
	} {
		text := strings.Replace(good, tt.from, tt.to, 1)
		if tt.from == two { // all of it
			text = strings.ReplaceAll(good, tt.from, tt.to)
		}
		if err := Contract(read(text)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s instead of %s: %v, want %q", tt.to, tt.from, err, tt.want)
		}
	}
	many := read(good)
	for i := range 33 {
		many.Spec.Nodes = append(many.Spec.Nodes, v1alpha1.ContractNode{Node: fmt.Sprintf("n1%012d", i)})
	}
	if err := Contract(many); err == nil || !strings.Contains(err.Error(), "35 nodes, and one slice has at most 32") {
		t.Error(err)
	}
}
