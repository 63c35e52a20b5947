//go:build e2e && full

package enforce

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/test/env/rig"
	"github.com/fleetbroker/fleetbroker/test/env/rigtest"
)

// traceOf is the trace of the commit that placed a contract, "" before it is there.
func (f *fleet) traceOf(contract string) string {
	f.t.Helper()
	out, err := f.Platform.Git(f.ctx, "-C", f.Git.RepoDir(rig.Repo), "log", "--format=%(trailers:key=Trace,valueonly)", "--grep", "^Contract: "+contract+" - -> ", rig.Ledger)
	if err != nil {
		f.t.Fatal(err)
	}
	id, _, _ := strings.Cut(strings.TrimSpace(out), " ")
	return id
}

// One trace leads from the round that places a contract, by its push, the apply in the
// consumer and the answer of the provider's agent, to the contract being Active, though
// the daemon was started anew in between.
func TestTrace(t *testing.T) {
	got := rigtest.NewSpans(t)
	f := start(t, func(o *rig.Options) {
		o.Env = append(o.Env, got.Env()...)
	})
	if err := f.agents["paris"].Pause(); err != nil { // nobody grants
		t.Fatal(err)
	}
	f.Put("vision", "train", intent("train", 4))
	name := f.Contract("vision", "train", "Reserved", "Peering")
	trace := f.traceOf(name)
	if len(trace) != 32 {
		t.Fatalf("the commit that placed %s has the trace %q", name, trace)
	}
	placing := []string{"fleetbroker: round", "fleetbroker: plan", "fleetbroker: commit", "fleetbroker: push"}
	f.Eventually("the round and the apply are in it", func() error { return got.Has(trace, append(placing, "fleetbroker: apply")...) })
	if err := f.daemon.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := f.daemon.Restart(f.ctx); err != nil {
		t.Fatal(err)
	}
	if err := f.agents["paris"].Resume(); err != nil {
		t.Fatal(err)
	}
	f.ready()
	f.Contract("vision", "train", "Active")
	f.Eventually("the provider's agent and the other life of the daemon go on in it", func() error {
		return got.Has(trace, "fleet-agent: answer slice", "fleetbroker: contract active")
	})

	t.Run("a webhook begins one", func(t *testing.T) {
		for i := range 5 { // a poll may come before the webhook
			other := fmt.Sprintf("other-%d", i)
			f.Put("vision", other, intent(other, 1))
			trace := f.traceOf(f.Contract("vision", other, "Reserved", "Peering", "Active"))
			f.Eventually("its round is sent", func() error { return got.Has(trace, placing...) })
			if got.Has(trace, "fleetbroker: webhook") == nil {
				return
			}
		}
		t.Errorf("no trace begins with a webhook: %v", got)
	})
	t.Run("log and metrics name traces", func(t *testing.T) {
		log, err := os.ReadFile(f.daemon.LogFile())
		if err != nil || !strings.Contains(string(log), "msg=committed") || !strings.Contains(string(log), "trace=") {
			t.Errorf("the log names no trace (%v)", err)
		}
		log, err = os.ReadFile(f.agents["paris"].LogFile())
		if line := regexp.MustCompile(`msg="slice answered" .*slice=` + name + ` .*trace=` + trace); err != nil || !line.Match(log) {
			t.Errorf("the agent's log names no trace of the slice that it answered (%v):\n%s", err, log)
		}
		q, err := http.NewRequestWithContext(f.ctx, http.MethodGet, "http://"+f.daemon.Operators+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
		res, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{`fleetbroker_time_to_active_seconds_bucket`, `# {trace_id="` + trace + `"}`, `fleetbroker_trace_spans_total{result="sent"}`} {
			if !strings.Contains(string(text), want) {
				t.Errorf("metrics have no %s", want)
			}
		}
	})
	f.Sound()
}
