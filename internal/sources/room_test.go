package sources

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// onDisk is what lies below a Keeper's directory, in bytes.
func (r *rig) onDisk() (n int64) {
	r.t.Helper()
	if err := filepath.WalkDir(r.dir, func(_ string, f fs.DirEntry, err error) error {
		if err != nil || f.IsDir() {
			return err
		}
		info, err := f.Info()
		if err == nil {
			n += info.Size()
		}
		return err
	}); err != nil {
		r.t.Fatal(err)
	}
	return n
}

// noise are so many MiB that nothing packs.
func (r *rig) noise(mib int) string {
	r.t.Helper()
	b := make([]byte, mib*3<<18)
	if _, err := rand.Read(b); err != nil {
		r.t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(b)
}

// What a source pushes next to its intents, heads that are frozen too, piles up in its
// mirror to a bound only. Its copy stays in force.
func TestKeeper_AMirrorIsBounded(t *testing.T) {
	r := newRig(t, nil)
	r.source("own", "vision")
	for i := range 4 {
		r.push("own", files{"intents/vision/a.yaml": fmt.Sprintf("a: %d\n", i), "big": r.noise(40)}, false)
		r.round()
		if st, n := r.of("own"), r.onDisk(); st.Frozen != "" || n > maxMirror+maxReceived || n < int64(i+1)*40<<20 {
			t.Fatalf("after %d pushes of 40 MiB the mirror has %d MiB, frozen for %q", i+1, n>>20, st.Frozen)
		}
		if got, want := r.room.used[r.mirrorOf(&r.policy.Sources[0])], r.onDisk(); got != want {
			t.Errorf("the mirror counts %d bytes, and has %d", got, want)
		}
	}
	r.round()
	if n := r.onDisk(); n > maxReceived {
		t.Errorf("a mirror of 160 MiB is kept: it has %d MiB, want those of one fetch at the most", n>>20)
	}
	if got := r.copied("own"); !maps.Equal(got, files{"intents/vision/a.yaml": "a: 3\n"}) {
		t.Errorf("copied %q, want what was read last", got)
	}
}

// Files that are too large to be an intent are not sent by servers that can leave them out:
// they take no room, and one where an intent should be is named.
func TestKeeper_LargeFilesAreLeftOut(t *testing.T) {
	r := newRig(t, nil)
	r.source("own", "vision")
	r.git("own.git", "config", "uploadpack.allowFilter", "true")
	limit := strings.Repeat("#", v1alpha1.MaxSourceFile-1) + "\n"
	want := files{"intents/vision/a.yaml": "a: 1\n", "intents/vision/limit.yaml": limit}
	r.push("own", files{"data/weights": r.noise(20), "intents/vision/a.yaml": "a: 1\n", "intents/vision/limit.yaml": limit}, false)
	r.round()
	if got := r.copied("own"); r.of("own").Frozen != "" || !maps.Equal(got, want) {
		t.Fatalf("copied %d files, frozen for %q", len(got), r.of("own").Frozen)
	}
	r.git("own.work", "mv", "data/weights", "moved")
	r.push("own", files{"data/more": r.noise(20), "intents/vision/large.yaml": limit + "#\n"}, false)
	r.round()
	if st := r.of("own"); !strings.Contains(st.Frozen, "intents/vision/large.yaml is larger than 1024 KiB") {
		t.Errorf("frozen for %q, want the file that is too large", st.Frozen)
	}
	r.push("own", files{"intents/vision/large.yaml": "", "intents/vision/a.yaml": "a: 2\n"}, false)
	r.round()
	want["intents/vision/a.yaml"] = "a: 2\n"
	if got := r.copied("own"); r.of("own").Frozen != "" || !maps.Equal(got, want) {
		t.Errorf("without it: copied %d files, frozen for %q", len(got), r.of("own").Frozen)
	}
	if n := r.onDisk(); n > 4<<20 {
		t.Errorf("the mirror has %d MiB of what nobody reads", n>>20)
	}
	fresh := r.another(nil)
	fresh.push("own", files{"intents/vision/a.yaml": "a: 3\n"}, false)
	fresh.round()
	if st := fresh.of("own"); st.Frozen != "" || fresh.copied("own")["intents/vision/a.yaml"] != "a: 3\n" {
		t.Errorf("a replica that has nothing yet: %+v", st)
	}
}

// All mirrors have one room: what a source takes beyond its part freezes it alone, by name,
// and others have theirs.
func TestKeeper_MirrorsShareADisk(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Disk = 24 << 20 })
	for _, name := range []string{"greedy", "fine"} {
		r.source(name, "vision")
		r.push(name, files{"intents/vision/" + name + ".yaml": "a: 1\n"}, true)
	}
	r.round()
	r.push("greedy", files{"intents/vision/greedy.yaml": "a: 2\n", "big": r.noise(30)}, false)
	r.push("fine", files{"intents/vision/fine.yaml": "a: 2\n", "big": r.noise(5)}, false)
	r.round()
	for _, want := range []string{"the disk has no room for more of it", "6 MiB are its own part", "24 MiB together (--source-disk)"} {
		if st := r.of("greedy"); !strings.Contains(st.Frozen, want) {
			t.Errorf("frozen for %q, want %q", st.Frozen, want)
		}
	}
	if got := r.copied("greedy"); !maps.Equal(got, files{"intents/vision/greedy.yaml": "a: 1\n"}) {
		t.Errorf("copied %q of what there was no room for", got)
	}
	if got := r.copied("fine"); r.of("fine").Frozen != "" || !maps.Equal(got, files{"intents/vision/fine.yaml": "a: 2\n"}) {
		t.Errorf("the other source: copied %q, frozen for %q", got, r.of("fine").Frozen)
	}
	if n := r.onDisk(); n > 24<<20 {
		t.Errorf("the mirrors have %d MiB, want 24 at the most", n>>20)
	}
	operator := r.another(func(o *Options) { o.Dir, o.Disk = r.opts.Dir, 0 })
	sum := int64(0)
	for _, n := range operator.room.used {
		sum += n
	}
	if want := r.onDisk(); sum != want {
		t.Errorf("a process that starts counts %d bytes of the %d that there are", sum, want)
	}
	operator.round()
	if st := operator.of("greedy"); st.Frozen != "" || operator.copied("greedy")["intents/vision/greedy.yaml"] != "a: 2\n" {
		t.Errorf("with more room: %+v", st)
	}
}

