package fleet

import (
	"strings"
	"testing"
)

// Two clusters with one id in Liqo are one to it: each is refused by its own line, which names
// the other's file, also where one of them has the id by its name alone.
func TestClusters_SharedLiqoID(t *testing.T) {
	cluster := func(name, spec string) string {
		return group + "kind: Cluster\nmetadata: {name: " + name + "}\nspec:\n  roles: [provider]\n" + spec
	}
	for name, c := range map[string]struct {
		files files
		want  []string
	}{
		"both written": {
			base().with("clusters/oslo.yaml", cluster("oslo", "  liqo: {clusterID: north}\n"), "clusters/bergen.yaml", cluster("bergen", "  liqo:\n    clusterID: north\n")),
			[]string{
				"clusters/bergen.yaml:7:16: spec.liqo.clusterID is north, which is that of clusters/oslo.yaml too: ",
				"clusters/oslo.yaml:6:21: spec.liqo.clusterID is north, which is that of clusters/bergen.yaml too: ",
			},
		},
		"one by its name": {
			base().with("clusters/oslo.yaml", cluster("oslo", ""), "clusters/bergen.yaml", cluster("bergen", "  liqo: {clusterID: oslo}\n")),
			[]string{
				"clusters/bergen.yaml:6:21: spec.liqo.clusterID is oslo, which is that of clusters/oslo.yaml too: ",
				"clusters/oslo.yaml:3:18: the cluster's id in Liqo is its name oslo, as no spec.liqo.clusterID is written, which is that of clusters/bergen.yaml too: ",
			},
		},
		"a name that another has left": {
			base().with("clusters/oslo.yaml", cluster("oslo", "  liqo: {clusterID: north}\n"), "clusters/bergen.yaml", cluster("bergen", "  liqo: {clusterID: oslo}\n")), nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := read(t, NewReader(), c.files, nil)
			got := diagnostics(f)
			if len(got) != len(c.want) || len(f.Errors()) != len(c.want) {
				t.Fatalf("got %s", strings.Join(got, "\n"))
			}
			for i, want := range c.want {
				if !strings.HasPrefix(got[i], "error "+want) || !strings.Contains(got[i], "`liqoctl info`") || f.Diagnostics[i].Code != "SharedClusterID" {
					t.Errorf("got  %s\nwant %s", got[i], want)
				}
			}
			if f.Clusters["oslo"] == nil || f.Clusters["bergen"] == nil {
				t.Error("one of them is not read")
			}
		})
	}
}
