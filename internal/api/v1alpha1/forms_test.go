package v1alpha1

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

func TestParseGPUShortForm(t *testing.T) {
	for in, want := range map[string]string{
		"A100:8:40GB..":   `{"count":8,"models":["A100"],"memory":"40Gi"}`,
		"H100":            `{"models":["H100"]}`,
		"40GB..80GB:4":    `{"count":4,"memory":"40Gi..80Gi"}`,
		"nvidia:2:24GB..": `{"count":2,"memory":"24Gi","vendor":"nvidia"}`,
		"a100,h100:2":     `{"count":2,"models":["a100","h100"]}`,
		"8:nvidia-h100":   `{"count":8,"models":["nvidia-h100"]}`,
		"..80GB:1":        `{"count":1,"memory":"..80Gi"}`,
	} {
		g, err := ParseGPU(in)
		if err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		got, _ := json.Marshal(g)
		if string(got) != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
	for _, bad := range []string{"", "H100::8", "H100:0", "8:8", "H100:A100", "80GB:40GB", "80GB..40GB", "H100:-1", "{}", "1e9"} {
		if g, err := ParseGPU(bad); err == nil {
			t.Errorf("%q was read as %+v, want an error", bad, g)
		}
	}
}

// A size of GPU memory is written so that it is read back as the same.
func TestGPUMemory_RoundTrip(t *testing.T) {
	for in, want := range map[string]string{
		"80Gi": "80Gi", "1024GB": "1024Gi", "1.5Gi": "1536Mi", "1.5Mi": "1Mi", "0.333Gi": "340Mi", "10.7GB": "10956Mi",
		"40GB..1024GB": "40Gi..1024Gi", "..1536MB": "..1536Mi", "999999999Gi": "999999999Gi",
	} {
		m, err := ParseMemoryRange(in)
		if err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		var again MemoryRange
		if text, _ := json.Marshal(m); string(text) != `"`+want+`"` || json.Unmarshal(text, &again) != nil || again != m {
			t.Errorf("%s: written as %s and read back as %+v, want %q and %+v", in, text, again, want, m)
		}
		var one MemorySize
		if text, _ := json.Marshal(MemorySize{m.Min}); !m.Min.IsZero() && (json.Unmarshal(text, &one) != nil || one.Amount != m.Min) {
			t.Errorf("%s: one size written as %s and read back as %+v, want %+v", in, text, one, m.Min)
		}
	}
	third := MemorySize{AmountOf(80 << 30 / 3)} // of a card that three share
	if text, _ := json.Marshal(third); string(text) != `"27306Mi"` {
		t.Errorf("a third of 80Gi: got %s, want %q", text, "27306Mi")
	}
}

// The whole intent of the format document decodes strictly, and encodes to
// what decodes to the same.
func TestIntentRoundTrip(t *testing.T) {
	const doc = `
apiVersion: fleetbroker.io/v1alpha1
kind: ResourceIntent
metadata: {name: llm-finetune, namespace: vision, labels: {app: llm}}
spec:
  consumer: rome
  replicas: {min: 1, max: 6}
  gang: true
  resources:
    cpu: "16"
    memory: 128Gi
    pods: "50"
    rdma/hca: "2"
    gpu: {count: 4, models: [nvidia-h100], memory: 80Gi}
  alternatives:
  - gpu: "A100:8:40GB.."
  placement:
    maxLatency: 20ms
    spread: {by: region, maxSkew: 1}
  budget: {maxHourly: "120", currency: EUR}
  schedule: {duration: 72h, notBefore: 2026-12-01T08:00:00Z}
  queue: {policy: wait, timeout: 24h}
`
	var a, b ResourceIntent
	if err := yaml.UnmarshalStrict([]byte(doc), &a); err != nil {
		t.Fatal(err)
	}
	first, err := yaml.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(first, &b); err != nil {
		t.Fatalf("decode what was encoded: %v\n%s", err, first)
	}
	second, _ := yaml.Marshal(b)
	if string(first) != string(second) {
		t.Errorf("encoding is not stable:\n%s\n---\n%s", first, second)
	}
	if got := a.Spec.Resources.Named["rdma/hca"].Int64(); got != 2 {
		t.Errorf("rdma/hca: got %d, want 2", got)
	}
	if got := a.Spec.Alternatives[0].GPU.Memory.String(); got != "40Gi" {
		t.Errorf("alternative's memory: got %s, want 40Gi", got)
	}
	if got := a.Spec.Schedule.Duration.String(); got != "72h" {
		t.Errorf("duration: got %s, want 72h", got)
	}
}

func TestDecodeRefuses(t *testing.T) {
	for name, doc := range map[string]string{
		"money as a power":      `spec: {resources: {cpu: 1}, budget: {maxHourly: 1e30}}`,
		"replicas as text":      `spec: {resources: {cpu: 1}, replicas: "3"}`,
		"GPUs twice":            `spec: {resources: {gpu: 1, nvidia.com/gpu: 1}}`,
		"unknown gpu field":     `spec: {resources: {gpu: {counts: 1}}}`,
		"unknown spec field":    `spec: {resource: {cpu: 1}}`,
		"fraction of a pod":     `spec: {resources: {pods: "0.5"}}`,
		"no GPUs":               `spec: {resources: {gpu: 0}}`,
		"no GPUs of a vendor":   `spec: {resources: {gpu: {count: 0, vendor: nvidia}}}`,
		"an alternative to any": `spec: {resources: {gpu: 1}, alternatives: [{gpu: 0}]}`,
		"negative":              `spec: {resources: {cpu: "-1"}}`,
		"unknown spread field":  `spec: {resources: {cpu: 1}, placement: {spread: {on: region}}}`,
		"duplicate key":         "spec:\n  priority: 1\n  priority: 2\n",
		"quantity as a boolean": `spec: {resources: {cpu: yes}}`,
	} {
		var ri ResourceIntent
		if err := yaml.UnmarshalStrict([]byte(doc), &ri); err == nil {
			t.Errorf("%s: was accepted", name)
		}
	}
}

func TestCanonical(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{CPU, "6000m", "6"}, {CPU, "1500m", "1500m"}, {Memory, "16384Mi", "16Gi"}, {Memory, "1G", "1000000000"},
		{Pods, "110", "110"}, {"nvidia.com/gpu", "4", "4"}, {EphemeralStorage, "200Gi", "200Gi"},
	} {
		a, err := ParseAmount(tc.name, tc.in)
		if err != nil {
			t.Errorf("%s %s: %v", tc.name, tc.in, err)
			continue
		}
		if got := a.Canonical(tc.name); got != tc.want {
			t.Errorf("%s %s: got %s, want %s", tc.name, tc.in, got, tc.want)
		}
	}
}

