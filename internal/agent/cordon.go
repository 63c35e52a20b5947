package agent

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/fleetbroker/fleetbroker/internal/agent/notes"
	"github.com/fleetbroker/fleetbroker/internal/agent/terms"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// What administrators say of a flavor by its nodes, as an annotation or a
// label. One node is enough: those that join later need not be told. Where
// several speak the most careful word counts.
//
//	kubectl annotate nodes -l fleetbroker.io/pool=h100 fleetbroker.io/cordon=true
//	kubectl annotate nodes -l fleetbroker.io/pool=h100 fleetbroker.io/drain=2026-12-01T08:00:00Z
//	kubectl annotate nodes -l fleetbroker.io/pool=cpu 'fleetbroker.io/overcommit=cpu=1.5 maxRisk=0.01'
//	kubectl annotate nodes -l fleetbroker.io/pool=h100 fleetbroker.io/max-nodes=8
//	kubectl annotate nodes -l fleetbroker.io/pool=h100 'fleetbroker.io/partition=min gpu=2; step gpu=2'
//	kubectl annotate nodes -l fleetbroker.io/pool=h100 'fleetbroker.io/price-windows=Sat,Sun 00:00-24:00 gpu=0.80'
//
// (`kubectl cordon` takes a single node out of service.)
const (
	noteCordon = v1alpha1.Group + "/cordon"
	// noteDrain is when contracts must have moved elsewhere, RFC 3339. Colons
	// cannot stand in a label's value, so that it is an annotation only.
	noteDrain = v1alpha1.Group + "/drain"
	// noteOvercommit is how much more may be sold than there is, an annotation
	// only: ratios of what all flavors on the nodes share, and maxRisk.
	noteOvercommit = v1alpha1.Group + "/overcommit"
	// noteMaxNodes is how many such nodes the cluster's autoscaler makes at the
	// most, all those that stand among them: what is sold beyond these is marked
	// as such, and sold last.
	noteMaxNodes = v1alpha1.Group + "/max-nodes"
	// notePartition is in which sizes the flavor is sold, noteWindows at which hours at
	// other prices (package terms); annotations only. Of nodes that differ the first by
	// name counts.
	notePartition = v1alpha1.Group + "/partition"
	noteWindows   = v1alpha1.Group + "/price-windows"
)

// maxNodes is the largest group of nodes that makes sense.
const maxNodes = 10_000

// keyMaxRisk among the ratios is the accepted probability of too much use.
const keyMaxRisk = "maxRisk"

// maxOvercommit is the largest ratio that makes sense of a resource.
const maxOvercommit = 10

// wishes is what the nodes of a group say of selling.
type wishes struct {
	// cordon sells nothing new; drain is when it shall be empty, zero for never.
	cordon bool
	drain  v1alpha1.Time
	// overcommit is the lowest of every ratio that a node names.
	overcommit v1alpha1.Overcommit
	// nodes is how many there may come to be, 0 where none says.
	nodes int64
	// partition and windows, nil where none says.
	partition *v1alpha1.Partition
	windows   []v1alpha1.PriceWindow
}

// wishes reads the group's nodes. Problems are what could not be read.
func (g *group) wishes() (w wishes, problems []string) {
	for _, n := range g.nodes {
		if text := n.Annotations[noteMaxNodes]; text != "" {
			most, err := strconv.ParseInt(text, 10, 32)
			if err != nil || most < 1 || most > maxNodes {
				problems = append(problems, unreadable(n, noteMaxNodes, fmt.Errorf("%.40q is not a number of nodes from 1 to %d", text, maxNodes)))
			} else if w.nodes == 0 || most < w.nodes {
				w.nodes = most
			}
		}
		w.cordon = w.cordon || n.Annotations[noteCordon] == "true" || n.Labels[noteCordon] == "true"
		if text := n.Annotations[noteDrain]; text != "" {
			at, err := time.Parse(time.RFC3339, text)
			if err != nil {
				problems = append(problems, unreadable(n, noteDrain, fmt.Errorf("%w; write for example 2026-12-01T08:00:00Z", err)))
			} else if by := v1alpha1.TimeOf(at); w.drain.IsZero() || by.Before(w.drain.Time) {
				w.drain = by
			}
		}
		if text := n.Annotations[noteOvercommit]; text != "" {
			ratios, err := overcommitOf(text)
			if err != nil {
				problems = append(problems, unreadable(n, noteOvercommit, err))
				continue
			}
			w.overcommit = lowest(w.overcommit, ratios)
		}
	}
	return w, append(problems, g.sold(&w)...)
}

