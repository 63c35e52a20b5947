package report

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
)

var update = flag.Bool("update", false, "rewrite golden files")

var now = v1alpha1.TimeOf(time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC))

func ago(d time.Duration) v1alpha1.Time { return v1alpha1.TimeOf(now.Add(-d)) }

func money(s string) v1alpha1.Decimal { return v1alpha1.MustDecimal(s) }

func resources(kv ...string) v1alpha1.Resources {
	r := v1alpha1.Resources{}
	for i := 0; i < len(kv); i += 2 {
		a, err := v1alpha1.ParseAmount(kv[i], kv[i+1])
		if err != nil {
			panic(err)
		}
		r[kv[i]] = a
	}
	return r
}

// example is the plan that the layout was agreed on.
func example() (*planner.Plan, Meta) {
	h100 := &v1alpha1.ContractGPU{Count: 4, Model: "nvidia-h100", ResourceName: "nvidia.com/gpu"}
	p := &planner.Plan{
		Now: now, Inputs: "4f1c2abd6c1f7f0f5d0c1f6b6e9b1a2c3d4e5f60", Market: "9d1e03a1c3d4e5f607182930a1b2c3d4e5f60718",
		Currency: "EUR", Offers: 37, Clusters: 6,
		Silent:       []planner.SilentProvider{{Name: "oslo", Since: ago(6 * time.Minute)}},
		HourlyBefore: money("118.40"), HourlyAfter: money("126.29"),
		Intents: []*planner.Decision{
			{
				Tenant: "vision", Name: "llm-finetune", Path: "intents/vision/llm-finetune.yaml", Action: planner.Place,
				Contracts: []planner.ContractLine{{
					Name: "vision-llm-finetune-0-k3f9q2ab", Provider: "paris", Flavor: "h100-pool", Action: planner.Place, Consumer: "rome",
					Resources: resources("cpu", "16", "memory", "128Gi", "pods", "50", "ephemeral-storage", "200Gi", "nvidia.com/gpu", "4"),
					GPUs:      h100, Hourly: money("12.0944"), Currency: "EUR", Score: 0.87,
					RunnerUp: &v1alpha1.RunnerUp{Flavor: "lyon/h100", Score: 0.81, Hourly: money("13.39")},
					Term:     v1alpha1.Term{Start: now, End: v1alpha1.TimeOf(now.Add(72 * time.Hour))},
				}},
				Rejected: map[string]int{"budget.maxHourly": 4, "gpu.model": 21}, Considered: 37, Fitting: 12,
				HourlyAfter: money("12.0944"),
			},
			{
				Tenant: "nlp", Name: "serve", Action: planner.Move, Reason: "oslo silent 6m, grace 5m", Code: "ProviderLost",
				Contracts:    []planner.ContractLine{{Name: "nlp-serve-0-aaaaaaaa", Provider: "milan", Flavor: "l40s", From: "oslo/l40s", Action: planner.Move, Consumer: "rome"}},
				HourlyBefore: money("4.10"), HourlyAfter: money("3.20"),
			},
			{
				Tenant: "cv", Name: "old-run", Action: planner.Release, Reason: "intent removed by Ada L. in 8c02e11",
				Contracts:    []planner.ContractLine{{Name: "cv-old-run-0-bbbbbbbb", Provider: "paris", Flavor: "l4", Action: planner.Release}},
				HourlyBefore: money("1.10"),
			},
			{
				Tenant: "bio", Name: "screen", Action: planner.Preempt, Reason: "priority 20 < 100 of nlp/serve; ends after 10m grace, then queued",
				Contracts:    []planner.ContractLine{{Name: "bio-screen-0-cccccccc", Provider: "milan", Flavor: "l40s", Action: planner.Preempt}},
				HourlyBefore: money("2.20"),
			},
			{
				Tenant: "bio", Name: "fold", Action: planner.Queued, Since: ago(12 * time.Minute),
				GivesUp: v1alpha1.TimeOf(now.Add(23*time.Hour + 48*time.Minute)), Considered: 37,
				Rejected: map[string]int{"gpu.model": 21, "capacity.gpu": 12, "budget.maxHourly": 4},
				Near:     []string{"berlin/a100 has 1 of 2 GPUs free", "turin/h100 costs 20.60, budget 18.00"},
				Try:      []string{`budget.maxHourly: "20.60"`},
			},
		},
	}
	for i := range 41 {
		p.Intents = append(p.Intents, &planner.Decision{Tenant: "cv", Name: fmt.Sprintf("kept-%02d", i), Action: planner.Keep})
	}
	return p, Meta{Fleet: "acme", Branch: "main", Errors: []Problem{{
		File: "intents/nlp/typo.yaml", Line: 9, Column: 7, Message: `unknown field "gpus" (did you mean "gpu"?)`,
	}}}
}

