package market_test

import (
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/market"
)

// Rows of public price lists and traces: cloudpilot-ai/karpenter-provider-gcp,
// aws/karpenter-provider-aws with alexei-led/spotinfo, and
// hkust-adsl/kubernetes-scheduler-simulator (all Apache-2.0).
const (
	offersCSV = `provider,region,zones,instance_type,gpu_model,gpu_count,gpu_mem_gib,vcpus,mem_gib,price_ondemand_hour,price_spot_hour,currency,interruption_pct,as_of,source
gcp,asia-east1,,a3-highgpu-8g,H100,8,80,208,1872,102.35878,47.998308,USD,,2026-08-03,karpenter-provider-gcp
aws,us-east-1,us-east-1a,g6f.large,L4,0,2.79,2,8,0.202,,USD,,2026-07-20,karpenter-provider-aws
gcp,asia-east1,,g4-standard-12,RTXPRO6000,0.25,96,12,45,1.462477,0.585415,USD,,2026-08-03,karpenter-provider-gcp
aws,us-east-1,us-east-1a|us-east-1b,g5.xlarge,A10G,1,22.35,4,16,1.006,0.4527,USD,2.5,2026-07-20,karpenter-provider-aws
`
	nodesCSV = `sn,cpu_milli,memory_mib,gpu,model
openb-node-0001,64000,262144,2,P100
openb-node-0002,96000,786432,8,V100M32
openb-node-0003,32000,262144,0,
`
)

func TestReadOffers(t *testing.T) {
	table, err := market.ReadCSV(strings.NewReader(offersCSV), "ignored")
	if err != nil {
		t.Fatal(err)
	}
	if len(table.Flavors) != 4 || len(table.Clusters) != 2 || table.Clusters[0].Metadata.Name != "aws-us-east-1" || table.Clusters[1].Spec.Location.Region != "asia-east1" {
		t.Fatalf("%+v", table)
	}
	g5, g6f, a3, g4 := table.Flavors[0], table.Flavors[1], table.Flavors[2], table.Flavors[3]
	if a3.Ref() != "gcp-asia-east1/a3-highgpu-8g" || a3.Spec.Capacity["gpu"].Int64() != 8 || a3.Spec.Capacity["cpu"].Int64() != 208000 || a3.Spec.Capacity["memory"].Int64() != 1872<<30 {
		t.Errorf("%s %v", a3.Ref(), a3.Spec.Capacity)
	}
	if p := a3.Spec.Price; p.PerHour["gpu"].MulInt(8).String() != "102.35878" || p.Spot["gpu"].String() != "5.9997885" || p.Currency != "USD" {
		t.Errorf("price %+v", p)
	}
	if a3.Spec.Partition.Min["gpu"].Int64() != 8 || a3.Spec.Partition.Step["cpu"].Int64() != 208000 {
		t.Errorf("a machine can be had in parts: %+v", a3.Spec.Partition)
	}
	if g := g5.Spec.GPU; g.Model != "nvidia-a10g" || g.Memory.Int64() != 24<<30 || g5.Spec.Location.Zone != "" {
		t.Errorf("%+v in %q", g, g5.Spec.Location.Zone)
	}
	if g := g6f.Spec.GPU; g.UnitsPerGPU != 8 || g.Memory.Int64() != 3<<30 || g6f.Spec.Capacity["gpu"].Int64() != 1 || g6f.Spec.Price.PerHour["gpu"].String() != "0.202" || g6f.Spec.Price.Spot != nil || g6f.Spec.Location.Zone != "us-east-1a" {
		t.Errorf("an eighth of a card: %+v %+v", g, g6f.Spec.Price)
	}
	if g := g4.Spec.GPU; g.UnitsPerGPU != 4 || g.Memory.Int64() != 24<<30 || g.Sharing != "time-slicing" || g4.Spec.Price.PerHour["gpu"].String() != "1.462477" {
		t.Errorf("a quarter of a card: %+v %+v", g, g4.Spec.Price)
	}
}

