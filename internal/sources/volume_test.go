package sources

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/fleet/sourced"
)

// large are eight files of a MiB less a little, each time others.
func (r *rig) large() files {
	r.t.Helper()
	out := files{}
	for i := range 8 {
		b := make([]byte, 740<<10)
		if _, err := rand.Read(b); err != nil {
			r.t.Fatal(err)
		}
		out[fmt.Sprintf("intents/vision/f%d.yaml", i)] = "# " + base64.StdEncoding.EncodeToString(b) + "\n"
	}
	return out
}

// kept adds the objects of a source's copy, by their sizes, to what the ledger's history has.
func (r *rig) kept(name string, into map[tree.Hash]int64) {
	r.t.Helper()
	sub, err := r.ledger.Sub(sourced.Dir(name))
	if err == nil {
		err = sub.Walk(func(_ string, e tree.Entry) error {
			b, err := sub.Store.File(e.Hash, 0)
			into[e.Hash] = int64(len(b))
			return err
		})
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// A source that changes all it has with each read puts 64 MiB a day into the ledger's
// history and no more. It is frozen by name, alone, until there is room again, whichever
// replica reads it, or an operator takes it.
func TestKeeper_VolumeOfCopies(t *testing.T) {
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	r := newRig(t, func(o *Options) { o.Now = func() time.Time { return at } })
	r.source("own", "vision")
	r.source("fine", "vision")
	history := map[tree.Hash]int64{}
	var head tree.Hash
	reads := 0
	for ; reads < 20 && (reads == 0 || r.of("own").Frozen == ""); reads++ {
		head = r.push("own", r.large(), false)
		r.push("fine", files{"intents/vision/b.yaml": fmt.Sprintf("b: %d\n", reads)}, false)
		r.round()
		r.kept("own", history)
		at = at.Add(30 * time.Second)
	}
	sum := int64(0)
	for _, n := range history {
		sum += n
	}
	if sum > v1alpha1.MaxSourceVolume || sum < v1alpha1.MaxSourceVolume*3/4 {
		t.Fatalf("after %d reads the ledger's history has %d MiB of one source, want 64 at the most", reads, sum>>20)
	}
	st := r.of("own")
	for _, want := range []string{"more than 64 MiB a day", "fleetbroker accept --source own=" + head.String(), " by itself"} {
		if !strings.Contains(st.Frozen, want) {
			t.Errorf("frozen for %q, want %q", st.Frozen, want)
		}
	}
	if got := r.copied("fine")["intents/vision/b.yaml"]; got != fmt.Sprintf("b: %d\n", reads-1) || r.of("fine").Frozen != "" {
		t.Errorf("the other source: copied %q, %+v", got, r.of("fine"))
	}
	was := r.ledger.Root

	// The next look says the same, and a process that has just started does.
	at = at.Add(30 * time.Second)
	r.round()
	fresh := r.another(func(o *Options) { o.Dir = r.opts.Dir })
	fresh.round()
	if r.ledger.Root != was || fresh.ledger.Root != was || r.of("own").Frozen != st.Frozen || fresh.of("own").Frozen != st.Frozen {
		t.Errorf("later frozen for\n%s\nand by another process for\n%s\nwant\n%s", r.of("own").Frozen, fresh.of("own").Frozen, st.Frozen)
	}

	// An operator takes it at once; what it costs counts.
	operator := r.another(func(o *Options) { o.Dir, o.Accept = r.opts.Dir, map[string]tree.Hash{"own": head} })
	operator.round()
	if c := operator.record("own"); c.Commit != head.String() || c.Volume != v1alpha1.MaxSourceVolume {
		t.Errorf("accepted: copied %s with a volume of %d, frozen for %q", c.Commit, c.Volume, operator.of("own").Frozen)
	}

	// It goes on by itself as soon as it said.
	_, text, _ := strings.Cut(st.Frozen, "is made after ")
	text, _, _ = strings.Cut(text, " ")
	until, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	if wait := until.Sub(at); wait < time.Minute || wait > 4*time.Hour {
		t.Errorf("it waits %s for 8 MiB, want an eighth of a day at the most", wait)
	}
	at = until.Add(-2 * time.Minute)
	r.round()
	if r.ledger.Root != was {
		t.Error("copied before there was room")
	}
	at = until
	r.round()
	if r.of("own").Frozen != "" || r.record("own").Commit != head.String() {
		t.Errorf("after %s: copied %s, frozen for %q", until, r.record("own").Commit, r.of("own").Frozen)
	}
}

// What a source changes in peace is far from the bound, and what it leaves as it was costs
// nothing.
func TestKeeper_VolumeCountsWhatChanged(t *testing.T) {
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	r := newRig(t, func(o *Options) { o.Now = func() time.Time { return at } })
	r.source("own", "vision")
	list := r.large()
	r.push("own", list, false)
	r.round()
	first := r.record("own").Volume
	want := int64(0)
	for _, p := range slices.Collect(maps.Keys(list)) {
		want += int64(len(list[p]))
	}
	if first < want || first > want+perCopy+8<<10 {
		t.Errorf("the first copy of %d bytes has a volume of %d", want, first)
	}
	r.push("own", files{"intents/vision/a.yaml": "a: 1\n"}, false)
	r.round()
	if grown := r.record("own").Volume - first; grown < perCopy || grown > perCopy+8<<10 {
		t.Errorf("a small change adds %d bytes", grown)
	}
	before := r.record("own").Volume
	at = at.Add(time.Hour)
	r.push("own", files{"intents/vision/a.yaml": "a: 2\n"}, false)
	r.round()
	if less := before - r.record("own").Volume; less < v1alpha1.MaxSourceVolume/24-perCopy-8<<10 || less > v1alpha1.MaxSourceVolume/24 {
		t.Errorf("an hour takes %d bytes off, want a 24th of %d", less, v1alpha1.MaxSourceVolume)
	}
}