// troubled is a plan of the cases that the example has not: frozen, refused,
// resized and merely found intents, ends held back, hostile text.
func troubled() (*planner.Plan, Meta) {
	l4 := func(n int64) *v1alpha1.ContractGPU {
		return &v1alpha1.ContractGPU{Count: n, Model: "nvidia-l4", ResourceName: "nvidia.com/gpu"}
	}
	old := &v1alpha1.Contract{Metadata: v1alpha1.Metadata{Name: "nlp-serve-0-aaaaaaaa"}, Spec: v1alpha1.ContractSpec{
		Resources: resources("cpu", "8", "memory", "32Gi", "nvidia.com/gpu", "2"), GPUs: l4(2),
	}}
	replica := func(i int) planner.ContractLine {
		return planner.ContractLine{
			Name: fmt.Sprintf("cv-train-%d-xxxxxxxx", i), Provider: "lyon", Flavor: "l4", Consumer: "rome", Action: planner.Place, Score: 0.5,
			Resources: resources("cpu", "16", "memory", "64Gi", "rdma/hca", "2", "nvidia.com/gpu", "4"), GPUs: l4(4), Currency: "EUR",
			Asked: resources("cpu", "14", "memory", "64Gi", "gpu", "3"),
		}
	}
	mig := planner.ContractLine{
		Name: "bio-dock-0-dddddddd", Provider: "paris", Flavor: "a100-1g", Consumer: "rome", Action: planner.Find, Score: 0.66,
		Resources: resources("cpu", "4", "memory", "8Gi", "nvidia.com/mig-1g.10gb", "3"),
		GPUs:      &v1alpha1.ContractGPU{Count: 3, Model: "nvidia-a100", ResourceName: "nvidia.com/mig-1g.10gb", UnitsPerGPU: 7},
	}
	p := &planner.Plan{
		Now: now, Currency: "EUR", Offers: 1, Clusters: 1, HourlyBefore: money("10"), HourlyAfter: money("9.5"),
		HeldBack:  "12 contracts would end because their intents are gone, more than safety.maxEnds 5; allow it with fleetbroker reconcile --once --allow-ends 4f1c2ab",
		Notes:     []string{"tenant bio: spec.weight is not supported yet"},
		Contracts: []model.Change{{Before: old, After: old}},
		Intents: []*planner.Decision{
			{Tenant: "cv", Name: "train", Action: planner.Place, Considered: 1, Fitting: 1, Contracts: []planner.ContractLine{replica(0), replica(1), replica(2)}, HourlyAfter: money("4.004")},
			{Tenant: "bio", Name: "dock", Action: planner.Find, Considered: 1, Fitting: 1, Contracts: []planner.ContractLine{mig}},
			{
				Tenant: "nlp", Name: "serve", Action: planner.Resize, Reason: "intent changed by Ada L. in 8c02e11",
				Contracts: []planner.ContractLine{{
					Name: "nlp-serve-0-aaaaaaaa", Provider: "lyon", Flavor: "l4", Action: planner.Resize, Consumer: "rome",
					Resources: resources("cpu", "8", "memory", "32Gi", "nvidia.com/gpu", "4"), GPUs: l4(4),
				}},
				HourlyBefore: money("2"), HourlyAfter: money("4"),
			},
			{Tenant: "nlp", Name: "broken", Path: "intents/nlp/broken.yaml", Action: planner.Frozen, Reason: "intents/nlp/broken.yaml:2:1: kind is missing", Contracts: []planner.ContractLine{{Name: "a", Provider: "lyon", Flavor: "l4"}, {Name: "b", Provider: "lyon", Flavor: "l4"}}},
			{
				Tenant: "nlp", Name: "greedy", Path: "intents/nlp/greedy.yaml", Action: planner.Refuse, Code: "QuotaExceeded",
				Reason: "quota.gpu: nlp holds 30 of 32 GPUs and this intent needs 16 more; ask the platform team for a larger quota, or release what is not used any more",
			},
			{Tenant: "evil", Name: "team", Action: planner.Refuse, Reason: "bad \x1b[31mred\x1b[0m | <b> `code` @everybody ```"},
			{Tenant: "cv", Name: "late", Action: planner.Queued, Position: 3, Since: now, Reason: "budget.tenant.monthly is used up until 2026-12-01", Considered: 1, Rejected: map[string]int{"cordon": 1}},
			{Tenant: "cv", Name: "nightly", Action: planner.Suspend},
			{Tenant: "cv", Name: "past", Action: planner.Done},
			{
				Tenant: "cv", Name: "over", Action: planner.Done, Code: "TermEnded", Reason: "its term has ended: change its file to place it again",
				Contracts: []planner.ContractLine{{Name: "cv-over-0-eeeeeeee", Provider: "lyon", Flavor: "l4", Action: planner.Release}}, HourlyBefore: money("1"),
			},
		},
	}
	return p, Meta{Fleet: "acme", Errors: []Problem{
		{File: "intents/nlp/broken.yaml", Line: 2, Column: 1, Message: "kind is missing"},
		{File: "intents/nlp/broken.yaml", Line: 7, Column: 3, Message: `unknown field "spce" (did you mean "spec"?)`},
		{File: "tenants/bio.yaml", Message: "cannot be read"},
	}}
}

