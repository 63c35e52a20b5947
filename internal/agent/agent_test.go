package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/pki"
)

func certificate(t *testing.T, r pki.Request) string {
	t.Helper()
	ca, err := pki.InitCA(filepath.Join(t.TempDir(), "ca"), "acme", time.Now)
	if err != nil {
		t.Fatal(err)
	}
	bundle, err := ca.Issue(r)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), r.Name)
	if err := bundle.WriteDir(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestWrongOptionsAreRefusedAtTheStart(t *testing.T) {
	good := func() Options {
		return Options{Cluster: "paris", Brokers: []string{"https://127.0.0.1:1"}, CertDir: certificate(t, pki.Request{Name: "paris"}), Interval: time.Second, Log: quiet}
	}
	if _, err := newAgent(good()); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		change func(*Options)
		want   string
	}{
		"no interval":          {func(o *Options) { o.Interval = 0 }, "interval"},
		"no broker":            {func(o *Options) { o.Brokers = nil }, "no broker"},
		"plain HTTP":           {func(o *Options) { o.Brokers = []string{"http://127.0.0.1:1"} }, "write https://host:port"},
		"no scheme":            {func(o *Options) { o.Brokers = []string{"127.0.0.1:1"} }, "write https://host:port"},
		"a password":           {func(o *Options) { o.Brokers = []string{"https://a:b@127.0.0.1:1"} }, "write https://host:port"},
		"twice":                {func(o *Options) { o.Brokers = append(o.Brokers, o.Brokers[0]) }, "named twice"},
		"no certificates":      {func(o *Options) { o.CertDir = t.TempDir() }, "pki issue"},
		"another's":            {func(o *Options) { o.Cluster = "lyon" }, "certificate is of paris"},
		"an operator's":        {func(o *Options) { o.CertDir = certificate(t, pki.Request{Name: "paris", Role: pki.Operator}) }, "(operator)"},
		"a key without a pair": {func(o *Options) { breakKey(t, o.CertDir) }, "load certificates"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := good()
			tc.change(&o)
			if _, err := newAgent(o); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want something of %q", err, tc.want)
			}
		})
	}
}

// Where the agent peers, it runs a cloud's program for the provider's credentials that is
// allowed, and no other.
func TestProvidersByAProgram(t *testing.T) {
	dir := t.TempDir()
	const kubeconfig = `{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}],
clusters: [{name: a, cluster: {server: "https://127.0.0.1:1"}}],
users: [{name: a, user: {exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: /plugins/cloud, args: [token]}}}]}`
	if err := os.WriteFile(filepath.Join(dir, "paris.kubeconfig"), []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	for program, want := range map[string]string{"/plugins/cloud": "", "/plugins/cloud token": "", "/plugins/cloud version": "are not allowed here", "/plugins/other": "is not allowed here"} {
		a, err := newAgent(Options{
			Cluster: "rome", Brokers: []string{"https://127.0.0.1:1"}, CertDir: certificate(t, pki.Request{Name: "rome"}), Interval: time.Second,
			KubeconfigsDir: dir, KubeconfigPrograms: []string{program}, Log: quiet,
		})
		if err != nil {
			t.Fatal(err)
		}
		config, err := a.providers.RESTConfig(t.Context(), &v1alpha1.Cluster{Metadata: v1alpha1.Metadata{Name: "paris"}})
		if want == "" && (err != nil || config.ExecProvider == nil) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", program, err, want)
		}
	}
}

func breakKey(t *testing.T, dir string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, pki.KeyFile), []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestReadiness(t *testing.T) {
	a := &agent{Options: Options{Cluster: "paris"}, board: &board{}}
	if err := a.ready(); err == nil {
		t.Error("ready before the cluster was read")
	}
	if _, err := a.board.post(nil, nil, 0); err != nil {
		t.Fatal(err)
	}
	a.observe("b", "failed")
	if err := a.ready(); err == nil {
		t.Error("ready before a broker has taken a report")
	}
	a.observe("b", "accepted")
	if err := a.ready(); err != nil {
		t.Error(err)
	}
}

func TestSlimPodsCountTheSame(t *testing.T) {
	full := pod("x", "a", "cpu=1 nvidia.com/gpu=1", initial("cpu=2", true), initial("cpu=4", false), overhead("cpu=100m"), offloaded("s-ca3704aa0b06", "s"))
	full.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "SECRET", Value: "x"}}
	full.Annotations = map[string]string{"large": "x"}
	out, err := slimPod(full)
	if err != nil {
		t.Fatal(err)
	}
	slim := out.(*corev1.Pod)
	if !requests(slim).Equal(requests(full)) || !isLive(slim) || !isOffloaded(slim) || sliceOf(slim, nil) != "s" {
		t.Errorf("the slim pod counts otherwise: %v", requests(slim).Canonical())
	}
	if slim.Annotations != nil || slim.Spec.Containers[0].Env != nil {
		t.Error("the slim pod is not slim")
	}
	if out, err := slimPod("another object"); out != "another object" || err != nil {
		t.Errorf("got %v, %v", out, err)
	}
}

func TestWhichUpdatesMatter(t *testing.T) {
	before := pod("x", "a", "cpu=1")
	cases := map[string]struct {
		after *corev1.Pod
		want  bool
	}{
		"nothing":    {pod("x", "a", "cpu=1"), false},
		"condition":  {pod("x", "a", "cpu=1", func(p *corev1.Pod) { p.Status.Message = "pulled" }), false},
		"bound":      {pod("x", "b", "cpu=1"), true},
		"ended":      {pod("x", "a", "cpu=1", phase(corev1.PodFailed)), true},
		"resized":    {pod("x", "a", "cpu=2"), true},
		"relabelled": {pod("x", "a", "cpu=1", offloaded("s", "s")), true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := matters(before, tc.after); got != tc.want {
				t.Errorf("matters: %v", got)
			}
		})
	}
	if !matters(node("a", ""), node("a", "")) {
		t.Error("an update of a node matters")
	}
}

// Metrics that can be reached from elsewhere ask for a token, by TLS.
func TestMetricsAreGuardedBeyondLoopback(t *testing.T) {
	for address, want := range map[string]bool{
		"0": false, "127.0.0.1:8080": false, "[::1]:8080": false,
		":8080": true, "0.0.0.0:8080": true, "[::]:8080": true, "10.0.0.7:8080": true, "paris.example.org:8080": true,
	} {
		o := metricsOptions(address)
		if o.BindAddress != address || o.SecureServing != want || (o.FilterProvider != nil) != want {
			t.Errorf("%s: served at %s, TLS %t, with a filter %t; want %t", address, o.BindAddress, o.SecureServing, o.FilterProvider != nil, want)
		}
	}
}
