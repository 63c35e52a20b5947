package install

import (
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/fleetbroker/fleetbroker/internal/api/hints"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

const id = "f3k9q2abu7"

// cluster has a name that no sample of the bases has.
func cluster(name, delivery string, roles ...string) *v1alpha1.Cluster {
	c := &v1alpha1.Cluster{Spec: v1alpha1.ClusterSpec{Roles: roles, Delivery: delivery}}
	c.Metadata.Name = name
	return c
}

func fleetOf() *Fleet {
	f := &Fleet{
		Clusters: map[string]*v1alpha1.Cluster{
			"turin": cluster("turin", "", "consumer"),
			"lyon":  cluster("lyon", "", "provider"),
			"bern":  cluster("bern", "", "consumer", "provider"),
			"oslo":  cluster("oslo", "agent", "consumer", "provider"),
			"graz":  cluster("graz", "flux", "consumer"),
			"kiel":  cluster("kiel", "argocd", "consumer"),
			"nice":  cluster("nice", "", "consumer"),
		},
		Tenants: map[string]*v1alpha1.Tenant{"nlp": {Spec: v1alpha1.TenantSpec{Consumers: []string{"graz", "kiel"}}}, "robots": {Spec: v1alpha1.TenantSpec{Consumers: []string{"kiel", "turin"}}}},
		ID:      id, Ledger: "book", RepoURL: "https://git.acme.example/fleet.git", BrokerURL: "https://broker.acme.example:10443", Image: "ghcr.io/acme/fleet-agent:v1.2.3",
	}
	f.Clusters["lyon"].Spec.Liqo.ClusterID = "lyon-prod"
	for name, form := range map[string]string{"omsk": v1alpha1.AdmissionV1Beta1, "riga": v1alpha1.AdmissionWebhook, "bonn": v1alpha1.AdmissionWebhook} {
		delivery, roles := "", []string{"consumer"}
		if name == "bonn" {
			delivery, roles = "agent", append(roles, "provider")
		}
		f.Clusters[name] = cluster(name, delivery, roles...)
		f.Clusters[name].Spec.Admission = form
	}
	f.Clusters["bern"].Spec.Liqo.ClusterID = "007"
	f.Clusters["nice"].Spec.Reservations = &v1alpha1.ClusterReservations{}
	f.Clusters["nice"].Spec.Liqo.TenantNamespace = "liqo-peers"
	f.Clusters["kiel"].Spec.Deliverers = []string{"system:serviceaccount:kube-system:argocd-manager"}
	return f
}

// build is what kustomize makes of a cluster's files.
func build(t *testing.T, files map[string][]byte) resmap.ResMap {
	t.Helper()
	disk := filesys.MakeFsInMemory()
	for name, content := range files {
		if err := disk.WriteFile(path.Join("/c", name), content); err != nil {
			t.Fatal(err)
		}
	}
	out, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(disk, "/c")
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// ids are the objects as "Kind namespace/name".
func ids(m resmap.ResMap) []string {
	var out []string
	for _, r := range m.Resources() {
		out = append(out, r.GetKind()+" "+r.GetNamespace()+"/"+r.GetName())
	}
	return out
}

var sampleName = regexp.MustCompile(`\b(rome|paris|vision|acme/fleet\.git|[a-z]+\.example\.org)\b`)

// Every cluster builds as one kustomization, each object once, without any name of a
// sample, and has what its file says.
func TestFiles(t *testing.T) {
	for name, want := range map[string]struct{ has, not []string }{
		"turin": {
			[]string{"Namespace /fleetbroker", "ServiceAccount fleetbroker/fleetbroker", "Namespace /liqo-tenant-lyon-prod", "Role liqo-tenant-lyon-prod/fleetbroker-peering", "Role liqo-tenant-007/fleetbroker-peering", "RoleBinding liqo-tenant-oslo/fleetbroker-peering", "Role fleetbroker/fleetbroker-renew", "ValidatingAdmissionPolicy /fleetbroker-" + id + "-daemon"},
			[]string{"Deployment fleetbroker/fleet-agent", "Role liqo-tenant-lyon/fleetbroker-peering"},
		},
		"lyon": {
			[]string{"Deployment fleetbroker/fleet-agent", "Role liqo-tenant-turin/fleetbroker-accounts", "Role liqo-tenant-007/fleetbroker-accounts", "ValidatingAdmissionPolicy /fleetbroker-class-default"},
			[]string{"Role liqo-tenant-turin/fleetbroker-peering"},
		},
		"bern": {
			[]string{"Role liqo-tenant-oslo/fleetbroker-peering", "Role liqo-tenant-oslo/fleetbroker-accounts", "Deployment fleetbroker/fleet-agent", "ValidatingAdmissionPolicy /fleetbroker-" + id + "-daemon", "ValidatingAdmissionPolicy /fleetbroker-" + id + "-daemon-peers"},
			[]string{"Role liqo-tenant-007/fleetbroker-accounts"},
		},
		"oslo": {
			[]string{"ServiceAccount fleetbroker/fleet-agent", "ServiceAccount fleetbroker/fleetbroker", "Role fleetbroker/fleetbroker-renew"}, nil, // the daemon peers with it as a provider
		},
		"graz": {
			[]string{"GitRepository flux-system/fleet-ledger", "Kustomization flux-system/fleet-nlp", "RoleBinding liqo-tenant-lyon-prod/fleet-nlp", "RoleBinding liqo-tenant-007/fleet-nlp"},
			[]string{"Kustomization flux-system/fleet-robots", "Deployment fleetbroker/fleet-agent"},
		},
		"kiel": {
			[]string{"Application argocd/fleet-nlp", "Application argocd/fleet-robots", "AppProject argocd/fleet-robots", "AppProject argocd/fleet-namespaces", "ServiceAccount argocd/fleet-nlp"}, []string{"ConfigMap argocd/argocd-cm"},
		},
		"omsk": {
			[]string{"MutatingAdmissionPolicy /fleetbroker-" + id + "-intent-tolerations"}, []string{"Deployment fleetbroker/fleet-agent"},
		},
		"riga": {
			[]string{"Deployment fleetbroker/fleet-agent", "MutatingWebhookConfiguration /fleetbroker-" + id + "-intent-tolerations", "Service fleetbroker/fleet-agent-webhook", "Secret fleetbroker/fleet-agent-webhook", "ClusterRole /fleet-" + id + "-agent-webhook", "ClusterRoleBinding /fleet-" + id + "-agent-webhook", "ValidatingAdmissionPolicy /fleetbroker-" + id + "-intent-guard"},
			[]string{"MutatingAdmissionPolicy /fleetbroker-" + id + "-intent-tolerations", "MutatingAdmissionPolicy /fleetbroker-" + id + "-request-owner", "MutatingAdmissionPolicyBinding /fleetbroker-" + id + "-request-owner"},
		},
		"bonn": {
			[]string{"MutatingWebhookConfiguration /fleetbroker-" + id + "-intent-tolerations", "ServiceAccount fleetbroker/fleetbroker"},
			[]string{"MutatingAdmissionPolicyBinding /fleetbroker-" + id + "-intent-tolerations"},
		},
		"nice": {
			[]string{"Namespace /liqo-peers", "Role liqo-peers/fleetbroker-peering", "Deployment fleetbroker/fleet-agent"}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := fleetOf()
			files, err := f.Files(name)
			if err != nil {
				t.Fatal(err)
			}
			for file, content := range files {
				for line := range strings.SplitSeq(string(content), "\n") {
					if code, _, _ := strings.Cut(line, "#"); sampleName.MatchString(code) {
						t.Errorf("%s has a sample's name: %s", file, line)
					}
				}
			}
			got := ids(build(t, files))
			for _, object := range want.has {
				if n := len(slices.DeleteFunc(slices.Clone(got), func(s string) bool { return s != object })); n != 1 {
					t.Errorf("%s is there %d times, want once, of\n%s", object, n, strings.Join(got, "\n"))
				}
			}
			for _, object := range want.not {
				if slices.Contains(got, object) {
					t.Errorf("%s is there", object)
				}
			}
			again, err := f.Files(name)
			if err != nil {
				t.Fatal(err)
			}
			for file := range files {
				if string(files[file]) != string(again[file]) {
					t.Errorf("%s differs the second time", file)
				}
			}
		})
	}
}

// What is filled in is in the objects that use it.
func TestFiles_FilledIn(t *testing.T) {
	f := fleetOf()
	for name, wants := range map[string][]string{
		"lyon": {"--cluster-id=lyon\n", "--broker-url=https://broker.acme.example:10443\n", "port: 10443\n", "image: ghcr.io/acme/fleet-agent:v1.2.3\n", "- liqo-tenant-007\n", "- liqo-tenant-turin\n", "- liqo-consumer-turin\n", "liqo.io/remote-cluster-id: \"007\"\n", "name: fleetbroker-" + id + "-provider\n"},
		"oslo": {"--cluster-id=oslo\n", "name: fleet-agent\n  namespace: fleetbroker\n"},
		"graz": {"path: ./manifests/graz/namespaces\n", "path: ./manifests/graz/nlp\n", "url: https://git.acme.example/fleet.git\n", "branch: book\n"},
		"kiel": {"path: manifests/kiel/robots\n", "repoURL: https://git.acme.example/fleet.git\n", "targetRevision: book\n", "defaultServiceAccount: argocd:fleet-robots\n", "argocd-application-controller',\n      'system:serviceaccount:kube-system:argocd-manager']"},
	} {
		files, err := f.Files(name)
		if err != nil {
			t.Fatal(err)
		}
		text, err := build(t, files).AsYaml()
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range wants {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s: no %q in what is built", name, want)
			}
		}
		if want := "    clusterID: " + quoted(v1alpha1.LiqoID(f.Clusters, name)) + "\n"; !strings.Contains(string(files[ValuesFile]), want) {
			t.Errorf("%s: Liqo's values have no %q:\n%s", name, want, files[ValuesFile])
		}
	}
	files, err := f.Files("oslo") // its agent has the daemon's rights on the consumer, and only the provider's part has the daemon's own
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range build(t, files).Resources() {
		if r.GetKind() != "RoleBinding" || r.GetName() != "fleetbroker-lease" {
			continue
		}
		if text, err := r.AsYAML(); err != nil || !strings.Contains(string(text), "name: fleet-agent\n") {
			t.Errorf("the Lease is not the agent's: %s %v", text, err)
		}
	}
	f.Clusters["graz"].Spec.Liqo.Namespace = "liqo-net" // Liqo's template of virtual nodes is there
	if files, err = f.Files("graz"); err != nil || !strings.Contains(string(files["consumer/guard.yaml"]), "paramRef: {namespace: liqo-net, name: virtual-kubelet-default") {
		t.Errorf("the policy on virtual nodes reads Liqo's template elsewhere (%v)", err)
	}
	f.Image = "ghcr.io/acme/fleet-agent@sha256:" + strings.Repeat("a", 64)
	if files, err = f.Files("lyon"); err != nil {
		t.Fatal(err)
	}
	if text, err := build(t, files).AsYaml(); err != nil || !strings.Contains(string(text), "image: "+f.Image+"\n") {
		t.Errorf("no image by its digest (%v)", err)
	}
}