func TestGolden(t *testing.T) {
	p, m := example()
	q, n := troubled()
	explained := explanationExample()
	cases := map[string]func(*bytes.Buffer) error{
		"example.txt":       func(b *bytes.Buffer) error { return Text(b, p, m, Options{}) },
		"example-wide.txt":  func(b *bytes.Buffer) error { return Text(b, p, m, Options{Wide: true, Width: -1}) },
		"example-color.txt": func(b *bytes.Buffer) error { return Text(b, p, m, Options{Color: true}) },
		"example.md":        func(b *bytes.Buffer) error { return Markdown(b, p, m, MarkdownOptions{}) },
		"example.json":      func(b *bytes.Buffer) error { return JSON(b, p, m) },
		"troubled.txt":      func(b *bytes.Buffer) error { return Text(b, q, n, Options{}) },
		"troubled.md":       func(b *bytes.Buffer) error { return Markdown(b, q, n, MarkdownOptions{}) },
		"troubled.yaml":     func(b *bytes.Buffer) error { return YAML(b, q, n) },
		"short.md":          func(b *bytes.Buffer) error { return Markdown(b, p, m, MarkdownOptions{Limit: 1700}) },
		"empty.txt":         func(b *bytes.Buffer) error { return Text(b, &planner.Plan{Currency: "EUR"}, Meta{}, Options{}) },
		"explain.txt":       func(b *bytes.Buffer) error { return ExplainText(b, explained, ExplainOptions{Shown: 2}) },
		"explain-all.txt":   func(b *bytes.Buffer) error { return ExplainText(b, explained, ExplainOptions{All: true}) },
		"explain-why.txt":   func(b *bytes.Buffer) error { return ExplainText(b, explained, ExplainOptions{Why: "gpu.model"}) },
		"explain.md": func(b *bytes.Buffer) error {
			return ExplainMarkdown(b, explained, ExplainOptions{Shown: 1, Color: true})
		},
		"explain.json":     func(b *bytes.Buffer) error { return ExplainJSON(b, explained) },
		"explain-none.txt": func(b *bytes.Buffer) error { return ExplainText(b, explanationNone(), ExplainOptions{}) },
	}
	for name, draw := range cases {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			if err := draw(&b); err != nil {
				t.Fatal(err)
			}
			golden(t, filepath.Join("testdata", name), b.Bytes())
		})
	}
}

func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got, 0o644); err != nil { //nolint:gosec // a golden file is for everybody
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file) //nolint:gosec // the test names it
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs (run with -update to accept)\n--- got\n%s\n--- want\n%s", file, got, want)
	}
}

