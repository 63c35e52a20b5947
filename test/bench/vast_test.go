package bench

import (
	"flag"
	"fmt"
	"math"
	"runtime/debug"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/test/bench/gen"
	"github.com/fleetbroker/fleetbroker/test/env"
)

// part is which part of the fleet of a million BenchmarkVast takes.
var part = flag.Int("vast", 20, "the fleet of a million intents, divided by this; 1 takes half an hour and 20 GiB")

// vastMemory is the daemon's soft limit of memory for it, ownMemory that of this process,
// which has a daemon, the git server and the generated fleet in it.
const (
	vastMemory = "11GiB"
	ownMemory  = 16 << 30
)

// vast is a million intents, of which 90,000 hold a contract and 10,000 wait,
// with 100,000 flavors of 10,000 clusters.
func vast() gen.Options {
	return gen.Options{
		Tenants: 1000 / *part, Intents: 1000, Held: 90, Waiting: 10, Providers: 10_000 / *part, Flavors: 10,
		Consumers: 20, Delivery: "none", Now: made,
	}
}

// BenchmarkVast starts a daemon on that fleet, without and with a copy of the
// repository on its disk, and measures rounds of one that knows it.
func BenchmarkVast(b *testing.B) {
	if debug.SetMemoryLimit(-1) == math.MaxInt64 { // no GOMEMLIMIT is given
		defer debug.SetMemoryLimit(debug.SetMemoryLimit(ownMemory))
	}
	o := vast()
	fleet := fmt.Sprintf("%d x 1,000 with %d flavors", o.Tenants, o.Providers*o.Flavors)
	p := serve(b, o)
	bin := programs(b)
	address, release, err := env.ReserveAddress()
	if err != nil {
		b.Fatal(err)
	}
	defer release()
	state := b.TempDir()
	for b.Loop() {
		took, u := startOnce(b, bin, p, address, state, vastMemory)
		results.note(fleet+": start without a local copy", fmt.Sprintf("%.4g s; %.4g s of processor time", took.Seconds(), u.cpu.Seconds()))
		took, u = startOnce(b, bin, p, address, state, vastMemory)
		results.below(fleet+": start with the local copy", took.Seconds(), 120, "s")
		results.note(fleet+": its processor time", fmt.Sprintf("%.4g s", u.cpu.Seconds()))
		results.below(fleet+": most memory resident", u.resident/(1<<30), 12, "GiB")

		d := start(b, p)
		if n := len(d.round(b).Committed) + d.settle(b); n > 0 {
			b.Fatalf("the generated fleet is not at rest: %d commits", n)
		}
		unchanged(b, p, d, fleet)
		reread(b, p, d, fleet)
		placed(b, p, d, fleet)
	}
}

// placed is a round that decides on one intent that was pushed and finds a place,
// from the fetch to the decision, and to the pushed commit.
func placed(b *testing.B, p *place, d *daemon, fleet string) {
	var decided, whole []time.Duration
	for i := range repetitions {
		path, content := gen.NewIntent(i%p.Tenants, 90_000+i)
		p.put(b, map[string][]byte{path: content})
		d.Reread()
		d.committed = nil
		begin := time.Now()
		out := d.round(b)
		took := time.Since(begin)
		if len(out.Committed) != 1 || len(out.Plan.Contracts) == 0 {
			b.Fatalf("the intent was not placed: %+v", out.Plan.Summary())
		}
		whole = append(whole, took)
		for _, push := range d.committed {
			took -= push
		}
		decided = append(decided, took)
		b.Logf("%+v, committed and pushed in %v", out.Took, d.committed)
		d.settle(b)
	}
	results.below(fleet+": round that places an intent, to the decision", ms(median(decided)), 60, "ms")
	results.note(fleet+": the same, to the pushed commit", fmt.Sprintf("%.4g ms", ms(median(whole))))
}
