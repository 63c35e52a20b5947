package sim

import (
	"container/heap"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"time"
)

// epoch is the virtual instant 0, a Friday morning.
var epoch = time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)

// event is something that happens at an instant of its own.
type event struct {
	at  time.Duration // since epoch, whole microseconds
	run func()
}

type queue []*event

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].at < q[j].at }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)        { *q = append(*q, x.(*event)) }
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

// timeline is the virtual clock and what is still to happen.
type timeline struct {
	now   time.Duration
	todo  queue
	taken map[time.Duration]bool
}

// after books an event. No two events share an instant, so their order is the
// order of their instants and nothing else.
func (t *timeline) after(d time.Duration, run func()) {
	at := (t.now + max(d, time.Microsecond)).Truncate(time.Microsecond)
	if t.taken == nil {
		t.taken = map[time.Duration]bool{}
	}
	for t.taken[at] {
		at += time.Microsecond
	}
	t.taken[at] = true
	heap.Push(&t.todo, &event{at, run})
}

// until reports whether anything is still to happen up to an instant.
func (t *timeline) until(at time.Duration) bool { return len(t.todo) > 0 && t.todo[0].at <= at }

// next takes the earliest event and sets the clock to it. An event whose
// instant went by while another waited happens now.
func (t *timeline) next() *event {
	if len(t.todo) == 0 {
		return nil
	}
	e := heap.Pop(&t.todo).(*event)
	delete(t.taken, e.at)
	t.now = max(t.now, e.at)
	return e
}

// journal is what happened, one dense line an entry: the last ones for people,
// all of them as a hash to compare two runs.
type journal struct {
	all   hash.Hash
	last  []string
	count int
	sink  func(string)
}

// kept is how many lines a failure prints.
const kept = 60

func newJournal(sink func(string)) *journal { return &journal{all: sha256.New(), sink: sink} }

func (j *journal) add(now time.Duration, format string, args ...any) {
	line := fmt.Sprintf("%s %s", stamp(now), fmt.Sprintf(format, args...))
	_, _ = j.all.Write([]byte(line + "\n"))
	j.count++
	if j.last = append(j.last, line); len(j.last) > 2*kept {
		j.last = append([]string(nil), j.last[kept:]...)
	}
	if j.sink != nil {
		j.sink(line)
	}
}

func (j *journal) sum() string { return hex.EncodeToString(j.all.Sum(nil)) }

func (j *journal) tail() []string { return j.last[max(0, len(j.last)-kept):] }

// stamp is hours, minutes, seconds and microseconds since epoch.
func stamp(d time.Duration) string {
	s := d / time.Second
	return fmt.Sprintf("%02d:%02d:%02d.%06d", s/3600, s/60%60, s%60, (d%time.Second)/time.Microsecond)
}
