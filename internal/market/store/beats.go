package store

import (
	"bufio"
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/marketcrd"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
)

// Heartbeats: every replica writes one object each beat, with whom it heard.
const (
	// beatEvery is how often a replica writes whom it heard.
	beatEvery = 10 * time.Second
	// hurried is how many bytes a second, packed, beats that have news take of whom was heard.
	hurried = 128 << 10
	// remembered is for how many beats a replica names whom it heard once: a reader
	// that missed an object finds it in the next ones.
	remembered = 6
	// lives is how long a replica counts as live after its object changed.
	lives = 30 * time.Second
	// misses is after what time without a beat the others get ready to take over what
	// a replica does for clusters: one beat is missing. They take it over when its
	// Leases run out, so that one that is only slow loses nothing.
	misses = 13 * time.Second
	// forgotten is when the object of a replica that is gone is deleted.
	forgotten = time.Hour
	// maxHeard bounds the lines of a Heartbeat, and maxHeardText what they take.
	maxHeard     = 200_000
	maxHeardText = 32 << 20
	// maxHeardAll bounds what is kept of all Heartbeats' lines, by their text and perHeard
	// each, in bytes.
	maxHeardAll = 128 << 20
	perHeard    = 100
	// maxPushes bounds how many pushes one Heartbeat adds.
	maxPushes = 1000
	// maxHold is the longest that a Heartbeat holds reads or pushes.
	maxHold = time.Hour
	// maxReplicas bounds whose Heartbeats are looked at.
	maxReplicas = 64
)

// beats is what replicas hear: this one, to be written, and the others, as they
// wrote. Shared's lock guards it.
type beats struct {
	// n is the newest beat that was written.
	n int64
	// heard are the providers that this replica heard, with the beat that will or did say so first.
	heard map[string]entry
	// others by name.
	others map[string]*other
	// foreign are the replicas of other fleets, by name.
	foreign map[string]stranger
	// head and calls are what this replica knows of the fleet repo.
	head  string
	calls int64
}

// stranger is a replica of another fleet.
type stranger struct {
	fleet, life string
	beat        int64
	changed     time.Time // as other.changed
}

// entry is a provider that was heard.
type entry struct {
	generation wire.Generation
	beat       int64
}

// other is another replica.
type other struct {
	life    string
	beat    int64
	serving bool
	away    bool
	address string
	// connections of agents; nil: it does not say.
	connections *int32
	pushes      int64
	head        string
	calls       int64
	changed     time.Time // when its object was seen to change, by this replica's clock; zero: not since it is known
	seen        time.Time // when it was first seen
	heard       map[string]entry
	cost        int64 // of heard, as maxHeardAll counts
}

func newBeats() beats {
	return beats{heard: map[string]entry{}, others: map[string]*other{}, foreign: map[string]stranger{}}
}

// strange notes the Heartbeat of a replica of another fleet: nothing in it counts.
func (b *beats) strange(h *marketcrd.Heartbeat, now time.Time) {
	delete(b.others, h.Name)
	was, known := b.foreign[h.Name]
	next := stranger{h.Spec.Fleet, h.Spec.Life, h.Spec.Beat, was.changed}
	if known && (was.life != next.life || was.beat < next.beat) {
		next.changed = now
	}
	if known || len(b.foreign) < maxReplicas {
		b.foreign[h.Name] = next
	}
}

// shares says with which other fleet's live replica the objects are shared, "" with none.
func (b *beats) shares(now time.Time) string {
	for _, name := range slices.Sorted(maps.Keys(b.foreign)) {
		if s := b.foreign[name]; !s.changed.IsZero() && now.Sub(s.changed) < lives {
			return fmt.Sprintf("replica %s of fleet %s uses the same namespace: give each fleet's daemons a namespace of their own", name, s.fleet)
		}
	}
	return ""
}

// gapAfter is how soon a beat that has news may follow one of so many bytes.
func gapAfter(bytes int) time.Duration {
	return min(max(soonest, time.Duration(bytes)*time.Second/hurried), beatEvery)
}

