package server

import (
	"math"
	"net/http"
	"time"
)

// partCost is how many bytes of an answer a byte of a part of the market counts
// as, an agent's own among them: it is written anew for each who asks.
const partCost = 8

// paid is an answer whose bytes are counted.
type paid struct {
	http.ResponseWriter
	bytes, cost int
}

// Write implements http.ResponseWriter.
func (p *paid) Write(b []byte) (int, error) {
	n, err := p.ResponseWriter.Write(b)
	p.bytes += n
	return n, err
}

// Unwrap lets http.ResponseController find what it controls.
func (p *paid) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// costs makes the bytes of an answer count so many times.
func costs(w http.ResponseWriter, times int) {
	if p, ok := w.(*paid); ok {
		p.cost = times
	}
}

// charged makes an answer cost its bytes: an identity that asks for large ones
// without end would keep the processor busy with writing them.
func charged(next http.HandlerFunc) http.HandlerFunc {
	return within(next, func(b *budget, w http.ResponseWriter, r *http.Request) {
		answers := b.answers
		if owed := -answers.TokensAt(b.now()); owed > 0 {
			after := time.Duration(math.Ceil(owed / float64(answers.Limit()) * float64(time.Second)))
			tooMany(w, after, nameOf(r), "its answers are more than it may have in this time")
			return
		}
		p := &paid{ResponseWriter: w, cost: 1}
		next(p, r)
		for left := p.bytes * p.cost; left > 0; left -= answers.Burst() {
			answers.ReserveN(b.now(), min(left, answers.Burst()))
		}
	})
}

// inTurn lets an identity ask the git server through the daemon once at a time:
// further requests of its own wait for their turn, and nobody else's do.
func inTurn(next http.HandlerFunc) http.HandlerFunc {
	return within(next, func(b *budget, w http.ResponseWriter, r *http.Request) {
		select {
		case b.remote <- struct{}{}:
			defer func() { <-b.remote }()
			next(w, r)
		case <-r.Context().Done():
		}
	})
}
