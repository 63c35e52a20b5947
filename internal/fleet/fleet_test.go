package fleet

import (
	stdctx "context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
)

const group = "apiVersion: fleetbroker.io/v1alpha1\n"

// files is a fleet repo's inputs by path.
type files map[string]string

// base is a small good fleet; each test adds what it is about.
func base() files {
	return files{
		"fleet.yaml":            group + "kind: Fleet\nmetadata: {name: acme}\nspec: {rates: [{from: USD, to: EUR, rate: \"0.92\", date: 2026-11-01}]}\n",
		"clusters/rome.yaml":    group + "kind: Cluster\nmetadata: {name: rome}\nspec: {roles: [consumer], location: {region: eu-south-1}}\n",
		"clusters/paris.yaml":   group + "kind: Cluster\nmetadata: {name: paris}\nspec: {roles: [provider, consumer], location: {region: eu-west-3}}\n",
		"tenants/vision.yaml":   group + "kind: Tenant\nmetadata: {name: vision}\nspec: {consumers: [rome]}\n",
		"intents/vision/a.yaml": intent("vision", "a", "resources: {gpu: \"H100:1\"}"),
	}
}

func intent(tenant, name, spec string) string {
	return group + fmt.Sprintf("kind: ResourceIntent\nmetadata: {name: %s, namespace: %s}\nspec: {%s}\n", name, tenant, spec)
}

func (f files) with(more ...string) files {
	out := maps.Clone(f)
	for i := 0; i < len(more); i += 2 {
		if more[i+1] == "" {
			delete(out, more[i])
			continue
		}
		out[more[i]] = more[i+1]
	}
	return out
}

func (f files) build(m *tree.Memory) tree.Tree {
	b := map[string][]byte{}
	for name, content := range f {
		b[name] = []byte(content)
	}
	return m.Build(b)
}

