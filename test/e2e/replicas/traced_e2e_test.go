//go:build e2e

package replicas

import (
	"crypto/tls"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	public "github.com/fleetbroker/fleetbroker/schemas/client"
	"github.com/fleetbroker/fleetbroker/schemas/v1alpha1"
	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/rig"
	"github.com/fleetbroker/fleetbroker/test/env/rigtest"
)

// aGPU is what the tests reserve.
var aGPU = v1alpha1.ReservationRequest{RequestedResources: &v1alpha1.Quantities{CPU: "4", Memory: "16Gi", GPU: "1"}}

// client asks one replica for reservations, as a cluster.
func (h *hub) client(cluster string, r *replica) *public.Client {
	h.t.Helper()
	files, err := h.rig.Files(cluster)
	if err != nil {
		h.t.Fatal(err)
	}
	m, err := files.Load()
	if err != nil {
		h.t.Fatal(err)
	}
	c, err := public.New(public.Options{URL: "https://" + r.Agents, TLS: &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: m.Authorities, Certificates: []tls.Certificate{m.Pair}, ServerName: "localhost"}})
	if err != nil {
		h.t.Fatal(err)
	}
	return c
}

// A reservation that a replica takes which does not decide is one trace: from its request
// there by the round, commit and push of the one that decides, whose commit names it, as does
// the answer that the client gets.
func TestOneTraceOverReplicas(t *testing.T) {
	t.Parallel() // most of it is waiting
	got := rigtest.NewSpans(t)
	ctx, h := newHubOf(t, rig.Options{Inputs: asking, Env: got.Env()}, 2)
	h.awaitStore(ctx, h.all...)
	decides := h.decider(ctx, nil)
	other := h.all[0]
	if other == decides {
		other = h.all[1]
	}
	c := h.client("rome", other)
	var answer *v1alpha1.Reservation
	var err error
	h.await(ctx, "a reservation by the replica that does not decide", patience, func() error {
		answer, err = c.Reserve(ctx, "one", aGPU)
		return err
	})
	parts := strings.Split(answer.Trace, "-")
	if len(parts) != 4 || len(parts[1]) != 32 {
		t.Fatalf("the answer's trace is %q", answer.Trace)
	}
	trailer, err := env.Git(ctx, h.rig.Git.RepoDir(rig.Repo), "log", "--format=%(trailers:key=Trace,valueonly)", "--grep", "^Contract: "+answer.Contract+" - -> ", rig.Ledger)
	if err != nil {
		t.Fatal(err)
	}
	trace, _, _ := strings.Cut(strings.TrimSpace(trailer), " ")
	h.await(ctx, "one trace of both replicas", 20*time.Second, func() error {
		if err := got.Has(trace, "fleetbroker: reserve", "fleetbroker: reserve for a replica", "fleetbroker: round", "fleetbroker: commit", "fleetbroker: push"); err != nil {
			return err
		}
		if both := got.Processes(trace); len(both) != 2 {
			return fmt.Errorf("trace %s is of %q: %s", trace, both, got)
		}
		return nil
	})
	log, err := os.ReadFile(decides.LogFile())
	if err != nil || !strings.Contains(string(log), "trace="+trace) {
		t.Errorf("the log of the one that decides does not name trace %s (%v)", trace, err)
	}
	if parts[1] != trace {
		t.Errorf("the answer names trace %s, and the commit %s", parts[1], trace)
	}
}
