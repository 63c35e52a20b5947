//go:build e2e

package agent

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	offloadingv1beta1 "github.com/liqotech/liqo/apis/offloading/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetbroker/fleetbroker/internal/agent"
	"github.com/fleetbroker/fleetbroker/internal/api/crd"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/market"
	"github.com/fleetbroker/fleetbroker/internal/market/store"
	"github.com/fleetbroker/fleetbroker/internal/pki"
	"github.com/fleetbroker/fleetbroker/internal/server"
	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/envtest"
)

// prompt is within which a change must have reached every broker.
const prompt = time.Second

// Here the agent runs on a real API server and reports over mutual TLS to the
// real agents' port with the real market behind it.

// broker is a market behind an agents' port.
type broker struct {
	t       *testing.T
	address string
	certs   string

	revocations server.Revocations

	mu     sync.Mutex
	market *market.Market
	stop   func()
}

// fleet is an authority, brokers and one cluster with its agent.
type fleet struct {
	t       *testing.T
	ca      *pki.Authority
	cluster *env.Cluster
	client  client.Client
	brokers []*broker
	// certs is the agent's directory.
	certs string
}

func quantities(pairs ...string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		out[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return out
}

// newFleet starts two brokers and a cluster, and then the cluster's agent.
func newFleet(t *testing.T, prepare func(*fleet)) *fleet {
	t.Helper()
	f := newFleetWithoutLiqo(t)
	if err := env.InstallLiqoCRDs(t.Context(), f.cluster.Config); err != nil {
		t.Fatal(err)
	}
	prepare(f)
	f.runAgent()
	return f
}

// newFleetWithoutLiqo starts all but the agent.
func newFleetWithoutLiqo(t *testing.T) *fleet {
	t.Helper()
	ca, err := pki.InitCA(filepath.Join(t.TempDir(), "ca"), "acme", time.Now)
	if err != nil {
		t.Fatal(err)
	}
	f := &fleet{t: t, ca: ca, cluster: envtest.Cluster(t, env.ClusterOptions{Name: "paris"})}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, authv1beta1.AddToScheme, offloadingv1beta1.AddToScheme, crd.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	if f.client, err = client.New(f.cluster.Config, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"broker-a", "broker-b"} {
		b := &broker{t: t, certs: f.issue(pki.Request{Name: name, Role: pki.Server, Hosts: []string{"127.0.0.1"}}), address: "127.0.0.1:0"}
		b.start()
		t.Cleanup(func() { b.stop() })
		f.brokers = append(f.brokers, b)
	}
	f.certs = f.issue(pki.Request{Name: "paris"})
	return f
}

func (f *fleet) issue(r pki.Request) string {
	f.t.Helper()
	bundle, err := f.ca.Issue(r)
	if err != nil {
		f.t.Fatal(err)
	}
	dir := filepath.Join(f.t.TempDir(), r.Name)
	if err := bundle.WriteDir(dir); err != nil {
		f.t.Fatal(err)
	}
	return dir
}

// start serves with an empty market, on the address it had before.
func (b *broker) start() {
	b.t.Helper()
	files, err := pki.OpenFiles(b.certs)
	if err != nil {
		b.t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	m := market.New(market.Options{})
	servers, err := server.Listen(context.Background(), log, server.Port{
		Name: "agents", Address: b.address, TLS: server.AgentTLS(files, &b.revocations, log),
		Handler: server.NewAgents(server.Agents{Reports: &store.Memory{Market: m}, Market: m, Log: log, Revocations: &b.revocations}),
	})
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- servers.Run(ctx, time.Second) }()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.market, b.address = m, servers.Address("agents")
	b.stop = func() {
		cancel()
		if err := <-done; err != nil {
			b.t.Error(err)
		}
		b.stop = func() {}
	}
}

// runAgent runs the cluster's agent for as long as the test.
func (f *fleet) runAgent() {
	f.t.Helper()
	options := agent.Options{
		Cluster: "paris", Config: f.cluster.Config, CertDir: f.certs,
		Interval: 500 * time.Millisecond, MetricsAddress: "0", HealthAddress: "0",
		Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	for _, b := range f.brokers {
		options.Brokers = append(options.Brokers, "https://"+b.address)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- agent.Run(ctx, options) }()
	f.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			f.t.Error(err)
		}
	})
}

// offer is a flavor as the broker's market has it, nil when it is not offered.
func (b *broker) offer(name string) *v1alpha1.Flavor {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, flavors, _ := b.market.Offers(market.Query{})
	for i := range flavors {
		if flavors[i].Ref() == "paris/"+name {
			return &flavors[i]
		}
	}
	return nil
}

