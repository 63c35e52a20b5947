//go:build e2e

package chart

import (
	"bytes"
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/fleetbroker/fleetbroker/internal/pki"
	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/envtest"
	"github.com/fleetbroker/fleetbroker/test/tools"
)

var bin, helm string

func TestMain(m *testing.M) { envtest.Main(m, &bin, env.BuildTools) }

const (
	repo   = "https://git.example.org/acme/fleet.git"
	values = "broker.repo=" + repo + ",broker.image.tag=v0.1.0,agent.enabled=true,agent.clusterID=paris,agent.brokerURL=https://broker.example.org:8443,agent.image.tag=v0.1.0"
)

// clusterWide are kinds that kustomize takes for namespaced.
var clusterWide = []string{
	"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "MutatingWebhookConfiguration", "PriorityLevelConfiguration", "FlowSchema",
}

// made are a fleet repo and the chart that the program writes.
func made(t *testing.T) (fleet, chart, id string) {
	t.Helper()
	var err error
	if helm, err = tools.Find(t.Context(), "helm", os.Stderr); err != nil {
		t.Fatal(err)
	}
	fleet, chart = filepath.Join(t.TempDir(), "fleet"), filepath.Join(t.TempDir(), "chart")
	run(t, filepath.Join(bin, "fleetbroker"), "init", fleet)
	run(t, filepath.Join(bin, "fleetbroker"), "install", "chart", "-o", chart)
	root, err := os.ReadFile(fleet + ".keys/trust-root.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var r struct{ Spec struct{ FleetID string } }
	if err := yaml.Unmarshal(root, &r); err != nil || r.Spec.FleetID == "" {
		t.Fatalf("the trust root has no id: %v", err)
	}
	return fleet, chart, r.Spec.FleetID
}

func run(t *testing.T, program string, args ...string) string {
	t.Helper()
	out, err := try(t, program, args...)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", filepath.Base(program), strings.Join(args, " "), err, out)
	}
	return out
}

func try(t *testing.T, program string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if err != nil {
		return errs.String() + out.String(), err
	}
	return out.String(), nil
}

// rendered are the objects that Helm makes of the chart, by kind, namespace and name.
func rendered(t *testing.T, chart, namespace string, set ...string) map[string]map[string]any {
	t.Helper()
	args := []string{"template", "release", chart, "-n", namespace, "--kube-version", "1.36.0"}
	for _, s := range set {
		args = append(args, "--set", s)
	}
	return objects(t, []byte(run(t, helm, args...)))
}

func objects(t *testing.T, text []byte) map[string]map[string]any {
	t.Helper()
	out := map[string]map[string]any{}
	for d := yaml.NewYAMLToJSONDecoder(bytes.NewReader(text)); ; {
		var o map[string]any
		err := d.Decode(&o)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if o == nil {
			continue
		}
		meta := o["metadata"].(map[string]any)
		if slices.Contains(clusterWide, o["kind"].(string)) {
			delete(meta, "namespace") // kustomize gives one to kinds that are newer than it; servers ignore it
		}
		key := fmt.Sprint(o["kind"], " ", meta["namespace"], "/", meta["name"])
		if out[key] != nil {
			t.Errorf("%s is there twice", key)
		}
		out[key] = o
	}
}

// built are the objects of kustomizations, of a fleet repo's install directory.
func built(t *testing.T, dirs ...string) map[string]map[string]any {
	t.Helper()
	out := map[string]map[string]any{}
	for _, dir := range dirs {
		m, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
		if err != nil {
			t.Fatal(err)
		}
		text, err := m.AsYaml()
		if err != nil {
			t.Fatal(err)
		}
		for key, o := range objects(t, text) {
			if o["kind"] != "Namespace" {
				out[key] = o
			}
		}
	}
	return out
}

// same holds that two sets of objects are equal, but for the keep policy of CRDs.
func same(t *testing.T, got, want map[string]map[string]any) {
	t.Helper()
	if len(want) < 30 {
		t.Fatalf("the bases have %d objects only", len(want))
	}
	for key, o := range want {
		have := got[key]
		if have == nil {
			t.Errorf("the chart has no %s", key)
			continue
		}
		if o["kind"] == "CustomResourceDefinition" {
			meta := have["metadata"].(map[string]any)
			if a, _ := meta["annotations"].(map[string]any); a["helm.sh/resource-policy"] != "keep" {
				t.Errorf("%s goes with the release", key)
			}
			delete(meta, "annotations")
		}
		if !reflect.DeepEqual(have, o) {
			a, _ := json.MarshalIndent(have, "", " ")
			b, _ := json.MarshalIndent(o, "", " ")
			t.Errorf("%s differs: the chart has\n%s\nthe base\n%s", key, a, b)
		}
	}
	for key := range got {
		if want[key] == nil {
			t.Errorf("the bases have no %s", key)
		}
	}
}