// A fleet whose only cluster sells: nothing is open to peers that do not exist.
func TestFiles_WithoutPeers(t *testing.T) {
	f := fleetOf()
	f.Clusters = map[string]*v1alpha1.Cluster{"lyon": f.Clusters["lyon"]}
	files, err := f.Files("lyon")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range build(t, files).Resources() {
		// The agent reads one namespace, whose UID salts the hashes of nodes.
		if text := strings.ReplaceAll(r.MustYaml(), "  resourceNames:\n  - kube-system\n  resources:\n  - namespaces\n", ""); strings.Contains(text, "liqo-tenant-") && r.GetKind() != "ValidatingAdmissionPolicy" || r.GetKind() == "ClusterRole" && strings.Contains(text, "- namespaces\n") {
			t.Errorf("without consumers:\n%s", text)
		}
	}
}

func TestFiles_Errors(t *testing.T) {
	for name, c := range map[string]struct {
		cluster    string
		change     func(f *Fleet)
		want, hint string
	}{
		"unknown":           {"lion", func(*Fleet) {}, `there is no cluster "lion"`, "did you mean lyon?"},
		"no address":        {"lyon", func(f *Fleet) { f.BrokerURL = "" }, "the daemon's address is not known", "--broker-url"},
		"sample address":    {"lyon", func(f *Fleet) { f.BrokerURL = sampleBroker }, "the daemon's address is still the example's, https://broker.example.org:8443", "--broker-url"},
		"plain http":        {"lyon", func(f *Fleet) { f.BrokerURL = "http://a:1" }, "is no https URL", "--broker-url"},
		"no image":          {"lyon", func(f *Fleet) { f.Image = "registry.example.org/fleet-agent:v0.1.0" }, "the agent's image is still the example's, registry.example.org/fleet-agent:v0.1.0", "--image"},
		"image without tag": {"lyon", func(f *Fleet) { f.Image = "ghcr.io/acme/fleet-agent" }, "names no image with tag or digest", "--image"},
		"no repo":           {"graz", func(f *Fleet) { f.RepoURL = "" }, "the fleet repo's URL is not known", "--repo-url"},
		"Liqo's id":         {"turin", func(f *Fleet) { f.Clusters["lyon"].Spec.Liqo.ClusterID = "a: b" }, `clusters/lyon.yaml: Liqo's id "a: b"`, "liqo.clusterID"},
		"one namespace":     {"lyon", func(f *Fleet) { f.Clusters["lyon"].Spec.Liqo.TenantNamespace = "liqo-peers" }, "is not peered by the daemon", "liqoctl"},
		"no roles":          {"turin", func(f *Fleet) { f.Clusters["turin"].Spec.Roles = nil }, "needs nothing", "spec.roles"},
	} {
		t.Run(name, func(t *testing.T) {
			f := fleetOf()
			c.change(f)
			_, err := f.Files(c.cluster)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(strings.Join(hints.Of(err), "\n"), c.hint) {
				t.Errorf("got %v (%q), want %q and a hint with %q", err, hints.Of(err), c.want, c.hint)
			}
		})
	}
}