// hear notes that this replica heard a provider.
func (b *beats) hear(provider string, g wire.Generation) {
	b.heard[provider] = entry{g, b.n + 1}
}

// next is this replica's Heartbeat to be written now.
func (b *beats) next(replica, life string, serving bool) (*marketcrd.Heartbeat, error) {
	n := b.n + 1
	maps.DeleteFunc(b.heard, func(_ string, e entry) bool { return e.beat <= n-remembered })
	text, err := writeHeard(b.heard)
	if err != nil {
		return nil, err
	}
	h := &marketcrd.Heartbeat{Spec: marketcrd.HeartbeatSpec{Life: life, Beat: n, Serving: serving, Head: b.head, Calls: b.calls, Providers: int32(min(len(b.heard), maxHeard)), Heard: text}} //nolint:gosec // bounded
	h.Name = replica
	return h, nil
}

// take takes over another replica's Heartbeat and gives the providers whose entry
// is another one than before. A beat of the same life that is not newer says
// nothing. more has what else is new.
func (b *beats) take(h *marketcrd.Heartbeat, now time.Time) (heard map[string]wire.Generation, more news, err error) {
	o := b.others[h.Name]
	if o != nil && o.life == h.Spec.Life && h.Spec.Beat <= o.beat {
		return nil, more, nil
	}
	entries, cost, err := readHeard(h.Spec.Heard)
	if err != nil {
		return nil, more, err
	}
	if err := b.room(h.Name, cost, now); err != nil {
		return nil, more, err
	}
	next := &other{cost: cost, life: h.Spec.Life, beat: h.Spec.Beat, serving: h.Spec.Serving, away: h.Spec.Away, address: h.Spec.Address, connections: h.Spec.Connections, pushes: h.Spec.Pushes, head: h.Spec.Head, calls: h.Spec.Calls, seen: now, heard: entries}
	heard = map[string]wire.Generation{}
	more.hold = heldBy(h, now, o != nil)
	if o != nil {
		next.seen, next.changed = o.seen, now
		more.repo = next.head != o.head && next.head != b.head
		more.hook = next.calls != o.calls
		if more.pushes = next.pushes; o.life == next.life {
			more.pushes -= o.pushes
		}
		more.pushes = min(max(more.pushes, 0), maxPushes)
	}
	for provider, e := range entries {
		if o == nil || o.life != h.Spec.Life || o.heard[provider] != e {
			heard[provider] = e.generation
		}
	}
	b.others[h.Name] = next
	return heard, more, nil
}

// room makes room for a replica's Heartbeat, or says why there is none. One more replica
// takes the place of the one that has not been live for longest; where the lines of all
// take too much those of the largest go, which is none of a real replica's next to forged
// ones.
func (b *beats) room(name string, cost int64, now time.Time) error {
	if b.others[name] == nil && len(b.others) >= maxReplicas {
		oldest := ""
		for n, o := range b.others {
			if !o.changed.IsZero() && now.Sub(o.changed) < lives {
				continue
			}
			if last := later(o.seen, o.changed); oldest == "" || last.Before(later(b.others[oldest].seen, b.others[oldest].changed)) {
				oldest = n
			}
		}
		if oldest == "" {
			return fmt.Errorf("more than %d replicas", maxReplicas)
		}
		delete(b.others, oldest)
	}
	for {
		all, largest := cost, ""
		for n, o := range b.others {
			if n == name {
				continue
			}
			if all += o.cost; largest == "" || o.cost > b.others[largest].cost {
				largest = n
			}
		}
		switch {
		case all <= maxHeardAll:
			return nil
		case largest == "" || b.others[largest].cost <= cost:
			return fmt.Errorf("spec.heard: those of all replicas take more than %d MiB", maxHeardAll>>20)
		}
		delete(b.others, largest)
	}
}

// news is what is new in a Heartbeat besides whom its replica heard.
type news struct {
	repo   bool  // it knows of news of the fleet repo
	hook   bool  // a webhook told it of news
	pushes int64 // that it sent, and that the ledger does not show
	hold   hold
}

