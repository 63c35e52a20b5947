//go:build e2e

package hostile

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestDaemon_StopsWhateverItComputes: a plan of minutes, because the fleet allows one; the
// daemon ends within seconds of SIGTERM. Nothing of the plan is written, and nobody's file is
// suspected of having ended it.
func TestDaemon_StopsWhateverItComputes(t *testing.T) {
	dir, costly := t.TempDir(), map[string]string{}
	for _, in := range Costly() {
		if in.Name == "split-hundred-parts-32-ways" {
			costly = in.Files
		}
	}
	costly["fleet.yaml"] = Fleet()["fleet.yaml"] + "  limits: {work: 1000000000000000}\n"
	plan := costly["intents/vision/a.yaml"]
	delete(costly, "intents/vision/a.yaml")
	d := startDaemonWith(t, dir, costly)
	d.decides("the start")
	ledger := git(t, d.repo, "rev-parse", "ledger")
	in := filepath.Join(dir, "inputs")
	put(t, in, map[string]string{"intents/vision/a.yaml": plan})
	for _, args := range [][]string{{"add", "-A"}, {"commit", "-q", "-m", "a plan of minutes"}, {"push", "-q", d.repo, "main"}} {
		git(t, in, args...)
	}
	d.push()
	notes := filepath.Join(dir, "state", "reading.json")
	d.until("the plan is being made", func() (bool, string) {
		text, err := os.ReadFile(notes)
		return bytes.Contains(text, []byte(`"open":{"plan"`)), fmt.Sprint(string(text), err)
	})
	begun, _ := d.used()
	told := time.Now()
	if err := syscall.Kill(d.PID(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case <-d.Done():
	case <-time.After(wall):
		t.Fatalf("it still runs %s after SIGTERM", wall)
	}
	took, cpu := time.Since(told), d.ProcessorTime()-begun
	t.Logf("it ended %s after SIGTERM, which took %s of processor time", took, cpu)
	if cpu > maxCPU {
		t.Errorf("it went on for %s of processor time, want at most %s", cpu, maxCPU)
	}
	log, err := os.ReadFile(d.LogFile())
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(log), "left unfinished") {
		t.Error("the log does not say that something was left: was the plan over before?")
	}
	if text, err := os.ReadFile(notes); err != nil || bytes.Contains(text, []byte(`"open"`)) {
		t.Errorf("the notes suspect somebody: %s, %v", text, err)
	}
	if now := git(t, d.repo, "rev-parse", "ledger"); now != ledger {
		t.Errorf("the ledger moved from %s to %s", ledger, now)
	}
}

// TestDaemon_RefusedReservationsCostNothing: a cluster that goes on asking after its tenant
// has as many intents as are read is refused each time with a reason, nothing is committed,
// and its tenant's files are decided as before.
func TestDaemon_RefusedReservationsCostNothing(t *testing.T) {
	d := startDaemonWith(t, t.TempDir(), map[string]string{"fleet.yaml": Fleet()["fleet.yaml"] + "  limits: {intents: 3}\n"})
	d.decides("the start") // vision's second intent
	d.decides("the third")
	ledger := git(t, d.repo, "rev-parse", "ledger")
	d.bounded("a hundred reservations too many", func() {
		for i := range 100 {
			status, body, err := d.send(Request{
				As: "rome", Method: "POST", Path: reserve, Header: []string{"Idempotency-Key", fmt.Sprintf("more-%d", i)},
				Body: []byte(`{"spec":{"resources":{"cpu":"1","memory":"1Gi","pods":"1","gpu":1},"offload":{"namespaces":[{"name":"vision","create":true}]}}}`),
			})
			if err != nil || status < http.StatusBadRequest || status == http.StatusServiceUnavailable {
				t.Fatalf("request %d is answered %d %s, %v", i, status, body, err)
			}
			reason(t, fmt.Sprintf("request %d", i), body)
		}
	})
	if n := git(t, d.repo, "rev-list", "--count", ledger+"..ledger"); n != "0" {
		t.Errorf("%s commits of a hundred refused requests", n)
	}
}