// sold reads in which sizes and at which hours' prices the group's nodes are sold.
func (g *group) sold(w *wishes) (problems []string) {
	nodes := slices.SortedFunc(slices.Values(g.nodes), func(a, b *corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	said := map[string]string{}
	read := func(note string, take func(text string) error) {
		for _, n := range nodes {
			text := strings.TrimSpace(n.Annotations[note])
			switch {
			case text == "" || said[note] == text:
			case said[note] != "":
				problems = append(problems, unreadable(n, note, fmt.Errorf("other nodes of the flavor say %.80q", said[note])))
			default:
				if err := take(text); err != nil {
					problems = append(problems, unreadable(n, note, err))
					continue
				}
				said[note] = text
			}
		}
	}
	read(notePartition, func(text string) (err error) { w.partition, err = terms.Partition(text); return err })
	read(noteWindows, func(text string) (err error) {
		if w.windows, err = terms.Windows(text); err == nil && len(g.facts.Prices) == 0 {
			w.windows, err = nil, errors.New("the flavor has no price of its own: annotate cost.fluidos.eu/hourly-rate and currency too, or state price.windows in its file of the fleet repo")
		}
		return err
	})
	return problems
}

// couldBe is what so many nodes like the group's have, by the smallest of those
// in service; nil where that is no more than stands.
func (g *group) couldBe(nodes int64) v1alpha1.Resources {
	if nodes <= int64(len(g.nodes)) {
		return nil
	}
	var one v1alpha1.Resources
	for _, n := range g.nodes {
		if !inService(n) {
			continue
		}
		if have := amounts(n.Status.Allocatable); one == nil {
			one = have
		} else {
			one = least(one, have)
		}
	}
	if one == nil {
		return nil
	}
	out := make(v1alpha1.Resources, len(one))
	for name, amount := range one {
		out[name] = amount.Mul(nodes)
	}
	return out
}

// overcommitOf reads "cpu=1.5 maxRisk=0.01".
func overcommitOf(text string) (v1alpha1.Overcommit, error) {
	if !notes.IsPlain(text) {
		return nil, fmt.Errorf("at most %d characters, and only plain ASCII is taken", notes.MaxText)
	}
	out := v1alpha1.Overcommit{}
	for _, pair := range strings.Fields(text) {
		name, value, _ := strings.Cut(pair, "=")
		ratio, err := v1alpha1.ParseDecimal(value)
		least, most := int64(1), int64(maxOvercommit)
		if name == keyMaxRisk {
			least, most = 0, 1
		}
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s: %w; write for example cpu=1.5 maxRisk=0.01", name, err)
		case name != keyMaxRisk && !isShared(name):
			return nil, fmt.Errorf("%s cannot be sold twice: name cpu, memory, pods or ephemeral-storage", name)
		case ratio.Cmp(v1alpha1.DecimalFromInt(least)) < 0, ratio.Cmp(v1alpha1.DecimalFromInt(most)) > 0:
			return nil, fmt.Errorf("%s=%s is not between %d and %d", name, value, least, most)
		}
		out[name] = ratio
	}
	return out, nil
}

// lowest is every ratio of both, the lower where both have it.
func lowest(a, b v1alpha1.Overcommit) v1alpha1.Overcommit {
	out := maps.Clone(a)
	if out == nil {
		out = v1alpha1.Overcommit{}
	}
	for name, ratio := range b {
		if have, both := out[name]; !both || ratio.Cmp(have) < 0 {
			out[name] = ratio
		}
	}
	return out
}

func unreadable(n *corev1.Node, note string, err error) string {
	return fmt.Sprintf("node %s: annotation %s is ignored: %v", n.Name, note, err)
}