// hold is for how long the fleet repo's server is to be left alone.
type hold struct{ reads, pushes time.Duration }

// heldBy is what a Heartbeat says of that. One that was just written counts from now on;
// the first that is read of a replica may be old, and counts from when it says that it was
// written, but for no longer than it says.
func heldBy(h *marketcrd.Heartbeat, now time.Time, fresh bool) hold {
	age := time.Duration(0)
	if !fresh {
		age = max(now.Sub(h.Spec.At.Time), 0)
	}
	left := func(seconds int32) time.Duration {
		return max(min(time.Duration(seconds)*time.Second, maxHold)-age, 0)
	}
	return hold{left(h.Spec.ReadsHeld), left(h.Spec.PushesHeld)}
}

// seconds are those of a hold, rounded up.
func seconds(d time.Duration) int32 {
	return int32(min(max((d+time.Second-1)/time.Second, 0), maxHold/time.Second)) //nolint:gosec // bounded
}

// live are the other replicas whose object changed lately.
func (b *beats) live(now time.Time) []string {
	var out []string
	for name, o := range b.others {
		if !o.changed.IsZero() && now.Sub(o.changed) < lives {
			out = append(out, name)
		}
	}
	return out
}

// beating reports whether a replica is known and misses no beat, where this one
// listens since then.
func (b *beats) beating(name string, since, now time.Time) bool {
	o := b.others[name]
	return o != nil && now.Sub(later(since, later(o.seen, o.changed))) < misses
}

// serves reports whether agents can reach any of the other live replicas.
func (b *beats) serves(now time.Time) bool {
	return slices.ContainsFunc(b.live(now), func(name string) bool { return b.others[name].serving })
}

// gone are the replicas that have not written for so long that their objects may go.
func (b *beats) gone(now time.Time) []string {
	var out []string
	for name, o := range b.others {
		if last := o.seen; now.Sub(later(last, o.changed)) >= forgotten {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// writeHeard is the text of Heartbeat.spec.heard.
func writeHeard(heard map[string]entry) ([]byte, error) {
	if len(heard) == 0 {
		return nil, nil
	}
	var text []byte
	for _, name := range slices.Sorted(maps.Keys(heard)) {
		e := heard[name]
		text = fmt.Appendf(text, "%s %s %d\n", name, e.generation, e.beat)
	}
	return zip(text)
}

// readHeard reads what writeHeard wrote, or another account, and what it costs to keep.
func readHeard(data []byte) (out map[string]entry, cost int64, err error) {
	out = map[string]entry{}
	if len(data) == 0 {
		return out, 0, nil
	}
	text, err := unzip(data, maxHeardText)
	if err != nil {
		return nil, 0, fmt.Errorf("unpack spec.heard: %w", err)
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		if n > maxHeard {
			return nil, 0, fmt.Errorf("spec.heard: more than %d lines", maxHeard)
		}
		fields := strings.Split(lines.Text(), " ")
		if len(fields) != 3 {
			return nil, 0, fmt.Errorf("spec.heard: line %d is not \"<provider> <generation> <beat>\"", n)
		}
		g, err := wire.ParseGeneration(fields[1])
		if err != nil {
			return nil, 0, fmt.Errorf("spec.heard: line %d: %w", n, err)
		}
		at, err := strconv.ParseInt(fields[2], 10, 64)
		if err != nil || at < 1 {
			return nil, 0, fmt.Errorf("spec.heard: line %d: %.20q is not a beat", n, fields[2])
		}
		if _, twice := out[fields[0]]; twice {
			return nil, 0, fmt.Errorf("spec.heard: line %d: %.80q is listed twice", n, fields[0])
		}
		out[fields[0]] = entry{g, at}
	}
	if err := lines.Err(); err != nil {
		return nil, 0, fmt.Errorf("read spec.heard: %w", err)
	}
	return out, int64(len(text)) + perHeard*int64(len(out)), nil
}
