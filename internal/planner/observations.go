package planner

import (
	"hash/maphash"
	"maps"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Observations are what clusters say of contracts, by name. A value never
// changes and may be shared; With makes the next one, at the cost of what is
// different. The zero value holds nothing.
type Observations struct {
	shards *[observationShards]*observationShard
}

// observationShards is in how many parts observations are kept: a change copies
// one of them.
const observationShards = 1024

// observationShard holds values that never change, so that what two shards
// share is seen by its address.
type observationShard map[string]*v1alpha1.Observation

var observationSeed = maphash.MakeSeed()

func shardOf(contract string) uint64 {
	return maphash.String(observationSeed, contract) % observationShards
}

// Of is what clusters say of a contract; of one that nobody says anything of,
// the zero value.
func (o Observations) Of(contract string) v1alpha1.Observation {
	if o.shards == nil {
		return v1alpha1.Observation{}
	}
	s := o.shards[shardOf(contract)]
	if s == nil {
		return v1alpha1.Observation{}
	}
	if said := (*s)[contract]; said != nil {
		return *said
	}
	return v1alpha1.Observation{}
}

// With is the observations with some said anew and some gone.
func (o Observations) With(said map[string]v1alpha1.Observation, gone ...string) Observations {
	if len(said)+len(gone) == 0 {
		return o
	}
	next := new([observationShards]*observationShard)
	if o.shards != nil {
		*next = *o.shards
	}
	var own [observationShards]bool
	shard := func(contract string) observationShard {
		i := shardOf(contract)
		if !own[i] {
			own[i] = true
			s := observationShard{}
			if next[i] != nil {
				s = maps.Clone(*next[i])
			}
			next[i] = &s
		}
		return *next[i]
	}
	for name, x := range said {
		shard(name)[name] = &x
	}
	for _, name := range gone {
		delete(shard(name), name)
	}
	return Observations{next}
}

// Differs are the contracts of which o does not say what before said, in no
// order. It costs what has changed.
func (o Observations) Differs(before Observations) []string {
	var out []string
	before.changed(o, func(contract string) { out = append(out, contract) })
	return out
}

// changed calls f with the contracts of which two say different things.
func (o Observations) changed(later Observations, f func(contract string)) {
	if o.shards == later.shards {
		return
	}
	var none [observationShards]*observationShard
	a, b := o.shards, later.shards
	if a == nil {
		a = &none
	}
	if b == nil {
		b = &none
	}
	for i := range a {
		if a[i] == b[i] {
			continue
		}
		x, y := shardItems(a[i]), shardItems(b[i])
		for name, was := range x {
			if now, both := y[name]; !both || was != now && !SameObservation(*was, *now) {
				f(name)
			}
		}
		for name := range y {
			if _, both := x[name]; !both {
				f(name)
			}
		}
	}
}

func shardItems(s *observationShard) observationShard {
	if s == nil {
		return nil
	}
	return *s
}

// SameObservation reports whether two observations say the same. Nothing granted
// is not the same as nothing known of it.
func SameObservation(a, b v1alpha1.Observation) bool {
	return a.ProviderSeen == b.ProviderSeen && sameAmounts(a.ProviderHolds, b.ProviderHolds) && SameWords(&a.Consumer, &b.Consumer)
}

// SameWords is SameObservation of what a consumer alone says.
func SameWords(x, y *v1alpha1.ConsumerObservation) bool {
	return x.Reachable == y.Reachable && x.Message == y.Message && x.Slice == y.Slice && x.SliceDenied == y.SliceDenied &&
		x.VirtualNode == y.VirtualNode && x.Node == y.Node && x.NodeReady == y.NodeReady && x.Offloading == y.Offloading &&
		x.OffloadingMessage == y.OffloadingMessage && x.PeeringMessage == y.PeeringMessage && x.ProviderMessage == y.ProviderMessage &&
		x.NodeMessage == y.NodeMessage && slices.Equal(x.Blockers, y.Blockers) && sameAmounts(x.Granted, y.Granted) && sameAmounts(x.Allocatable, y.Allocatable)
}

func sameAmounts(a, b v1alpha1.Resources) bool { return (a == nil) == (b == nil) && a.Equal(b) }
