package chart

import (
	"reflect"
	"strconv"
	"strings"
	"testing"
	"text/template"

	"sigs.k8s.io/yaml"
)

// What the chart renders is tried with Helm in test/e2e/chart. Here: its versions, and that
// each base's object is in some template, with no sample left.
func TestFiles(t *testing.T) {
	for version, want := range map[string][2]string{
		"v1.2.3": {"1.2.3", "v1.2.3"}, "v1.2.3-rc.1": {"1.2.3-rc.1", "v1.2.3-rc.1"}, "devel": {"0.0.0-dev", "latest"}, "v1.2": {"0.0.0-dev", "latest"},
	} {
		files, err := Files(version, "")
		if err != nil {
			t.Fatal(err)
		}
		var c struct{ Version, AppVersion, Name string }
		if err := yaml.Unmarshal(files["Chart.yaml"], &c); err != nil || c.Version != want[0] || c.AppVersion != want[1] || c.Name != Name {
			t.Errorf("%s: got %+v, %v, want %q", version, c, err, want)
		}
	}
	files, err := Files("v1.2.3", "")
	if err != nil {
		t.Fatal(err)
	}
	templates := 0
	for name, text := range files {
		if !strings.HasPrefix(name, "templates/broker/") && !strings.HasPrefix(name, "templates/agent/") {
			continue
		}
		templates++
		if !strings.HasPrefix(string(text), "{{- if") || !strings.HasSuffix(string(text), "{{- end }}\n") {
			t.Errorf("%s is not bound to its value", name)
		}
		for _, sample := range []string{"git.example.org", "broker.example.org", "cluster-id=paris", idMark, "kind: Namespace\n"} {
			if strings.Contains(string(text), sample) {
				t.Errorf("%s has %s", name, sample)
			}
		}
	}
	for _, name := range []string{"templates/broker/servicemonitor.yaml", "templates/agent/podmonitor.yaml"} {
		if text := string(files[name]); !strings.HasPrefix(text, "{{- if and .Values.") || !strings.Contains(text, "\nmetadata:\n  namespace: {{ $.Values.monitoring.namespace | quote }}\n") {
			t.Errorf("%s is not bound to the value monitoring: %s", name, text)
		}
	}
	if templates < 16 {
		t.Errorf("only %d templates are made of the bases", templates)
	}
}

// A registry that wants a login: the accounts of daemon and agent have its Secrets, so that all
// of their pods do.
func TestFiles_PullSecrets(t *testing.T) {
	files, err := Files("v1.2.3", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, base := range []string{"broker", "agent"} {
		text := string(files["templates/"+base+"/rbac.yaml"])
		_, account, _ := strings.Cut(text, "kind: ServiceAccount\n")
		account, _, _ = strings.Cut(account, "\n---\n")
		if !strings.Contains(account, "{{- with .Values.imagePullSecrets }}\nimagePullSecrets:\n") || strings.Count(text, "imagePullSecrets:\n") != 1 {
			t.Errorf("the account of %s has no Secrets to pull by, or more than it:\n%s", base, text)
		}
		for want, names := range map[string][]string{"imagePullSecrets: [{name: a}, {name: b}]": {"a", "b"}, "{}": nil} {
			made, err := template.New(base).Funcs(template.FuncMap{"quote": strconv.Quote}).Parse(account)
			if err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			if err := made.Execute(&out, map[string]any{"Values": map[string]any{"imagePullSecrets": names}, "Release": map[string]string{"Namespace": "gpu"}}); err != nil {
				t.Fatal(err)
			}
			type pulling struct {
				ImagePullSecrets []map[string]string `json:"imagePullSecrets"`
			}
			var got, due pulling
			if err := yaml.Unmarshal([]byte(out.String()), &got); err != nil {
				t.Fatalf("%v in\n%s", err, out.String())
			}
			if err := yaml.Unmarshal([]byte(want), &due); err != nil || !reflect.DeepEqual(got, due) {
				t.Errorf("%s with %q: got %v, want %v", base, names, got, due)
			}
		}
	}
}

// A base that changed where the chart has a value is an error, not a sample in a cluster.
func TestRewriter_FindsItsPlaces(t *testing.T) {
	w := &rewriter{base: "agent", namespace: "$.Release.Namespace", done: map[string]bool{}}
	if _, err := w.file("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata: {a: '{{ x }}'}\n"); err == nil || !strings.Contains(err.Error(), "{{") {
		t.Errorf("got %v", err)
	}
	if _, err := w.file("a: b\n"); err == nil || !strings.Contains(err.Error(), "no kind") {
		t.Errorf("got %v", err)
	}
	if err := w.complete(); err == nil || !strings.Contains(err.Error(), "for which the chart has a value") {
		t.Errorf("no place was found, and that is %v", err)
	}
	out, err := w.file("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n")
	if err != nil || !strings.Contains(out, "metadata:\n  namespace: {{ $.Release.Namespace | quote }}\n  name: a\n") {
		t.Errorf("got %q, %v", out, err)
	}
}

// Where releases are says where the chart's images are, if it can be known.
func TestFiles_HaveTheImagesOfReleases(t *testing.T) {
	for releases, want := range map[string]string{
		"https://github.com/Acme/fleetbroker/releases/download": "ghcr.io/acme/", "https://dl.acme.example/fleetbroker": "registry.example.org/", "https://dl.acme.example/x#registry.acme.example/tools": "registry.acme.example/tools/", "": "registry.example.org/",
	} {
		files, err := Files("v1.2.3", releases)
		if err != nil {
			t.Fatal(err)
		}
		var v struct {
			Broker, Agent struct{ Image struct{ Repository string } }
		}
		if err := yaml.Unmarshal(files["values.yaml"], &v); err != nil {
			t.Fatal(err)
		}
		if b, a := v.Broker.Image.Repository, v.Agent.Image.Repository; b != want+"fleetbroker" || a != want+"fleet-agent" {
			t.Errorf("%q: got %q and %q, want those of %s", releases, b, a, want)
		}
	}
}
