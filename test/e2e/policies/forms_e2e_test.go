//go:build e2e

package policies

import (
	"bytes"
	"context"
	"flag"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/fleetbroker/fleetbroker/internal/admission/hook"
	"github.com/fleetbroker/fleetbroker/internal/agent"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/doctor"
	"github.com/fleetbroker/fleetbroker/internal/manifests"
	"github.com/fleetbroker/fleetbroker/internal/pki"
	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/envtest"
)

var full = flag.Bool("full", false, "also on the oldest servers that are worked with, which are built first")

const (
	fleetID = "f3k9q2abu7"
	// agentUser is the account of the agent's base, configuration what leads to its webhook.
	agentUser     = "system:serviceaccount:fleetbroker:fleet-agent"
	configuration = "fleetbroker-" + fleetID + "-intent-tolerations"
	template      = "../../../fleet-repo-template/install/agent"
	group         = "admissionregistration.k8s.io"
)

// withoutPolicies are arguments of an API server that serves no MutatingAdmissionPolicy.
func withoutPolicies() []string {
	const v1 = group + "/v1/mutatingadmissionpolic"
	return []string{"--disable-admission-plugins=MutatingAdmissionPolicy", "--runtime-config=" + v1 + "ies=false," + v1 + "ybindings=false"}
}

// The other forms of the rule that TestPolicies tries as v1: the same table of cases.
func TestForms(t *testing.T) {
	forms := map[string]struct {
		form    string
		options env.ClusterOptions
		old     bool
	}{
		"v1beta1":          {v1alpha1.AdmissionV1Beta1, env.ClusterOptions{APIServerArgs: []string{"--runtime-config=" + group + "/v1beta1=true"}}, false},
		"webhook":          {v1alpha1.AdmissionWebhook, env.ClusterOptions{APIServerArgs: withoutPolicies()}, false},
		"webhook, on 1.33": {v1alpha1.AdmissionWebhook, env.ClusterOptions{Kubernetes: "1.33"}, true},
		"webhook, on 1.30": {v1alpha1.AdmissionWebhook, env.ClusterOptions{Kubernetes: "1.30"}, true},
	}
	for name, tc := range forms {
		if tc.old && !*full {
			continue // make test-full has them
		}
		t.Run(name, func(t *testing.T) {
			tc.options.Name, tc.options.ControllerManager = "rome", true
			cluster := startIn(t, tc.form, tc.options)
			api := clientFor(t, cluster.Config)
			t.Run("pods created", func(t *testing.T) { testPodsCreated(t, api) })
			t.Run("pods updated", func(t *testing.T) { testPodsUpdated(t, api) })
			t.Run("daemonsets", func(t *testing.T) { testDaemonSets(t, api) })
			t.Run("owners", func(t *testing.T) { testOwners(t, cluster) })
			if tc.old { // what else is v1 there has to be understood too
				t.Run("exemptions", func(t *testing.T) { testExemptions(t, cluster, api) })
				t.Run("virtual nodes", func(t *testing.T) { testVirtualNodes(t, cluster) })
				t.Run("namespaces", func(t *testing.T) { testNamespaces(t, cluster, api) })
			}
			t.Run("intent withdrawn", func(t *testing.T) { testIntentWithdrawn(t, api) })
			t.Run("doctor", func(t *testing.T) { testDoctor(t, tc.form, cluster) })
			if tc.form == v1alpha1.AdmissionWebhook {
				t.Run("no agent", func(t *testing.T) { testNoAgent(t, cluster, api) })
			}
		})
	}
}

