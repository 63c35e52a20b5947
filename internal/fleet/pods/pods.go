// Package pods checks what intents write of their biggest pod (perPod).
//
// It judges values; package fleet knows where they are written and reports them with
// file and line. Each problem states what to write instead.
//
// Pure functions; safe for concurrent use.
package pods

import (
	"fmt"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/fleet/domains"
)

// Of are the problems of an intent's perPod and of those of its alternatives, each with its
// place below spec, next to others.
func Of(s *v1alpha1.IntentSpec, others []domains.Problem) []domains.Problem {
	out := others
	if s.Resources.PerPod != nil {
		out = append(out, domains.Problem{At: []any{"resources", "perPod"}, Text: ": perPod is written next to resources, not in it; move it one level out"})
	}
	whole := s.Resources
	whole.PerPod = s.PerPod
	out = append(out, of(&whole, s.PerPod, []any{"perPod"}, "resources")...)
	for i := range s.Alternatives {
		a := &s.Alternatives[i]
		full := a.Over(whole)
		at, where := []any{"alternatives", i}, fmt.Sprintf("alternatives[%d]", i)
		if a.PerPod != nil {
			at = append(at, "perPod")
		} else if s.PerPod == nil || a.GPU == nil && len(a.Named) == 0 {
			continue
		}
		out = append(out, of(&full, full.PerPod, at, where)...)
	}
	return out
}

// of are the problems of one perPod, which is written at a place, for what a replica has.
func of(has *v1alpha1.ResourceRequest, p *v1alpha1.PodRequest, at []any, where string) (out []domains.Problem) {
	add := func(format string, args ...any) {
		out = append(out, domains.Problem{At: at, Text: fmt.Sprintf(format, args...)})
	}
	switch {
	case p == nil:
		return nil
	case p.IsZero():
		add(": it names nothing; write what the biggest pod asks for, such as {gpu: 1, cpu: 8}, or leave it out")
		return out
	case p.GPUs > 0 && has.GPU == nil:
		add(": it asks for %d GPUs, and %s for none; write there how many a replica has, such as gpu: %d", p.GPUs, where, p.GPUs)
		return out
	case p.GPUs > 0 && has.GPU.Share != nil:
		add(": a share of one GPU is one pod; take gpu out of perPod, or share out of %s.gpu", where)
		return out
	}
	pods, by := int64(0), ""
	divides := func(name string, one, all int64) {
		switch {
		case one > all:
			add(": a pod of %d %s is bigger than its replica, which has %d (%s); write at most %d", one, name, all, where, all)
		case all%one != 0:
			add(": %s has %d %s, which is no whole multiple of %d; write %d or %d there, or a number here that divides %d", where, all, name, one, all-all%one, all-all%one+one, all)
		case pods > 0 && all/one != pods:
			add(": by %s a replica is %d pods, by %s %d; write numbers that come to as many pods", by, pods, name, all/one)
		default:
			pods, by = all/one, name
		}
	}
	if p.GPUs > 0 {
		divides("gpu", p.GPUs, int64(max(has.GPU.Count, 1)))
	}
	for _, name := range p.Named.Names() {
		if strings.Contains(name, "/") && !p.Named[name].IsZero() {
			if all, named := has.Named[name]; named {
				divides(name, p.Named[name].Int64(), all.Int64())
			} else {
				add(": it asks for %s, and %s for none; write there how many a replica has", name, where)
			}
		}
	}
	switch {
	case len(out) > 0:
		return out
	case has.GPU != nil && p.GPUs == 0:
		add(": gpu is missing; write how many GPUs the biggest pod has, such as gpu: 1")
		return out
	case pods == 0:
		add(": it names no device by which a replica is divided into pods; contracts without accelerators lie anywhere: leave perPod out")
		return out
	}
	for _, name := range p.Named.Names() {
		one, all := p.Named[name], has.Named[name]
		switch _, named := has.Named[name]; {
		case name == v1alpha1.Pods:
			add(": pods is a quota of the whole slice; take it out of perPod")
		case one.IsZero():
			add(": %s is 0; write what the biggest pod needs, or leave it out for its share of the replica's", name)
		case !named:
			add(": it asks for %s of %s, and %s names none; write there at least %s", one.Canonical(name), name, where, one.Mul(pods).Canonical(name))
		case all.Less(one.Mul(pods)):
			add(": %d pods of %s %s have more than %s has, %s; write %s there, or at most %s here", pods, one.Canonical(name), name, where, all.Canonical(name),
				one.Mul(pods).Canonical(name), v1alpha1.AmountOf(all.Int64()/pods).Canonical(name))
		}
	}
	return out
}
