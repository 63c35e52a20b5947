package celenv

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

func read[T any](t testing.TB, doc string) *T {
	t.Helper()
	var v T
	if err := yaml.UnmarshalStrict([]byte(doc), &v); err != nil {
		t.Fatal(err)
	}
	return &v
}

const flavorDoc = `
metadata: {name: h100-pool, namespace: paris}
spec:
  architecture: amd64
  capacity: {cpu: "256", memory: 2Ti, gpu: 16}
  gpu: {vendor: nvidia, model: nvidia-h100, memory: 80Gi, interconnect: nvlink}
  price: {currency: EUR, perHour: {gpu: "2.85", cpu: "0.021", memoryGi: "0.0028"}}
  location: {zone: eu-west-3a}
  properties: {reliability: "0.997"}
  labels: {compliance: gdpr}
`

func TestEval(t *testing.T) {
	intent := read[v1alpha1.ResourceIntent](t, `
metadata: {name: llm, namespace: vision, labels: {app: llm}}
spec: {resources: {cpu: "16", memory: 128Gi, gpu: 4}, priority: 100, schedule: {duration: 72h}}`)
	gpus := read[v1alpha1.Flavor](t, flavorDoc)
	plain := read[v1alpha1.Flavor](t, `{metadata: {name: cpu, namespace: oslo}, spec: {capacity: {cpu: "8"}}}`)
	paris := read[v1alpha1.Cluster](t, `{metadata: {name: paris}, spec: {roles: [provider], location: {region: eu-west-3, country: FR}, labels: {tier: gold}}}`)
	for expr, want := range map[string][2]bool{
		`flavor.gpu.interconnect == "nvlink" && flavor.price.hourly < 30.0`:             {true, false},
		`flavor.price.hourly > 12.09 && flavor.price.hourly < 12.1`:                     {true, false}, // 4×2.85 + 16×0.021 + 128×0.0028
		`flavor.location.country in ["FR", "DE", "IT"]`:                                 {true, false},
		`flavor.location.zone == "eu-west-3a" && flavor.location.region == "eu-west-3"`: {true, false},
		`flavor.gpu.model == ""`:                                              {false, true},
		`has(flavor.gpu)`:                                                     {true, false},
		`has(flavor.price.perHour)`:                                           {true, false},
		`flavor.gpu.count >= 8 && flavor.gpu.memoryGi >= 80`:                  {true, false},
		`flavor.gpu.memory.isGreaterThan(quantity("40Gi"))`:                   {true, false},
		`flavor.capacity.memory.isGreaterThan(quantity("1Ti"))`:               {true, false},
		`flavor.capacity["rdma/hca"].compareTo(quantity("0")) == 0`:           {true, true},
		`cluster.name == "paris" && cluster.labels["tier"] == "gold"`:         {true, false},
		`intent.tenant == "vision" && intent.labels.app == "llm"`:             {true, true},
		`intent.resources.gpu.count == 4 && intent.resources.cpu == 16.0`:     {true, true},
		`intent.schedule.duration >= duration("24h") && intent.priority > 50`: {true, true},
		`flavor.properties.reliability > 0.99`:                                {true, false},
		`"provider" in cluster.roles`:                                         {true, false},
		`flavor.name.startsWith("h100") && flavor.provider == cluster.name`:   {true, false},
		`flavor.labels.exists(k, flavor.labels[k] == "gdpr")`:                 {true, false},
		`size(intent.placement.regions) == 0`:                                 {true, true},
		`intent.resources.memory.compareTo(flavor.capacity.memory) < 0`:       {true, false},
	} {
		p, err := Compile(expr)
		if err != nil {
			t.Errorf("%s: %v", expr, err)
			continue
		}
		for i, f := range []*v1alpha1.Flavor{gpus, plain} {
			c := paris
			if i == 1 {
				c = nil
			}
			got, err := p.Eval(intent, f, c)
			if err != nil && i == 0 {
				t.Errorf("%s on %s: %v", expr, f.Metadata.Name, err)
			}
			if got != want[i] {
				t.Errorf("%s on %s: got %v, want %v (%v)", expr, f.Metadata.Name, got, want[i], err)
			}
		}
	}
}

