package prices_test

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/fleetbroker/fleetbroker/internal/prices"
)

// repeated is a text between others, some bytes of it as it comes in; ###### in it is a number.
func repeated(before, each, after string, size int) io.Reader {
	return io.MultiReader(strings.NewReader(before), &again{text: each, times: size / len(each)}, strings.NewReader(after))
}

// again is a text so many times.
type again struct {
	text  string
	times int
	left  []byte
}

func (r *again) Read(p []byte) (int, error) {
	if len(r.left) == 0 {
		r.left = r.left[:0]
		for ; r.times > 0 && len(r.left) < 64<<10; r.times-- {
			r.left = append(r.left, r.text...)
			if at := strings.Index(r.text, "######"); at >= 0 {
				copy(r.left[len(r.left)-len(r.text)+at:], fmt.Sprintf("%06d", r.times%1_000_000))
			}
		}
	}
	if len(r.left) == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.left)
	r.left = r.left[n:]
	return n, nil
}

const (
	awsGPU  = `"######":{"attributes":{"instanceType":"p5.48xlarge","regionCode":"x","operatingSystem":"Linux","tenancy":"Shared","preInstalledSw":"NA","capacitystatus":"Used","gpu":"8"}},`
	awsCost = `{"priceDimensions":{"d":{"unit":"Hrs","pricePerUnit":{"USD":"80"}}}}`
)

// Answers of very many very small things are refused before they take much memory; a provider
// of prices is not trusted with it.
func TestAnswers_AreBounded(t *testing.T) {
	const size = 12 << 20
	configMap := func(in io.Reader) (*prices.Answer, error) { return prices.ConfigMap(in, "EUR", []string{"T4"}) }
	for name, tc := range map[string]struct {
		read func(io.Reader) (*prices.Answer, error)
		in   io.Reader
		want string
	}{
		"azure, objects":           {prices.Azure, repeated(`{"Items":[`, "{},", "{}]}", size), "more objects and values"},
		"azure, numbers":           {prices.Azure, repeated(`{"Items":[`, "1,", "1]}", size), "more objects and values"},
		"azure, a large page":      {prices.Azure, repeated(`{"Items":["`, "x", `"]}`, 66<<20), "more than 64 MiB"},
		"gcp, objects":             {prices.GCP, repeated(`{"skus":[`, "{},", "{}]}", size), "more objects and values"},
		"gcp, regions":             {prices.GCP, repeated(`{"skus":[{"serviceRegions":[`, `"",`, `""]}]}`, size), "more objects and values"},
		"aws, terms of one SKU":    {prices.AWS, repeated(`{"products":{`+strings.ReplaceAll(awsGPU, "######", "a")+`"b":{}},"terms":{"OnDemand":{"a":{`, `"######":{},`, `"b":{}}}}}`, size), "more objects and values"},
		"aws, an entry in quotes":  {prices.AWS, repeated(`{"PriceList":["{\"terms\":{\"OnDemand\":{`, `\"######\":{},`, `\"b\":{}}}}"]}`, size), "more objects and values"},
		"aws, a part that is none": {prices.AWS, repeated(`{"more":[`, "{},", "{}]}", size), "more objects and values"},
		"csv, columns":             {prices.CSV, repeated("provider", ",", "\n", 20<<20), "more objects and values"},
		"csv, a large one":         {prices.CSV, repeated("sn,cpu_milli,memory_mib,gpu,model\n", "\n", "", 33<<20), "more than 32 MiB"},
		"configmap":                {configMap, repeated("data: [", "a,", "]", 2<<20), "more than 1 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := tc.read(tc.in)
			runtime.ReadMemStats(&after)
			if err == nil || !strings.Contains(err.Error(), tc.want) || len(err.Error()) > 300 {
				t.Errorf("got %v, want %q", err, tc.want)
			}
			if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 900 {
				t.Errorf("it took %d MiB, want at most 900, of which not all is held at a time", took)
			}
		})
	}
}

