package strictyaml

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

func decode[T any](t testing.TB, text string) (*T, []Problem) {
	t.Helper()
	docs, problems := Split([]byte(text))
	if len(problems) > 0 {
		return nil, problems
	}
	if len(docs) != 1 {
		t.Fatalf("%d documents in %q", len(docs), text)
	}
	doc, problems := Parse(docs[0])
	if len(problems) > 0 {
		return nil, problems
	}
	v := new(T)
	return v, doc.Decode(v)
}

const head = "apiVersion: fleetbroker.io/v1alpha1\nkind: ResourceIntent\nmetadata: {name: a, namespace: vision}\n"

// Every mistake has its place and says what to write.
func TestProblems(t *testing.T) {
	for name, tc := range map[string]struct {
		doc  string
		want []string // line:column: part of the message
	}{
		"unknown field": {"spec:\n  resources:\n    gpu: {count: 1}\n  budgett: {}\n", []string{`7:3: unknown field "budgett" (did you mean "budget"?)`}},
		"unknown field of gpu": {"spec:\n  resources:\n    gpu:\n      counts: 1\n", []string{
			`7:7: unknown field "counts" (did you mean "count"?)`}},
		"a no-break space":          {"spec:\n \u00a0resources: {cpu: 1}\n", []string{`5:2: unknown field "\u00a0resources": a no-break space (U+00A0) is next to resources`}},
		"a no-break space in a map": {"spec:\n  resources:\n    \u00a0cpu: 1\n", []string{`6:5: unknown resource "\u00a0cpu": a no-break space (U+00A0) is next to cpu`}},
		"another word":              {"spec:\n  resources: {cpu: 1}\n  schedule: {windows: [{start: '20:00', end: '06:00'}]}\n", []string{`6:25: unknown field "start" (did you mean "from"?)`, `6:41: unknown field "end" (did you mean "to"?)`}},
		"a word for regions":        {"spec:\n  resources: {cpu: 1}\n  placement: {locations: [IT]}\n", []string{`6:15: unknown field "locations" (did you mean "regions"?)`}},
		"a country":                 {"spec:\n  resources: {cpu: 1}\n  placement: {country: IT}\n", []string{`6:15: unknown field "country"; write where: 'flavor.location.country in ["IT", "FR"]', or regions`}},
		"a resource beside others":  {"spec:\n  gpu: 'H100:4'\n", []string{`5:3: unknown field "gpu"; it belongs under resources: write resources: {gpu: ...}`}},
		"an architecture":           {"spec:\n  resources: {cpu: 1, architecture: arm64}\n", []string{`5:23: spec.resources.architecture: an architecture is no resource; write placement: {architectures: [arm64]}`}},
		"a type of GPU":             {"spec:\n  resources:\n    gpu: {count: 1, type: H100}\n", []string{`6:21: unknown field "type" (did you mean "models"?)`}},
		"one model":                 {"spec:\n  resources:\n    gpu: {count: 1, models: H100}\n", []string{`6:29: spec.resources.gpu.models: "H100" is not expected here; a list is due: write [H100]`}},
		"a slip for gpu":            {"spec:\n  resources:\n    cpu: 1\n    gpus: 'H100:4'\n", []string{`7:5: unknown field "gpus" (did you mean "gpu"?)`}},
		"all at once": {"spec:\n  resources: {cpu: 1}\n  priority: high\n  suspend: \"yes\"\n  foo: 1\n", []string{
			`6:13: spec.priority: "high" is text`, `7:12: spec.suspend: "yes" is text; write true or false`, `8:3: unknown field "foo"`}},
		"duplicate":             {"spec:\n  resources: {cpu: 1}\n  priority: 1\n  priority: 2\n", []string{`7:3: duplicate key "priority" (first on line 6)`}},
		"boolean for text":      {"spec:\n  consumer: NO\n  resources: {cpu: 1}\n", []string{`5:13: consumer: NO is a boolean in YAML; write "NO" in quotes`}},
		"money as float":        {"spec:\n  resources: {cpu: 1}\n  budget: {maxHourly: 1e3}\n", []string{`6:23: maxHourly: 1e3 is not a plain decimal number; write its digits`}},
		"money below nothing":   {"spec:\n  resources: {cpu: 1}\n  budget: {maxHourly: .5}\n", []string{`6:23: maxHourly: .5 is not a plain decimal number`}},
		"quantity as float":     {"spec:\n  resources: {memory: 1e3}\n", []string{`5:23: memory: 1e3 is not what it looks like`}},
		"quantity with a point": {"spec:\n  resources: {cpu: 0.5}\n", []string{`5:20: cpu: 0.5 is a number in YAML; write "0.5" in quotes`}},
		"octal":                 {"spec:\n  resources: {cpu: 010}\n", []string{`5:20: cpu: 010 is not what it looks like`}},
		"bad quantity":          {"spec:\n  resources: {cpu: four}\n", []string{`5:20: spec.resources.cpu: "four" is not a quantity`}},
		"half a pod":            {"spec:\n  resources: {pods: \"0.5\"}\n", []string{`5:21: spec.resources.pods: "0.5": must be a whole number`}},
		"duration":              {"spec:\n  resources: {cpu: 1}\n  schedule: {duration: 3 days}\n", []string{`6:24: spec.schedule.duration: "3 days" is not a duration`}},
		"time":                  {"spec:\n  resources: {cpu: 1}\n  schedule: {notBefore: 2026-12-01}\n", []string{`6:25: spec.schedule.notBefore: "2026-12-01" is not a time`}},
		"gpu short form":        {"spec:\n  resources: {gpu: 'A100::8'}\n", []string{`5:20: spec.resources.gpu: "A100::8" has an empty part`}},
		"list for text":         {"spec:\n  resources: {cpu: 1}\n  consumer: [a]\n", []string{`6:13: spec.consumer is a list; text is due`}},
		"map for list":          {"spec:\n  resources: {cpu: 1}\n  purchase: {a: b}\n", []string{`6:13: spec.purchase is a map; one entry or a list of them is due`}},
		"missing":               {"spec: {priority: 1}\n", []string{`4:7: spec.resources is missing`}},
		"missing within a list": {"spec:\n  resources: {cpu: 1}\n  placement: {spread: [{maxSkew: 1}]}\n", []string{`6:24: spec.placement.spread[0].by is missing`}},
		"tag":                   {"spec:\n  resources: !!binary aGk=\n", []string{`5:14: spec.resources has the tag !!binary`}},
		"label without value":   {"spec:\n  resources: {cpu: 1}\n  placement:\n    labels:\n      a:\n", []string{`8:9: spec.placement.labels.a has no value`}},
		"out of range":          {"spec:\n  resources: {cpu: 1}\n  priority: 99999999999\n", []string{`6:13: spec.priority: number 99999999999 is out of range; write a smaller one`}},
		"replicas":              {"spec:\n  resources: {cpu: 1}\n  replicas: {min: 1}\n", []string{`6:13: spec.replicas.max is missing`}},
		"boolean key":           {"spec:\n  resources: {cpu: 1}\n  placement: {labels: {on: x}}\n", []string{`6:24: the key on is a boolean or null`}},
	} {
		t.Run(name, func(t *testing.T) {
			_, got := decode[v1alpha1.ResourceIntent](t, head+tc.doc)
			if len(got) != len(tc.want) {
				t.Fatalf("got %d problems %v, want %d", len(got), got, len(tc.want))
			}
			for i := range got {
				if !strings.HasPrefix(got[i].String(), tc.want[i]) {
					t.Errorf("got  %s\nwant %s…", got[i], tc.want[i])
				}
			}
		})
	}
}

