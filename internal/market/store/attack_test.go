package store_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/marketcrd"
	"github.com/fleetbroker/fleetbroker/internal/api/model"
)

func packed(text string) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(text))
	_ = w.Close()
	return b.Bytes()
}

// forged is a Heartbeat of a replica that does not exist.
func forged(name string, beat int64, heard []byte) *marketcrd.Heartbeat {
	h := &marketcrd.Heartbeat{Spec: marketcrd.HeartbeatSpec{Life: "x", Beat: beat, Serving: true, Heard: heard}}
	h.Name = name
	return h
}

// Heartbeats of hundreds of replicas that do not exist keep no real one from being heard.
func TestForgedHeartbeats_CrowdNobodyOut(t *testing.T) {
	r := newReplicas(t, "a")
	a := r.all[0]
	beat := int64(1)
	flood := func() {
		for i := range 300 {
			r.objects.ForgeBeat(forged(fmt.Sprintf("forged-%03d", i), beat, nil))
		}
		beat++
	}
	flood()
	r.tick(1)
	r.start("b", "1") // as after an upgrade: its name is new
	r.tick(2)
	b := r.all[1]
	must(t, b.report("paris", 7, 1, flavors("paris", 8, 0)))
	for range 8 {
		r.tick(30)
		must(t, b.report("paris", 7, 1, nil))
	}
	if got := a.state("paris"); got != model.Fresh {
		t.Errorf("paris, which reports to b, is %s to a", got)
	}
}

// What forged Heartbeats say that their replicas heard takes bounded memory.
func TestForgedHeartbeats_TakeLittle(t *testing.T) {
	r := newReplicas(t, "a")
	a := r.all[0]
	var text strings.Builder
	for i := range 190_000 {
		fmt.Fprintf(&text, "%0120d 1.1 1\n", i)
	}
	heard := packed(text.String())
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range 4 {
		r.objects.ForgeBeat(forged(fmt.Sprintf("forged-%03d", i), 1, heard))
		r.tick(1)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if kept := (int64(after.HeapAlloc) - int64(before.HeapAlloc)) >> 20; kept > 130 {
		t.Errorf("4 Heartbeats keep %d MiB", kept)
	}
	if named := fmt.Sprint(a.store.Objects()); !strings.Contains(named, "those of all replicas take more than 128 MiB") {
		t.Errorf("named: %.300s", named)
	}
	b := r.start("b", "1")
	r.tick(2)
	must(t, b.report("paris", 7, 1, flavors("paris", 8, 0)))
	r.tick(25)
	r.live(a, "a", "b") // a real one is small
}