func read(t testing.TB, r *Reader, f files, last *Fleet, older ...tree.Tree) *Fleet {
	t.Helper()
	out, err := r.Read(stdctx.Background(), f.build(tree.NewMemory()), last, older...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// describe draws everything that a Fleet says, for comparing.
func describe(f *Fleet) string {
	var b strings.Builder
	enc := func(what string, v any) {
		j, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(&b, "%s %s\n", what, j)
	}
	enc("fleet "+f.Name, f.Policy)
	for _, n := range sortedKeys(f.Clusters) {
		enc("cluster", f.Clusters[n])
	}
	for _, n := range sortedKeys(f.Tenants) {
		enc("tenant", f.Tenants[n])
	}
	enc("flavors", f.Flavors)
	enc("prices", f.Prices)
	for _, p := range f.Policies {
		fmt.Fprintf(&b, "policy %s %v\n", p.Name, p.Predicate != nil)
	}
	for _, in := range f.Intents {
		enc(fmt.Sprintf("intent %s %s %q %s %v", in.Path, in.Digest, in.Problem, in.ProblemCode, in.Where != nil), in.ResourceIntent)
	}
	for _, fr := range f.Frozen {
		fmt.Fprintf(&b, "frozen %+v\n", fr)
	}
	for _, d := range f.Diagnostics {
		fmt.Fprintf(&b, "%s %s %s\n", d.Severity, d.Code, d)
	}
	return b.String()
}

func names(f *Fleet) []string {
	var out []string
	for _, in := range f.Intents {
		out = append(out, in.Metadata.Namespace+"/"+in.Metadata.Name)
	}
	return out
}

func diagnostics(f *Fleet) []string {
	var out []string
	for _, d := range f.Diagnostics {
		out = append(out, string(d.Severity)+" "+d.String())
	}
	return out
}

func TestReadsAGoodFleet(t *testing.T) {
	f := read(t, NewReader(), base().with(
		"intents/vision/deep/er/b.yml", intent("vision", "b", "resources: {cpu: 1}, placement: {where: 'flavor.price.hourly < 3.0'}"),
		"intents/vision/README.md", "no input",
		"flavors/paris/h100.yaml", group+"kind: Flavor\nmetadata: {name: h100, namespace: paris}\nspec: {capacity: {cpu: 64, gpu: 8}, gpu: {model: nvidia-h100}}\n",
		"prices/p.yaml", group+"kind: PriceTable\nmetadata: {name: p}\nspec: {currency: USD, prices: [{provider: paris, model: nvidia-h100, perHour: {gpu: \"3\"}}]}\n",
	), nil)
	if len(f.Diagnostics) > 0 {
		t.Errorf("diagnostics of a good fleet: %v", diagnostics(f))
	}
	if got, want := names(f), []string{"vision/a", "vision/b"}; !slices.Equal(got, want) {
		t.Errorf("intents: got %v, want %v", got, want)
	}
	if f.Intents[1].Where == nil || f.Intents[0].Where != nil {
		t.Error("where was not compiled for b alone")
	}
	if f.Name != "acme" || f.Policy.Currency != "EUR" || f.Policy.Defaults.CPU.Amount("cpu").Int64() != 4000 || f.Policy.WriteBack.Branch != "main" {
		t.Errorf("defaults: %+v", f.Policy)
	}
	if len(f.Flavors) != 1 || len(f.Prices) != 1 || len(f.Clusters) != 2 || len(f.Tenants) != 1 {
		t.Errorf("got %d flavors, %d prices, %d clusters, %d tenants", len(f.Flavors), len(f.Prices), len(f.Clusters), len(f.Tenants))
	}
	if !strings.HasPrefix(f.Intents[0].Digest, "sha256:") {
		t.Errorf("digest %q", f.Intents[0].Digest)
	}
}

// Semantic mistakes refuse the intent, with the place of the mistake.
func TestProblemsOfIntents(t *testing.T) {
	for name, tc := range map[string]struct {
		spec string
		want string // "line:column: part"
		code string
	}{
		"enum":                 {"resources: {cpu: 1}, objective: cheap", `4:40: spec.objective: unknown value "cheap"; write one of balanced`, "BadValue"},
		"enum, near":           {"resources: {cpu: 1}, stage: peers", `4:36: spec.stage: unknown value "peers" (did you mean "peer"?)`, "BadValue"},
		"priority":             {"resources: {cpu: 1}, priority: 1001", "4:39: spec.priority: 1001 is not between 0 and 1000", "BadValue"},
		"no replicas":          {"resources: {cpu: 1}, replicas: 0", "suspend: true", "BadValue"},
		"unknown resource":     {"resources: {memroy: 1Gi}", `4:20: unknown resource "memroy" (did you mean "memory"?)`, "BadName"},
		"unqualified resource": {"resources: {hca: 1}", "an extended resource has a domain", "BadName"},
		"shares too big":       {`resources: {cpu: 4, gpu: 2}, virtualNode: {shares: [{cpu: 2, gpu: 1}, {cpu: 2, gpu: 2}]}`, "together they have 3 gpu, and spec.resources only 2", "BadValue"},
		"shares, alternative":  {`resources: {cpu: 4, gpu: 2}, alternatives: [{gpu: 1}], virtualNode: {shares: [{gpu: 1}, {gpu: 1}]}`, "together they have 2 gpu, and spec.alternatives[0] only 1", "BadValue"},
		"shares, not alike":    {`resources: {cpu: 4}, virtualNode: {shares: [{cpu: 2}, {}]}`, "spec.virtualNode.shares[1] has no cpu", "BadValue"},
		"shares of what":       {`resources: {cpu: 4}, virtualNode: {shares: [{memory: 1Gi}]}`, "name memory, which spec.resources does not", "BadValue"},
		"shares of nothing":    {`resources: {cpu: 4}, virtualNode: {shares: [{cpu: 0}]}`, "a Node without it is never ready", "BadValue"},
		"shares of a part":     {`resources: {gpu: {share: "0.5"}}, virtualNode: {shares: [{gpu: 1}]}`, "a part of one GPU is not shared again", "BadValue"},
		"another's Secret":     {`resources: {cpu: 1}, virtualNode: {kubeconfigSecretRef: {name: kubeconfig-resourceslice-nlp}}`, "of other slices", "BadName"},
		"key of the Secret":    {`resources: {cpu: 1}, virtualNode: {kubeconfigSecretRef: {name: mine, key: config}}`, "under the key kubeconfig", "BadValue"},
		"count and share":      {"resources: {gpu: {count: 1, share: \"0.5\"}}", "either count or share", "BadValue"},
		"budget of nothing":    {"resources: {cpu: 1}, budget: {maxHourly: \"0\"}", "is not more than 0", "BadValue"},
		"window":               {"resources: {cpu: 1}, schedule: {windows: [{from: \"8:00\", to: \"24:00\"}]}", `"8:00" is not a time of day`, "BadValue"},
		"day":                  {"resources: {cpu: 1}, schedule: {windows: [{days: [Mo], from: \"08:00\", to: \"24:00\"}]}", `did you mean "Mon"`, "BadValue"},
		"timezone":             {"resources: {cpu: 1}, schedule: {windows: [{from: \"08:00\", to: \"24:00\", timezone: Europe/Roma}]}", "is not a timezone", "BadValue"},
		"deadline":             {"resources: {cpu: 1}, schedule: {duration: 72h, notBefore: 2026-12-01T08:00:00Z, deadline: 2026-12-02T08:00:00Z}", "does not fit", "BadValue"},
		"consumer":             {"resources: {cpu: 1}, consumer: rom", `4:39: there is no cluster rom (did you mean "rome"?)`, "UnknownConsumer"},
		"consumer's right":     {"resources: {cpu: 1}, consumer: paris", "tenant vision may not have capacity in cluster paris", "ConsumerNotEntitled"},
		"currency":             {"resources: {cpu: 1}, budget: {maxHourly: \"1\", currency: GBP}", "4:64: spec.budget.currency: no rate turns GBP into EUR", "UnknownCurrency"},
		"namespace":            {"resources: {cpu: 1}, offload: {namespaces: [{name: nlp}]}", "4:59: tenant vision may not offload namespace nlp", "NamespaceNotEntitled"},
		"system namespace":     {"resources: {cpu: 1}, offload: {namespaces: [{name: kube-system}]}", "never offloaded", "NamespaceNotEntitled"},
		"expression":           {"resources: {cpu: 1}, placement: {where: 'flavor.gpu.modell == \"x\"'}", `4:59: spec.placement.where: unknown field "modell" (did you mean "model"?)`, "BadExpression"},
		"our labels":           {"resources: {cpu: 1}, virtualNode: {labels: {liqo.io/type: x}}", "not yours to set", "BadName"},
		"role of a node":       {"resources: {cpu: 1}, virtualNode: {labels: {node-role.kubernetes.io/control-plane: x}}", "say what a node is", "BadName"},
		"label of a vendor":    {"resources: {cpu: 1}, virtualNode: {labels: {nvidia.com/gpu.product: x}}", "say what a node is", "BadName"},
		"taint of Kubernetes":  {"resources: {cpu: 1}, virtualNode: {taints: [{key: node.kubernetes.io/unschedulable, effect: NoSchedule}]}", "not yours to set", "BadName"},
		"long key of a taint":  {"resources: {cpu: 1}, virtualNode: {taints: [{key: " + strings.Repeat("k", 64) + ", effect: NoSchedule}]}", "is not the key of a taint", "BadName"},
		"value of a taint":     {"resources: {cpu: 1}, virtualNode: {taints: [{key: team, value: \"a b\", effect: NoSchedule}]}", "is not the value of a taint", "BadValue"},
		"long value":           {"resources: {cpu: 1}, virtualNode: {taints: [{key: team, value: " + strings.Repeat("v", 64) + ", effect: NoSchedule}]}", "is not the value of a taint", "BadValue"},
		"Secret of nobody":     {"resources: {cpu: 1}, virtualNode: {kubeconfigSecretRef: {name: nlp-at-paris}}", "tenant vision may not use Secret nlp-at-paris of cluster rome; declare it under spec.secrets of tenants/vision.yaml", "SecretNotEntitled"},
		"remote name":          {"resources: {cpu: 1}, offload: {namespaces: [{name: vision, remoteNamespaceName: x}]}", "SelectedName only", "BadValue"},
	} {
		t.Run(name, func(t *testing.T) {
			f := read(t, NewReader(), base().with("intents/vision/b.yaml", intent("vision", "b", tc.spec)), nil)
			if !slices.Equal(names(f), []string{"vision/a", "vision/b"}) {
				t.Fatalf("intents: %v; %v", names(f), diagnostics(f))
			}
			in := f.Intents[1]
			if !strings.HasPrefix(in.Problem, "intents/vision/b.yaml:") || !strings.Contains(in.Problem, tc.want) || in.ProblemCode != tc.code {
				t.Errorf("got  %s (%s)\nwant %s (%s)", in.Problem, in.ProblemCode, tc.want, tc.code)
			}
			if len(f.Frozen) > 0 || f.Intents[0].Problem != "" {
				t.Errorf("others were touched: %v, %s", f.Frozen, f.Intents[0].Problem)
			}
		})
	}
}

func TestWarningsDoNotRefuse(t *testing.T) {
	f := read(t, NewReader(), base().with("intents/vision/b.yaml",
		intent("vision", "b", "resources: {cpu: 1}, placement: {providers: {deny: [milan]}, regions: [eu-west-33]}")), nil)
	if f.Intents[1].Problem != "" || len(f.Diagnostics) != 2 || len(f.Errors()) > 0 {
		t.Errorf("got %v, problem %q", diagnostics(f), f.Intents[1].Problem)
	}
	if !strings.Contains(f.Diagnostics[1].Message, `did you mean "eu-west-3"`) {
		t.Errorf("got %v", diagnostics(f))
	}
}

// A tenant subscribes to events that there are.
func TestNotify(t *testing.T) {
	for events, want := range map[string]string{
		"[active, budget]": "", "[all]": "",
		"[]":         "tenants/vision.yaml:4:45: spec.notify[0].events is empty; name events, or write [all]",
		"[degradde]": `spec.notify[0].events[0]: unknown value "degradde" (did you mean "degraded"?)`,
	} {
		f := read(t, NewReader(), base().with("tenants/vision.yaml",
			group+"kind: Tenant\nmetadata: {name: vision}\nspec: {consumers: [rome], notify: [{events: "+events+", urlSecretRef: {name: x}}]}\n"), nil)
		if got := strings.Join(diagnostics(f), "\n"); !strings.Contains(got, want) || (want == "") != (got == "") {
			t.Errorf("%s: got %q, want %q", events, got, want)
		}
	}
}

// A document whose name does not end in .yaml is not read, and a warning says so.
func TestFilesUnderOtherNamesAreNamed(t *testing.T) {
	r := NewReader()
	for name, want := range map[string]string{
		"intents/vision/b.json":     "warning intents/vision/b.json:1:1: the file is not read: documents are named *.yaml; rename it to b.yaml",
		"intents/vision/sub/b.YAML": "warning intents/vision/sub/b.YAML:1:1: the file is not read: documents are named *.yaml; rename it to b.yaml",
		"intents/b.yaml.txt":        "warning intents/b.yaml.txt:1:1: the file is not read: documents are named *.yaml; rename it to b.yaml",
		"clusters/milan.Yml":        "warning clusters/milan.Yml:1:1: the file is not read: documents are named *.yaml; rename it to milan.yaml",
		"intents/vision/README.md":  "",
	} {
		f := read(t, r, base().with(name, intent("vision", "b", "resources: {cpu: 1}")), nil)
		if got := strings.Join(diagnostics(f), "\n"); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
		if len(f.Frozen) > 0 || !slices.Equal(names(f), []string{"vision/a"}) {
			t.Errorf("%s: frozen %v, intents %v", name, f.Frozen, names(f))
		}
	}
}

// What cannot be read freezes what it named, and nobody else.
func TestUnreadableFilesFreeze(t *testing.T) {
	for name, tc := range map[string]struct {
		files  []string
		frozen []string // path, or tenant/intent
		want   string
	}{
		"typo":          {[]string{"intents/vision/b.yaml", intent("vision", "b", "resources: {cpu: 1}, budgets: {}")}, []string{"intents/vision/b.yaml", "vision/b"}, `intents/vision/b.yaml:4:29: unknown field "budgets" (did you mean "budget"?)`},
		"syntax":        {[]string{"intents/vision/b.yaml", "a: [\n"}, []string{"intents/vision/b.yaml"}, "intents/vision/b.yaml:1:1: the YAML cannot be read"},
		"empty":         {[]string{"intents/vision/b.yaml", "# later\n"}, []string{"intents/vision/b.yaml"}, "holds no document"},
		"wrong kind":    {[]string{"intents/vision/b.yaml", group + "kind: Tenant\nmetadata: {name: b}\nspec: {consumers: [rome]}\n"}, []string{"intents/vision/b.yaml", "vision/b"}, "a Tenant does not belong here; it belongs in tenants/"},
		"wrong tenant":  {[]string{"intents/vision/b.yaml", intent("nlp", "b", "resources: {cpu: 1}")}, []string{"intents/vision/b.yaml"}, `metadata.namespace is "nlp", but the directory is that of tenant "vision"`},
		"no tenant":     {[]string{"intents/b.yaml", intent("vision", "b", "resources: {cpu: 1}")}, []string{"intents/b.yaml"}, "must lie in a directory named after its tenant"},
		"bad name":      {[]string{"intents/vision/b.yaml", intent("vision", "B_b", "resources: {cpu: 1}")}, []string{"intents/vision/b.yaml", "vision/B_b"}, "write b-b"},
		"one of two":    {[]string{"intents/vision/b.yaml", intent("vision", "b", "resources: {cpu: 1}") + "---\n" + intent("vision", "c", "x: 1")}, []string{"intents/vision/b.yaml", "vision/b", "vision/c"}, "intents/vision/b.yaml:9:8: unknown field"},
		"same name":     {[]string{"intents/vision/b.yaml", intent("vision", "b", "resources: {cpu: 1}"), "intents/vision/c.yaml", intent("vision", "b", "resources: {cpu: 2}")}, []string{"vision/b"}, "intents/vision/b.yaml:3:18: intent b is in intents/vision/c.yaml too"},
		"wrong version": {[]string{"intents/vision/b.yaml", strings.Replace(intent("vision", "b", "resources: {cpu: 1}"), "v1alpha1", "v1", 1)}, []string{"intents/vision/b.yaml", "vision/b"}, `apiVersion "fleetbroker.io/v1" is not supported`},
	} {
		t.Run(name, func(t *testing.T) {
			f := read(t, NewReader(), base().with(tc.files...), nil)
			if !slices.Equal(names(f), []string{"vision/a"}) {
				t.Errorf("intents: %v", names(f))
			}
			var got []string
			for _, fr := range f.Frozen {
				got = append(got, strings.TrimPrefix(fr.Path+" "+fr.Tenant+"/"+fr.Intent, " "))
				if !strings.HasPrefix(fr.Why, "intents/") {
					t.Errorf("why %q has no place", fr.Why)
				}
			}
			slices.Sort(got)
			want := slices.Clone(tc.frozen)
			for i, w := range want {
				if strings.HasSuffix(w, ".yaml") {
					want[i] = w + " /"
				}
			}
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("frozen: got %q, want %q", got, want)
			}
			if !strings.Contains(strings.Join(diagnostics(f), "\n"), tc.want) {
				t.Errorf("got %q, want %s", diagnostics(f), tc.want)
			}
		})
	}
}

// A broken policy file keeps its last good version: that of the last Fleet,
// after a restart that of an older tree; else everything of it is frozen.
func TestBrokenPolicyFilesKeepTheirLastGoodVersion(t *testing.T) {
	for p, check := range map[string]func(*Fleet) bool{
		"fleet.yaml":          func(f *Fleet) bool { return f.Name == "acme" && len(f.Policy.Rates) == 1 },
		"clusters/rome.yaml":  func(f *Fleet) bool { return f.Clusters["rome"] != nil },
		"tenants/vision.yaml": func(f *Fleet) bool { return f.Tenants["vision"] != nil },
	} {
		broken := base().with(p, "kind: [\n")
		r := NewReader()
		first := read(t, r, base(), nil)
		second := read(t, r, broken, first)
		if !check(second) || len(second.Frozen) > 0 || len(second.Errors()) != 1 {
			t.Errorf("%s after the last fleet: frozen %v, %v", p, second.Frozen, diagnostics(second))
		}
		third := read(t, r, broken.with("intents/vision/b.yaml", intent("vision", "b", "resources: {cpu: 1}")), second)
		if !check(third) || len(third.Intents) != 2 || len(third.Errors()) != 1 {
			t.Errorf("%s two commits later: %v", p, diagnostics(third))
		}
		older := base().build(tree.NewMemory())
		restarted := read(t, NewReader(), broken, nil, tree.Tree{}, broken.build(tree.NewMemory()), older)
		if !check(restarted) || len(restarted.Frozen) > 0 {
			t.Errorf("%s after a restart: frozen %v, %v", p, restarted.Frozen, diagnostics(restarted))
		}
		unknown := read(t, NewReader(), broken, nil)
		if len(unknown.Frozen) != 1 || unknown.Policy == nil {
			t.Errorf("%s never good: frozen %v", p, unknown.Frozen)
		}
		mended := read(t, r, base(), third)
		if len(mended.Diagnostics) > 0 {
			t.Errorf("%s mended: %v", p, diagnostics(mended))
		}
	}
}

// Where a cluster's Liqo works is nobody's, as long as its file says so.
func TestNamespacesOfLiqo(t *testing.T) {
	r := NewReader()
	for _, c := range []struct {
		liqo, namespace string
		ok              bool
	}{{"{}", "peers", true}, {"{namespace: peers}", "peers", false}, {"{tenantNamespace: peers}", "peers", false}, {"{namespace: peers}", "ml", true}, {"{}", "peers", true}} {
		f := read(t, r, base().with(
			"clusters/paris.yaml", group+"kind: Cluster\nmetadata: {name: paris}\nspec: {roles: [provider], liqo: "+c.liqo+"}\n",
			"tenants/vision.yaml", group+"kind: Tenant\nmetadata: {name: vision}\nspec: {consumers: [rome], namespaces: [\"*\"]}\n",
			"intents/vision/a.yaml", intent("vision", "x", "resources: {cpu: 1}, offload: {namespaces: [{name: "+c.namespace+"}]}")), nil)
		if problem := f.Intents[0].Problem; (problem == "") != c.ok {
			t.Errorf("liqo %s, namespace %s: got %q, want it taken: %v", c.liqo, c.namespace, problem, c.ok)
		}
	}
}

func TestNamespaceClaims(t *testing.T) {
	tenant := func(name, namespaces string) string {
		return group + fmt.Sprintf("kind: Tenant\nmetadata: {name: %s}\nspec: {consumers: [rome], namespaces: [%s]}\n", name, namespaces)
	}
	offload := func(tenant, ns string) string {
		return intent(tenant, "x", "resources: {cpu: 1}, offload: {namespaces: [{name: "+ns+"}]}")
	}
	for name, tc := range map[string]struct {
		vision, nlp   string
		visionNS      string
		ok            bool
		overlapErrors int
	}{
		"exact":                   {"a", "b", "a", true, 0},
		"pattern":                 {`"ml-*"`, "b", "ml-1", true, 0},
		"exact beats pattern":     {`"ml-*"`, "ml-1", "ml-1", false, 0},
		"pattern beside exact":    {`"ml-*"`, "ml-1", "ml-2", true, 0},
		"both exact":              {"a", "a", "a", false, 2},
		"patterns overlap":        {`"ml-*"`, `"*-x"`, "ml-1", false, 2},
		"patterns do not overlap": {`"ml-*"`, `"nl-*"`, "ml-1", true, 0},
		"star never covers kube":  {`"*"`, "b", "kube-system", false, 0},
	} {
		f := read(t, NewReader(), base().with(
			"tenants/vision.yaml", tenant("vision", tc.vision), "tenants/nlp.yaml", tenant("nlp", tc.nlp),
			"intents/vision/a.yaml", offload("vision", tc.visionNS)), nil)
		if got := f.Intents[0].Problem == ""; got != tc.ok {
			t.Errorf("%s: entitled %v, want %v (%s)", name, got, tc.ok, f.Intents[0].Problem)
		}
		n := 0
		for _, d := range f.Diagnostics {
			if d.Code == "NamespaceOverlap" {
				n++
			}
		}
		if n != tc.overlapErrors {
			t.Errorf("%s: %d overlaps, want %d: %v", name, n, tc.overlapErrors, diagnostics(f))
		}
	}
}

// Where tenants' accounts apply, no tenant's name begins with another's: the guard of a
// consumer tells by names whose a virtual node is that Liqo made.
func TestTenantsThatBeginAlike(t *testing.T) {
	tenant := func(name, consumers string) string {
		return group + fmt.Sprintf("kind: Tenant\nmetadata: {name: %s}\nspec: {consumers: [%s], namespaces: [%s]}\n", name, consumers, name)
	}
	cluster := func(name, delivery string) string {
		return group + fmt.Sprintf("kind: Cluster\nmetadata: {name: %s}\nspec: {roles: [consumer], delivery: %s}\n", name, delivery)
	}
	for what, c := range map[string]struct{ name, consumers, of, delivery, want string }{
		"with flux":         {"vision-x", "milan", "milan", "flux", "that of vision could take over virtual nodes of vision-x"},
		"with argocd":       {"vision-x-y", "milan", "milan", "argocd", "that of vision could take over virtual nodes of vision-x-y"},
		"delivered direct":  {"vision-x", "milan", "milan", "direct", ""},
		"on other clusters": {"vision-x", "milan", "rome", "flux", ""},
		"another word":      {"visionary", "milan", "milan", "flux", ""},
	} {
		f := read(t, NewReader(), base().with("clusters/milan.yaml", cluster("milan", c.delivery),
			"tenants/vision.yaml", tenant("vision", c.of), "tenants/"+c.name+".yaml", tenant(c.name, c.consumers)), nil)
		said := ""
		for _, d := range f.Diagnostics {
			if d.Code == "TenantPrefix" {
				said += d.String()
			}
		}
		if (said != "") != (c.want != "") || !strings.Contains(said, c.want) {
			t.Errorf("%s: %q, want %q", what, said, c.want)
		}
	}
}

func TestSiblingsThatContradict(t *testing.T) {
	in := func(name, placement string) string {
		return intent("vision", name, "resources: {cpu: 1}, placement: {"+placement+"}")
	}
	f := read(t, NewReader(), base().with("intents/vision/b.yaml", in("b", "together: [c]"), "intents/vision/c.yaml", in("c", "together: [d]"),
		"intents/vision/d.yaml", in("d", "apart: [b]"), "intents/vision/e.yaml", in("e", "together: [f, nlp/x]"), "intents/vision/f.yaml", in("f", "together: [e]")), nil)
	want := []string{
		"intents/vision/d.yaml:4:49: spec.placement.apart[0]: d must be together with b, by what placement.together says of them or of others between them; take one of the two out",
		"intents/vision/e.yaml:4:52: spec.placement.together[0] goes round: e → f → e; to name it on one side is enough, and with both none of them is placed before the other",
		"intents/vision/e.yaml:4:55: spec.placement.together[1]: nlp/x is not the name of an intent; write the bare name of an intent of tenant vision; those of other tenants cannot be named",
		"intents/vision/f.yaml:4:52: spec.placement.together[0] goes round: f → e → f; to name it on one side is enough, and with both none of them is placed before the other",
	}
	var got []string
	for _, d := range f.Diagnostics {
		got = append(got, d.String())
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
}

func TestSiblings(t *testing.T) {
	renamed := strings.Replace(intent("vision", "b", "resources: {cpu: 1}"), "namespace: vision", "namespace: vision, annotations: {fleetbroker.io/renamed-from: a}", 1)
	r := NewReader()
	f := read(t, r, base().with("intents/vision/b.yaml", renamed, "intents/vision/c.yaml", intent("vision", "c", "resources: {cpu: 1}, placement: {together: [b], apart: [d]}")), nil)
	if f.Intents[1].ProblemCode != "RenamedFromExists" || !strings.HasPrefix(f.Intents[1].Problem, "intents/vision/b.yaml:3:83: intent a still exists") {
		t.Errorf("got %q", f.Intents[1].Problem)
	}
	if f.Intents[2].Problem != "" || len(f.Diagnostics) != 2 || !strings.Contains(f.Diagnostics[1].String(), "intents/vision/c.yaml:4:64: spec.placement.apart[0]: tenant vision has no intent d") {
		t.Errorf("got %v", diagnostics(f))
	}
	f = read(t, r, base().with("intents/vision/a.yaml", "", "intents/vision/b.yaml", renamed), f)
	if len(f.Diagnostics) > 0 || f.Intents[0].Problem != "" {
		t.Errorf("after the renaming: %v", diagnostics(f))
	}
}

// How a warm pool is sized must make sense.
func TestWarmPoolsSizes(t *testing.T) {
	for name, tc := range map[string]struct{ pool, want string }{
		"fixed":          {`count: 2`, ""},
		"by forecast":    {`count: 0, max: 3, forecast: {ahead: 2h, margin: "0.5"}`, ""},
		"max alone":      {`count: 2, max: 3`, "warmPools[0].max is for pools that follow a forecast"},
		"no max":         {`count: 2, forecast: {}`, "no less than count"},
		"less than none": {`count: 0, max: 0, forecast: {}`, "at least 1"},
		"half hours":     {`count: 0, max: 3, forecast: {ahead: 90m}`, "not a whole number of hours from 1h to 24h"},
		"too far":        {`count: 0, max: 3, forecast: {ahead: 25h}`, "not a whole number of hours from 1h to 24h"},
		"margin":         {`count: 0, max: 3, forecast: {margin: "-1"}`, "forecast.margin: -1 is negative"},
		"a share":        {`count: 0, max: 3, forecast: {}, resources: {gpu: {share: "0.5"}}`, "write resources.gpu with a count"},
	} {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(tc.pool, "resources") {
				tc.pool += `, resources: {gpu: "H100:1"}`
			}
			doc := group + "kind: Fleet\nmetadata: {name: acme}\nspec: {warmPools: [{name: w, consumer: rome, " + tc.pool + "}], rates: [{from: USD, to: EUR, rate: \"0.92\", date: 2026-11-01}]}\n"
			got := strings.Join(diagnostics(read(t, NewReader(), base().with("fleet.yaml", doc), nil)), "\n")
			if !strings.Contains(got, tc.want) || (tc.want == "") != (got == "") {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
