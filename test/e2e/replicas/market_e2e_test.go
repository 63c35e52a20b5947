//go:build e2e

package replicas

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetbroker/fleetbroker/internal/agent/transport"
	"github.com/fleetbroker/fleetbroker/internal/api/marketcrd"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/market/store"
	"github.com/fleetbroker/fleetbroker/test/env/envtest"
	"github.com/fleetbroker/fleetbroker/test/env/rigtest"
)

// providers of the test, and how often each reports.
const (
	providers = 12
	interval  = 5 * time.Second
	silence   = 25 * time.Second
)

func provider(i int) string { return fmt.Sprintf("p%02d", i) }

// fleetOf is a fleet of that many providers.
func fleetOf(n int) map[string]string {
	files := map[string]string{}
	for i := range n {
		files["clusters/"+provider(i)+".yaml"] = "apiVersion: fleetbroker.io/v1alpha1\nkind: Cluster\nmetadata: {name: " + provider(i) + "}\n" +
			"spec: {roles: [provider], endpoint: \"https://p.example.org:6443\", defaultPrice: {currency: EUR, perHour: {cpu: \"0.02\", memoryGi: \"0.003\", gpu: \"2.80\"}}}\n"
	}
	return files
}

// agent reports as an agent does, to whomever the balancer chooses.
type agent struct {
	hub   *hub
	name  string
	model string // of its GPUs

	mu         sync.Mutex
	gpus       int64
	generation wire.Generation
	known      bool
	acked      int64 // the GPUs that were acknowledged last
	fails      int
	line       transport.Transport
}

func (h *hub) agent(name string) *agent {
	return &agent{hub: h, name: name, model: "nvidia-h100", gpus: 8, generation: wire.Generation{Epoch: uint64(time.Now().UnixNano()), N: 1}, line: h.line(name)} //nolint:gosec // after 1970
}

// run reports until the context ends.
func (a *agent) run(ctx context.Context) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		a.report(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// report reports once; what failed is tried again a few times, on the connection that there
// is as long as it is kept: a replica that is of no use closes it.
func (a *agent) report(ctx context.Context) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for range 10 {
		var body []byte
		if !a.known {
			body = a.list()
		}
		err := a.line.Put(ctx, a.generation, body, 0)
		if err == nil {
			a.known, a.acked = true, a.gpus
			return
		}
		if ctx.Err() != nil {
			return
		}
		var stale *transport.StaleError
		var refusal *wire.Refusal
		switch {
		case errors.Is(err, transport.ErrUnknownBase):
			a.known = false
			continue
		case errors.As(err, &stale):
			a.generation, a.known = wire.Generation{Epoch: stale.Last.Epoch + 1, N: 1}, false
			continue
		case errors.As(err, &refusal) && refusal.Body.Reason == wire.ReasonPaced:
			return // heard, and to come again
		}
		a.fails++
		if refusal == nil {
			a.line.Close()
			a.line = a.hub.line(a.name)
		}
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// change makes the agent offer another number of GPUs from its next report on.
func (a *agent) change(gpus int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.gpus, a.known = gpus, false
	a.generation.N++
}

func (a *agent) list() []byte {
	text, err := json.Marshal(wire.FlavorReport{Flavors: []v1alpha1.Flavor{{
		TypeMeta: v1alpha1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindFlavor},
		Metadata: v1alpha1.Metadata{Name: "h100", Namespace: a.name},
		Spec: v1alpha1.FlavorSpec{
			Capacity: v1alpha1.Resources{v1alpha1.GPU: v1alpha1.AmountOf(a.gpus), v1alpha1.CPU: v1alpha1.AmountOf(256_000), v1alpha1.Memory: v1alpha1.AmountOf(1 << 41)},
			GPU:      &v1alpha1.FlavorGPU{Vendor: "nvidia", Model: a.model, UnitsPerGPU: 1, ResourceName: "nvidia.com/gpu"},
		},
	}}})
	if err != nil {
		a.hub.t.Fatal(err)
	}
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err = w.Write(text)
	if err := errors.Join(err, w.Close()); err != nil {
		a.hub.t.Fatal(err)
	}
	return out.Bytes()
}

// shown is what a replica's market has: GPUs by provider, with a mark of who is not heard.
func (h *hub) shown(ctx context.Context, r *replica) (string, error) {
	text, err := r.Market(ctx)
	if err != nil {
		return "", err
	}
	var out []string
	for doc := range strings.SplitSeq(text, "---\n") {
		var name, gpus, mark string
		for line := range strings.Lines(doc) {
			line = strings.TrimSpace(line)
			switch key, value, _ := strings.Cut(line, ": "); key {
			case "namespace":
				name = value
			case "gpu":
				gpus = strings.Trim(value, `"`)
			case "fleetbroker.io/state":
				mark = "(" + strings.Fields(strings.Trim(value, `"'`))[0] + ")"
			}
		}
		if name != "" {
			out = append(out, name+"="+gpus+mark)
		}
	}
	slices.Sort(out)
	return strings.Join(out, " "), nil
}

// agree waits until each of some replicas shows what the agents say.
func (h *hub) agree(ctx context.Context, what string, agents []*agent, who ...*replica) {
	h.t.Helper()
	var want []string
	for _, a := range agents {
		a.mu.Lock()
		want = append(want, fmt.Sprintf("%s=%d", a.name, a.gpus))
		a.mu.Unlock()
	}
	slices.Sort(want)
	last := ""
	deadline := time.Now().Add(patience)
	for _, r := range who {
		for {
			got, err := h.shown(ctx, r)
			if err == nil && got == strings.Join(want, " ") {
				break
			}
			if last = fmt.Sprintf("%s shows %s (%v), not %s", r.Name, got, err, strings.Join(want, " ")); time.Now().After(deadline) {
				h.t.Fatalf("%s: %s", what, last)
			}
			rest(ctx, 50*time.Millisecond)
		}
	}
}

// calm watches for a while that none of some replicas calls anybody silent.
func (h *hub) calm(ctx context.Context, what string, d time.Duration, who ...*replica) {
	h.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); rest(ctx, 500*time.Millisecond) {
		for _, r := range who {
			got, err := h.shown(ctx, r)
			if err != nil || strings.Contains(got, "(") || strings.Count(got, "=") != providers {
				h.t.Fatalf("%s: %s shows %s (%v)", what, r.Name, got, err)
			}
		}
	}
}