// ownersIn installs what the agent's base makes in a form: who asks is written down, and
// as webhook pods get their tolerations too.
func ownersIn(t *testing.T, form string, cluster *env.Cluster) {
	t.Helper()
	apply(t, cluster, "crds.yaml", read(t, "crds.yaml"))
	switch form {
	case v1alpha1.AdmissionWebhook:
		webhook(t, cluster)
	case v1alpha1.AdmissionV1Beta1:
		apply(t, cluster, "owner.yaml", strings.ReplaceAll(read(t, "request-owner.yaml"), group+"/v1\n", group+"/v1beta1\n"))
	default:
		apply(t, cluster, "owner.yaml", read(t, "request-owner.yaml"))
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(template, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(manifests.NameInstall(fleetID, text))
}

func apply(t *testing.T, cluster *env.Cluster, file, text string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := cluster.Kubectl(t.Context(), dir, "apply", "--server-side", "-n", "fleetbroker", "-f", file); err != nil {
		t.Fatal(err)
	}
}

// webhook installs the agent's rights and the component webhook, and runs the agent by
// those alone, without a broker that answers. Its certificate was made two months ago: the
// agent renews it first.
func webhook(t *testing.T, cluster *env.Cluster) {
	t.Helper()
	address := freeAddress(t)
	text := read(t, "webhook/webhook.yaml")
	for _, path := range []string{"pods", "resourcerequests"} { // no kube-proxy leads to a Service here
		service := "service: {name: fleet-agent-webhook, namespace: fleetbroker, path: /" + path + ", port: 443}"
		if !strings.Contains(text, service) {
			t.Fatalf("webhook.yaml has no %q", service)
		}
		text = strings.ReplaceAll(text, service, "url: https://"+address+"/"+path)
	}
	if _, err := cluster.Kubectl(t.Context(), "", "create", "namespace", "fleetbroker"); err != nil {
		t.Fatal(err)
	}
	apply(t, cluster, "webhook.yaml", text)
	apply(t, cluster, "rbac.yaml", read(t, "rbac.yaml"))

	old, cancel := context.WithCancel(t.Context())
	keeper := &hook.Keeper{
		Client: clientFor(t, as(t, cluster, agentUser)), Namespace: "fleetbroker", Configuration: configuration,
		Now: func() time.Time { return time.Now().Add(-62 * 24 * time.Hour) }, Log: slog.New(slog.DiscardHandler),
	}
	done := make(chan error, 1)
	go func() { done <- keeper.Start(old) }()
	first := certificateOf(t, clientFor(t, cluster.Config), nil)
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}

	ca, err := pki.InitCA(filepath.Join(t.TempDir(), "ca"), "acme", time.Now)
	if err != nil {
		t.Fatal(err)
	}
	bundle, err := ca.Issue(pki.Request{Name: "rome"})
	if err != nil {
		t.Fatal(err)
	}
	certs := filepath.Join(t.TempDir(), "certs")
	if err := bundle.WriteDir(certs); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		done <- agent.Run(ctx, agent.Options{
			Cluster: "rome", Config: as(t, cluster, agentUser), Brokers: []string{"https://127.0.0.1:1"}, CertDir: certs, Interval: time.Minute,
			MetricsAddress: "0", HealthAddress: "0", LeaseNamespace: "fleetbroker", WebhookAddress: address, WebhookConfiguration: configuration,
			Log: slog.New(slog.DiscardHandler),
		})
	}()
	var once sync.Once
	agents[cluster] = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(agents[cluster])
	certificateOf(t, clientFor(t, cluster.Config), first)
}

// freeAddress is one that nobody listens at.
func freeAddress(t *testing.T) string {
	t.Helper()
	line, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := line.Addr().String()
	if err := line.Close(); err != nil {
		t.Fatal(err)
	}
	return address
}

// agents end the webhook of a cluster.
var agents = map[*env.Cluster]func(){}

// certificateOf waits for another certificate of the webhook than one.
func certificateOf(t *testing.T, api kubernetes.Interface, than []byte) (cert []byte) {
	t.Helper()
	envtest.Eventually(t, "a certificate of the webhook", func(ctx context.Context) bool {
		secret, err := api.CoreV1().Secrets("fleetbroker").Get(ctx, hook.SecretName, metav1.GetOptions{})
		if err != nil {
			return false
		}
		c, err := api.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(ctx, configuration, metav1.GetOptions{})
		cert = secret.Data["tls.crt"]
		return err == nil && len(cert) > 0 && !bytes.Equal(cert, than) && len(c.Webhooks[1].ClientConfig.CABundle) > 0
	})
	return cert
}

