package examined

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/escape"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/cli/tables"
	"github.com/fleetbroker/fleetbroker/internal/doctor"
	"github.com/fleetbroker/fleetbroker/internal/trust"
)

// Examination is what was looked at, and what was found.
type Examination struct {
	// Clusters that were looked at, by name, and Contracts.
	Clusters  []Cluster          `json:"clusters"`
	Contracts []doctor.Diagnosis `json:"contracts"`
	// Ledger is what is wrong with its history, Notes what is not protected.
	Ledger []Trouble `json:"ledger"`
	Notes  []string  `json:"notes,omitempty"`
	// Store is what is wrong with the cluster that keeps the market of replicas.
	Store []doctor.Finding `json:"store,omitempty"`
}

// Cluster is one with what is wrong with it.
type Cluster struct {
	Cluster  string           `json:"cluster"`
	Findings []doctor.Finding `json:"findings"`
}

// Trouble is something wrong with the ledger's history.
type Trouble struct {
	Where  string `json:"where"`
	Cause  string `json:"cause"`
	Remedy string `json:"remedy"`
}

// SetBack is the trouble of a ledger that does not hold what a witness has. verify is the
// command to type once the branch is put back.
func SetBack(branch string, head, stood tree.Hash, verify string) Trouble {
	return Trouble{
		Where:  "branch " + branch + " at " + head.Short(),
		Cause:  fmt.Sprintf("it does not hold %s, which the witness has: the ledger was set back or rewritten", stood.Short()),
		Remedy: "stop the daemons, put the branch back to the newest commit that a daemon's state directory or a clone still has, and verify it: " + verify,
	}
}

// Unknown are the troubles of revocations of a trust root after commits that are not there.
func Unknown(root *trust.Root, list []trust.Unknown) (out []Trouble) {
	for _, u := range list {
		out = append(out, Trouble{fmt.Sprintf("%s:%d:%d", root.File, u.Line, u.Column), u.What, u.Remedy})
	}
	return out
}

// Notes are troubles of which it is not known whether they are any.
func Notes(list []Trouble) (out []string) {
	for _, t := range list {
		out = append(out, t.Where+": "+t.Cause+": "+t.Remedy+".")
	}
	return out
}

// Found counts the findings: one of a cluster once, however many contracts it hurts.
func (e *Examination) Found() int {
	n := len(e.Ledger) + len(e.Store)
	shared := map[doctor.Finding]bool{}
	for _, c := range e.Clusters {
		n += len(c.Findings)
		for _, f := range c.Findings {
			shared[f] = true
		}
	}
	for _, c := range e.Contracts {
		for _, f := range c.Findings {
			if !shared[f] {
				n++
			}
		}
	}
	return n
}

// Text is for people; wide also says what was looked at and is well.
func (e *Examination) Text(wide bool) string {
	var b strings.Builder
	list := func(title string, findings []doctor.Finding) {
		if len(findings) == 0 {
			return
		}
		fmt.Fprintf(&b, "%s\n", title)
		for _, f := range findings {
			fmt.Fprintf(&b, "  %-12s  %s\n                %s\n                Remedy: %s\n", f.Link, f.Where, f.Cause, f.Remedy)
		}
		b.WriteByte('\n')
	}
	if len(e.Ledger) > 0 {
		b.WriteString("ledger\n")
	}
	for _, f := range e.Ledger {
		fmt.Fprintf(&b, "  %-12s  %s\n                %s\n                Remedy: %s\n\n", "history", f.Where, f.Cause, f.Remedy)
	}
	list("market", e.Store)
	var shown []doctor.Finding // a cluster's troubles are those of its contracts too
	for _, c := range e.Clusters {
		list("cluster "+c.Cluster, c.Findings)
		if wide && len(c.Findings) == 0 {
			fmt.Fprintf(&b, "cluster %s is well\n\n", c.Cluster)
		}
		shown = append(shown, c.Findings...)
	}
	well := 0
	for _, d := range e.Contracts {
		title := fmt.Sprintf("%s (%s/%s) is %s", d.Contract, d.Tenant, d.Intent, d.Phase)
		if why := (&v1alpha1.ContractStatus{Reason: d.Reason, Message: d.Message}).Why(); why != "" {
			title += ": " + why
		}
		list(title, slices.DeleteFunc(slices.Clone(d.Findings), func(f doctor.Finding) bool { return slices.Contains(shown, f) }))
		if len(d.Findings) == 0 {
			well++
		}
		if wide && len(d.Findings) == 0 {
			fmt.Fprintf(&b, "%s\n  well: %s\n\n", title, d.Links())
		}
	}
	fmt.Fprintf(&b, "%s looked at, %s, %s.\n", tables.Count(len(e.Clusters), "cluster"), tables.Count(len(e.Contracts), "contract")+fmt.Sprintf(" (%d well)", well), tables.Count(e.Found(), "finding"))
	for _, n := range e.Notes {
		fmt.Fprintf(&b, "Note: %s\n", n)
	}
	return escape.Lines(b.String())
}