func TestEvalTakesTheResolvedPrice(t *testing.T) {
	p, err := Compile(`flavor.price.hourly == 5.0 && flavor.price.currency == "USD" && flavor.location.region == "r1"`)
	if err != nil {
		t.Fatal(err)
	}
	flat := v1alpha1.MustDecimal("20")
	ok, err := p.EvalFacts(Facts{
		Intent:   read[v1alpha1.ResourceIntent](t, `{spec: {resources: {gpu: 4}}}`),
		Flavor:   read[v1alpha1.Flavor](t, flavorDoc),
		Price:    &v1alpha1.Price{Currency: "USD", Flat: &flat},
		Location: v1alpha1.Location{Region: "r1"},
	})
	if err != nil || !ok {
		t.Errorf("got %v, %v, want a quarter of the flat price", ok, err)
	}
}

func TestCompileRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		expr      string
		line, col int
		want      string
	}{
		"misspelt field":    {`flavor.gpu.modle == "x"`, 1, 11, `did you mean "model"?`},
		"second line":       {"flavor.gpu.count > 1 &&\n flavor.prise.hourly < 3.0", 2, 8, `did you mean "price"?`},
		"a field below":     {`true && flavor.country == "IT"`, 1, 15, `unknown field "country" (did you mean flavor.location.country?)`},
		"not another's":     {`flavor.counts == 4`, 1, 7, `unknown field "counts"`},
		"not a path":        {`[flavor.gpu].exists(g, g.modell == "x")`, 1, 25, `unknown field "modell" (did you mean "model"?)`},
		"unknown variable":  {`flavour.gpu.model == "x"`, 1, 1, "expressions see intent, flavor and cluster"},
		"wrong type":        {`flavor.gpu.model == 3`, 1, 18, `"==" cannot be used with (string, int)`},
		"quantity":          {`flavor.gpu.memory > 40`, 1, 19, `">" cannot be used with (quantity, int); compare quantities by isGreaterThan`},
		"function":          {`flavor.gpu.model.startsWith(3)`, 1, 28, `"startsWith" cannot be used with (int)`},
		"not a boolean":     {`flavor.gpu.model`, 1, 1, "must be true or false"},
		"syntax":            {`flavor.gpu.model ==`, 1, 20, "syntax error: the expression ends too early"},
		"an operator twice": {`flavor.gpu.count == && true`, 1, 21, "syntax error: '&&' is not expected here"},
		"empty":             {" ", 1, 1, "empty"},
		"longer than bound": {strings.Repeat("x", MaxSource+1), 1, 1, "longer"},
		"own field of none": {`flavor.zzzzzzzzzz == 1`, 1, 7, `unknown field "zzzzzzzzzz"`},
	} {
		_, err := Compile(tc.expr)
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("%s: got %v, want an *Error", name, err)
			continue
		}
		if strings.Contains(e.Message, "did you mean") && !strings.Contains(tc.want, "did you mean") {
			t.Errorf("%s: %s", name, e.Message)
		}
		if e.Line != tc.line || e.Column != tc.col || !strings.Contains(e.Message, tc.want) {
			t.Errorf("%s: got %d:%d %s, want %d:%d …%s…", name, e.Line, e.Column, e.Message, tc.line, tc.col, tc.want)
		}
	}
}