// TestChart_RendersWhatTheBasesBuild: with the bases' values the chart is the bases, for a
// fleet with an id and for one without, with volumes and without.
func TestChart_RendersWhatTheBasesBuild(t *testing.T) {
	fleet, chart, id := made(t)
	install := filepath.Join(fleet, "install")
	run(t, helm, "lint", "--strict", chart, "--set", values)
	same(t, rendered(t, chart, "fleetbroker", values, "fleet.id="+id), built(t, filepath.Join(install, "broker"), filepath.Join(install, "agent")))
	template := "../../../fleet-repo-template/install"
	same(t, rendered(t, chart, "fleetbroker", values), built(t, filepath.Join(template, "broker"), filepath.Join(template, "agent")))

	for _, form := range []string{"v1beta1", "webhook"} {
		agent := with(t, install, "agent", form)
		same(t, rendered(t, chart, "fleetbroker", values, "fleet.id="+id, "agent.admission="+form), built(t, filepath.Join(install, "broker"), agent))
	}
	// Two components that change the same lists.
	traced, agent := with(t, install, "broker", "tracing"), with(t, install, "agent", "webhook", "tracing")
	same(t, rendered(t, chart, "fleetbroker", values, "fleet.id="+id, "agent.admission=webhook", "tracing.endpoint=http://collector.observability.svc:4318"), built(t, traced, agent))

	monitored := built(t, filepath.Join(install, "broker"), filepath.Join(install, "agent"))
	for key, o := range built(t, filepath.Join(install, "monitoring")) {
		if kind := o["kind"]; kind == "ServiceMonitor" || kind == "PodMonitor" {
			monitored[key] = o
		}
	}
	if monitored["ServiceMonitor monitoring/fleetbroker"] == nil || monitored["PodMonitor monitoring/fleet-agent"] == nil {
		t.Fatalf("install/monitoring has no monitors: %q", keys(monitored))
	}
	same(t, rendered(t, chart, "fleetbroker", values, "fleet.id="+id, "monitoring.enabled=true", "monitoring.serverName=broker.example.org"), monitored)

	same(t, rendered(t, chart, "fleetbroker", values, "fleet.id="+id, "broker.state.ephemeral=true"), built(t, with(t, install, "broker", "ephemeral"), filepath.Join(install, "agent")))
}