func TestProblemsOfTheText(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"tab":              {"a:\n\tb: 1\n", "2:1: the line is indented with a tab"},
		"syntax":           {"a: b: 2\n", "1:1: the YAML cannot be read: the value of a has a colon: write it in quotes, a: \"b: 2\""},
		"between":          {"a:\n    b: 1\n   c: 2\n", "3:4: the YAML cannot be read: the line is indented by 3 spaces, as none above it that it can belong to: write 0 or 4"},
		"between, list":    {"a:\n- b: 1\n  c: {d: [\n 1]}\n - e: 2\n", "5:2: the YAML cannot be read: the line is indented by 1 space, as none above it that it can belong to: write 0 or 2"},
		"deeper":           {"a:\n  b: \"1\"  # one\n    c: 2\n", "3:5: the YAML cannot be read: the line is indented deeper than the one above it, which has its value already: indent it by 2 spaces"},
		"deeper, unquoted": {"a:\n  - b: 1\n      c: 2\n", "3:7: the YAML cannot be read: the line is indented deeper than the one above it, which has its value already: indent it by 4 spaces"},
		"no colon":         {"a:\n  b 1\n\n  c: 2\n", "2:3: the YAML cannot be read: a colon is missing: write b: 1"},
		"no colon, a map":  {"a\n  c: 2\n", "1:1: the YAML cannot be read: a colon is missing: write a:"},
		"no space":         {"a:\n  b:1\n  c: 2\n", "2:4: the YAML cannot be read: a space is missing after the colon: write b: 1"},
		"at":               {"a: @b\n", "1:4: the YAML cannot be read: a value cannot begin with @ in YAML: write it in quotes, a: \"@b\""},
		"fence":            {"```yaml\na: 1\n```\n", "1:1: the YAML cannot be read: the line ``` belongs to a text around the YAML: remove it"},
		"no anchor":        {"a: 1\nb: *c\n", "2:4: the YAML cannot be read: *c refers to an anchor that is not above it: write the value itself"},
		"escape":           {"a: \"b\\q\"\n", "1:1: the YAML cannot be read: a \\ in double quotes begins an escape that YAML does not know: write \\\\"},
		"block, then less": {"a:\n  b: |\n      c\n     d\n  e: \"1\"\n f: 2\n", "6:2: the YAML cannot be read: the line is indented by 1 space, as none above it that it can belong to: write 0 or 2"},
		"list":             {"a: 1 # [\nb:\n  c: {d: 1, e: [f, 'it]s'\n", "3:16: the YAML cannot be read: the \"[\" that opens here is not closed"},
		"list, then more":  {"a: it's [\nb: [1\nc: 2\nd: 3\n", "2:4: the YAML cannot be read: the \"[\" that opens here is not closed"},
		"map":              {"a: |\n  [{\n\n  \"\nb: {c: \"}\\\"]\", d: 2\ne: [f]\n", "5:4: the YAML cannot be read: the \"{\" that opens here is not closed"},
		"comma":            {"a: {b: 1 c: 2}\n", "the YAML cannot be read"},
		"quote":            {"a: 1\nb: \"c\n", "2:1: the YAML cannot be read: a quote that opens here or below is not closed"},
		"conflict":         {"a: 1\n<<<<<<< HEAD\nb: 1\n=======\nb: 2\n>>>>>>> x\n", "2:1: a merge left its conflict marks"},
		"no-break space":   {"a: 1\nb:\u00a0c\nd: e\n", "2:1: a no-break space (U+00A0) is in this line"},
		"one in a comment": {"a: 1 # b\u00a0c\nd: [\n", "the YAML cannot be read"},
		"latin1":           {"a: caf\xe9\n", "1:7: the file is not UTF-8"},
		"utf-16":           {"\xff\xfea\x00", "1:1: the file is UTF-16"},
		"nul":              {"a: \x00\n", "1:4: the file is not UTF-8"},
		"too large":        {strings.Repeat("#", MaxSize+1), "1:1: the file is larger"},
		"too many":         {strings.Repeat("---\na: 1\n", MaxDocuments+1), "201:1: the file has more than 100 documents"},
	} {
		_, got := decode[v1alpha1.ResourceIntent](t, tc.text)
		if len(got) != 1 || !strings.Contains(got[0].String(), tc.want) {
			t.Errorf("%s: got %v, want %s", name, got, tc.want)
		}
	}
}

