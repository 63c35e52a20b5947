package bench

import (
	"fmt"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/reconciler"
	"github.com/fleetbroker/fleetbroker/test/bench/gen"
	"github.com/fleetbroker/fleetbroker/test/env"
)

// repetitions of a cheap measurement, whose median counts.
const repetitions = 21

func BenchmarkRoundsWide(b *testing.B) { benchmarkRounds(b, "100 x 1,000", wide) }
func BenchmarkRoundsTall(b *testing.B) { benchmarkRounds(b, "1 x 20,000", tall) }

// benchmarkRounds measures what rounds cost in a daemon that knows the fleet:
// one without news, one after a commit of one file, one that only has news of
// the market.
func benchmarkRounds(b *testing.B, fleet string, o gen.Options) {
	p := serve(b, o)
	d := start(b, p)
	begin := time.Now()
	first := d.round(b)
	results.note(fleet+": first round", fmt.Sprintf("%.2f s", time.Since(begin).Seconds()))
	b.Logf("first round: %+v", first.Took)
	if n := len(first.Committed) + d.settle(b); n > 0 {
		b.Fatalf("the generated fleet is not at rest: %d commits: %v", n, first.Plan.Summary())
	}
	for b.Loop() {
		unchanged(b, p, d, fleet)
		reread(b, p, d, fleet)
		replan(b, d, fleet)
	}
}

// unchanged is a round in which nothing happened, after a poll.
func unchanged(b *testing.B, p *place, d *daemon, fleet string) {
	before := p.git.Stats()
	var whole, own, native []time.Duration
	for range repetitions {
		d.Reread()
		begin := time.Now()
		out := d.round(b)
		took := time.Since(begin)
		if out.Plan != nil || len(out.Committed) > 0 {
			b.Fatalf("a round without news planned: %+v", out)
		}
		whole, own = append(whole, took), append(own, took-out.Took.Ask)
		begin = time.Now()
		if _, err := env.Git(b.Context(), p.dir, "ls-remote", p.git.URL(repo)); err != nil {
			b.Fatal(err)
		}
		native = append(native, time.Since(begin))
	}
	if pushes := p.git.Stats().Pushes - before.Pushes; pushes != 0 {
		b.Fatalf("rounds without news pushed %d times", pushes)
	}
	results.below(fleet+": round without news, without the git server's time", ms(median(own)), 10, "ms")
	results.below(fleet+": round without news, with asking git http-backend", ms(median(whole)), 10, "ms")
	results.note(fleet+": asking git http-backend by git ls-remote", fmt.Sprintf("%.4g ms", ms(median(native))))
}

// reread is reading again after a commit of one file.
func reread(b *testing.B, p *place, d *daemon, fleet string) {
	var read, whole []time.Duration
	var last reconciler.Took
	for i := range repetitions {
		// The file changes, and not what it asks for.
		path := gen.IntentPath(i%p.Tenants, p.Intents-1-i)
		content := append([]byte(fmt.Sprintf("# edited %d\n", p.n)), p.Files[path]...)
		p.put(b, map[string][]byte{path: content})
		d.Reread()
		begin := time.Now()
		out := d.round(b)
		whole = append(whole, time.Since(begin))
		read, last = append(read, out.Took.Read), out.Took
		d.settle(b)
	}
	results.below(fleet+": re-reading after a commit of one file", ms(median(read)), 50, "ms")
	results.note(fleet+": that whole round, with fetch and plan", fmt.Sprintf("%.4g ms", ms(median(whole))))
	b.Logf("the last: %+v", last)
}

// replan is a round that plans and finds only keeps: the market has news.
func replan(b *testing.B, d *daemon, fleet string) {
	var whole, plan []time.Duration
	for i := range 5 {
		d.report(b, i)
		begin := time.Now()
		out := d.round(b)
		if out.Plan == nil || out.Plan.Changes() {
			b.Fatalf("want a plan of keeps, got %+v", out)
		}
		whole, plan = append(whole, time.Since(begin)), append(plan, out.Took.Plan)
	}
	results.note(fleet+": round that plans and finds only keeps", fmt.Sprintf("%.4g ms", ms(median(whole))))
	results.note(fleet+": its planning alone", fmt.Sprintf("%.4g ms", ms(median(plan))))
}