// The bases of a fleet repo say address, image and id, unless they are the samples.
func TestSample(t *testing.T) {
	repo := map[string]string{
		"install/agent/deployment.yaml":    "        - --broker-url=https://broker.acme.example:8443      # one address\n",
		"install/agent/kustomization.yaml": "images:\n- name: fleet-agent\n  newName: ghcr.io/acme/fleet-agent\n  newTag: v9\n",
		"install/consumer/rbac.yaml":       "metadata:\n  name: fleetbroker-" + id + "-consumer\n",
	}
	read := func(name string) ([]byte, error) { return []byte(repo[name]), nil }
	if url, image := Sample(read); url != "https://broker.acme.example:8443" || image != "ghcr.io/acme/fleet-agent:v9" || ID(read) != id {
		t.Errorf("got %q, %q, %q", url, image, ID(read))
	}
	m := &maker{fleet: &Fleet{}}
	read = func(name string) ([]byte, error) {
		return []byte(m.base(path.Dir(strings.TrimPrefix(name, "install/")), path.Base(name))), nil
	}
	if url, image := Sample(read); url != "" || image != "" || ID(read) != "" || m.err != nil {
		t.Errorf("of the template: %q, %q, %q, %v", url, image, ID(read), m.err)
	}
}

// Each form of admission is one version of the policies, or the webhook, which is the
// agent's in the namespace it is in.
func TestFormsOfAdmission(t *testing.T) {
	for form, want := range map[string]string{"": "admissionregistration.k8s.io/v1", "v1": "admissionregistration.k8s.io/v1", "v1beta1": "admissionregistration.k8s.io/v1beta1", "webhook": ""} {
		t.Run(form, func(t *testing.T) {
			f := fleetOf()
			f.Clusters["bern"].Spec.Admission = form
			files, err := f.Files("bern")
			if err != nil {
				t.Fatal(err)
			}
			files["agent/kustomization.yaml"] = []byte(strings.Replace(string(files["agent/kustomization.yaml"]), "namespace: fleetbroker\n", "namespace: elsewhere\n", 1))
			policies, hooks := 0, 0
			for _, r := range build(t, files).Resources() {
				text := r.MustYaml()
				switch kind := r.GetKind(); {
				case strings.HasPrefix(kind, "MutatingAdmissionPolicy"):
					policies++
					if !strings.HasPrefix(text, "apiVersion: "+want+"\n") {
						t.Errorf("%s %s is not of %s:\n%s", kind, r.GetName(), want, text)
					}
				case kind == "MutatingWebhookConfiguration":
					hooks++
					if strings.Count(text, "namespace: elsewhere\n") != 2 {
						t.Errorf("the webhook is not the agent's:\n%s", text)
					}
				case strings.HasSuffix(kind, "RoleBinding") && strings.HasSuffix(r.GetName(), "agent-webhook") && !strings.Contains(text, "namespace: elsewhere\n"):
					t.Errorf("the account is not the agent's:\n%s", text)
				case kind == "Deployment" && form == "webhook":
					for _, part := range []string{"--webhook-bind-address=:9443", "--webhook-configuration=fleetbroker-" + id + "-intent-tolerations\n", "name: webhook"} {
						if !strings.Contains(text, part) {
							t.Errorf("the agent has no %q:\n%s", part, text)
						}
					}
				case kind == "NetworkPolicy" && form == "webhook" && !strings.Contains(text, "port: 9443"):
					t.Errorf("nothing reaches the webhook:\n%s", text)
				case kind == "ClusterRole" && strings.Contains(r.GetName(), "webhook") && !strings.Contains(text, "- fleetbroker-"+id+"-intent-tolerations\n"):
					t.Errorf("the agent may not write caBundle:\n%s", text)
				}
			}
			if wantPolicies := map[bool]int{true: 0, false: 4}[form == "webhook"]; policies != wantPolicies || hooks != map[bool]int{true: 1}[form == "webhook"] {
				t.Errorf("%d policies, %d webhooks", policies, hooks)
			}
		})
	}
}