func TestBombsAreRefused(t *testing.T) {
	var lol strings.Builder
	lol.WriteString("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n")
	for i := 1; i < 9; i++ {
		fmt.Fprintf(&lol, "a%d: &a%d [%s]\n", i, i, strings.Repeat(fmt.Sprintf("*a%d,", i-1), 10))
	}
	type anything struct {
		A map[string]json.RawMessage `json:"a,omitempty"`
	}
	for name, tc := range map[string]struct{ text, want string }{
		"aliases": {"a: {" + strings.ReplaceAll(strings.TrimSpace(lol.String()), "\n", ", ") + "}\n", "aliases expand to more than"},
		"cycle":   {"a: {b: &b [*b]}\n", "nested deeper"},
		"depth":   {"a: {b: " + strings.Repeat("[", 200) + strings.Repeat("]", 200) + "}\n", "nested deeper"},
		"merges":  {"a:\n  x: &x {k: 1}\n  w: &w {<<: [*x,*x], b: 1}\n  z: &z {<<: *z}\n", "merge keys expand"},
	} {
		_, got := decode[anything](t, tc.text)
		if len(got) == 0 || !strings.Contains(got[0].Message, tc.want) {
			t.Errorf("%s: got %v, want %s", name, got, tc.want)
		}
	}
}

func TestSplit(t *testing.T) {
	text := "\xef\xbb\xbf# only a comment\n---\na: 1\n--- # next\nb: |\n  ---\n...\n---\n---\n{c: 3}\n"
	docs, problems := Split([]byte(text))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	var got []string
	for _, d := range docs {
		got = append(got, fmt.Sprintf("%d %q", d.Line, d.Text))
	}
	want := []string{`1 "---\na: 1\n"`, `3 "--- # next\nb: |\n  ---\n"`, `8 "---\n{c: 3}\n"`}
	if strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("got %v, want %v", got, want)
	}
}

