//go:build e2e

package reservations

import (
	"fmt"
	"testing"

	"github.com/anishathalye/porcupine"
)

// bank is what the repository may hold, as one comparable state: who holds how
// much, and how much may still be held of what was released. (Capacity is free
// again when the slice is seen gone, which the history does not show.)
type bank struct {
	holders  [(clients*each + 63) / 64]uint64 // one bit a key
	held     int
	draining int
	commit   int // of requests that is being carried out, from 1
	done     int // of its operations
	looked   int // operations that saw what it left
}

// schedule says how many operations each commit of the ledger carries out, and
// how many saw what it left; 0 is before the first.
type schedule struct{ writes, looks []int }

// modelOf says what each operation may see and do. Given a schedule, they must
// take effect in its order: without one the search among 64 at once does not
// end. A history that is linearizable in the order of the commits is
// linearizable.
func modelOf(s schedule) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return bank{} },
		Step: func(state, input, _ any) (bool, any) {
			e := input.(event)
			next, turn := state.(bank).follow(s, e)
			legal, after := next.apply(e)
			return turn && legal, after
		},
	}
}

// writes reports whether an operation changes anything.
func (e event) writes() bool { return e.kind != "read" && e.ok }

// follow steps to the commit of an operation, and tells whether it is its turn.
func (b bank) follow(s schedule, e event) (bank, bool) {
	if s.writes == nil {
		return b, true
	}
	whole := b.done == s.writes[b.commit]
	switch {
	case !e.writes():
		b.looked++
		return b, e.at == b.commit && whole
	case e.at == b.commit && !whole:
		b.done++
		return b, true
	case e.at == b.commit+1 && whole && b.looked == s.looks[b.commit]:
		b.commit, b.done, b.looked = e.at, 1, 0
		return b, true
	}
	return b, false
}

// apply is what an operation does.
func (b bank) apply(e event) (bool, bank) {
	word, bit := e.n/64, uint64(1)<<(e.n%64)
	mine := b.holders[word]&bit != 0
	switch {
	case e.kind == "reserve" && e.ok:
		b.holders[word] |= bit
		b.held += e.gpus
		return !mine && b.held <= capacity, b
	case e.kind == "reserve":
		return !mine && b.held+b.draining+e.gpus > capacity, b
	case e.kind == "release":
		b.holders[word] &^= bit
		b.held, b.draining = b.held-e.gpus, b.draining+e.gpus
		return mine, b
	}
	var seen bank
	for key := range e.seen {
		n := number(key)
		seen.holders[n/64] |= 1 << (n % 64)
	}
	return seen.holders == b.holders, b
}

// number is that of a key "c<client>-<i>".
func number(key string) int {
	var client, i int
	_, _ = fmt.Sscanf(key, "c%d-%d", &client, &i) // the keys are this test's
	return client*each + i
}

// placeRefusals proposes after which commit each refusal was true: the first
// one that leaves too little, at the time of the refusal at the earliest. What
// is held and draining together only grows, so that with commits as early as
// can be no refusal loses its place by it. The checker then judges the proposal.
func placeRefusals(ops []porcupine.Operation, commits int) {
	began, taken := make([]int64, commits+2), make([]int, commits+2)
	for _, op := range ops {
		switch e := op.Input.(event); {
		case e.kind == "read":
			began[e.at+1] = max(began[e.at+1], op.Call)
		case e.ok:
			began[e.at] = max(began[e.at], op.Call)
			if e.kind == "reserve" {
				taken[e.at] += e.gpus
			}
		}
	}
	for at := 1; at <= commits; at++ {
		began[at], taken[at] = max(began[at], began[at-1]), taken[at]+taken[at-1]
	}
	for i := range ops {
		e := ops[i].Input.(event)
		if e.kind != "reserve" || e.ok {
			continue
		}
		for e.at < commits && (taken[e.at]+e.gpus <= capacity || began[e.at+1] < ops[i].Call) {
			e.at++
		}
		ops[i].Input = e
	}
}

// The model must be able to say no, or the test proves nothing.
func TestModelRefuses(t *testing.T) {
	op := func(call, ret int64, e event) porcupine.Operation {
		e.n = number(e.key)
		if e.kind == "release" {
			e.ok = true
		}
		return porcupine.Operation{Input: e, Output: e, Call: call, Return: ret}
	}
	bad := map[string][]porcupine.Operation{
		"oversold":            {op(0, 1, event{kind: "reserve", key: "c0-0", gpus: 200, ok: true}), op(2, 3, event{kind: "reserve", key: "c0-1", gpus: 101, ok: true})},
		"refused for nothing": {op(0, 1, event{kind: "reserve", key: "c0-0", gpus: 200, ok: true}), op(2, 3, event{kind: "reserve", key: "c0-1", gpus: 100})},
		"answered, not there": {op(0, 1, event{kind: "reserve", key: "c0-0", gpus: 1, ok: true}), op(2, 3, event{kind: "read", seen: map[string]bool{}})},
		"there, not answered": {op(0, 1, event{kind: "read", seen: map[string]bool{"c0-0": true}}), op(2, 3, event{kind: "reserve", key: "c0-0", gpus: 1, ok: true})},
		"released, there":     {op(0, 1, event{kind: "reserve", key: "c0-0", gpus: 1, ok: true}), op(2, 3, event{kind: "release", key: "c0-0", gpus: 1}), op(4, 5, event{kind: "read", seen: map[string]bool{"c0-0": true}})},
	}
	for name, ops := range bad {
		if porcupine.CheckOperations(modelOf(schedule{}), ops) {
			t.Errorf("%s passes for linearizable", name)
		}
	}
	good := []porcupine.Operation{
		op(0, 9, event{kind: "reserve", key: "c0-0", gpus: 200, ok: true}), op(1, 8, event{kind: "reserve", key: "c0-1", gpus: 200}),
		op(2, 3, event{kind: "read", seen: map[string]bool{"c0-0": true}}), op(10, 11, event{kind: "release", key: "c0-0", gpus: 200}),
		op(12, 13, event{kind: "reserve", key: "c0-2", gpus: 300, ok: true}),
	}
	if !porcupine.CheckOperations(modelOf(schedule{}), good) {
		t.Error("a good history does not pass")
	}
}
