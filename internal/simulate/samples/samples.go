// Package samples makes the two tables that `simulate` reads, to start from: offers of
// priced machines, and a month's demand of three teams. They show every column that the
// readers of internal/market know, the optional ones too, and the page on the two tables
// (docs/simulate.md of a fleet repo) is held to them by a test.
//
// Equal seeds make equal tables, to the byte. Write refuses to replace a file. The
// `simulate` command calls it; it is safe for concurrent use.
package samples

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
)

// The files' names.
const (
	OffersFile = "offers.csv"
	DemandFile = "demand.csv"
)

// Offers is a table of offers: its header and rows. The prices are round figures in the
// range of what clouds ask, and nobody's list.
func Offers() [][]string {
	return [][]string{
		{"provider", "region", "zones", "instance_type", "gpu_model", "gpu_count", "gpu_mem_gib", "vcpus", "mem_gib", "count", "price_ondemand_hour", "price_spot_hour", "currency"},
		{"north", "eu-north", "eu-north-1a", "8xh100", "H100", "8", "80", "192", "2048", "2", "24.00", "14.40", "EUR"},
		{"north", "eu-north", "eu-north-1a", "4xl4", "L4", "4", "24", "48", "192", "4", "3.20", "1.60", "EUR"},
		{"south", "eu-south", "", "8xa100", "A100", "8", "80", "96", "1024", "2", "16.00", "", "EUR"},
		{"south", "eu-south", "", "1xl4", "L4", "1", "24", "8", "32", "8", "0.90", "0.45", "EUR"},
		{"south", "eu-south", "", "cpu-64", "", "", "", "64", "256", "4", "2.40", "", "EUR"},
	}
}

// asks are the kinds of work that demand is drawn of: how often of ten, and what each
// asks for.
var asks = []struct {
	often                           int
	name, tenant, cpu, memory, gpus string
	share, models, priority, hourly string
	shortest, spanning              int // seconds
}{
	{4, "notebook", "vision", "4000", "16384", "1", "1000", "L4", "100", "1.50", 1800, 28800},
	{3, "train", "vision", "16000", "131072", "4", "1000", "H100|A100", "200", "20", 14400, 172800},
	{2, "serve", "speech", "2000", "8192", "1", "1000", "", "500", "", 86400, 604800},
	{1, "prepare", "genomics", "8000", "32768", "0", "0", "", "", "", 3600, 36000},
}

// Demand is a table of demand drawn by a seed: its header and so many rows, over 30 days.
func Demand(seed uint64, rows int) [][]string {
	out := [][]string{{"name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec", "creation_time", "deletion_time", "tenant", "priority", "max_hourly"}}
	r := rand.New(rand.NewPCG(seed, 0))
	for i := range rows {
		n, k := r.IntN(10), 0
		for n >= asks[k].often {
			n -= asks[k].often
			k++
		}
		a := &asks[k]
		created := i * (30 * 86400 / max(rows, 1))
		created += r.IntN(3600)
		out = append(out, []string{
			fmt.Sprintf("%s-%d", a.name, i+1), a.cpu, a.memory, a.gpus, a.share, a.models,
			strconv.Itoa(created), strconv.Itoa(created + a.shortest + r.IntN(a.spanning)), a.tenant, a.priority, a.hourly,
		})
	}
	return out
}

// Write writes both tables into a directory, which is made if need be, and returns their
// paths. A file that exists is an error, and nothing is written.
func Write(dir string, seed uint64, rows int) (offers, demand string, err error) {
	offers, demand = filepath.Join(dir, OffersFile), filepath.Join(dir, DemandFile)
	for _, name := range []string{offers, demand} {
		if _, err := os.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
			return "", "", fmt.Errorf("write samples: %s exists; name another directory", name)
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // tables are for everybody
		return "", "", fmt.Errorf("write samples: %w", err)
	}
	for name, table := range map[string][][]string{offers: Offers(), demand: Demand(seed, rows)} {
		if err := write(name, table); err != nil {
			return "", "", fmt.Errorf("write samples: %w", err)
		}
	}
	return offers, demand, nil
}

func write(name string, table [][]string) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) //nolint:gosec // tables are for everybody
	if err != nil {
		return err
	}
	return errors.Join(csv.NewWriter(f).WriteAll(table), f.Close())
}
