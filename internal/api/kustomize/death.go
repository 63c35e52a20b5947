package kustomize

import (
	"errors"
	"sync"

	"github.com/fleetbroker/fleetbroker/internal/api/child"
)

// Death is a build whose process ended before it answered.
type Death = child.Death

// maxDeaths is how often the process of one build may exceed its bounds in the life of
// this one. After that it is not tried again: it would keep all others waiting, for as
// long as its bounds allow, each time.
const maxDeaths = 2

// maxRemembered is of how many builds deaths are remembered; to forget one costs a build.
const maxRemembered = 1_000

// deaths are those of this process. Its bounds are set once, so that what ended a build
// twice would do so again.
var deaths remembered

// remembered are deaths by the hash of what was to be built.
type remembered struct {
	mu sync.Mutex
	by map[[32]byte]*conviction
}

type conviction struct {
	times int
	last  *Death
}

// of is how a build ended the last time; nil: it may be tried.
func (r *remembered) of(hash [32]byte) *Death {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.by[hash]; c != nil && c.times >= maxDeaths {
		return c.last
	}
	return nil
}

// note remembers a death that the build is to blame for.
func (r *remembered) note(hash [32]byte, err error) {
	var death *Death
	if !errors.As(err, &death) || !death.Convicts {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.by == nil || len(r.by) >= maxRemembered {
		r.by = map[[32]byte]*conviction{}
	}
	c := r.by[hash]
	if c == nil {
		c = &conviction{}
		r.by[hash] = c
	}
	c.times++
	c.last = death
}