// What is large for good reasons is read, and nothing is kept of what has no GPUs.
func TestAWS_ReadsLargeOfferFiles(t *testing.T) {
	const others = `"######":{"sku":"x","attributes":{"instanceType":"m5.large","regionCode":"x","operatingSystem":"Linux"}},`
	const reserved = `"######":{"a":{"priceDimensions":{"d":{"unit":"Hrs","pricePerUnit":{"USD":"80"}}}}},`
	gpu := strings.TrimSuffix(strings.ReplaceAll(awsGPU, "######", "gpu"), ",")
	in := io.MultiReader(
		repeated(`{"formatVersion":"v1.0","publicationDate":null,"products":{`, others, "", 8<<20), strings.NewReader(gpu+`},"terms":{"OnDemand":{"gpu":{"a":`+awsCost+`},`),
		repeated("", reserved, `"z":{}},"Reserved":{`, 8<<20), repeated("", reserved, `"z":{}}}}`, 8<<20))
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	a, err := prices.AWS(in)
	runtime.GC()
	runtime.ReadMemStats(&after)
	got, notes := rows(t, a, err, prices.Options{Name: "aws", Cloud: "aws"})
	want(t, got, "aws-x nvidia-h100 80Gi gpu 10")
	if len(notes) > 0 {
		t.Errorf("got notes %q, want none", notes)
	}
	if held := int64(after.HeapAlloc-before.HeapAlloc) >> 20; held > 8 {
		t.Errorf("%d MiB are held of 24, want at most 8", held)
	}
}

// The order of the parts, and the forms of an entry.
func TestAWS_Forms(t *testing.T) {
	gpu := strings.TrimSuffix(strings.ReplaceAll(awsGPU, "######", "gpu"), ",")
	item := `{"product":` + strings.TrimPrefix(gpu, `"gpu":`) + `,"terms":{"OnDemand":{"a":` + awsCost + `},"Reserved":{"b":3}}}`
	quoted := `"` + strings.ReplaceAll(item, `"`, `\"`) + `"`
	for text, want := range map[string]string{
		`{"products":{` + gpu + `},"terms":{"OnDemand":{"gpu":{"a":` + awsCost + `}}}}`: "",
		`{"terms":{"OnDemand":{"gpu":{"a":` + awsCost + `}}},"products":{` + gpu + `}}`: "its terms come before its products",
		`{"products":{` + gpu + `},"terms":3}`:                                          "it is not the JSON that was expected: a value that begins with { is needed at byte",
		`{"products":null,"PriceList":null}`:                                            "neither products nor a PriceList",
		`{"PriceList":[` + item + `]}`:                                                  "it is not the JSON that was expected",
		`{"PriceList":[` + strings.Replace(item, `{"b":3}`, "{}", 1) + `]}`:             "",
		`{"PriceList":[` + strings.Replace(quoted, `{\"b\":3}`, "{}", 1) + `,null]}`:    "",
		`{"PriceList":["{"]}`: "entry 0 of PriceList",
	} {
		a, err := prices.AWS(strings.NewReader(text))
		if want == "" && (err != nil || len(a.Quotes) != 1) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %+v, %v, want %q", text, a, err, want)
		}
	}
}

// An answer that breaks off is not called JSON that nobody expected.
func TestAnswers_BreakOff(t *testing.T) {
	gone := errors.New("connection reset")
	for name, read := range map[string]func(io.Reader) (*prices.Answer, error){"aws": prices.AWS, "gcp": prices.GCP, "azure": prices.Azure, "csv": prices.CSV} {
		_, err := read(io.MultiReader(strings.NewReader(`{`), iotest.ErrReader(gone)))
		if !errors.Is(err, gone) || strings.Contains(err.Error(), "JSON") {
			t.Errorf("%s: got %v, want %v", name, err, gone)
		}
	}
}

// Pages together are bounded too.
func TestAnswer_Add(t *testing.T) {
	all, page := &prices.Answer{}, &prices.Answer{Quotes: make([]prices.Quote, 1000), Notes: []string{"a"}}
	for n := 1; ; n++ {
		if err := all.Add(page); err != nil {
			if n != 500 || !strings.Contains(err.Error(), "more than 500000 prices") {
				t.Errorf("page %d: %v", n, err)
			}
			return
		}
	}
}