// Whoever makes a ResourceRequest is written down as its owner, and nobody else ever.
func testOwners(t *testing.T, cluster *env.Cluster) {
	const owner = "fleetbroker.io/owner"
	dyn, err := dynamic.NewForConfig(cluster.Config)
	if err != nil {
		t.Fatal(err)
	}
	requests := dyn.Resource(schema.GroupVersionResource{Group: "fleetbroker.io", Version: "v1alpha1", Resource: "resourcerequests"}).Namespace("default")
	request := func(annotations map[string]any) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "fleetbroker.io/v1alpha1", "kind": "ResourceRequest",
			"metadata": map[string]any{"generateName": "r-", "namespace": "default"}, "spec": map[string]any{"resources": map[string]any{"cpu": "1"}},
		}}
		if annotations != nil {
			u.Object["metadata"].(map[string]any)["annotations"] = annotations
		}
		return u
	}
	envtest.Eventually(t, "owners to be written down", func(ctx context.Context) bool {
		u, err := requests.Create(ctx, request(nil), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err == nil && u.GetAnnotations()[owner] != ""
	})
	const admin = "fleetbroker:admin"
	for name, annotations := range map[string]map[string]any{
		"nothing":        nil,
		"something else": {"example.org/a": "b"},
		"another user":   {owner: "system:masters", "example.org/a": "b"},
		"nobody":         {owner: ""},
		"the user":       {owner: admin},
	} {
		t.Run(name, func(t *testing.T) {
			made, err := requests.Create(t.Context(), request(annotations), metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			check := func(what string, u *unstructured.Unstructured) {
				t.Helper()
				if got := u.GetAnnotations()[owner]; got != admin {
					t.Errorf("%s: owner is %q, want %s", what, got, admin)
				}
				if a, is := annotations["example.org/a"]; is && u.GetAnnotations()["example.org/a"] != a {
					t.Errorf("%s: another annotation was lost: %v", what, u.GetAnnotations())
				}
			}
			check("created", made)
			for what, to := range map[string]string{"taken away": `[{"op":"remove","path":"/metadata/annotations/fleetbroker.io~1owner"}]`, "changed": `[{"op":"replace","path":"/metadata/annotations/fleetbroker.io~1owner","value":"mallory"}]`} {
				made, err = requests.Patch(t.Context(), made.GetName(), "application/json-patch+json", []byte(to), metav1.PatchOptions{})
				if err != nil {
					t.Fatal(err)
				}
				check(what, made)
			}
		})
	}
}

// doctor says which form it is, finds nothing in it, and names it where the file asks for
// another that the cluster does not serve.
func testDoctor(t *testing.T, form string, cluster *env.Cluster) {
	look := func(form string) (*doctor.Cluster, []doctor.Code) {
		rome := &v1alpha1.Cluster{Metadata: v1alpha1.Metadata{Name: "rome"}, Spec: v1alpha1.ClusterSpec{Roles: []string{v1alpha1.RoleConsumer}, Admission: form}}
		c := doctor.Gather(t.Context(), rome, func(context.Context) (*rest.Config, error) { return cluster.Config, nil })
		var codes []doctor.Code
		for _, f := range doctor.DiagnoseCluster(c, []string{v1alpha1.RoleConsumer}) {
			codes = append(codes, f.Code)
		}
		return c, codes
	}
	c, found := look(form)
	if len(found) > 0 {
		t.Errorf("found %q", found)
	}
	want := map[string]string{v1alpha1.AdmissionV1Beta1: "MutatingAdmissionPolicy v1beta1", v1alpha1.AdmissionWebhook: "the webhook of its agent"}[form]
	if says := c.Admission(); !strings.HasSuffix(says, want) {
		t.Errorf("says %q, want %q", says, want)
	}
	if form != v1alpha1.AdmissionWebhook {
		return
	}
	for _, other := range []string{v1alpha1.AdmissionV1, v1alpha1.AdmissionV1Beta1} {
		if _, found := look(other); !slices.Equal(found, []doctor.Code{doctor.NoPolicyKinds}) {
			t.Errorf("as %s: found %q", other, found)
		}
	}
}

// Without the agent pods of tenants' namespaces wait, and no others.
func testNoAgent(t *testing.T, cluster *env.Cluster, api kubernetes.Interface) {
	agents[cluster]()
	if _, err := api.CoreV1().Pods(twoIntents).Create(t.Context(), pod(), metav1.CreateOptions{}); err == nil || !strings.Contains(err.Error(), "pods.admission.fleetbroker.io") {
		t.Errorf("a tenant's pod: %v; want it to name the webhook", err)
	}
	for _, namespace := range []string{unlabelled, metav1.NamespaceSystem} {
		if _, err := api.CoreV1().Pods(namespace).Create(t.Context(), pod(), metav1.CreateOptions{}); err != nil {
			t.Errorf("a pod in %s: %v", namespace, err)
		}
	}
}