func TestReadNodes(t *testing.T) {
	table, err := market.ReadCSV(strings.NewReader(nodesCSV), "openb")
	if err != nil {
		t.Fatal(err)
	}
	if len(table.Flavors) != 3 || len(table.Clusters) != 1 || table.Clusters[0].Metadata.Name != "openb" {
		t.Fatalf("%+v", table)
	}
	v100 := table.Flavors[1]
	if g := v100.Spec.GPU; g.Model != "nvidia-v100" || g.Memory.Int64() != 32<<30 || v100.Spec.Capacity["gpu"].Int64() != 8 || v100.Spec.Partition != nil {
		t.Errorf("%+v", v100.Spec)
	}
	if table.Flavors[2].Spec.GPU != nil {
		t.Error("a node without GPUs has some")
	}
}

func TestTablesWithMistakes(t *testing.T) {
	header := strings.SplitAfterN(offersCSV, "\n", 2)[0]
	cases := map[string]struct{ text, want string }{
		"empty":                     {"", "header"},
		"a missing column":          {"provider,region\n", `"instance_type"`},
		"a missing column of nodes": {"sn,gpu\n", `"cpu_milli"`},
		"not a number":              {header + "gcp,a,,m,H100,x,80,1,1,1,,USD\n", "line 2: gpu_count"},
		"an exponent":               {header + "gcp,a,,m,H100,1,80,1e9,1,1,,USD\n", "line 2: vcpus"},
		"a negative price":          {header + "gcp,a,,m,H100,1,80,1,1,-1,,USD\n", "line 2: price_ondemand_hour"},
		"no currency":               {header + "gcp,a,,m,H100,1,80,1,1,1,,\n", "line 2: currency"},
		"one and a half":            {header + "gcp,a,,m,H100,1.5,80,1,1,1,,USD\n", "line 2: gpu_count"},
		"the same machine twice":    {header + "gcp,a,,m.1,H100,1,80,1,1,1,,USD\n\ngcp,a,,m-1,H100,1,80,1,1,1,,USD\n", "line 4: gcp-a/m-1 is on line 2"},
		"a name of nothing":         {header + "gcp,a,,??,H100,1,80,1,1,1,,USD\n", "line 2: instance_type"},
		"no rows":                   {header, "no rows"},
		"a comma too many":          {header + "gcp,a,,m,H100,1,80,1,1,1,,USD,,,,\n", "line 2: 16 fields, and the header has 15"},
		"a comma too few":           {header + "gcp,a,,m,H100,1,80,1,1,1,USD\n", "line 2: 11 fields, and currency is number 12"},
		"no provider":               {header + ",a,,m,H100,1,80,1,1,1,,USD\n", "line 2: provider"},
		"no cores":                  {header + "gcp,a,,m,H100,1,80,0,1,1,,USD\n", "line 2: vcpus: 0"},
		"no memory":                 {header + "gcp,a,,m,H100,1,80,1,,1,,USD\n", "line 2: mem_gib: 0"},
		"no model":                  {header + "gcp,a,,m,,1,80,1,1,1,,USD\n", "line 2: gpu_model: 1 GPUs of no model"},
		"a node without cores":      {"sn,cpu_milli,memory_mib,gpu,model\nn,0,1,0,\n", "line 2: cpu_milli: 0"},
		"a node's card":             {"sn,cpu_milli,memory_mib,gpu,model\nn,1,1,2,\n", "line 2: model: 2 GPUs of no model"},
		"an open quote":             {header + "gcp,\"a,,m\n", "read the table"},
	}
	for name, tc := range cases {
		if _, err := market.ReadCSV(strings.NewReader(tc.text), "x"); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}

func TestMachinesAreCounted(t *testing.T) {
	text := "count,provider,region,instance_type,gpu_model,gpu_count,gpu_mem_gib,vcpus,mem_gib,price_ondemand_hour,price_spot_hour,currency\n5,Own DC,Milan,cpu-box,,,,64,256,3.2,,eur\n"
	table, err := market.ReadCSV(strings.NewReader(text), "")
	if err != nil {
		t.Fatal(err)
	}
	f := table.Flavors[0]
	if f.Ref() != "own-dc-milan/cpu-box" || f.Spec.Capacity["cpu"].Int64() != 320000 || f.Spec.Partition.Min["cpu"].Int64() != 64000 || f.Spec.Price.PerHour["cpu"].String() != "0.05" || f.Spec.Price.Currency != "EUR" {
		t.Errorf("%s %+v %+v", f.Ref(), f.Spec.Capacity, f.Spec.Price)
	}
}