func TestRoundUp(t *testing.T) {
	for _, tc := range []struct{ a, min, step, want int64 }{{1, 2, 2, 2}, {3, 2, 2, 4}, {4, 2, 2, 4}, {5, 1, 0, 5}, {0, 1, 1, 1}} {
		if got := AmountOf(tc.a).RoundUp(AmountOf(tc.min), AmountOf(tc.step)).Int64(); got != tc.want {
			t.Errorf("RoundUp(%d, %d, %d): got %d, want %d", tc.a, tc.min, tc.step, got, tc.want)
		}
	}
}

func TestQuantityRemedy(t *testing.T) {
	for in, want := range map[string]string{
		"64GB":  `quantities carry no "B"; write "64Gi"`,
		"64GiB": `quantities carry no "B"; write "64Gi"`,
		"lots":  `write a number with an optional unit`,
	} {
		_, err := ParseAmount(Memory, in)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q in it", in, err, want)
		}
	}
}

// What an intent names goes before its tenant's first consumer.
func TestConsumerOf(t *testing.T) {
	for _, c := range []struct {
		tenant       []string
		intent, want string
	}{{nil, "", ""}, {nil, "oslo", "oslo"}, {[]string{"rome", "oslo"}, "", "rome"}, {[]string{"rome", "oslo"}, "oslo", "oslo"}} {
		tenant := TenantSpec{Consumers: c.tenant}
		if got := tenant.ConsumerOf(&IntentSpec{Consumer: c.intent}); got != c.want {
			t.Errorf("consumers %v, intent's %q: got %q, want %q", c.tenant, c.intent, got, c.want)
		}
	}
}

// Whatever is read as a duration or a time is written so that it is read again, as the same.
func TestTimes_AreReadAgain(t *testing.T) {
	for text, ok := range map[string]bool{
		"99999d": true, "15250w1d": true, "15250w1d23h": true, "15250w2d": false, "15250w": true, "15251w": false, "30500w4d": false, "99999w99999d": false,
		"15250w1d24h": false, "2562047h47m16.854775807s": true, "2562047h48m": false, "1w1d1h": true, "-1h": false,
	} {
		var d, again Duration
		err := json.Unmarshal([]byte(strconv.Quote(text)), &d)
		if (err == nil) != ok || d.Duration < 0 {
			t.Errorf("%s is read as %v, %v", text, d, err)
		}
		written, _ := json.Marshal(d)
		if err := json.Unmarshal(written, &again); err != nil || again != d {
			t.Errorf("%s is written as %s, which is read as %v, %v", text, written, again, err)
		}
	}
	for text, ok := range map[string]bool{
		"9999-12-31T23:59:59Z": true, "9999-12-31T23:59:59-12:00": false, "9999-12-31T23:59:59+12:00": true, "0001-01-01T00:00:00Z": false,
		"0000-01-01T00:00:00Z": true, "0000-01-01T00:00:00+12:00": false,
	} {
		var at, again Time
		err := json.Unmarshal([]byte(strconv.Quote(text)), &at)
		if (err == nil) != ok {
			t.Errorf("%s is read as %v, %v", text, at, err)
		}
		if ok {
			written, _ := json.Marshal(at)
			if err := json.Unmarshal(written, &again); err != nil || !again.Equal(at.Time) {
				t.Errorf("%s is written as %s, which is read as %v, %v", text, written, again, err)
			}
		}
	}
}