// The page on Argo CD has people apply what install wrote, and never a sample, whose names
// are no cluster's.
func TestArgoCDPage(t *testing.T) {
	text, err := os.ReadFile("../../fleet-repo-template/docs/argocd.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := fleetOf().Files("kiel")
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for i, block := range strings.Split(string(text), "```") {
		if i%2 == 0 {
			continue
		}
		if strings.Contains(block, "install/argocd") {
			t.Errorf("samples are applied:\n%s", block)
		}
		for _, m := range regexp.MustCompile(`install/clusters/rome/(\S+\.yaml)`).FindAllStringSubmatch(block, -1) {
			if named++; files[m[1]] == nil {
				t.Errorf("install writes no %s", m[1])
			}
		}
	}
	if named < 5 {
		t.Errorf("the page names %d files", named)
	}
}

// With the daemon's account doctor can look at the webhook where a cluster has that form.
func TestDoctorMaySeeTheWebhook(t *testing.T) {
	for name, want := range map[string]bool{"riga": true, "bonn": true, "turin": false, "omsk": false} {
		files, err := fleetOf().Files(name)
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, r := range build(t, files).Resources() {
			if r.GetKind() == "ClusterRole" && r.GetName() == "fleetbroker-"+id+"-consumer" {
				text, err := r.AsYAML()
				if err != nil {
					t.Fatal(err)
				}
				found = true
				if got := strings.Contains(string(text), "- mutatingwebhookconfigurations\n  verbs:\n  - get\n  - list\n"); got != want {
					t.Errorf("%s: %v, want %v:\n%s", name, got, want, text)
				}
			}
		}
		if !found {
			t.Errorf("%s has no role of the daemon's", name)
		}
	}
}

// What leads the API server to a webhook is written by the agent alone, where the form of
// admission is that, and no other configuration than the fleet's.
func TestTheWebhookIsTheAgentsAlone(t *testing.T) {
	const only = "fleetbroker-" + id + "-intent-tolerations"
	for name := range fleetOf().Clusters {
		files, err := fleetOf().Files(name)
		if err != nil {
			t.Fatal(err)
		}
		writers := map[string]bool{}
		for _, r := range build(t, files).Resources() {
			var role struct {
				Rules []struct{ APIGroups, Resources, ResourceNames, Verbs []string }
			}
			if err := yaml.Unmarshal([]byte(r.MustYaml()), &role); err != nil || !strings.HasSuffix(r.GetKind(), "Role") {
				continue
			}
			for _, rule := range role.Rules {
				writes := slices.ContainsFunc(rule.Verbs, func(v string) bool { return !slices.Contains([]string{"get", "list", "watch"}, v) })
				if !writes || !slices.Contains(rule.Resources, "mutatingwebhookconfigurations") && !slices.Contains(rule.Resources, "*") {
					continue
				}
				writers[r.GetName()] = true
				if !slices.Equal(rule.ResourceNames, []string{only}) || !slices.Equal(rule.Verbs, []string{"get", "update"}) {
					t.Errorf("%s: %s may do more than renew %s: %+v", name, r.GetName(), only, rule)
				}
			}
		}
		want := map[string]bool{}
		if fleetOf().Clusters[name].AdmissionForm() == v1alpha1.AdmissionWebhook {
			want["fleet-"+id+"-agent-webhook"] = true
		}
		if !maps.Equal(writers, want) {
			t.Errorf("%s: written by %v, want %v", name, writers, want)
		}
	}
}
