package report

import (
	"fmt"
	"sort"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
)

// Age is a length of time as people write it: 42s, 6m, 23h48m, 5d.
func Age(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return hoursAndMinutes(d)
	}
	days := int(d.Hours()) / 24
	if hours := int(d.Hours()) % 24; hours > 0 && days < 10 {
		return fmt.Sprintf("%dd%dh", days, hours)
	}
	return fmt.Sprintf("%dd", days)
}

func hoursAndMinutes(d time.Duration) string {
	h, m := int(d.Hours()), int(d.Minutes())%60
	if m == 0 {
		return fmt.Sprintf("%dh", h)
	}
	return fmt.Sprintf("%dh%dm", h, m)
}

// short is the first seven digits of an object's name.
func short(hash string) string {
	if len(hash) > 7 && isHex(hash) {
		return hash[:7]
	}
	return hash
}

func isHex(s string) bool {
	return strings.Trim(s, "0123456789abcdef") == ""
}

// signed is a difference with its sign, two decimals.
func signed(d v1alpha1.Decimal) string {
	if d.Round(2).Sign() >= 0 {
		return "+" + d.Round(2).Text()
	}
	return d.Text()
}

// reasons are counts by requirement, most first, then by name.
func reasons(rejected map[string]int) string {
	names := make([]string, 0, len(rejected))
	for name := range rejected {
		names = append(names, name)
	}
	sort.Slice(names, func(i, j int) bool {
		if rejected[names[i]] != rejected[names[j]] {
			return rejected[names[i]] > rejected[names[j]]
		}
		return names[i] < names[j]
	})
	for i, name := range names {
		names[i] = strconv.Itoa(rejected[name]) + " " + name
	}
	return strings.Join(names, ", ")
}

// gpus is "4x nvidia-h100", "4x nvidia-a100 1g.10gb" for MIG's profiles, or "4x
// 1/7 of one nvidia-a100" for other units of shared cards.
func gpus(g *v1alpha1.ContractGPU) string {
	if g == nil || g.Count == 0 {
		return ""
	}
	model := g.Model
	if model == "" {
		model = "gpu"
	}
	if _, profile, is := strings.Cut(g.ResourceName, "/mig-"); is {
		return fmt.Sprintf("%dx %s %s", g.Count, model, profile)
	}
	if g.UnitsPerGPU > 1 {
		return fmt.Sprintf("%dx 1/%d of one %s", g.Count, g.UnitsPerGPU, model)
	}
	return fmt.Sprintf("%dx %s", g.Count, model)
}

// amounts is what a contract gives in one line: "4x nvidia-h100, 16 cpu,
// 128Gi". Pods and ephemeral storage are left out unless all is asked for.
// Where rounding up gave more than was asked, the asked amount follows.
func amounts(c *planner.ContractLine, all bool) string {
	var parts []string
	gpuName := v1alpha1.GPU
	if c.GPUs != nil {
		gpuName = c.GPUs.ResourceName
		if g := gpus(c.GPUs); g != "" {
			asked, ok := c.Asked[v1alpha1.GPU]
			if !ok {
				asked, ok = c.Asked[gpuName]
			}
			if ok && asked.Int64() != c.GPUs.Count {
				g += " (asked " + asked.Canonical(v1alpha1.GPU) + ")"
			}
			parts = append(parts, g)
		}
	}
	for _, name := range resourceOrder(c.Resources) {
		if name == gpuName && c.GPUs != nil {
			continue
		}
		if !all && (name == v1alpha1.Pods || name == v1alpha1.EphemeralStorage) {
			continue
		}
		a := c.Resources[name]
		if a.IsZero() {
			continue
		}
		s := amount(name, a)
		if asked, ok := c.Asked[name]; ok && asked != a {
			s += " (asked " + asked.Canonical(name) + ")"
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, ", ")
}

// amount of one resource with its word; memory needs none.
func amount(name string, a v1alpha1.Amount) string {
	if name == v1alpha1.Memory {
		return a.Canonical(name)
	}
	return a.Canonical(name) + " " + name
}

// resourceOrder puts the usual resources first, the others by name.
func resourceOrder(r v1alpha1.Resources) []string {
	first := []string{v1alpha1.GPU, v1alpha1.CPU, v1alpha1.Memory}
	last := []string{v1alpha1.EphemeralStorage, v1alpha1.Pods}
	usual := map[string]bool{}
	for _, n := range append(append([]string{}, first...), last...) {
		usual[n] = true
	}
	var out []string
	take := func(names []string) {
		for _, n := range names {
			if _, ok := r[n]; ok {
				out = append(out, n)
			}
		}
	}
	take(first)
	for _, n := range r.Names() {
		if !usual[n] {
			out = append(out, n)
		}
	}
	take(last)
	return out
}

// term is how long a contract lasts, "" when it is open-ended.
func term(t v1alpha1.Term) string {
	if t.End.IsZero() {
		return ""
	}
	return v1alpha1.Duration{Duration: t.End.Sub(t.Start.Time)}.String()
}

// plural is "1 offer", "2 offers".
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// wrap breaks s at spaces into lines of at most first and then rest columns; a
// longer word stands alone.
func wrap(s string, first, rest int) []string {
	var lines []string
	var cur strings.Builder
	used, room := 0, first
	for _, word := range strings.Split(s, " ") {
		n := utf8.RuneCountInString(word)
		if used > 0 && used+1+n > room {
			lines = append(lines, cur.String())
			cur.Reset()
			used, room = 0, rest
		}
		if used > 0 {
			cur.WriteByte(' ')
			used++
		}
		cur.WriteString(word)
		used += n
	}
	return append(lines, cur.String())
}

// pad fills s with spaces to n columns.
func pad(s string, n int) string {
	if short := n - utf8.RuneCountInString(s); short > 0 {
		return s + strings.Repeat(" ", short)
	}
	return s
}

// padLeft fills s with spaces from the left to n columns.
func padLeft(s string, n int) string {
	if short := n - utf8.RuneCountInString(s); short > 0 {
		return strings.Repeat(" ", short) + s
	}
	return s
}