func TestCostIsBounded(t *testing.T) {
	l := `[1,2,3,4,5,6,7,8,9,10]`
	twice := l + `.all(a, ` + l + `.all(b, a + b > 0))`
	thrice := l + `.all(a, ` + l + `.all(b, ` + l + `.all(c, a + b + c > 0)))`
	for source, want := range map[string]string{
		thrice:                        "units, and at most 2000 are allowed",
		l + `.all(z, ` + thrice + `)`: "units, and at most 2000 are allowed",
		`flavor.labels.exists(k, flavor.labels.exists(l, l == k))`:                      "units, and at most 2000 are allowed",
		`intent.annotations.exists(k, intent.annotations[k].matches("(a|b)*c(a|b)*d"))`: "units, and at most 2000 are allowed",
		`"%s".format([intent.name]).contains("%s".format([flavor.name]))`:               "without a bound",
		`intent.placement == intent.placement`:                                          "without a bound",
	} {
		_, err := Compile(source)
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(e.Message, want) || !strings.Contains(e.Message, "do not put exists()") {
			t.Errorf("%s: %v", source, err)
		}
	}
	p, err := Compile(twice)
	if err != nil || p.Cost() < 100 || p.Cost() > MaxCost {
		t.Fatalf("%v, cost %v", err, p)
	}
	if p, err = CompilePolicy(thrice); err != nil || p.Cost() <= MaxCost {
		t.Errorf("a policy: %v", err)
	}
	if _, err = CompilePolicy(l + `.all(z, ` + thrice + `)`); err == nil || !strings.Contains(err.Error(), "at most 20000") {
		t.Errorf("a policy: %v", err)
	}
}

// What the estimate supposes to be smaller meets the same limit when it is
// evaluated, and what costs no more than it supposes never does.
func TestCostIsBoundedWhileEvaluated(t *testing.T) {
	p, err := Compile(`flavor.labels.all(k, flavor.labels[k].startsWith("v") && k != "x")`)
	if err != nil {
		t.Fatal(err)
	}
	for n, fits := range map[int]bool{sizeList: true, 1000: false} {
		f := &v1alpha1.Flavor{}
		f.Spec.Labels = map[string]string{}
		for i := range n {
			f.Spec.Labels[fmt.Sprintf("%s%d", strings.Repeat("k", 60), i)] = strings.Repeat("v", sizeName)
		}
		if ok, err := p.Eval(nil, f, nil); ok != fits || (err == nil) != fits || err != nil && !strings.Contains(err.Error(), "cost") {
			t.Errorf("%d labels: %v, %v", n, ok, err)
		}
	}
}

// What people write of a flavor stays far under the bound.
func TestCostOfWhatIsUsual(t *testing.T) {
	for _, source := range []string{
		`flavor.gpu.interconnect == "nvlink" && flavor.price.hourly < 30.0`,
		`flavor.location.country in ["FR", "DE", "IT", "SE"] && !(flavor.provider in ["oslo", "bergen"])`,
		`flavor.gpu.model.lowerAscii().contains("h100") || flavor.gpu.model.matches("^nvidia-(a|h)100.*$")`,
		`flavor.name.startsWith("h100") && flavor.provider == cluster.name && cluster.labels["tier"] == "gold"`,
		`flavor.labels.exists(k, k.startsWith("compliance") && flavor.labels[k] == "gdpr")`,
		`cluster.roles.exists(r, r == "provider") && ["a", "b", "c"].exists(x, x == intent.labels.app)`,
		`flavor.gpu.memory.isGreaterThan(quantity("40Gi")) && intent.resources.memory.compareTo(flavor.capacity.memory) < 0`,
		`intent.schedule.duration >= duration("24h") && intent.priority > 50 && !(intent.name in intent.placement.apart)`,
		`flavor.name.split("-").exists(part, part == "pool") && flavor.location.zone.replace("-", "").size() > 2`,
	} {
		if p, err := Compile(source); err != nil || p.Cost() > MaxCost/2 {
			t.Errorf("%s: %v (%+v)", source, err, p)
		}
	}
}

func TestMissingLabelIsAnError(t *testing.T) {
	p, err := Compile(`flavor.labels.compliance == "gdpr"`)
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := p.Eval(nil, nil, nil); err == nil || ok {
		t.Errorf("got %v, %v, want an error", ok, err)
	}
}

func BenchmarkEval(b *testing.B) {
	p, err := Compile(`flavor.gpu.interconnect == "nvlink" && flavor.price.hourly < 30.0`)
	if err != nil {
		b.Fatal(err)
	}
	f, in, c := read[v1alpha1.Flavor](b, flavorDoc), &v1alpha1.ResourceIntent{}, &v1alpha1.Cluster{}
	for b.Loop() {
		if _, err := p.Eval(in, f, c); err != nil {
			b.Fatal(err)
		}
	}
}