// Places within a scalar follow its style.
func TestWithin(t *testing.T) {
	for name, tc := range map[string]struct {
		text      string
		line, col int
		wantLine  int
		wantCol   int
	}{
		"plain":  {"a:\n  b: flavor.x\n", 1, 8, 2, 13},
		"single": {"a:\n  b: 'it''s.x'\n", 1, 6, 2, 13},
		"double": {"a:\n  b: \"a\\\"b.x\"\n", 1, 5, 2, 12},
		"block":  {"a:\n  b: |\n    one\n    two.x\n", 2, 5, 4, 9},
	} {
		docs, _ := Split([]byte(tc.text))
		doc, problems := Parse(docs[0])
		if len(problems) > 0 {
			t.Fatal(name, problems)
		}
		if l, c := doc.Within(tc.line, tc.col, "a", "b"); l != tc.wantLine || c != tc.wantCol {
			t.Errorf("%s: got %d:%d, want %d:%d", name, l, c, tc.wantLine, tc.wantCol)
		}
	}
}

const full = head + `spec:
  consumer: rome
  replicas: {min: 1, max: 6}
  gang: on
  resources: &r
    cpu: "16"
    memory: 128Gi
    pods: 50
    rdma/hca: "2"
    gpu: {count: 4, models: [nvidia-h100], memory: 80Gi}
  alternatives:
  - gpu: "A100:8:40GB.."
  - <<: *r
    cpu: 8
  placement:
    providers: {allow: [], deny: [milan]}
    maxLatency: 20ms
    where: >-
      flavor.gpu.interconnect == "nvlink" &&
      flavor.price.hourly < 30.0
    spread: {by: region, maxSkew: 1}
  weights: {resources: 0.7, cost: 1}
  budget: {maxHourly: "120", currency: EUR}
  split:
  schedule: {duration: 72h, notBefore: 2026-12-01T08:00:00Z, windows: [{days: [Mon], from: 20:00, to: "06:00"}]}
`

// What is accepted means what sigs.k8s.io/yaml makes of it.
func TestAgreesWithKubernetesYAML(t *testing.T) {
	got, problems := decode[v1alpha1.ResourceIntent](t, full)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	sameAsKubernetes(t, full, got)
}

// (Its strict mode alone refuses overriding a merged key, which YAML allows.)
func sameAsKubernetes(t testing.TB, text string, got *v1alpha1.ResourceIntent) {
	t.Helper()
	var want v1alpha1.ResourceIntent
	if err := yaml.Unmarshal([]byte(text), &want); err != nil {
		t.Fatalf("sigs.k8s.io/yaml refuses what was accepted: %v\n%s", err, text)
	}
	g, _ := json.Marshal(got)
	k, _ := json.Marshal(&want)
	if string(g) != string(k) {
		t.Errorf("got  %s\nwant %s\n%s", g, k, text)
	}
}

// FuzzDecode: never a panic, places lie within the file, and what is accepted
// agrees with sigs.k8s.io/yaml.
func FuzzDecode(f *testing.F) {
	f.Add(full)
	f.Add(head + "spec: {resources: {gpu: 'H100:2'}}\n")
	f.Add("a: &a [*a]\n")
	f.Add("---\n---\n? [a]\n: b\n")
	f.Add("\xef\xbb\xbf%YAML 1.1\n---\nkind: !!str x\n")
	f.Add(head + "spec: {resources: {cpu: .5, memory: +1, pods: 0b1}, priority: -0}\n")
	f.Fuzz(func(t *testing.T, text string) {
		docs, problems := Split([]byte(text))
		lines := 1 // YAML 1.1 breaks lines at all of these
		for _, lineBreak := range []string{"\n", "\r", "\u0085", "\u2028", "\u2029"} {
			lines += strings.Count(text, lineBreak)
		}
		check := func(problems []Problem) {
			for _, p := range problems {
				if p.Line < 1 || p.Line > lines || p.Column < 1 || p.Message == "" {
					t.Fatalf("a problem without a place: %v of %d lines", p, lines)
				}
			}
		}
		check(problems)
		for _, src := range docs {
			doc, problems := Parse(src)
			check(problems)
			if doc == nil {
				continue
			}
			got := new(v1alpha1.ResourceIntent)
			problems = doc.Decode(got)
			check(problems)
			if len(problems) == 0 && len(docs) == 1 {
				sameAsKubernetes(t, string(src.Text), got)
			}
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	for b.Loop() {
		docs, _ := Split([]byte(full))
		doc, _ := Parse(docs[0])
		if p := doc.Decode(new(v1alpha1.ResourceIntent)); len(p) > 0 {
			b.Fatal(p)
		}
	}
}
