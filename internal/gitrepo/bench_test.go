package gitrepo_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
)

// contractPath is where FORMATS puts a contract.
func contractPath(tenant, intent int) string {
	name := fmt.Sprintf("i%04d", intent)
	shard := sha256.Sum256([]byte(name))
	return fmt.Sprintf("contracts/t%03d/%02x/%s/c.yaml", tenant, shard[0], name)
}

// largeFleet makes a bare repository of tenants x intents files.
func largeFleet(t testing.TB, tenants, intents int) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "fleet.git")
	git(t, ".", "init", "-q", "--bare", "-b", "main", dir)
	var in bytes.Buffer
	fmt.Fprint(&in, "commit refs/heads/main\ncommitter Ada <ada@example.org> 1763640000 +0000\ndata 1\nx\n")
	for tn := range tenants {
		for i := range intents {
			body := fmt.Sprintf("kind: Contract\nmetadata: {name: i%04d, namespace: t%03d}\n%s", i, tn, strings.Repeat("spec: x\n", 60))
			fmt.Fprintf(&in, "M 100644 inline %s\ndata %d\n%s\n", contractPath(tn, i), len(body), body)
		}
	}
	cmd := gitCmd(dir, "fast-import", "--quiet")
	cmd.Stdin = &in
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git fast-import: %v\n%s", err, out)
	}
	return dir
}

// gitPusher makes commits of ten files in a clone with fast-import and pushes
// them with the real git.
type gitPusher struct {
	dir string
	n   int
}

func (g *gitPusher) push(b *testing.B, files map[string][]byte) time.Duration {
	g.n++
	var in bytes.Buffer
	from := "refs/remotes/origin/main"
	if g.n > 1 {
		from = "refs/heads/bench^0"
	}
	fmt.Fprintf(&in, "commit refs/heads/bench\ncommitter Ada <ada@example.org> %d +0000\ndata 1\nx\nfrom %s\n", 1763640000+g.n, from)
	for p, c := range files {
		fmt.Fprintf(&in, "M 100644 inline %s\ndata %d\n%s\n", p, len(c), c)
	}
	cmd := gitCmd(g.dir, "fast-import", "--quiet")
	cmd.Stdin = &in
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("git fast-import: %v\n%s", err, out)
	}
	start := time.Now()
	git(b, g.dir, "push", "-q", "origin", "bench")
	return time.Since(start)
}

// BenchmarkCommit commits ten contracts to a fleet of 100 tenants x 1,000 files
// and compares with what `git push` alone takes for a commit of the same
// shape, in turn on the same server. Reported: both times, and the ratio of
// the sums.
func BenchmarkCommit(b *testing.B) {
	dir := largeFleet(b, 100, 1000)
	srv := serveGit(b, filepath.Dir(dir))
	for name, url := range map[string]string{"file": "file://" + dir, "http": srv.URL + "/fleet.git"} {
		b.Run(name, func(b *testing.B) {
			clone := filepath.Join(b.TempDir(), "clone.git")
			if out, err := exec.Command("git", "clone", "-q", "--no-checkout", url, clone).CombinedOutput(); err != nil {
				b.Fatalf("git clone: %v\n%s", err, out)
			}
			g := &gitPusher{dir: clone}
			git(b, dir, "update-ref", "-d", "refs/heads/bench")
			r := open(b, dial(b, url, gitrepo.Auth{}), options(oneBranch, func(o *gitrepo.Options) {
				o.Dir, o.Now = b.TempDir(), time.Now
			}))
			var ours, gits time.Duration
			round := 0
			for b.Loop() {
				round++
				files := map[string][]byte{}
				var items []gitrepo.Item
				for i := range 10 {
					p := contractPath((round*10+i)%100, i)
					files[p] = fmt.Appendf(nil, "kind: Contract\nround: %d\nitem: %d\nurl: %s\n", round, i, url)
					items = append(items, gitrepo.Item{Key: p, Puts: map[string][]byte{p: files[p]}, Line: "place " + p})
				}
				h := fetch(b, r)
				q := request(h, items...)
				start := time.Now()
				commit(b, r, q)
				ours += time.Since(start)
				for p := range files {
					files[p] = append(files[p], "by: git\n"...)
				}
				gits += g.push(b, files)
			}
			b.ReportMetric(float64(ours.Milliseconds())/float64(round), "ours-ms/op")
			b.ReportMetric(float64(gits.Milliseconds())/float64(round), "gitpush-ms/op")
			b.ReportMetric(ours.Seconds()/gits.Seconds(), "ratio")
		})
	}
}

// BenchmarkFetch is a fetch with nothing new, and one with one new input.
func BenchmarkFetch(b *testing.B) {
	dir := largeFleet(b, 100, 1000)
	r := open(b, dial(b, "file://"+dir, gitrepo.Auth{}), options(oneBranch, func(o *gitrepo.Options) { o.Dir = b.TempDir() }))
	fetch(b, r)
	b.Run("nothing", func(b *testing.B) {
		for b.Loop() {
			fetch(b, r)
		}
	})
	n := 0
	b.Run("one-commit", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			n++
			gitPut(b, dir, "main", "intents/vision/a.yaml", fmt.Sprint(n))
			b.StartTimer()
			fetch(b, r)
		}
	})
}

// BenchmarkRead reads every file of the fleet once, as a cold start does.
func BenchmarkRead(b *testing.B) {
	dir := largeFleet(b, 100, 1000)
	r := open(b, dial(b, "file://"+dir, gitrepo.Auth{}), options(oneBranch, func(o *gitrepo.Options) { o.Dir = b.TempDir() }))
	start := time.Now()
	h := fetch(b, r)
	b.Logf("clone: %v", time.Since(start))
	for b.Loop() {
		n := 0
		if err := readAll(h, &n); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(n), "files/op")
	}
}