// Three replicas behind one address have one market, whatever happens to one of
// them, to the API server or to its objects.
func TestOneMarketBehindOneAddress(t *testing.T) {
	t.Parallel() // most of it is waiting
	ctx, h := newHub(t, fleetOf(providers), 3, "--agent-silence", silence.String())
	objects := h.objects()
	h.awaitStore(ctx, h.all...)
	agents := make([]*agent, providers)
	running, stop := context.WithCancel(ctx)
	var wait sync.WaitGroup
	defer wait.Wait()
	defer stop()
	for i := range agents {
		agents[i] = h.agent(provider(i))
		wait.Go(func() { agents[i].run(running) })
	}
	h.agree(ctx, "all have reported", agents, h.all...)
	for i, a := range agents {
		a.change(int64(16 + i))
		a.report(ctx)
	}
	h.agree(ctx, "all have more", agents, h.all...)
	h.calm(ctx, "nothing happens", silence+5*time.Second, h.all...)

	t.Log("a replica is killed, another one cut off from the API server")
	if err := h.all[0].Kill(); err != nil {
		t.Fatal(err)
	}
	h.all[1].api.Set(true)
	agents[3].change(4) // less is told at once
	agents[3].report(ctx)
	h.agree(ctx, "one has less", agents, h.all[2])
	envtest.Eventually(t, "it says so", func(ctx context.Context) bool { return h.storeTrouble(ctx, h.all[1]) != "" })
	h.calm(ctx, "the third goes on", silence+5*time.Second, h.all[2])
	if err := h.all[0].Restart(ctx); err != nil {
		t.Fatal(err)
	}
	h.all[1].api.Set(false)
	h.awaitStore(ctx, h.all...)
	h.agree(ctx, "all are back", agents, h.all...)

	t.Log("the API server restarts")
	if err := h.KillAPIServer(); err != nil {
		t.Fatal(err)
	}
	if err := h.StartAPIServer(ctx); err != nil {
		t.Fatal(err)
	}
	h.awaitStore(ctx, h.all...)
	h.agree(ctx, "the API server is back", agents, h.all...)
	h.calm(ctx, "after it", 5*time.Second, h.all...)

	t.Log("a replica starts while it cannot reach the fleet repo")
	if err := h.all[0].Kill(); err != nil {
		t.Fatal(err)
	}
	h.all[0].git.Set(true)
	if err := h.all[0].Restart(ctx); err != nil {
		t.Fatal(err)
	}
	h.calm(ctx, "one knows no fleet", silence+5*time.Second, h.all[1:]...)
	h.all[0].git.Set(false)
	h.awaitStore(ctx, h.all...)
	h.agree(ctx, "it has read the fleet", agents, h.all...)

	t.Log("somebody deletes the objects, and writes others")
	if err := objects.DeleteAllOf(ctx, &marketcrd.Advertisement{}, client.InNamespace(rigtest.HubNamespace)); err != nil {
		t.Fatal(err)
	}
	forged := &marketcrd.Advertisement{Spec: marketcrd.AdvertisementSpec{Generation: "1.1", Replica: "nobody", Digest: "0", Report: []byte("nonsense"), ReportedAt: metav1.Now()}}
	forged.Name, forged.Namespace = "nobody", rigtest.HubNamespace
	if err := objects.Create(ctx, forged); err != nil {
		t.Fatal(err)
	}
	h.calm(ctx, "they are gone", 5*time.Second, h.all...)
	agents[5].change(3)
	agents[5].report(ctx)
	h.agree(ctx, "one has less", agents, h.all...)
	h.foreign(ctx, objects, agents[4].name)
	h.agree(ctx, "another account's write is undone", agents, h.all...)
	for _, a := range agents {
		t.Logf("%s: %d reports had to be sent again", a.name, a.fails)
	}
	list := &marketcrd.AdvertisementList{}
	if err := objects.List(ctx, list, client.InNamespace(rigtest.HubNamespace)); err != nil || len(list.Items) == 0 {
		t.Errorf("advertisements: %d, %v", len(list.Items), err)
	}
}