// await waits until every broker says what is expected.
func (f *fleet) await(what string, expected func(*broker) bool) {
	f.t.Helper()
	for _, b := range f.brokers {
		envtest.Eventually(f.t, what, func(context.Context) bool { return expected(b) })
	}
}

// prompt changes something and waits for every broker to know, which must take
// less than a second.
func (f *fleet) prompt(what string, change func() error, expected func(*broker) bool) {
	f.t.Helper()
	if err := change(); err != nil {
		f.t.Fatal(err)
	}
	changed := time.Now()
	f.await(what, expected)
	took := time.Since(changed)
	f.t.Logf("%s: %s", what, took.Round(time.Millisecond))
	if took > prompt {
		f.t.Errorf("%s took %s, more than %s", what, took, prompt)
	}
}

// label sets or removes (with "") a node's pool.
func (f *fleet) label(node, pool string) func() error {
	return func() error {
		value := `"` + pool + `"`
		if pool == "" {
			value = "null"
		}
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}
		return f.client.Patch(f.t.Context(), n, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"fleetbroker.io/pool":`+value+`}}}`)))
	}
}

func (f *fleet) node(name, pool string) {
	f.t.Helper()
	labels := map[string]string{}
	if pool != "" {
		labels["fleetbroker.io/pool"] = pool
	}
	if _, err := env.CreateGPUNode(f.t.Context(), f.cluster.Config, env.GPUNode{Name: name, GPUs: 8, Labels: labels}); err != nil {
		f.t.Fatal(err)
	}
}

func has(figures func(*v1alpha1.Flavor) v1alpha1.Resources, name string, want int64) func(*broker) bool {
	return func(b *broker) bool {
		o := b.offer("h100-pool")
		return o != nil && figures(o)[name].Int64() == want
	}
}

func capacity(f *v1alpha1.Flavor) v1alpha1.Resources { return f.Spec.Capacity }
func used(f *v1alpha1.Flavor) v1alpha1.Resources     { return f.Spec.Used }

func held(contract string) func(*v1alpha1.Flavor) v1alpha1.Resources {
	return func(f *v1alpha1.Flavor) v1alpha1.Resources { return f.Spec.Held[contract] }
}

func TestChangesReachEveryBrokerPromptly(t *testing.T) {
	f := newFleet(t, func(f *fleet) { f.node("n1", "h100-pool") })
	f.await("the first report", has(capacity, "gpu", 8))
	o := f.brokers[0].offer("h100-pool")
	if g := o.Spec.GPU; g.Model != "nvidia-h100" || g.Memory.Int64() != 80<<30 || g.Architecture != "hopper" {
		t.Errorf("the market knows %+v", g)
	}

	f.prompt("a node joins", func() error { f.node("n2", "h100-pool"); return nil }, has(capacity, "gpu", 16))
	f.prompt("a pod is bound", func() error {
		_, err := env.RunPod(t.Context(), f.cluster.Config, "default", "own", "n1", quantities("cpu", "2", "nvidia.com/gpu", "3"))
		return err
	}, has(used, "gpu", 3))
	f.prompt("the pod ends", func() error {
		p := &corev1.Pod{}
		if err := f.client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "own"}, p); err != nil {
			return err
		}
		p.Status.Phase = corev1.PodSucceeded
		return f.client.Status().Update(t.Context(), p)
	}, has(used, "gpu", 0))
	f.prompt("a node is cordoned", func() error {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n2"}}
		return f.client.Patch(t.Context(), n, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"unschedulable":true}}`)))
	}, has(capacity, "gpu", 8))
	f.prompt("the pool is unlabelled", func() error {
		if err := f.label("n2", "")(); err != nil {
			return err
		}
		return f.label("n1", "")()
	}, func(b *broker) bool { return b.offer("h100-pool") == nil })
	f.prompt("it is labelled again", f.label("n1", "h100-pool"), has(capacity, "gpu", 8))
}

