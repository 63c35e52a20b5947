package fleet

import (
	stdctx "context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
)

// pieces are what the property draws files from: good ones, bad ones, absent.
var pieces = map[string][]string{
	"fleet.yaml": {
		base()["fleet.yaml"], group + "kind: Fleet\nmetadata: {name: acme}\nspec: {currency: USD, policies: [{name: eu, require: 'flavor.location.country == \"FR\"'}]}\n", "x: [",
	},
	"clusters/rome.yaml":  {base()["clusters/rome.yaml"], "", group + "kind: Cluster\nmetadata: {name: rome}\nspec: {roles: [provider]}\n", "kind: ["},
	"clusters/paris.yaml": {base()["clusters/paris.yaml"], ""},
	"tenants/vision.yaml": {base()["tenants/vision.yaml"], "", "?", group + "kind: Tenant\nmetadata: {name: vision}\nspec: {consumers: [paris], namespaces: [\"v*\"]}\n"},
	"tenants/nlp.yaml":    {"", group + "kind: Tenant\nmetadata: {name: nlp}\nspec: {consumers: [rome], namespaces: [vision, \"*x\"]}\n", group + "kind: Tenant\nmetadata: {name: nlp}\nspec: {consumers: [rome], namespaces: [vx]}\n"},
	"flavors/paris/f.yaml": {
		"", group + "kind: Flavor\nmetadata: {name: h100, namespace: paris}\nspec: {capacity: {gpu: 8}, location: {region: r9}}\n", "-",
	},
	"intents/vision/a.yaml":               {base()["intents/vision/a.yaml"], "", intent("vision", "b", "resources: {cpu: 2}, placement: {regions: [r9]}"), "a:\n\tb"},
	"intents/vision/a-b.yaml":             {"", intent("vision", "b", "resources: {cpu: 1}, consumer: rome, budget: {maxHourly: \"1\", currency: USD}"), intent("vision", "a", "resources: {cpu: 3}")},
	"intents/vision/d/x.yaml":             {"", intent("vision", "x", "resources: {cpu: 1}, offload: {namespaces: [{name: vx}, {name: vision}]}") + "---\n" + intent("vision", "y", "resources: {cpu: 1}")},
	"intents/nlp/n.yaml":                  {"", intent("nlp", "n", "resources: {cpu: 1}, placement: {where: 'flavor.x'}"), intent("vision", "n", "resources: {cpu: 1}"), intent("nlp", "n", "resources: {cpu: 1}, placement: {together: [m], apart: [n]}")},
	"intents/nlp/m.yaml":                  {"", intent("nlp", "m", "resources: {cpu: 1}")},
	"intents/vision/k/i.yaml":             {"", intent("vision", "ki", "resources: {cpu: 1}")},
	"intents/vision/k/kustomization.yaml": {"", "resources: [i.yaml]\nnamePrefix: p-\n", "resources: [i.yaml, ../../../bases/b]\n", "resources: ['https://example.org/x']\n"},
	"bases/b/kustomization.yaml":          {"resources: [b.yaml]\n", ""},
	"bases/b/b.yaml":                      {intent("vision", "shared", "resources: {cpu: 1}"), intent("vision", "shared", "resources: {cpu: 2}"), ""},
}

// Reading step by step equals reading each tree from scratch, whatever
// changes: caches never show.
func TestIncrementalEqualsFull(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := tree.NewMemory()
		cur := files{}
		r := NewReader()
		var last *Fleet
		for step := range rapid.IntRange(2, 6).Draw(t, "steps") {
			for _, p := range sortedKeys(pieces) {
				if step == 0 || rapid.IntRange(0, 3).Draw(t, "change "+p) == 0 {
					cur = cur.with(p, rapid.SampledFrom(pieces[p]).Draw(t, p))
				}
			}
			at := cur.build(m)
			got, err := r.Read(stdctx.Background(), at, last)
			if err != nil {
				t.Fatal(err)
			}
			want, err := NewReader().Read(stdctx.Background(), at, last)
			if err != nil {
				t.Fatal(err)
			}
			if g, w := describe(got), describe(want); g != w {
				t.Fatalf("step %d:\n%s\n--- from scratch:\n%s", step, g, w)
			}
			last = got
		}
	})
}

