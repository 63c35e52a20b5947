package samples_test

import (
	"bytes"
	"encoding/csv"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/market"
	"github.com/fleetbroker/fleetbroker/internal/simulate"
	"github.com/fleetbroker/fleetbroker/internal/simulate/samples"
)

func text(t *testing.T, table [][]string) *bytes.Reader {
	t.Helper()
	var b bytes.Buffer
	if err := csv.NewWriter(&b).WriteAll(table); err != nil {
		t.Fatal(err)
	}
	return bytes.NewReader(b.Bytes())
}

// Samples are read, whatever the seed, and the planner places most of what they ask.
func TestSamplesAreRead(t *testing.T) {
	offers, err := market.ReadCSV(text(t, samples.Offers()), "x")
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(20) {
		demand, err := market.ReadDemand(text(t, samples.Demand(seed, 60)))
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if len(demand) != 60 {
			t.Fatalf("seed %d: %d rows", seed, len(demand))
		}
		if seed > 1 {
			continue
		}
		r, err := simulate.Run(simulate.Options{
			Offers: offers, Demand: demand, Fleet: &v1alpha1.FleetSpec{Currency: "EUR"}, Policies: []string{simulate.Planner}, Queue: "wait", Start: simulate.Start,
		})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if o := r.Policies[0]; o.Placed < 50 || o.Placed+o.Refused+o.Waiting != 60 {
			t.Errorf("seed %d: %d placed, %d refused, %d waiting of 60", seed, o.Placed, o.Refused, o.Waiting)
		}
	}
}

// Equal seeds make equal tables, and a file is never replaced.
func TestWrite(t *testing.T) {
	dir := t.TempDir()
	var last []byte
	for _, name := range []string{"a", "b"} {
		offers, demand, err := samples.Write(filepath.Join(dir, name), 3, 20)
		if err != nil {
			t.Fatal(err)
		}
		var both []byte
		for _, path := range []string{offers, demand} {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			both = append(both, b...)
		}
		if last != nil && !bytes.Equal(last, both) {
			t.Error("one seed makes two tables")
		}
		last = both
	}
	if err := os.Remove(filepath.Join(dir, "a", samples.OffersFile)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := samples.Write(filepath.Join(dir, "a"), 3, 20); err == nil || !strings.Contains(err.Error(), "demand.csv exists") {
		t.Errorf("it is written over: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "a", samples.OffersFile)); err == nil {
		t.Error("one of two files was written")
	}
}

// The page on the tables lists exactly the columns that the readers ask for, as required
// or optional as they are, and the samples show all of them.
func TestPageListsTheColumns(t *testing.T) {
	page, err := os.ReadFile("../../../fleet-repo-template/docs/simulate.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| (required|optional) \\|").FindAllStringSubmatch(string(page), -1) {
		listed[m[1]] = m[2]
	}
	read := map[string]bool{}
	for _, file := range []string{"csv.go", "demand.go"} {
		parsed, err := parser.ParseFile(token.NewFileSet(), "../../market/"+file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			call, is := n.(*ast.CallExpr)
			if !is || len(call.Args) == 0 {
				return true
			}
			method, is := call.Fun.(*ast.SelectorExpr)
			if !is || !slices.Contains([]string{"text", "milli", "whole", "price", "seconds"}, method.Sel.Name) {
				return true
			}
			if lit, is := call.Args[0].(*ast.BasicLit); is {
				name, err := strconv.Unquote(lit.Value)
				if err != nil {
					t.Fatal(err)
				}
				read[name] = true
			}
			return true
		})
	}
	for name := range read {
		if listed[name] == "" {
			t.Errorf("the page does not list the column %s", name)
		}
	}
	for name := range listed {
		if !read[name] {
			t.Errorf("the page lists the column %s, which nothing reads", name)
		}
	}
	if len(read) < 20 {
		t.Errorf("only %d columns were found", len(read))
	}
	nodes := [][]string{{"sn", "cpu_milli", "memory_mib", "gpu", "model"}, {"n1", "16000", "65536", "2", "L4"}}
	for what, table := range map[string][][]string{"offers": samples.Offers(), "demand": samples.Demand(1, 2), "nodes": nodes} {
		for i, name := range table[0] {
			without := make([][]string, len(table))
			for j, row := range table {
				without[j] = slices.Delete(slices.Clone(row), i, i+1)
			}
			var err error
			if what == "demand" {
				_, err = market.ReadDemand(text(t, without))
			} else {
				_, err = market.ReadCSV(text(t, without), "x")
			}
			if required := err != nil && strings.Contains(err.Error(), "is missing"); required != (listed[name] == "required") {
				t.Errorf("%s: the page calls %s %q; without it: %v", what, name, listed[name], err)
			}
		}
	}
	for name := range listed {
		if !slices.Contains(slices.Concat(samples.Offers()[0], samples.Demand(1, 1)[0], nodes[0]), name) {
			t.Errorf("no sample shows the column %s", name)
		}
	}
}