// The layout as agreed, kept apart from the golden files so that -update
// cannot change it.
func TestTextIsTheAgreedLayout(t *testing.T) {
	const want = `acme main@4f1c2ab   37 flavors on 6 clusters (oslo silent 6m)   market 9d1e03a

+ place    vision/llm-finetune                                     +12.09 EUR/h
           paris/h100-pool -> rome    4x nvidia-h100, 16 cpu, 128Gi, 72h
           why  best of 12 that fit, score 0.87; next lyon/h100 0.81, +1.30 EUR/h
           not  21 gpu.model, 4 budget.maxHourly
! move     nlp/serve    oslo/l40s -> milan/l40s                     -0.90 EUR/h
           why  oslo silent 6m, grace 5m
- release  cv/old-run                                               -1.10 EUR/h
           why  intent removed by Ada L. in 8c02e11
- preempt  bio/screen   milan/l40s                                  -2.20 EUR/h
           why  priority 20 < 100 of nlp/serve; ends after 10m grace, then queued
? queue    bio/fold     for 12m, gives up in 23h48m
           why  none of 37 offers fits: 21 have another GPU model, 12 have too few GPUs free, 4 cost
                more than budget.maxHourly
           near berlin/a100 has 1 of 2 GPUs free; turin/h100 costs 20.60, budget 18.00
           try  budget.maxHourly: "20.60"
x refuse   intents/nlp/typo.yaml:9:7: unknown field "gpus" (did you mean "gpu"?)

Plan: 1 place, 41 keep, 1 move, 1 release, 1 preempt, 1 queue, 1 refuse.
Cost: 118.40 -> 126.29 EUR/h (+7.89).
`
	p, m := example()
	var b bytes.Buffer
	if err := Text(&b, p, m, Options{}); err != nil {
		t.Fatal(err)
	}
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

func TestJSONKeysAreFixed(t *testing.T) {
	p, m := example()
	var b bytes.Buffer
	if err := JSON(&b, p, m); err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(b.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	for _, k := range []string{"commit", "market", "summary", "intents", "errors"} {
		if _, ok := doc[k]; !ok {
			t.Errorf("no %q", k)
		}
	}
	sum := doc["summary"].(map[string]any)
	for _, k := range strings.Fields("place keep resize move release preempt queue refuse suspend done frozen hourlyBefore hourlyAfter currency") {
		if _, ok := sum[k]; !ok {
			t.Errorf("no summary.%s", k)
		}
	}
	for _, in := range doc["intents"].([]any) {
		for _, k := range []string{"tenant", "name", "action", "contracts", "reason", "rejected", "alternative"} {
			if _, ok := in.(map[string]any)[k]; !ok {
				t.Errorf("no intents[].%s", k)
			}
		}
	}
	c := doc["intents"].([]any)[0].(map[string]any)["contracts"].([]any)[0].(map[string]any)
	for _, k := range []string{"name", "provider", "flavor", "resources", "hourly", "currency", "score"} {
		if _, ok := c[k]; !ok {
			t.Errorf("no contracts[].%s", k)
		}
	}
	if c["hourly"] != "12.0944" {
		t.Errorf("hourly %v is not exact", c["hourly"])
	}
}

func TestNoControlCharacterReachesATerminal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "text")
		p := &planner.Plan{Currency: "EUR", Now: now, Intents: []*planner.Decision{{
			Tenant: "a", Name: s, Action: planner.Refuse, Reason: s, Near: []string{s}, Try: []string{s}, HourlyAfter: money("1"),
		}}}
		m := Meta{Fleet: s, Errors: []Problem{{File: s, Message: s}}}
		var b bytes.Buffer
		if err := Text(&b, p, m, Options{}); err != nil {
			t.Fatal(err)
		}
		for _, r := range b.String() {
			if r != '\n' && (r < ' ' || r == 0x7f || (r >= 0x80 && r < 0xa0)) {
				t.Fatalf("%q prints control character %q", s, r)
			}
		}
		b.Reset()
		if err := Markdown(&b, p, m, MarkdownOptions{}); err != nil {
			t.Fatal(err)
		}
		if strings.Count(b.String(), "</details>") != 1 && !strings.Contains(s, "</details>") {
			t.Fatalf("the fold is broken by %q", s)
		}
	})
}

func TestLinesAreAtMostAHundredColumns(t *testing.T) {
	for name, f := range map[string]func() (*planner.Plan, Meta){"example": example, "troubled": troubled} {
		p, m := f()
		var b bytes.Buffer
		if err := Text(&b, p, m, Options{}); err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(b.String(), "\n") {
			if len([]rune(line)) > DefaultWidth {
				t.Errorf("%s: %d columns: %s", name, len([]rune(line)), line)
			}
		}
	}
}

func TestMarkdownStaysUnderTheLimitAndCountsWhatItLeavesOut(t *testing.T) {
	p, m := example()
	for i := range 3000 {
		p.Intents = append(p.Intents, &planner.Decision{Tenant: "cv", Name: fmt.Sprintf("new-%04d", i), Action: planner.Place, Reason: strings.Repeat("because ", 10)})
	}
	var b bytes.Buffer
	if err := Markdown(&b, p, m, MarkdownOptions{}); err != nil {
		t.Fatal(err)
	}
	if b.Len() > CommentLimit {
		t.Errorf("%d bytes, at most %d", b.Len(), CommentLimit)
	}
	for _, want := range []string{Marker, "intents left out", "typo.yaml:9:7", "3001 place"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in the comment", want)
		}
	}
}