// with is a kustomization of a base with some of its components.
func with(t *testing.T, install, base string, components ...string) string {
	t.Helper()
	dir := filepath.Join(install, strings.Join(append([]string{"try", base}, components...), "-"))
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	text := "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nnamespace: fleetbroker\nresources: [../" + base + "]\ncomponents:\n"
	for _, c := range components {
		text += "- ../" + base + "/" + c + "\n"
	}
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestChart_ElsewhereNothingIsLeftOfTheBases: in another namespace, with other values,
// nothing names the bases' namespace or samples.
func TestChart_ElsewhereNothingIsLeftOfTheBases(t *testing.T) {
	_, chart, _ := made(t)
	digest := "sha256:" + strings.Repeat("a", 64)
	out := rendered(t, chart, "gpu", "broker.repo=ssh://git@git.acme.example/fleet.git,broker.image.repository=ghcr.io/acme/fleetbroker,broker.image.digest="+digest,
		"broker.replicas=3,broker.service.type=ClusterIP,broker.state.size=9Gi,broker.state.storageClass=fast,broker.extraArgs={--forge=gitea,--source-hosts=a}",
		"agent.enabled=true,agent.clusterID=lyon,agent.brokerURL=https://broker.acme.example:8443,agent.image.repository=ghcr.io/acme/fleet-agent,agent.image.tag=v9,agent.admission=webhook,agent.extraArgs={--enforce=never}",
		"monitoring.enabled=true,monitoring.namespace=prom,monitoring.serverName=broker.acme.example,monitoring.interval=1m,monitoring.caFile=/ca/fleet.crt,monitoring.tokenSecret.name=scrape,monitoring.tokenSecret.key=t,monitoring.labels.release=kps",
		"imagePullSecrets={registry-read}")
	var all strings.Builder
	for key, o := range out {
		text, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
		for _, left := range []string{"example.org", "paris", ":fleetbroker:fleet", `"namespace":"fleetbroker"`, "=fleetbroker\"", "each.fleetbroker.svc", "'fleetbroker']"} {
			if strings.Contains(string(text), left) && !(left == "=fleetbroker\"" && strings.Contains(string(text), "--git-user=fleetbroker")) {
				t.Errorf("%s has %s: %s", key, left, text)
			}
		}
	}
	if got := strings.Count(all.String(), `"imagePullSecrets":[{"name":"registry-read"}]`); got != 2 {
		t.Errorf("%d accounts pull images with registry-read, want the daemon's and the agent's", got)
	}
	for _, want := range []string{
		`"image":"ghcr.io/acme/fleetbroker@` + digest + `"`, `"--repo=ssh://git@git.acme.example/fleet.git"`, `"--forge=gitea","--source-hosts=a"`, `"replicas":3`, `"type":"ClusterIP"`, `"storage":"9Gi"`, `"storageClassName":"fast"`,
		`$(POD_NAME).fleetbroker-each.gpu.svc:8443`, `"image":"ghcr.io/acme/fleet-agent:v9"`, `"--cluster-id=lyon","--broker-url=https://broker.acme.example:8443"`, `"--enforce=never"`, `--leader-election-namespace=gpu`, `system:serviceaccount:gpu:fleet-agent`,
		`"service":{"name":"fleet-agent-webhook","namespace":"gpu","path":"/pods","port":443}`, `"--webhook-configuration=fleetbroker-intent-tolerations"`,
		`"namespace":"prom"`, `"matchNames":["gpu"]`, `"labels":{"app.kubernetes.io/name":"fleetbroker","release":"kps"}`, `"labels":{"app.kubernetes.io/name":"fleet-agent","release":"kps"}`, `"serverName":"broker.acme.example"`, `"caFile":"/ca/fleet.crt"`, `"interval":"1m"`, `"credentials":{"key":"t","name":"scrape"}`,
	} {
		if !strings.Contains(all.String(), want) {
			t.Errorf("nothing has %s", want)
		}
	}
	// An agent's cluster has no daemon whose name would have to be given.
	if out := rendered(t, chart, "gpu", values, "broker.enabled=false,monitoring.enabled=true"); out["PodMonitor monitoring/fleet-agent"] == nil || out["ServiceMonitor monitoring/fleetbroker"] != nil {
		t.Errorf("an agent alone is scraped by %q", keys(out))
	}
	if out := rendered(t, chart, "gpu", values, "broker.enabled=false,crds.install=false"); len(out) == 0 || slices.ContainsFunc(keys(out), func(k string) bool {
		return strings.HasPrefix(k, "StatefulSet") || strings.HasPrefix(k, "CustomResource")
	}) {
		t.Errorf("an agent alone has %q", keys(out))
	}
}

func keys(m map[string]map[string]any) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// TestChart_RefusesValues: a value that is wrong or missing is refused by name.
func TestChart_RefusesValues(t *testing.T) {
	_, chart, _ := made(t)
	for set, want := range map[string]string{
		"broker.enabled=true":           "broker.repo",
		"agent.enabled=true":            "agent.clusterID",
		"broker.replcas=2":              "replcas",
		"agent.admission=v1alpha1":      "agent.admission",
		"fleet.id=Acme":                 "fleet.id",
		"imagePullSecrets={a b}":        "imagePullSecrets",
		"broker.image.tag=a b":          "broker.image.tag",
		"broker.extraArgs={rm}":         "broker.extraArgs",
		"broker.service.type=Anything":  "broker.service.type",
		"broker.state.size=lots":        "broker.state.size",
		"agent.brokerURL=http://broker": "agent.brokerURL",
		"monitoring.enabled=true":       "serverName",
		"monitoring.interval=often":     "monitoring.interval",
		"monitoring.namespace=Mon":      "monitoring.namespace",
		"monitoring.labels.a=1":         "monitoring.labels",
	} {
		more := values
		if strings.HasSuffix(set, "enabled=true") && !strings.HasPrefix(set, "monitoring.") {
			more = "crds.keep=true"
		}
		if out, err := try(t, helm, "template", "x", chart, "--kube-version", "1.36.0", "--set", more, "--set", set); err == nil || !strings.Contains(out, want) {
			t.Errorf("%s: got %v, %s, want an error with %q", set, err, out, want)
		}
	}
	if out, err := try(t, helm, "template", "x", chart, "--kube-version", "1.29.0", "--set", values); err == nil || !strings.Contains(out, "kubeVersion") {
		t.Errorf("on 1.29: %v, %s", err, out)
	}
	if out, err := try(t, helm, "template", "x", chart, "--kube-version", "1.36.0", "--set", values+",certManager.enabled=true"); err == nil || !strings.Contains(out, "brokerHosts") {
		t.Errorf("cert-manager without hosts: %v, %s", err, out)
	}
}

// TestChart_CertificatesOfCertManager: what is asked of cert-manager has the identity by
// which daemon and agents know each other.
func TestChart_CertificatesOfCertManager(t *testing.T) {
	_, chart, _ := made(t)
	out := rendered(t, chart, "gpu", values, "certManager.enabled=true,certManager.brokerHosts={broker.acme.example},certManager.issuerRef.name=acme")
	for key, want := range map[string]struct {
		secret string
		id     pki.Identity
		hosts  []string
	}{
		"Certificate gpu/fleetbroker": {"fleetbroker-certs", pki.Identity{Name: "broker", Role: pki.Server}, []string{"broker.acme.example", "*.fleetbroker-each.gpu.svc"}},
		"Certificate gpu/fleet-agent": {"fleet-agent-certs", pki.Identity{Name: "paris", Role: pki.Agent}, nil},
	} {
		text, err := json.Marshal(out[key])
		if err != nil {
			t.Fatal(err)
		}
		var c struct {
			Spec struct {
				SecretName, CommonName string
				URIs                   []string `json:"uris"`
				DNSNames               []string `json:"dnsNames"`
				IssuerRef              map[string]string
				PrivateKey             map[string]any
			}
		}
		if err := json.Unmarshal(text, &c); err != nil {
			t.Fatal(err)
		}
		cert := &x509.Certificate{Subject: pkix.Name{CommonName: c.Spec.CommonName}}
		for _, s := range c.Spec.URIs {
			u, err := url.Parse(s)
			if err != nil {
				t.Fatal(err)
			}
			cert.URIs = append(cert.URIs, u)
		}
		id, err := pki.IdentityOf(cert)
		if err != nil || id != want.id || c.Spec.SecretName != want.secret || !slices.Equal(c.Spec.DNSNames, want.hosts) || c.Spec.IssuerRef["name"] != "acme" || c.Spec.PrivateKey["algorithm"] != "ECDSA" {
			t.Errorf("%s: %+v, %v\n%s", key, id, err, text)
		}
	}
	if out := rendered(t, chart, "gpu", values); out["Certificate gpu/fleetbroker"] != nil {
		t.Error("certificates are asked for without the option")
	}
}

// TestChart_InstalledUpgradedAndRemoved: Helm installs it on a real API server next to
// another fleet's release, upgrades it, and leaves the CRDs and what they hold when it goes.
func TestChart_InstalledUpgradedAndRemoved(t *testing.T) {
	_, chart, id := made(t)
	cluster := envtest.Cluster(t, env.ClusterOptions{Name: "home"})
	text, err := cluster.KubeconfigFor("admin", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, text, 0o600); err != nil {
		t.Fatal(err)
	}
	do := func(args ...string) string {
		t.Helper()
		return run(t, helm, append(args, "--kubeconfig", kubeconfig)...)
	}
	kubectl := func(args ...string) string {
		t.Helper()
		out, err := cluster.Kubectl(t.Context(), ".", args...)
		if err != nil {
			t.Fatalf("kubectl %q: %v\n%s", args, err, out)
		}
		return out
	}
	if out := do("install", "fleetbroker", chart, "-n", "fleetbroker", "--create-namespace", "--set", values+",fleet.id="+id); !strings.Contains(out, "fleetbroker-trust") {
		t.Errorf("the notes are %s", out)
	}
	kubectl("get", "clusterrole", "fleetbroker-"+id+"-viewer")
	kubectl("-n", "fleetbroker", "get", "statefulset/fleetbroker", "deployment/fleet-agent", "networkpolicy/fleetbroker")
	do("upgrade", "fleetbroker", chart, "-n", "fleetbroker", "--reuse-values", "--set", "broker.replicas=3")
	if got := kubectl("-n", "fleetbroker", "get", "statefulset", "fleetbroker", "-o", "jsonpath={.spec.replicas}"); got != "3" {
		t.Errorf("after the upgrade there are %s replicas", got)
	}
	do("rollback", "fleetbroker", "1", "-n", "fleetbroker")
	if got := kubectl("-n", "fleetbroker", "get", "statefulset", "fleetbroker", "-o", "jsonpath={.spec.replicas}"); got != "2" {
		t.Errorf("after the rollback there are %s replicas", got)
	}
	request := filepath.Join(t.TempDir(), "request.yaml")
	if err := os.WriteFile(request, []byte("apiVersion: fleetbroker.io/v1alpha1\nkind: ResourceRequest\nmetadata: {name: train, namespace: default}\nspec:\n  resources: {cpu: 1, memory: 1Gi}\n  duration: 8h\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	envtest.Eventually(t, "a request is taken", func(ctx context.Context) bool { // refused until the policies know the new definition
		_, err := cluster.Kubectl(ctx, ".", "apply", "-f", request)
		return err == nil
	})
	do("uninstall", "fleetbroker", "-n", "fleetbroker")
	if out := kubectl("get", "clusterroles,validatingadmissionpolicies,mutatingadmissionpolicies,statefulsets,deployments,prioritylevelconfigurations", "-A", "-o", "name"); strings.Contains(out, "fleetbroker") || strings.Contains(out, "fleet-") {
		t.Errorf("left behind:\n%s", out)
	}
	kubectl("get", "resourcerequest", "train")
	do("install", "fleetbroker", chart, "-n", "fleetbroker", "--set", values+",fleet.id="+id)
}
