package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/fleetbroker/fleetbroker/internal/api/escape"
)

// TriedLiqo is the version of Liqo that all tests run with.
const TriedLiqo = "v1.2.0"

// firstLiqo is the oldest whose kinds are those of TriedLiqo: the types of ResourceSlice,
// VirtualNode, NamespaceOffloading, Quota and Tenant are the same from there on.
var firstLiqo = version.MustParseSemantic("v1.0.0")

// labelVersion is what Liqo's chart labels its Deployments with.
const labelVersion = "app.kubernetes.io/version"

// liqoVersions are the versions of Liqo's controllers on a cluster, sorted: one, but for the
// time of an upgrade. None where Deployments could not be read.
func (c *Cluster) liqoVersions() []string {
	var out []string
	for _, d := range c.all(Deployments, func(*unstructured.Unstructured) bool { return true }) {
		if v := d.GetLabels()[labelVersion]; v != "" {
			out = append(out, escape.Line(v))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// known is what is known of a version of Liqo, and whether it is too old.
func known(text string) (says string, old bool) {
	v, err := version.ParseSemantic(text)
	tried := version.MustParseSemantic(TriedLiqo)
	switch {
	case err != nil:
		return "untested: no release of Liqo", false
	case v.LessThan(firstLiqo):
		return "too old", true
	case v.Major() == tried.Major() && v.Minor() == tried.Minor() && v.Patch() == tried.Patch() && v.PreRelease() == "":
		return "supported", false
	case v.LessThan(tried):
		return "untested: older than " + TriedLiqo + ", with the same kinds", false
	case v.Major() == tried.Major() && v.Minor() == tried.Minor():
		return "untested: a patch of " + TriedLiqo, false
	}
	return "untested: newer than " + TriedLiqo, false
}

// liqoTooOld is a finding for each version that serves other kinds.
func liqoTooOld(c *Cluster) []Finding {
	var out []Finding
	for _, v := range c.liqoVersions() {
		if _, old := known(v); old {
			out = append(out, finding(LiqoTooOld, "cluster "+c.Name, "it runs Liqo "+v+", which is too old: its kinds are others than those of "+firstLiqo.String()+" and newer",
				"upgrade Liqo to %s, which is what was tried (install/liqo)", TriedLiqo)...)
		}
	}
	return out
}

// LiqoNotes says in one line which version of Liqo each cluster runs and what is known of
// it, and where that could not be read; none where no cluster was looked at.
func LiqoNotes(clusters map[string]*Cluster) []string {
	byVersion := map[string][]string{}
	var hidden []string
	for name, c := range clusters {
		if c.LiqoHidden {
			hidden = append(hidden, name)
		}
		for _, v := range c.liqoVersions() {
			says, _ := known(v)
			byVersion[v+" ("+says+")"] = append(byVersion[v+" ("+says+")"], name)
		}
	}
	var parts []string
	for _, v := range slices.Sorted(maps.Keys(byVersion)) {
		slices.Sort(byVersion[v])
		parts = append(parts, fmt.Sprintf("%s on %s", v, strings.Join(byVersion[v], ", ")))
	}
	if len(hidden) > 0 {
		slices.Sort(hidden)
		parts = append(parts, fmt.Sprintf("version not readable on %s (this account may not list Deployments in Liqo's namespace)", strings.Join(hidden, ", ")))
	}
	if len(parts) == 0 {
		return nil
	}
	return []string{"Liqo " + strings.Join(parts, "; ")}
}
