package market_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/market"
)

const demandHeader = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,creation_time,deletion_time,tenant,priority,max_hourly\n"

// Rows of hkust-adsl/kubernetes-scheduler-simulator (Apache-2.0), and one with
// everything.
func TestReadDemand(t *testing.T) {
	rows, err := market.ReadDemand(strings.NewReader(demandHeader +
		"openb-pod-0001,6000,12288,1,460,,427061,12902960,,,\n" +
		"openb-pod-0017,88000,327680,8,1000,V100M16|V100M32,9437497,,Team A,500,12.50\n" +
		"openb-pod-0002,1000,2048,0,0,,5.5,7,,,\n"))
	if err != nil {
		t.Fatal(err)
	}
	share, whole, none := rows[0], rows[1], rows[2]
	if share.Milli() != 460 || share.CPU.Int64() != 6000 || share.Memory.Int64() != 12288<<20 || share.Created != 427061 || share.Deleted != 12902960 || share.Models != nil || share.MaxHourly != nil {
		t.Errorf("%+v", share)
	}
	if whole.Milli() != 8000 || len(whole.Models) != 2 || whole.Deleted != -1 || whole.Tenant != "team-a" || whole.Priority != 500 || whole.MaxHourly.String() != "12.5" || whole.Line != 3 {
		t.Errorf("%+v", whole)
	}
	if none.Milli() != 0 || none.Created != 5 {
		t.Errorf("%+v", none)
	}
}

func TestDemandWithMistakes(t *testing.T) {
	cases := map[string]struct {
		text         string
		line, column int
		want         string
	}{
		"a missing column":    {"name,cpu_milli\na,1\n", 1, 1, `"memory_mib"`},
		"no name":             {demandHeader + ",1,1,0,0,,0,1\n", 2, 1, "needs a name"},
		"a name twice":        {demandHeader + "a,1,1,0,0,,0,1\na,1,1,0,0,,0,1\n", 3, 1, "line 2"},
		"no number":           {demandHeader + "a,1,x,0,0,,0,1\n", 2, 5, "memory_mib"},
		"a share of two":      {demandHeader + "a,1,1,2,500,,0,1\n", 2, 9, "share is of one card"},
		"more than a card":    {demandHeader + "a,1,1,1,1500,,0,1\n", 2, 9, "1 to 1000"},
		"ends before it came": {demandHeader + "a,1,1,0,0,,9,1\n", 2, 14, "before creation_time"},
		"a priority":          {demandHeader + "a,1,1,0,0,,0,1,,2000,\n", 2, 17, "0 to 1000"},
		"no rows":             {demandHeader, 2, 1, "no rows"},
		"nothing asked":       {demandHeader + "a,0,0,0,0,,0,1\n", 2, 3, "asks for nothing"},
		"a comma too few":     {demandHeader + "a,1,1,0,0,0,1\n", 2, 1, "7 fields, and deletion_time is number 8"},
		"a comma too many":    {demandHeader + "a,1,1,0,0,,0,1,,,,,\n", 2, 1, "13 fields, and the header has 11"},
		"a quote":             {demandHeader + "a,1,1,0,\"0,,0,1\n", 2, 0, "quote"},
	}
	for name, c := range cases {
		_, err := market.ReadDemand(strings.NewReader(c.text))
		var at *market.TableError
		if !errors.As(err, &at) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if at.Line != c.line || (c.column > 0 && at.Column != c.column) || !strings.Contains(at.Err.Error(), c.want) {
			t.Errorf("%s: %d:%d: %v, want %d:%d with %q", name, at.Line, at.Column, at.Err, c.line, c.column, c.want)
		}
	}
}