// TestRoom: each source has its part whatever others take, and the rest has who comes first.
func TestRoom(t *testing.T) {
	r := room{limit: 100, sources: 5, used: map[string]int64{}} // a part is 10
	grow := func(dir string, n int64, fits bool) {
		t.Helper()
		had := r.used[dir]
		if err := r.grow(dir, n); (err == nil) != fits || !fits && r.used[dir] != had {
			t.Fatalf("%s grows by %d: %v, and has %d; want that it fits: %t", dir, n, err, r.used[dir], fits)
		}
	}
	grow("a", 60, true)
	grow("a", 1, false)
	grow("b", 11, false)
	for _, dir := range []string{"b", "c", "d", "e"} {
		grow(dir, 10, true)
		grow(dir, 1, false)
	}
	if sum := r.taken(); sum != 100 {
		t.Errorf("taken %d of 100", sum)
	}
	if !r.tight("a") || r.tight("b") {
		t.Errorf("what takes more than its part is to go: %t, what does not: %t", r.tight("a"), r.tight("b"))
	}
	r.set("a", 0)
	if _, has := r.used["a"]; has || r.tight("b") {
		t.Error("a mirror that is gone takes room")
	}
	grow("b", 1, true)
	r.share(1)
	grow("b", 39, true)
	grow("b", 50, true)
	grow("b", 1, false)

	// A writer stops where the room ends.
	r = room{limit: 100, sources: 1, used: map[string]int64{}}
	var to bytes.Buffer
	w := r.writer("a", &to)
	for i := range 3 {
		n, err := w.Write(make([]byte, 40))
		if fits := i < 2; (err == nil) != fits || fits && n != 40 {
			t.Errorf("write %d of 40 bytes into a room of 100: %d, %v", i+1, n, err)
		}
	}
	if to.Len() != 80 {
		t.Errorf("%d bytes written, want 80", to.Len())
	}
}
