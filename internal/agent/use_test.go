package agent

import (
	"strings"
	"testing"
	"time"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	offloadingv1beta1 "github.com/liqotech/liqo/apis/offloading/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

func TestOvercommitOfAFlavor(t *testing.T) {
	for name, c := range map[string]struct {
		notes         []string // of the nodes, in order
		want, problem string
	}{
		"nothing":          {[]string{""}, "", ""},
		"one node":         {[]string{"cpu=1.5 maxRisk=0.01", ""}, "cpu=1.5 maxRisk=0.01", ""},
		"the lowest":       {[]string{"cpu=1.5 maxRisk=0.01", "cpu=2 memory=1.1 maxRisk=0"}, "cpu=1.5 maxRisk=0 memory=1.1", ""},
		"the ratio alone":  {[]string{"cpu=2"}, "cpu=2", ""},
		"a card":           {[]string{"nvidia.com/gpu=2"}, "", "cannot be sold twice"},
		"less than all":    {[]string{"cpu=0.5"}, "", "not between 1 and 10"},
		"more than a risk": {[]string{"cpu=2 maxRisk=1.5"}, "", "not between 0 and 1"},
		"words":            {[]string{"cpu=much"}, "", "is ignored"},
		"very long":        {[]string{"cpu=1." + strings.Repeat("1", 300)}, "", "at most 253 characters"},
		"no value":         {[]string{"cpu"}, "", "is ignored"},
	} {
		t.Run(name, func(t *testing.T) {
			s := State{}
			for i, note := range c.notes {
				s.Nodes = append(s.Nodes, node(string(rune('a'+i)), big, pool("p"), annotated(noteOvercommit, note)))
			}
			flavors, _, problems := Collect(s, Memory{})
			var got []string
			for _, name := range sortedKeys(flavors[0].Spec.Overcommit) {
				got = append(got, name+"="+flavors[0].Spec.Overcommit[name].String())
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("overcommit is %v, want %q", got, c.want)
			}
			if said := strings.Join(problems, "\n"); !strings.Contains(said, c.problem) || (c.problem == "") != (said == "") {
				t.Errorf("problems are %q, want %q", said, c.problem)
			}
		})
	}
}

// What contracts take of what they hold is told where a flavor is sold within a
// risk: requests, or what is measured where that is more, wherever the pods run.
func TestUseIsTold(t *testing.T) {
	at := epoch.Time
	note := annotated(noteOvercommit, "cpu=2 memory=2 maxRisk=0.01")
	s := State{
		Now:   at,
		Nodes: []*corev1.Node{node("a", "cpu=64 memory=64Gi pods=110", pool("p"), note), node("z", "cpu=64 memory=64Gi pods=110", pool("plain"))},
		Quotas: []*offloadingv1beta1.Quota{
			quota("liqo-tenant-rome", "busy", "cpu=20 memory=20Gi pods=10"), quota("liqo-tenant-rome", "idle", "cpu=20 memory=20Gi pods=10"),
			quota("liqo-tenant-rome", "other", "cpu=20 memory=20Gi pods=10"),
		},
		Pods: []*corev1.Pod{
			pod("one", "a", "cpu=2 memory=8Gi", offloaded("busy-ca3704aa0b06", "")), pod("two", "a", "cpu=3", offloaded("busy-ca3704aa0b06", "")),
			pod("three", "z", "cpu=1", offloaded("busy-ca3704aa0b06", "")), pod("own", "a", "cpu=9"),
		},
		Slices: []*authv1beta1.ResourceSlice{},
	}
	for slice, flavor := range map[string]string{"busy": "p", "idle": "p", "other": "plain"} {
		s.Slices = append(s.Slices, accepted("liqo-tenant-rome", slice, "cpu=20 memory=20Gi pods=10", func(s *authv1beta1.ResourceSlice) {
			s.Annotations[v1alpha1.AnnotationFlavor] = flavor
		}))
	}
	flavors, memory, _ := Collect(s, Memory{})
	if got := drawUse(flavors); got != "p busy cpu=20 memory=20Gi\np idle cpu=20 memory=20Gi\n" {
		t.Errorf("at first all is taken; told is\n%s", got)
	}
	s.Now = at.Add(48 * time.Hour)
	flavors, memory, _ = Collect(s, memory)
	if got := drawUse(flavors); got != "p busy cpu=6 memory=8Gi\np idle cpu=1 memory=1Gi\n" {
		t.Errorf("two days of requests; told is\n%s", got)
	}
	s.Measured = map[types.NamespacedName]v1alpha1.Resources{
		{Namespace: "default", Name: "one"}: amounts(quantities("cpu=9 memory=1Gi")), {Namespace: "default", Name: "own"}: amounts(quantities("cpu=30")),
	}
	_, memory, _ = Collect(s, memory) // from here on it is measured
	s.Now = s.Now.Add(48 * time.Hour)
	flavors, _, _ = Collect(s, memory)
	if got := drawUse(flavors); got != "p busy cpu=13 memory=8Gi\np idle cpu=1 memory=1Gi\n" {
		t.Errorf("two days measured; told is\n%s", got)
	}
}

// drawUse writes down what is told of use.
func drawUse(flavors []v1alpha1.Flavor) string {
	out := ""
	for i := range flavors {
		for _, slice := range sortedKeys(flavors[i].Spec.Usage) {
			out += flavors[i].Metadata.Name + " " + slice + " " + figures(flavors[i].Spec.Usage[slice]) + "\n"
		}
	}
	return out
}
