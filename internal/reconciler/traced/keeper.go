package traced

import (
	"context"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/tracing"
)

const (
	// maxSeek bounds how many commits are looked at at once.
	maxSeek = 2000
	// maxKept bounds the contracts that are remembered.
	maxKept = 10_000
)

// Repo reads history; *gitrepo.Repo is one.
type Repo interface {
	Info(h tree.Hash) (gitrepo.Commit, error)
	MadeByUs(h tree.Hash) (bool, error)
}

// Keeper knows which trace contracts are on their way in. Nil knows nothing. Make it with
// NewKeeper.
type Keeper struct {
	// Tracer makes the span of a contract that has become Active.
	Tracer *tracing.Tracer
	// Replica is this daemon's name in its commits: the one that wrote that a contract is
	// Active makes the span.
	Replica string

	head tree.Hash // that was looked at last; of Follow alone

	mu sync.Mutex
	by map[string]way
	// came are contracts that arrived with the newest head.
	came map[string]tracing.Origin
}

// way is how a contract came to be on its way.
type way struct {
	origin tracing.Origin
	since  time.Time
	again  bool // it was Active before, and Degraded
}

// NewKeeper makes one that knows nothing yet; nil where there is no tracer.
func NewKeeper(t *tracing.Tracer, replica string) *Keeper {
	if t == nil {
		return nil
	}
	return &Keeper{Tracer: t, Replica: replica, by: map[string]way{}}
}

// step is what a trailer says of a contract: "<name> <from> -> <to>"; from is "-" where
// the commit makes it.
type step struct {
	name     string
	from, to v1alpha1.Phase
}

// begins reports whether a contract's way begins with a step whatever was before: it is
// made, or what was booked begins.
func (s step) begins() bool {
	return s.from == "-" || s.from == v1alpha1.PhaseBooked && s.to != v1alpha1.PhaseBooked
}

func stepsOf(c gitrepo.Commit) []step {
	var out []step
	for _, line := range c.Trailers("Contract") {
		name, rest, _ := strings.Cut(line, " ")
		if from, to, ok := strings.Cut(rest, " -> "); ok {
			out = append(out, step{name, v1alpha1.Phase(from), v1alpha1.Phase(to)})
		}
	}
	return out
}

// arrived reports whether a contract of a phase is on its way no longer.
func arrived(p v1alpha1.Phase) bool { return p == v1alpha1.PhaseActive || !p.Held() }

// Follow takes over a head of the ledger: what became of contracts since the last one, and
// at first how those of its contracts began that are on their way. History that cannot be
// read ends there: no round fails for it.
func (k *Keeper) Follow(repo Repo, head tree.Hash, contracts iter.Seq[*v1alpha1.Contract]) {
	if k == nil || head == k.head {
		return
	}
	first := k.head.IsZero()
	sought := map[string]bool{}
	if first {
		for c := range contracts {
			if !arrived(c.Status.Phase) {
				sought[c.Metadata.Name] = true
			}
		}
		if len(sought) == 0 {
			k.head = head
			return
		}
	}
	commits := k.since(repo, head, sought)
	k.head = head
	k.mu.Lock()
	defer k.mu.Unlock()
	k.came = nil
	for i := len(commits) - 1; i >= 0; i-- { // oldest first
		k.take(commits[i], !first)
	}
	if first {
		for name := range k.by { // others arrived while nobody looked
			if !sought[name] {
				delete(k.by, name)
			}
		}
	}
}

// since are the commits of daemons behind a head that are not behind the one before,
// newest first; at first those until the ways of all that is sought have begun.
func (k *Keeper) since(repo Repo, head tree.Hash, sought map[string]bool) []gitrepo.Commit {
	var out []gitrepo.Commit
	first, left := k.head.IsZero(), len(sought)
	seen, queue := map[tree.Hash]bool{k.head: true}, []tree.Hash{head}
	began := map[string]bool{}
	for len(queue) > 0 && len(seen) <= maxSeek && (!first || left > 0) {
		h := queue[0]
		queue = queue[1:]
		if h.IsZero() || seen[h] {
			continue
		}
		seen[h] = true
		c, err := repo.Info(h)
		if err != nil {
			continue
		}
		queue = append(queue, c.Parents...)
		if ours, err := repo.MadeByUs(h); !ours || err != nil {
			continue
		}
		out = append(out, c)
		for _, s := range stepsOf(c) {
			if sought[s.name] && !began[s.name] && (arrived(s.to) || s.begins()) {
				began[s.name] = true
				left--
			}
		}
	}
	return out
}

// take takes over what one commit did; mu is held.
func (k *Keeper) take(c gitrepo.Commit, tell bool) {
	led := tracing.Parse(c.Trailer(tracing.Trailer))
	for _, s := range stepsOf(c) {
		is, known := k.by[s.name]
		switch {
		case !arrived(s.to):
			if known && s.begins() {
				delete(k.by, s.name)
				known = false
			}
			if !known && !led.IsZero() && len(k.by) < maxKept {
				k.by[s.name] = way{led, c.When(), s.to == v1alpha1.PhaseDegraded}
			}
			continue
		case known && tell && s.to == v1alpha1.PhaseActive && c.Trailer("Replica") == k.Replica:
			k.active(s.name, is, led, c.When())
		}
		if delete(k.by, s.name); known {
			if k.came == nil {
				k.came = map[string]tracing.Origin{}
			}
			k.came[s.name] = is.origin
		}
	}
}

// active makes the last span of a contract's way: from the commit that began it to the
// one by which it is Active (again, where that began by its being Degraded), with a link to the round that wrote that.
func (k *Keeper) active(name string, is way, led tracing.Origin, at time.Time) {
	var links []tracing.Origin
	if !led.IsZero() {
		links = append(links, led)
	}
	what := "contract active"
	if is.again {
		what = "contract active again"
	}
	_, span := k.Tracer.Begin(context.Background(), what, is.since, is.origin, links)
	span.Set("fleetbroker.contract", name)
	span.EndAt(nil, at)
}

// Of is the trace that a contract is on its way in, none where it is not, or none led to
// it. Safe for any goroutine.
func (k *Keeper) Of(contract string) tracing.Origin {
	if k == nil {
		return tracing.Origin{}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.by[contract].origin
}

// Came is Of, also of a contract that arrived with the newest head. Safe for any goroutine.
func (k *Keeper) Came(contract string) tracing.Origin {
	if k == nil {
		return tracing.Origin{}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if o, just := k.came[contract]; just {
		return o
	}
	return k.by[contract].origin
}

// Among are the traces of contracts that are on their way, by what the contract is called
// there; nil where none is. Safe for any goroutine.
func (k *Keeper) Among(contracts []*v1alpha1.Contract, called func(*v1alpha1.Contract) string) map[string]tracing.Origin {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.by) == 0 {
		return nil
	}
	var out map[string]tracing.Origin
	for _, c := range contracts {
		if is, on := k.by[c.Metadata.Name]; on {
			if out == nil {
				out = map[string]tracing.Origin{}
			}
			out[called(c)] = is.origin
		}
	}
	return out
}