// A Fleet that was handed out never changes.
func TestFleetsAreImmutable(t *testing.T) {
	r := NewReader()
	first := read(t, r, base(), nil)
	before := describe(first)
	read(t, r, base().with("clusters/rome.yaml", "", "intents/vision/z.yaml", "bad: [", "tenants/nlp.yaml", "x"), first)
	if after := describe(first); before != after {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

// large is a fleet of tenants with intents each.
func large(tenants, intents int) files {
	f := base()
	for i := range tenants {
		name := fmt.Sprintf("team-%03d", i)
		f["tenants/"+name+".yaml"] = group + fmt.Sprintf("kind: Tenant\nmetadata: {name: %s}\nspec: {consumers: [rome]}\n", name)
		for j := range intents {
			n := fmt.Sprintf("job-%05d", j)
			f["intents/"+name+"/"+n+".yaml"] = typical(name, n, j)
		}
	}
	return f
}

func typical(tenant, name string, i int) string {
	return group + fmt.Sprintf(`kind: ResourceIntent
metadata:
  name: %s
  namespace: %s
  labels: {app: training, owner: team-%d}
spec:
  consumer: rome
  replicas: 2
  resources:
    cpu: "%d"
    memory: 128Gi
    gpu:
      count: 4
      models: [nvidia-h100]
      memory: 80Gi
  placement:
    regions: [eu-west-3]
    providers: {deny: [rome]}
    where: 'flavor.gpu.interconnect == "nvlink"'
  budget: {maxHourly: "120", currency: EUR}
  priority: %d
  queue: {policy: wait, timeout: 24h}
  offload:
    namespaces: [{name: %s, create: true}]
`, name, tenant, i%7, i%60+4, i%500, tenant)
}

func BenchmarkColdRead100x1000(b *testing.B) {
	t := large(100, 1000).build(tree.NewMemory())
	for b.Loop() {
		f, err := NewReader().Read(stdctx.Background(), t, nil)
		if err != nil || len(f.Diagnostics) > 0 || len(f.Intents) != 100_001 {
			b.Fatal(err, len(f.Intents), diagnostics(f)[:1])
		}
	}
}

func BenchmarkOneFile100x1000(b *testing.B) { benchmarkOneFile(b, 100, 1000) }
func BenchmarkOneFile1x20000(b *testing.B)  { benchmarkOneFile(b, 1, 20_000) }

func benchmarkOneFile(b *testing.B, tenants, intents int) {
	m := tree.NewMemory()
	f := large(tenants, intents)
	r := NewReader()
	last, err := r.Read(stdctx.Background(), f.build(m), nil)
	if err != nil {
		b.Fatal(err)
	}
	var trees []tree.Tree
	for i := range 8 {
		trees = append(trees, f.with("intents/team-000/job-00500.yaml", typical("team-000", "job-00500", i)).build(m))
	}
	i := 0
	b.ResetTimer()
	for b.Loop() {
		i++
		if last, err = r.Read(stdctx.Background(), trees[i%len(trees)], last); err != nil {
			b.Fatal(err)
		}
	}
	if !slices.ContainsFunc(last.Intents, func(in *model.Intent) bool { return in.Metadata.Name == "job-00500" }) {
		b.Fatal("the intent is gone")
	}
}

// Intents that did not change are checked again when what they are checked
// against does.
func TestContextChanges(t *testing.T) {
	spec := "resources: {cpu: 1}, consumer: rome, budget: {maxHourly: \"1\", currency: USD}, placement: {regions: [eu-west-3]}, offload: {namespaces: [{name: ml-1}]}"
	start := base().with(
		"tenants/vision.yaml", group+"kind: Tenant\nmetadata: {name: vision}\nspec: {consumers: [rome], namespaces: [\"ml-*\"]}\n",
		"intents/vision/a.yaml", intent("vision", "a", spec))
	for name, tc := range map[string]struct {
		file, content string
		want          string
	}{
		"another's exact claim": {"tenants/nlp.yaml", group + "kind: Tenant\nmetadata: {name: nlp}\nspec: {consumers: [rome], namespaces: [ml-1]}\n", "namespace ml-1 belongs to tenant nlp"},
		"own claim":             {"tenants/vision.yaml", base()["tenants/vision.yaml"], "may not offload namespace ml-1"},
		"consumer gone":         {"clusters/rome.yaml", "", "there is no cluster rome"},
		"consumer's role":       {"clusters/rome.yaml", group + "kind: Cluster\nmetadata: {name: rome}\nspec: {roles: [provider]}\n", "is not a consumer"},
		"rate gone":             {"fleet.yaml", group + "kind: Fleet\nmetadata: {name: acme}\nspec: {}\n", "no rate turns USD into EUR"},
		"region gone":           {"clusters/paris.yaml", "", "names the region eu-west-3"},
		"tenant gone":           {"tenants/vision.yaml", "", "there is no tenant vision"},
	} {
		r := NewReader()
		good := read(t, r, start, nil)
		if len(good.Diagnostics) > 0 {
			t.Fatal(diagnostics(good))
		}
		bad := read(t, r, start.with(tc.file, tc.content), good)
		in := bad.Intent("vision", "a") // what a file of the fleet reports is no diagnostic of its intents
		if !slices.ContainsFunc(bad.Diagnostics, func(d Diagnostic) bool {
			return d.File == "intents/vision/a.yaml" && strings.Contains(d.Message, tc.want)
		}) && !strings.Contains(in.Problem, tc.want) {
			t.Errorf("%s: got %v, want %s", name, diagnostics(bad), tc.want)
		}
		if again := read(t, r, start, bad); describe(again) != describe(good) {
			t.Errorf("%s: after it was undone: %v", name, diagnostics(again))
		}
	}
}

// BenchmarkNewTenant100x1000: a change that makes every intent be checked
// again.
func BenchmarkNewTenant100x1000(b *testing.B) {
	m := tree.NewMemory()
	f := large(100, 1000)
	with := f.with("tenants/new.yaml", group+"kind: Tenant\nmetadata: {name: new}\nspec: {consumers: [rome]}\n").build(m)
	without := f.build(m)
	r := NewReader()
	last, err := r.Read(stdctx.Background(), without, nil)
	if err != nil {
		b.Fatal(err)
	}
	for i := 0; b.Loop(); i++ {
		next := with
		if i%2 == 1 {
			next = without
		}
		if last, err = r.Read(stdctx.Background(), next, last); err != nil {
			b.Fatal(err)
		}
	}
}
