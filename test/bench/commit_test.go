package bench

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/test/bench/gen"
	"github.com/fleetbroker/fleetbroker/test/env"
)

// batches of ten contracts that are committed; the first of them opens
// connections on both sides and does not count.
const batches = 12

func BenchmarkCommitWide(b *testing.B) { benchmarkCommit(b, "100 x 1,000", wide) }
func BenchmarkCommitTall(b *testing.B) { benchmarkCommit(b, "1 x 20,000", tall) }

// benchmarkCommit lets a daemon commit batches of ten new contracts, with their
// states and manifests, and git push the very same commits to a second copy of
// the repository on the same server, in turn. What the daemon's figure holds
// beyond git's is making the commit: rendering, hashing, trees, the pack.
func benchmarkCommit(b *testing.B, fleet string, o gen.Options) {
	p := serve(b, o)
	p.copy(b, p.git.RepoDir(repo), "other")
	clone := filepath.Join(b.TempDir(), "clone.git")
	git := func(args ...string) {
		if _, err := env.Git(b.Context(), clone, args...); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := env.Git(b.Context(), "", "clone", "--quiet", "--mirror", p.git.URL("other"), clone); err != nil {
		b.Fatal(err)
	}
	d := start(b, p)
	d.settle(b)
	for b.Loop() {
		var ours, theirs []time.Duration
		var ratios []float64
		for i := range batches {
			files := map[string][]byte{}
			for j := range 10 {
				path, content := gen.NewIntent((i*10+j)%o.Tenants, p.n*10+j)
				files[path] = content
			}
			p.put(b, files)
			d.Reread()
			d.committed = nil
			out := d.round(b)
			if len(out.Committed) != 1 || len(out.Plan.Contracts) != 10 {
				b.Fatalf("want one commit of ten contracts, got %d of %d", len(out.Committed), len(out.Plan.Contracts))
			}
			d.settle(b)
			commit := out.Committed[0].Commit.Hash.String()
			git("fetch", "--quiet", p.git.RepoDir(repo), commit)
			begin := time.Now()
			git("push", "--quiet", p.git.URL("other"), commit+":refs/heads/"+gen.LedgerBranch)
			took := time.Since(begin)
			if i > 0 {
				ours, theirs = append(ours, d.committed[0]), append(theirs, took)
				ratios = append(ratios, d.committed[0].Seconds()/took.Seconds())
			}
		}
		results.note(fleet+": commit and push of ten contracts", fmt.Sprintf("%.4g ms", ms(median(ours))))
		results.note(fleet+": git push of the same commit", fmt.Sprintf("%.4g ms", ms(median(theirs))))
		results.below(fleet+": ratio of the two, median of pairs", median(ratios), 1.3, "x")
	}
}
