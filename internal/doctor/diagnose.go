package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/manifests"
)

// Link is a part of a contract's chain.
type Link string

// The links, in the order in which one needs the one before.
const (
	LinkIntent      Link = "intent"
	LinkManifest    Link = "manifest"
	LinkAccess      Link = "access"
	LinkInstalled   Link = "installed"
	LinkRights      Link = "rights"
	LinkPeering     Link = "peering"
	LinkPolicies    Link = "policies"
	LinkSlice       Link = "slice"
	LinkVirtualNode Link = "virtual node"
	LinkNode        Link = "node"
	LinkOffloading  Link = "offloading"
	LinkPods        Link = "pods"
	LinkProvider    Link = "provider"
)

// Finding is one trouble.
type Finding struct {
	// Code of the diagnosis.
	Code Code `json:"code"`
	// Link that is broken.
	Link Link `json:"link"`
	// Where it was seen: an object and its cluster, or a file.
	Where string `json:"where"`
	// Cause in words.
	Cause string `json:"cause"`
	// Remedy: what to do.
	Remedy string `json:"remedy"`
}

// Diagnosis is what was found out about one contract.
type Diagnosis struct {
	Contract string         `json:"contract"`
	Tenant   string         `json:"tenant"`
	Intent   string         `json:"intent"`
	Phase    v1alpha1.Phase `json:"phase"`
	Reason   string         `json:"reason,omitempty"`
	Message  string         `json:"message,omitempty"`
	// Checked are the links that were looked at, in order.
	Checked []Link `json:"checked"`
	// Findings in the order of the links; empty when all is well.
	Findings []Finding `json:"findings"`
}

// Links names the links that were looked at, for people.
func (d *Diagnosis) Links() string {
	names := make([]string, len(d.Checked))
	for i, l := range d.Checked {
		names[i] = string(l)
	}
	return strings.Join(names, ", ")
}

// links are the checks of each link.
var links = []struct {
	link  Link
	check func(*Picture) []Finding
}{
	{LinkIntent, checkIntent}, {LinkManifest, checkManifest}, {LinkAccess, checkAccess}, {LinkInstalled, checkInstalled},
	{LinkRights, checkRights}, {LinkPeering, checkPeering}, {LinkPolicies, checkPolicies}, {LinkSlice, checkSlice},
	{LinkVirtualNode, checkVirtualNode}, {LinkNode, checkNode}, {LinkOffloading, checkOffloading}, {LinkPods, checkPods},
	{LinkProvider, checkProvider},
}

// Diagnose looks at every link of a contract's chain. A contract that is only
// reserved has no links on clusters.
func Diagnose(p *Picture) Diagnosis {
	c := p.Contract
	d := Diagnosis{
		Contract: c.Metadata.Name, Tenant: c.Metadata.Namespace, Intent: c.Spec.Intent.Name,
		Phase: c.Status.Phase, Reason: c.Status.Reason, Message: c.Status.Message, Findings: []Finding{},
	}
	for _, l := range links {
		if c.Spec.Stage == v1alpha1.StageReserve && l.link != LinkIntent {
			continue
		}
		d.Checked = append(d.Checked, l.link)
		for _, f := range l.check(p) {
			f.Link = l.link
			d.Findings = append(d.Findings, f)
		}
	}
	return d
}

// DiagnoseCluster looks at a cluster alone, in the roles that it has.
func DiagnoseCluster(c *Cluster, roles []string) []Finding {
	consequence := "no peering can be made or renewed with it"
	if slices.Contains(roles, v1alpha1.RoleConsumer) {
		consequence = "nothing can be applied there"
	}
	out := reachable(c, consequence)
	out = append(out, installed(c)...)
	if slices.Contains(roles, v1alpha1.RoleConsumer) {
		out = append(out, checkWebhook(c)...)
	}
	out = append(out, unread(c)...)
	for i := range out {
		if out[i].Link == "" {
			out[i].Link = LinkAccess
		}
	}
	return out
}

// sliceName is the name of the contract's slice.
func (p *Picture) sliceName() string { return manifests.SliceName(p.Contract) }

// isNode reports whether a Node of that name is one of the contract's.
func (p *Picture) isNode(name string) bool {
	return slices.ContainsFunc(p.Contract.VirtualNodes(), func(n v1alpha1.NodeShare) bool { return n.Name == name })
}

// releasing contracts have no virtual node any more.
func (p *Picture) releasing() bool { return p.Contract.Status.Phase == v1alpha1.PhaseReleasing }

// finding is one trouble in a list.
func finding(code Code, where, cause, remedy string, args ...any) []Finding {
	return []Finding{{Code: code, Where: where, Cause: cause, Remedy: fmt.Sprintf(remedy, args...)}}
}

// at names an object of a cluster.
func at(c *Cluster, k Kind, namespace, name string) string {
	if namespace != "" {
		name = namespace + "/" + name
	}
	return fmt.Sprintf("%s: %s %s", c.Name, k, name)
}

func checkIntent(p *Picture) []Finding {
	c := p.Contract
	switch {
	case p.Frozen != "":
		return finding(IntentFrozen, c.Spec.Intent.Path, "its file is not acted on: "+p.Frozen, "fix the file: fleetbroker validate")
	case !p.Wanted && !p.releasing():
		return finding(IntentGone, c.Spec.Intent.Path, "no file names this intent any more, and its contract is not being released",
			"look at what the daemon waits for: fleetbroker plan, and its /readyz")
	}
	return nil
}

func checkManifest(p *Picture) []Finding {
	c := p.Contract
	if p.Manifest || p.releasing() && !c.Status.Drained.IsZero() {
		return nil
	}
	return finding(SliceNotInGit, manifests.SliceFile(c), "the contract's slice is not in git", "look for rendering problems in the daemon's log, and at: fleetbroker render")
}
