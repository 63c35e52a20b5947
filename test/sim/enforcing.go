package sim

import (
	"time"

	"github.com/fleetbroker/fleetbroker/internal/agent/enforce"
)

// setBack is how long an agent keeps to the highest number of the ledger that it was told
// before a lower one counts.
const setBack = 5 * time.Minute

// enforcing is what an agent knows that answers the slices of class fleetbroker itself: by
// what daemons tell it of the ledger, which it never goes back behind. What it has carried
// out it says in its reports (wire.FlavorReport.Honoured).
type enforcing struct {
	book *enforce.Book
	// seq is the highest number that it was told, at when.
	seq uint64
	at  time.Duration
	// standing are the slices that are promised; nil: nobody has told yet.
	standing map[string]bool
}

// hear asks any daemon that the provider reaches for its instructions, as a poll does.
func (p *provider) hear() {
	s := p.s
	var able []*daemon
	for _, d := range s.daemons {
		if d.up && !d.deaf[p.name] {
			able = append(able, d)
		}
	}
	if p.down || p.gone || len(able) == 0 {
		return
	}
	in, _ := able[s.rng.IntN(len(able))].loop.Instructions(p.name)
	e := &p.enforcing
	if in.Seq == 0 || in.Seq < e.seq && s.tl.now-e.at < setBack {
		return
	}
	e.seq, e.at = in.Seq, s.tl.now
	promises := make([]enforce.Promise, 0, len(in.Provide))
	e.standing = map[string]bool{}
	for _, i := range in.Provide {
		promises = append(promises, enforce.Promise{Contract: i.Contract, Slice: i.Slice, Consumer: i.Consumer, ConsumerID: i.ConsumerLiqoID, Standing: i.Phase.Charged()})
		e.standing[i.Slice] = e.standing[i.Slice] || i.Phase.Charged()
	}
	if e.book == nil {
		e.book = &enforce.Book{}
	}
	e.book.Tell(in.Fleet, promises, in.Seq)
}

// grantsNow reports whether the agent lets a slice of a flavor be granted now: one that Liqo
// answers itself always.
func (p *provider) grantsNow(slice, flavor string) bool {
	if o := p.flavor(flavor); o == nil || o.class != "fleetbroker" {
		return true
	}
	p.hear()
	return p.enforcing.standing[slice]
}

// honoured is the number of the instructions that a list collected now stands for, 0 for none.
func (p *provider) honoured() uint64 {
	if p.enforcing.book == nil {
		return 0
	}
	return p.enforcing.book.Ending()
}
