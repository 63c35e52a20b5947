package quality

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// group is the requests that are equal: their number is one integer variable
// for each offer.
type group struct {
	request
	count int
}

func (in *instance) groups() []group {
	byKey := map[string]int{}
	var out []group
	for _, q := range in.requests {
		key := fmt.Sprint(q)
		at, known := byKey[key]
		if !known {
			at = len(out)
			byKey[key] = at
			out = append(out, group{request: q})
		}
		out[at].count++
	}
	return out
}

// writeLP writes the instance as an integer program in CPLEX's LP format:
// n_i_j requests of group i are placed on offer j, u_i stay unplaced.
//
//	min  Σ price_j·gpus_i·n_i_j + 100·gpus_i·u_i
//	s.t. Σ_j n_i_j + u_i = count_i;  per offer Σ gpus·n ≤ gpus, Σ cores·n ≤ cores, Σ memory·n ≤ memory
func (in *instance) writeLP(to io.Writer) error {
	w := bufio.NewWriter(to)
	groups := in.groups()
	fmt.Fprint(w, "Minimize\n obj:")
	terms := 0
	term := func(coefficient string, name string) {
		if terms++; terms%8 == 0 {
			fmt.Fprint(w, "\n")
		}
		fmt.Fprintf(w, " + %s %s", coefficient, name)
	}
	name := func(i, j int) string { return fmt.Sprintf("n_%d_%d", i, j) }
	of := make([][]int, len(in.offers)) // groups by offer
	for i := range groups {
		g := &groups[i]
		term(fmt.Sprint(unplaced*g.gpus), fmt.Sprintf("u_%d", i))
		for j := range in.offers {
			if g.fits(&in.offers[j]) {
				of[j] = append(of[j], i)
				term(strconv.FormatFloat(float64(in.offers[j].microPerGPU*g.gpus)/1e6, 'f', 6, 64), name(i, j))
			}
		}
	}
	fmt.Fprint(w, "\nSubject To\n")
	places := make([][]int, len(groups))
	for j := range in.offers {
		o := &in.offers[j]
		for _, limit := range []struct {
			name  string
			most  float64
			takes func(*group) float64
		}{
			{"gpus", float64(o.gpus), func(g *group) float64 { return float64(g.gpus) }},
			{"cpu", float64(o.milli) / 1000, func(g *group) float64 { return float64(g.milli) / 1000 }},
			{"ram", float64(o.ram) / (1 << 30), func(g *group) float64 { return float64(g.ram) / (1 << 30) }},
		} {
			if len(of[j]) == 0 {
				continue
			}
			fmt.Fprintf(w, " %s_%d:", limit.name, j)
			for _, i := range of[j] {
				term(strconv.FormatFloat(limit.takes(&groups[i]), 'f', -1, 64), name(i, j))
			}
			fmt.Fprintf(w, " <= %s\n", strconv.FormatFloat(limit.most, 'f', -1, 64))
		}
		for _, i := range of[j] {
			places[i] = append(places[i], j)
		}
	}
	for i := range groups {
		fmt.Fprintf(w, " all_%d: u_%d", i, i)
		for _, j := range places[i] {
			term("1", name(i, j))
		}
		fmt.Fprintf(w, " = %d\n", groups[i].count)
	}
	fmt.Fprint(w, "General\n")
	for i := range groups {
		fmt.Fprintf(w, " u_%d\n", i)
		for _, j := range places[i] {
			fmt.Fprintf(w, " %s\n", name(i, j))
		}
	}
	fmt.Fprint(w, "End\n")
	return w.Flush()
}

// optimum is what cbc found.
type optimum struct {
	// cost of the best solution, USD an hour; no solution is cheaper than bound.
	cost, bound float64
	// proven to the thousandth.
	proven bool
	// outcome is what the solution is made of.
	outcome
}

// solve finds the optimum of a batch.
func (in *instance) solve(t testing.TB, limit time.Duration) optimum {
	t.Helper()
	o, solution := cbc(t, limit, in.writeLP)
	var intents int
	intents, o.unplaced = in.readUnplaced(t, solution)
	o.placed = len(in.requests) - intents
	o.hourly = o.cost - float64(unplaced*o.unplaced)
	return o
}

// cbc solves a program within 0.01 % or as near as it comes in the time given,
// and says in which file the solution is.
func cbc(t testing.TB, limit time.Duration, write func(io.Writer) error) (o optimum, solution string) {
	t.Helper()
	program, err := exec.LookPath("cbc")
	if err != nil {
		t.Fatal("cbc is not installed: apt-get install coinor-cbc (.ci/run does)")
	}
	dir := t.TempDir()
	lp := filepath.Join(dir, "instance.lp")
	f, err := os.Create(lp)
	if err != nil {
		t.Fatal(err)
	}
	if err := write(f); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	solution = filepath.Join(dir, "solution.txt")
	start := time.Now()
	said, err := exec.Command(program, lp, "-ratioGap", "0.0001", "-seconds", strconv.Itoa(int(limit.Seconds())), "-solve", "-solution", solution).CombinedOutput()
	if err != nil {
		t.Fatalf("cbc: %v\n%s", err, said)
	}
	o.took = time.Since(start)
	o.cost = number(t, said, "Objective value:")
	o.bound = o.cost
	if strings.Contains(string(said), "Lower bound:") {
		o.bound = number(t, said, "Lower bound:")
	} else if !strings.Contains(string(said), "Optimal solution found") {
		t.Fatalf("cbc found nothing:\n%s", said)
	}
	// A solution within the gap that was asked for is called optimal.
	o.proven = strings.Contains(string(said), "Optimal solution found") || o.cost-o.bound <= o.cost/1000
	return o, solution
}

// number is what follows a title in cbc's report.
func number(t testing.TB, said []byte, title string) float64 {
	t.Helper()
	_, rest, _ := strings.Cut(string(said), title)
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		t.Fatalf("cbc does not say %q:\n%s", title, said)
	}
	n, err := strconv.ParseFloat(fields[0], 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// readUnplaced counts the intents that a solution leaves without a place, and
// their GPUs.
func (in *instance) readUnplaced(t testing.TB, file string) (intents int, gpus int64) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	groups := in.groups()
	for line := range strings.Lines(string(b)) {
		fields := strings.Fields(line)
		at := slices.IndexFunc(fields, func(s string) bool { return strings.HasPrefix(s, "u_") })
		if at < 0 {
			continue
		}
		i, err := strconv.Atoi(strings.TrimPrefix(fields[at], "u_"))
		if err != nil {
			t.Fatal(err)
		}
		value, err := strconv.ParseFloat(fields[at+1], 64)
		if err != nil {
			t.Fatal(err)
		}
		intents += int(value + 0.5)
		gpus += int64(value+0.5) * groups[i].gpus
	}
	return intents, gpus
}