func TestWhatIsGrantedIsHeldUntilItIsGone(t *testing.T) {
	const slice = "vision-train-0-k3f9q2ab"
	f := newFleet(t, func(f *fleet) { f.node("n1", "h100-pool") })
	f.await("the first report", has(capacity, "gpu", 8))
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "liqo-tenant-rome"}}
	if err := f.client.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	quota := &offloadingv1beta1.Quota{
		ObjectMeta: metav1.ObjectMeta{Name: slice + "-ca3704aa0b06", Namespace: ns.Name},
		Spec: offloadingv1beta1.QuotaSpec{
			User: slice + "-ca3704aa0b06", LimitsEnforcement: offloadingv1beta1.NoLimitsEnforcement,
			Resources: quantities("cpu", "16", "memory", "128Gi", "pods", "50", "nvidia.com/gpu", "4"),
		},
	}
	f.prompt("a slice is granted", func() error { return f.client.Create(t.Context(), quota) }, has(held(slice), "gpu", 4))

	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "theirs", Namespace: "default", Labels: map[string]string{
			"offloading.liqo.io/origin": "rome", "offloading.liqo.io/nodename": slice,
			"liqo.io/managed-by": "shadowpod", "liqo.io/creator-user": slice + "-ca3704aa0b06",
		}},
		Spec: corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Name: "main", Image: "example.org/none", Resources: corev1.ResourceRequirements{
			Requests: quantities("cpu", "20", "nvidia.com/gpu", "1"), Limits: quantities("nvidia.com/gpu", "1"),
		}}}},
	}
	f.prompt("a pod of the slice runs", func() error { return f.client.Create(t.Context(), pod) }, has(held(slice), "cpu", 20000))
	if o := f.brokers[0].offer("h100-pool"); !o.Spec.Used[v1alpha1.CPU].IsZero() {
		t.Errorf("an offloaded pod counts as the provider's own: %v", o.Spec.Used.Canonical())
	}
	f.prompt("the pool is unlabelled", f.label("n1", ""), func(b *broker) bool {
		o := b.offer("h100-pool")
		return o != nil && o.Spec.Cordon && o.Spec.Held[slice][v1alpha1.GPU].Int64() == 4 && o.Spec.Capacity[v1alpha1.GPU].Int64() == 4
	})
	f.prompt("the quota goes", func() error { return f.client.Delete(t.Context(), quota) }, has(held(slice), "gpu", 1))
	now := int64(0)
	f.prompt("the pod goes", func() error {
		return f.client.Delete(t.Context(), pod, &client.DeleteOptions{GracePeriodSeconds: &now})
	}, func(b *broker) bool { return b.offer("h100-pool") == nil })
}

func TestABrokerThatRestartsIsToldEverythingAgain(t *testing.T) {
	f := newFleet(t, func(f *fleet) { f.node("n1", "h100-pool") })
	f.await("the first report", has(capacity, "gpu", 8))
	f.brokers[0].stop()
	f.prompt("the other hears a change", func() error { f.node("n2", "h100-pool"); return nil }, func(b *broker) bool {
		return b == f.brokers[0] || has(capacity, "gpu", 16)(b)
	})
	f.brokers[0].start()
	f.await("the report after the restart", has(capacity, "gpu", 16))
}

func TestARenewedCertificateIsUsedWithoutARestart(t *testing.T) {
	f := newFleet(t, func(f *fleet) { f.node("n1", "h100-pool") })
	f.await("the first report", has(capacity, "gpu", 8))
	revoke := func() {
		t.Helper()
		if _, err := f.ca.Revoke("paris"); err != nil {
			t.Fatal(err)
		}
		crl, err := f.ca.CRL()
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range f.brokers {
			if _, err := b.revocations.Set(crl, f.ca.CA(), time.Now()); err != nil {
				t.Fatal(err)
			}
		}
	}
	revoke()
	renewed, err := f.ca.Issue(pki.Request{Name: "paris"})
	if err != nil {
		t.Fatal(err)
	}
	f.node("n2", "h100-pool")
	for name, data := range map[string][]byte{pki.CertFile: renewed.Cert, pki.KeyFile: renewed.Key} {
		if err := os.WriteFile(filepath.Join(f.certs, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f.await("a report with the new certificate", has(capacity, "gpu", 16))
}

func TestAClusterOutOfSightSellsNothing(t *testing.T) {
	f := newFleet(t, func(f *fleet) { f.node("n1", "h100-pool") })
	cordoned := func(want bool) func(*broker) bool {
		return func(b *broker) bool {
			o := b.offer("h100-pool")
			return o != nil && o.Spec.Cordon == want
		}
	}
	f.await("the first report", cordoned(false))
	if err := f.cluster.Pause(); err != nil {
		t.Fatal(err)
	}
	f.await("the cordon", cordoned(true))
	if err := f.cluster.Resume(); err != nil {
		t.Fatal(err)
	}
	f.await("its end", cordoned(false))
}
