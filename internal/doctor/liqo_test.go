package doctor

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestLiqoNotes(t *testing.T) {
	cluster := func(versions ...string) *Cluster {
		c := &Cluster{Objects: map[Kind][]unstructured.Unstructured{}}
		for _, v := range versions {
			u := unstructured.Unstructured{}
			u.SetLabels(map[string]string{labelVersion: v})
			c.Objects[Deployments] = append(c.Objects[Deployments], u)
		}
		return c
	}
	for name, c := range map[string]struct {
		clusters map[string]*Cluster
		want     string
		old      int // findings
	}{
		"nothing known": {map[string]*Cluster{"rome": cluster()}, "", 0},
		"supported":     {map[string]*Cluster{"rome": cluster("v1.2.0"), "paris": cluster("v1.2.0"), "oslo": cluster()}, "Liqo v1.2.0 (supported) on paris, rome", 0},
		"several": {map[string]*Cluster{"a": cluster("v1.1.2"), "b": cluster("v1.2.1"), "c": cluster("v1.3.0"), "d": cluster("v1.2.0-rc.1"), "e": cluster("2c5f3a")},
			"Liqo 2c5f3a (untested: no release of Liqo) on e; v1.1.2 (untested: older than v1.2.0, with the same kinds) on a; v1.2.0-rc.1 (untested: older than v1.2.0, with the same kinds) on d; " +
				"v1.2.1 (untested: a patch of v1.2.0) on b; v1.3.0 (untested: newer than v1.2.0) on c", 0},
		"too old, and being upgraded": {map[string]*Cluster{"rome": cluster("v1.2.0", "v0.10.3")}, "Liqo v0.10.3 (too old) on rome; v1.2.0 (supported) on rome", 1},
		"hostile":                     {map[string]*Cluster{"rome": cluster("v1\x1b[2J")}, "Liqo v1\\u001b[2J (untested: no release of Liqo) on rome", 0},
	} {
		var want []string
		if c.want != "" {
			want = []string{c.want}
		}
		if got := LiqoNotes(c.clusters); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
		old := 0
		for _, cluster := range c.clusters {
			old += len(liqoTooOld(cluster))
		}
		if old != c.old {
			t.Errorf("%s: got %d findings, want %d", name, old, c.old)
		}
	}
}
