// Package terms reads in which sizes and at which hours' prices a flavor is sold, as an
// administrator writes it on nodes: the annotations fleetbroker.io/partition and
// fleetbroker.io/price-windows. A file under flavors/ of the fleet repo can state the
// same, and goes over what an agent reports.
//
// Texts are untrusted and bounded; what cannot be read is an error with what to write,
// and nothing of it holds. Pure functions, safe for concurrent use. The agent calls them.
package terms

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/zones"
)

// Bounds of a text, in bytes, and of what is in it.
const (
	maxText    = 4096
	maxWindows = 64
	maxNames   = 16
	maxPrice   = 1_000_000_000
)

// Partition reads "min gpu=2 cpu=16; step gpu=2": the smallest size, and by what sizes
// grow, both in the units of an intent (cpu=500m, memory=64Gi). One of them is enough.
func Partition(text string) (*v1alpha1.Partition, error) {
	const example = "write for example min gpu=2 cpu=16; step gpu=2"
	if err := plain(text); err != nil {
		return nil, err
	}
	p := &v1alpha1.Partition{}
	for part := range strings.SplitSeq(text, ";") {
		words := strings.Fields(part)
		if len(words) < 2 {
			return nil, fmt.Errorf("%.40q has no sizes; %s", strings.TrimSpace(part), example)
		}
		into := map[string]*v1alpha1.Resources{"min": &p.Min, "step": &p.Step}[words[0]]
		if into == nil || *into != nil {
			return nil, fmt.Errorf("%.40q is not one min or one step; %s", words[0], example)
		}
		list := v1alpha1.Resources{}
		for _, pair := range words[1:] {
			name, value, _ := strings.Cut(pair, "=")
			if !resource(name) {
				return nil, fmt.Errorf("%.60q is no resource: name gpu, cpu, memory, pods, ephemeral-storage or an extended resource", name)
			}
			a, err := v1alpha1.ParseAmount(name, value)
			if err != nil {
				return nil, fmt.Errorf("%.60s: %w; %s", pair, err, example)
			}
			if a.IsZero() || a.Less(v1alpha1.Amount{}) {
				return nil, fmt.Errorf("%.60s: a size is greater than zero", pair)
			}
			list[name] = a
		}
		if len(list) != len(words)-1 || len(list) > maxNames {
			return nil, fmt.Errorf("%s names a resource twice, or more than %d", words[0], maxNames)
		}
		*into = list
	}
	return p, nil
}

var (
	hours = regexp.MustCompile(`^((?:[01]\d|2[0-3]):[0-5]\d)-((?:[01]\d|2[0-3]):[0-5]\d|24:00)$`)
	days  = regexp.MustCompile(`^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)(,(Mon|Tue|Wed|Thu|Fri|Sat|Sun)){0,6}$`)
)

// Windows reads "Sat,Sun 00:00-24:00 gpu=0.80; 20:00-06:00 Europe/Rome gpu=1.20 cpu=0.01":
// parts of the week with prices of their own, in the currency of the flavor's price. Days
// and time zone may be left out: every day, and the fleet's zone.
func Windows(text string) ([]v1alpha1.PriceWindow, error) {
	const example = "write for example Sat,Sun 00:00-24:00 gpu=0.80; 20:00-06:00 Europe/Rome gpu=1.20"
	if err := plain(text); err != nil {
		return nil, err
	}
	var out []v1alpha1.PriceWindow
	for part := range strings.SplitSeq(text, ";") {
		w := v1alpha1.PriceWindow{PerHour: v1alpha1.UnitPrices{}}
		for _, word := range strings.Fields(part) {
			name, value, price := strings.Cut(word, "=")
			switch at := hours.FindStringSubmatch(word); {
			case price:
				if !priced(name) {
					return nil, fmt.Errorf("%.60q has no price: name gpu, cpu, memoryGi, storageGi or an extended resource", name)
				}
				d, err := v1alpha1.ParseDecimal(value)
				if err == nil && (d.Sign() < 0 || d.Cmp(v1alpha1.DecimalFromInt(maxPrice)) > 0) {
					err = fmt.Errorf("a price is between 0 and %d", maxPrice)
				}
				if err != nil {
					return nil, fmt.Errorf("%.60s: %w; %s", word, err, example)
				}
				if _, twice := w.PerHour[name]; twice || len(w.PerHour) == maxNames {
					return nil, fmt.Errorf("%.60s: a window names each price once, and at most %d", word, maxNames)
				}
				w.PerHour[name] = d
			case at != nil && w.From == "":
				w.From, w.To = at[1], at[2]
			case days.MatchString(word) && w.Days == nil:
				w.Days = strings.Split(word, ",")
			case strings.ContainsAny(word, "/") || word == "UTC":
				if _, err := zones.Load(word); err != nil || w.Timezone != "" {
					return nil, fmt.Errorf("%.60q is not one known time zone; %s", word, example)
				}
				w.Timezone = word
			default:
				return nil, fmt.Errorf("%.60q is neither days, hours, a time zone nor a price; %s", word, example)
			}
		}
		if w.From == "" || w.From == w.To || len(w.PerHour) == 0 {
			return nil, fmt.Errorf("%.60q needs hours that differ and a price; %s", strings.TrimSpace(part), example)
		}
		if out = append(out, w); len(out) > maxWindows {
			return nil, fmt.Errorf("more than %d windows", maxWindows)
		}
	}
	return out, nil
}

func plain(text string) error {
	if len(text) > maxText || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) {
		return fmt.Errorf("at most %d characters, and only plain ASCII is taken", maxText)
	}
	return nil
}

var extended = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,200}[a-z0-9])?/[A-Za-z0-9]([A-Za-z0-9._-]{0,60}[A-Za-z0-9])?$`)

func resource(name string) bool {
	switch name {
	case v1alpha1.GPU, v1alpha1.CPU, v1alpha1.Memory, v1alpha1.Pods, "ephemeral-storage":
		return true
	}
	return extended.MatchString(name)
}

func priced(name string) bool {
	switch name {
	case "gpu", "cpu", "memoryGi", "storageGi":
		return true
	}
	return extended.MatchString(name)
}