// objects is a client of the hub's kinds.
func (h *hub) objects() client.Client {
	h.t.Helper()
	scheme := runtime.NewScheme()
	if err := marketcrd.AddToScheme(scheme); err != nil {
		h.t.Fatal(err)
	}
	c, err := client.New(h.Config, client.Options{Scheme: scheme})
	if err != nil {
		h.t.Fatal(err)
	}
	return c
}

// foreign writes into a provider's Advertisement as another account: every replica counts
// it, and the provider's next report writes the object again.
func (h *hub) foreign(ctx context.Context, objects client.Client, provider string) {
	h.t.Helper()
	ad := &marketcrd.Advertisement{}
	ad.Name, ad.Namespace = provider, rigtest.HubNamespace
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"example.org/note":"x"}}}`))
	if err := objects.Patch(ctx, ad, patch, client.FieldOwner("kubectl-annotate")); err != nil {
		h.t.Fatal(err)
	}
	h.await(ctx, "every replica to count the foreign writes", patience, func() error {
		for _, r := range h.all {
			switch n, err := h.metric(ctx, r, "fleetbroker_market_store_foreign_writes_total"); {
			case err != nil:
				return err
			case n < 1:
				return fmt.Errorf("%s counts %g", r.Name, n)
			}
		}
		return nil
	})
	h.await(ctx, "the object to be the daemon's again", patience, func() error {
		now := &marketcrd.Advertisement{}
		if err := objects.Get(ctx, client.ObjectKeyFromObject(ad), now); err != nil {
			return err
		}
		if len(now.Annotations) > 0 || len(store.Foreign(now.ManagedFields)) > 0 {
			return fmt.Errorf("annotations %v, managers %+v", now.Annotations, store.Foreign(now.ManagedFields))
		}
		return nil
	})
}

// metric is the value of a replica's metric without labels.
func (h *hub) metric(ctx context.Context, r *replica, name string) (float64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.Operators+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			return strconv.ParseFloat(value, 64)
		}
	}
	if err := lines.Err(); err != nil {
		return 0, err
	}
	return 0, fmt.Errorf("%s has no metric %s", r.Name, name)
}

// storeTrouble is what a replica's readiness says of the store.
func (h *hub) storeTrouble(ctx context.Context, r *replica) string {
	got, err := r.Readiness(ctx)
	if err != nil {
		return err.Error()
	}
	for _, c := range got.Checks {
		if c.Name == "market" && !c.OK {
			return c.Reason
		}
	}
	return ""
}

// awaitStore waits until replicas have the store, and have read the fleet.
func (h *hub) awaitStore(ctx context.Context, who ...*replica) {
	h.t.Helper()
	for _, r := range who {
		deadline := time.Now().Add(patience)
		for {
			why := h.storeTrouble(ctx, r)
			if why == "" {
				break
			}
			if time.Now().After(deadline) {
				h.t.Fatalf("%s: %s", r.Name, why)
			}
			rest(ctx, 50*time.Millisecond)
		}
	}
}
