package howto_test

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/howto"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// contracts are read as the ledger has them.
func contracts(t *testing.T, files ...string) (out []*v1alpha1.Contract) {
	t.Helper()
	for _, text := range files {
		c := &v1alpha1.Contract{}
		if err := yaml.UnmarshalStrict([]byte(text), c); err != nil {
			t.Fatal(err)
		}
		out = append(out, c)
	}
	return out
}

func contract(name, phase, more string) string {
	return `apiVersion: fleetbroker.io/v1alpha1
kind: Contract
metadata: {name: ` + name + `, namespace: vision}
spec:
  intent: {name: train, path: intents/vision/train.yaml, commit: "", author: "", digest: "", replica: 0, part: 0}
  consumer: rome
  provider: paris
  flavor: h100
  slice: ` + name + `
  resources: {cpu: "32", memory: 256Gi, pods: "110", ephemeral-storage: 100Gi, nvidia.com/gpu: "4"}
  gpus: {count: 4, model: nvidia-h100, resourceName: nvidia.com/gpu}
  price: {hourly: "12", list: "12", currency: EUR, class: on-demand}
  term: {start: "2026-11-01T12:00:00Z"` + more + `
status: {phase: ` + phase + `, since: "2026-11-01T12:00:00Z"}
`
}

const open = `}
  offload: {namespaces: [{name: vision, podSelector: {matchLabels: {team: vision}}}]}`

func TestGuides(t *testing.T) {
	spec := &v1alpha1.IntentSpec{Offload: &v1alpha1.Offload{Namespaces: []v1alpha1.OffloadNamespace{{Name: "vision"}}}}
	queued := &v1alpha1.IntentState{Status: v1alpha1.IntentStatus{Path: "intents/vision/train.yaml", State: v1alpha1.IntentQueued, Message: "none of 2 offers fits: 2 lack\x1b[31m GPUs."}}
	for name, in := range map[string]howto.Input{
		"new":      {Spec: spec, Consumer: "rome"},
		"nowhere":  {},
		"queued":   {Spec: spec, Consumer: "rome", State: queued},
		"reserved": {Spec: spec, Consumer: "rome", Contracts: contracts(t, contract("vision-train-0", "Reserved", open))},
		"active": {Spec: spec, Consumer: "rome", Kind: howto.Deployment, Contracts: contracts(t,
			contract("vision-train-1", "Active", `, end: "2026-12-01T12:00:00Z"`+open), contract("vision-train-0", "Active", open), contract("vision-train-9", "Released", open))},
		"reserve": {Consumer: "rome", Contracts: contracts(t, contract("vision-train-0", "Reserved", "}\n  stage: reserve"))},
		// Nobody may deploy before a namespace is named, whether it is ready or not.
		"no-offload-reserved": {Spec: &v1alpha1.IntentSpec{}, Consumer: "rome", Contracts: contracts(t, contract("vision-train-0", "Reserved", "}"))},
		"no-offload":          {Consumer: "rome", Contracts: contracts(t, contract("vision-train-0", "Active", "}"))},
	} {
		in.Tenant, in.Name, in.Currency = "vision", "train", "EUR"
		in.Hourly = v1alpha1.DecimalFromInt(int64(12 * len(in.Contracts)))
		t.Run(name, func(t *testing.T) {
			got := howto.Text(howto.Of(in))
			if strings.Contains(got, "\x1b") {
				t.Error("an escape of a ledger's text is written raw")
			}
			golden := filepath.Join("testdata", name+".txt")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// Where there is no manifest, the guide names what is missing, and is not ready.
func TestGuide_WithoutManifest(t *testing.T) {
	for name, c := range map[string]struct {
		held []*v1alpha1.Contract
		want string
	}{
		"nothing held":          {nil, "It holds nothing yet"},
		"stage reserve":         {contracts(t, contract("vision-train-0", "Reserved", "}\n  stage: reserve")), "Set `stage: peer`"},
		"no namespace":          {contracts(t, contract("vision-train-0", "Active", "}")), "name one under `offload.namespaces`"},
		"no namespace reserved": {contracts(t, contract("vision-train-0", "Reserved", "}")), "name one under `offload.namespaces`"},
	} {
		g := howto.Of(howto.Input{Tenant: "vision", Name: "train", Currency: "EUR", Spec: &v1alpha1.IntentSpec{}, Contracts: c.held})
		if got := g.Missing().Text; g.Manifest != "" || g.Ready || !strings.Contains(got, c.want) {
			t.Errorf("%s: ready %v, manifest %q, missing %q; want %q", name, g.Ready, g.Manifest, got, c.want)
		}
	}
}

// Manifests are what Kubernetes reads, and a pod of theirs fits onto each virtual node.
func TestManifestFits(t *testing.T) {
	held := contracts(t, contract("vision-train-0", "Active", open+"\n  virtualNode: {shares: [{gpu: \"3\"}, {gpu: \"1\"}]}"), contract("vision-train-1", "Active", open))
	pod := func(kind string) (corev1.PodSpec, map[string]string, int32) {
		text := []byte(howto.Manifest(kind, held))
		switch kind {
		case howto.Job:
			o := batchv1.Job{}
			if err := yaml.UnmarshalStrict(text, &o); err != nil {
				t.Fatal(err)
			}
			return o.Spec.Template.Spec, o.Spec.Template.Labels, *o.Spec.Completions
		case howto.Deployment:
			o := appsv1.Deployment{}
			if err := yaml.UnmarshalStrict(text, &o); err != nil {
				t.Fatal(err)
			}
			return o.Spec.Template.Spec, o.Spec.Template.Labels, *o.Spec.Replicas
		}
		o := corev1.Pod{}
		if err := yaml.UnmarshalStrict(text, &o); err != nil {
			t.Fatal(err)
		}
		return o.Spec, o.Labels, 3
	}
	for _, kind := range howto.Kinds() {
		spec, labels, count := pod(kind)
		if count != 3 {
			t.Errorf("%s has %d pods for three virtual nodes", kind, count)
		}
		if labels["team"] != "vision" {
			t.Errorf("%s: the namespace's podSelector does not choose labels %v", kind, labels)
		}
		for _, c := range held {
			for _, node := range c.VirtualNodes() {
				for name, want := range spec.Containers[0].Resources.Limits {
					has := resource.MustParse(node.Resources[string(name)].Canonical(string(name)))
					if want.Cmp(has) > 0 {
						t.Errorf("%s asks for %s of %s, and %s has %s", kind, want.String(), name, node.Name, has.String())
					}
				}
			}
		}
	}
}

// Pods have labels that all of a namespace's podSelector holds for.
func TestManifestMeetsExpressions(t *testing.T) {
	more := strings.Replace(open, "{team: vision}", "{team: vision}, matchExpressions: [{key: tier, operator: In, values: [gpu, any]}, {key: app, operator: NotIn, values: [train]}, {key: owner, operator: Exists}, {key: debug, operator: DoesNotExist}]", 1)
	o := appsv1.Deployment{}
	if err := yaml.UnmarshalStrict([]byte(howto.Manifest(howto.Deployment, contracts(t, contract("vision-train-0", "Active", more)))), &o); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"team": "vision", "tier": "gpu", "owner": "true", "app.kubernetes.io/name": "train"}
	if got := o.Spec.Template.Labels; !maps.Equal(got, want) || !maps.Equal(o.Spec.Selector.MatchLabels, want) {
		t.Errorf("labels %v, want %v", got, want)
	}
}
