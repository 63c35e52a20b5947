package notes

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// domains of FLUIDOS's node annotations, <domain>.fluidos.eu/<key>.
var domains = []string{"gpu", "cost", "location", "network", "provider", "workload"}

// MaxText and MaxMemory are among the bounds on what is passed on: a market refuses a whole report for one value
// that is out of bounds, and an annotation may have 256 KiB.
const (
	MaxText   = 253
	maxLabels = 128
	maxRate   = 1_000_000_000
	MaxMemory = 1 << 44 // bytes of one GPU

	maxStandards = 64
	maxStandard  = 63
)

// Notes are a node's FLUIDOS annotations by "<domain>/<key>", keys in the
// spelling with dashes: the documents write compute_capability, the programs
// compute-capability, and both are found. What nobody has read when Labels is
// asked becomes a label, so that intents can demand it.
type Notes struct {
	node     string
	values   map[string]string
	read     map[string]bool
	problems []string
}

// Problems are what could not be read, in words, in the order in which it was asked for.
func (a *Notes) Problems() []string { return a.problems }

// Of are the annotations of a node.
func Of(n *corev1.Node) *Notes {
	out := &Notes{node: n.Name, values: map[string]string{}, read: map[string]bool{}}
	for _, key := range slices.Sorted(maps.Keys(n.Annotations)) {
		for _, domain := range domains {
			rest, ok := strings.CutPrefix(key, domain+".fluidos.eu/")
			if !ok {
				continue
			}
			name := domain + "/" + strings.ReplaceAll(rest, "_", "-")
			// Both spellings on one node: the dashes sort first and win.
			if _, twice := out.values[name]; !twice {
				out.values[name] = strings.TrimSpace(n.Annotations[key])
			}
		}
	}
	return out
}

// Text is the first of several names that is there. It is compared with what
// intents say, so that brokers take plain ASCII only.
func (a *Notes) Text(names ...string) string {
	return a.first(IsPlain, "only plain ASCII is taken", names)
}

// Line is like text, for what only people read.
func (a *Notes) Line(name string) string {
	return a.first(isLine, "it has to be one line of text", []string{name})
}

func (a *Notes) first(good func(string) bool, otherwise string, names []string) string {
	found := ""
	for _, name := range names {
		a.read[name] = true
		value := a.values[name]
		if !good(value) {
			a.problem(name, fmt.Errorf("at most %d characters, and %s", MaxText, otherwise))
			continue
		}
		if found == "" {
			found = value
		}
	}
	return found
}

// isLine reports whether a value may be shown to people as it is.
func isLine(s string) bool {
	return len(s) <= MaxText && utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

// IsPlain reports whether a value may stand in a report wherever it is compared.
func IsPlain(s string) bool {
	return len(s) <= MaxText && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}

// Memory reads a GPU's memory; both 80Gi and 80GB are its marketed size.
func (a *Notes) Memory(names ...string) v1alpha1.MemorySize {
	var m v1alpha1.MemorySize
	if s := a.Text(names...); s != "" {
		err := m.UnmarshalJSON([]byte(strconv.Quote(s)))
		if err == nil && m.Int64() > MaxMemory {
			err = fmt.Errorf("%q is more than any GPU has", s)
		}
		if err != nil {
			a.problem(names[0], err)
			return v1alpha1.MemorySize{}
		}
	}
	return m
}

// Decimal reads an amount of money.
func (a *Notes) Decimal(name string) (v1alpha1.Decimal, bool) {
	s := a.Text(name)
	if s == "" {
		return v1alpha1.Zero, false
	}
	d, err := v1alpha1.ParseDecimal(s)
	if err == nil && (d.Sign() < 0 || d.Cmp(v1alpha1.DecimalFromInt(maxRate)) > 0) {
		err = fmt.Errorf("%q is not between 0 and %d", s, maxRate)
	}
	if err != nil {
		a.problem(name, err)
		return v1alpha1.Zero, false
	}
	return d, true
}

// The facts of a node that its administrator knows, provider.fluidos.eu/<key>:
//
//	carbon-intensity     of its electricity in gCO2e per kWh: "56" or "56 gCO2/kWh"
//	reliability          as a ratio from 0 to 1: "0.997"
//	security-standards   that it is certified for: "ISO27001, SOC2"
//
// They stay labels too, as annotations that nothing else is made of are.

// Known is an annotation's value, which stays a label.
func (a *Notes) Known(name string) string {
	if s := a.values[name]; IsPlain(s) {
		return s
	}
	return ""
}

// carbonUnits are how its unit may be written.
var carbonUnits = regexp.MustCompile(`(?i)^([0-9]{1,6}) ?(gCO2(e|eq)?/kWh)?$`)

// Carbon is the intensity in grams of CO2 per kWh, nil where none is stated.
func (a *Notes) Carbon() *int64 {
	s := a.Known("provider/carbon-intensity")
	if s == "" {
		return nil
	}
	m := carbonUnits.FindStringSubmatch(s)
	if m == nil {
		a.problem("provider/carbon-intensity", fmt.Errorf("%q is not a carbon intensity: write whole grams of CO2 per kWh, such as 56 or 56 gCO2/kWh", s))
		return nil
	}
	n, _ := strconv.ParseInt(m[1], 10, 64) // six digits
	return &n
}

// Ratio reads a number from 0 to 1, nil where none is stated.
func (a *Notes) Ratio(name string) *v1alpha1.Decimal {
	s := a.Known(name)
	if s == "" {
		return nil
	}
	d, err := v1alpha1.ParseDecimal(s)
	if err == nil && (d.Sign() < 0 || d.Cmp(v1alpha1.DecimalFromInt(1)) > 0) {
		err = fmt.Errorf("%q is not between 0 and 1", s)
	}
	if err != nil {
		a.problem(name, err)
		return nil
	}
	return &d
}

// List reads names separated by commas, in order and each once.
func (a *Notes) List(name string) []string {
	var out []string
	for _, s := range strings.Split(a.Known(name), ",") {
		if s = strings.TrimSpace(s); s != "" && len(s) <= maxStandard && len(out) < maxStandards && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	sort.Strings(out)
	return out
}

// Whole reads a whole number that is not negative.
func (a *Notes) Whole(name string) (int64, bool) {
	s := a.Text(name)
	if s == "" {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil || n < 0 {
		a.problem(name, fmt.Errorf("%q is not a whole number", s))
		return 0, false
	}
	return n, true
}

// Currency reads three letters.
func (a *Notes) Currency(name string) (code string, ok bool) {
	code = strings.ToUpper(a.Text(name))
	if code != "" && !isCurrency.MatchString(code) {
		a.problem(name, fmt.Errorf("%q is not a currency: write three letters, such as EUR", code))
		return "", false
	}
	return code, true
}

var isCurrency = regexp.MustCompile(`^[A-Z]{3}$`)

func (a *Notes) problem(name string, err error) {
	domain, key, _ := strings.Cut(name, "/")
	a.problems = append(a.problems, fmt.Sprintf("node %s: annotation %s.fluidos.eu/%s is ignored: %v", a.node, domain, key, err))
}

// Labels are the annotations that nothing else was made of.
func (a *Notes) Labels() map[string]string {
	out := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(a.values)) {
		domain, key, _ := strings.Cut(name, "/")
		if value := a.values[name]; !a.read[name] && value != "" && IsPlain(value) && len(out) < maxLabels {
			out[domain+".fluidos.eu/"+key] = value
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}
