package prices

import (
	"strings"
	"testing"
)

// What is kept of an offer file is bounded: machines and what is noted together.
func TestAWS_KeepsNoMoreThanMost(t *testing.T) {
	const machine = `{"attributes":{"instanceType":"p5.48xlarge","operatingSystem":"Linux","tenancy":"Shared","preInstalledSw":"NA","capacitystatus":"Used","gpu":"8"}}`
	for text, part := range map[string]string{
		`{"a":` + machine + `,"b":` + machine + `}`:                               "products",
		`[{"product":` + strings.Replace(machine, "p5", "p0", 1) + `},{}]`:        "PriceList",
		`{"a":` + machine + `,"b":` + strings.Replace(machine, "p5", "", 1) + `}`: "products",
	} {
		for room, want := range map[int]bool{2: true, 0: false} {
			r := &awsReader{entries: entriesOf(strings.NewReader(text), offerLimits), out: &Answer{Notes: make([]string, Most-room)}, machines: map[string]awsMachine{}}
			if err := r.part(part); (err == nil) != want || err != nil && !strings.Contains(err.Error(), "more than 500000 prices") {
				t.Errorf("%s with room for %d: got %v", text, room, err)
			}
		}
	}
}
