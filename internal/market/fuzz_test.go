package market

import (
	"bytes"
	"testing"
)

// FuzzParseBlob: a market that was recorded in a repository is read, or refused.
func FuzzParseBlob(f *testing.F) {
	for _, s := range []string{"", "{}", "apiVersion: fleetbroker.io/v1alpha1\nkind: Flavor\nmetadata: {name: a, namespace: paris}\nspec: {capacity: {cpu: 1}}\n", "---\n---\n", "a: &a [*a]", "\x00", "[]", "{\"spec\":{\"capacity\":{\"cpu\":\"-1\"}}}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		flavors, err := ParseBlob(content)
		if err != nil {
			return
		}
		for _, x := range flavors {
			for name, a := range x.Spec.Capacity {
				if a.Int64() < 0 {
					t.Fatalf("%s has %d of %s", x.Metadata.Name, a.Int64(), name)
				}
			}
		}
	})
}

// FuzzTables: whatever a table of offers, nodes or demand holds, it is refused, or
// read with amounts that are not negative and no more rows than it has lines.
func FuzzTables(f *testing.F) {
	for _, s := range []string{
		"", "provider\n", "\ufeffsn,cpu_milli,memory_mib,gpu,model\nn1,64000,262144,8,A100\n", "sn,cpu_milli,memory_mib,gpu,model\nn1,-1,9223372036854775807,8,\"a\nb\"\n",
		"provider,region,instance_type,gpu_model,gpu_count,gpu_mem_gib,vcpus,mem_gib,price_ondemand_hour,price_spot_hour,currency,zones,count\ngcp,eu,a2,A100,8,40,96,680,29.3,1e9,EUR,a;b,99999999\n",
		"name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,creation_time,deletion_time,tenant,priority,max_hourly\na,1000,1024,1,500,T4|A100,0,10.5,vision,7,1.5\n",
		"name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,creation_time,deletion_time\na,1,8796093022208,1,1,|,2147483647,2147483647\na\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		lines := bytes.Count(content, []byte("\n")) + bytes.Count(content, []byte("\r")) + 1
		if table, err := ReadCSV(bytes.NewReader(content), "trace"); err == nil {
			if len(table.Flavors) > lines || len(table.Clusters) > len(table.Flavors) {
				t.Fatalf("%d flavors and %d clusters of %d lines", len(table.Flavors), len(table.Clusters), lines)
			}
			for _, x := range table.Flavors {
				for name, a := range x.Spec.Capacity {
					if a.Int64() < 0 {
						t.Fatalf("%s has %d of %s", x.Metadata.Name, a.Int64(), name)
					}
				}
			}
		}
		if rows, err := ReadDemand(bytes.NewReader(content)); err == nil {
			if len(rows) > lines {
				t.Fatalf("%d rows of %d lines", len(rows), lines)
			}
			for _, d := range rows {
				if d.CPU.Int64() < 0 || d.Memory.Int64() < 0 || d.GPUs < 0 || d.Milli() < 0 || d.Created < 0 || d.Priority < 0 {
					t.Fatalf("row %d is negative: %+v", d.Line, d)
				}
			}
		}
	})
}
