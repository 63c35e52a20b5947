package prices

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/gpunames"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Quote is the price of one GPU as a machine or by itself.
type Quote struct {
	// Region as the provider calls it; "" of prices that hold everywhere.
	Region string
	// Machine is the instance type, "" where GPUs are sold by themselves.
	Machine string
	// Model such as nvidia-h100; "" is of prices of cores, memory and storage alone.
	Model string
	// Memory of a card, where the model is sold in several sizes; else nothing.
	Memory v1alpha1.Amount
	// Currency of the prices.
	Currency string
	// PerHour and Spot by unit; either may be empty.
	PerHour, Spot v1alpha1.UnitPrices
}

// Answer is what was understood of one document.
type Answer struct {
	Quotes []Quote
	// Notes name what was not understood, for people.
	Notes []string
	// Next is where the answer goes on: a URL, or a page token; "" at the end.
	Next string
}

// Most is how many quotes and notes are taken of all answers together.
const Most = 500_000

// Add takes over what was understood of another page.
func (out *Answer) Add(page *Answer) error {
	out.Quotes, out.Notes = append(out.Quotes, page.Quotes...), append(out.Notes, page.Notes...)
	return out.bounded(0)
}

// bounded is an error where an answer has, with so much else that is kept of it, too much.
func (out *Answer) bounded(more int) error {
	if len(out.Quotes)+len(out.Notes)+more > Most {
		return fmt.Errorf("it has more than %d prices of GPUs: ask for fewer at a time, by a filter", Most)
	}
	return nil
}

var currencyForm = regexp.MustCompile(`^[A-Z]{3}$`)

// add takes over a quote.
func (out *Answer) add(q Quote) error {
	if !currencyForm.MatchString(q.Currency) {
		return fmt.Errorf("%.20q is not a currency: three capital letters such as USD are needed", q.Currency)
	}
	out.Quotes = append(out.Quotes, q)
	return nil
}

// places is to how many digits the price of a machine is divided among its
// GPUs.
const places = 9

// perGPU is a machine's price for each of its GPUs.
func perGPU(price v1alpha1.Decimal, gpus int64) v1alpha1.UnitPrices {
	return v1alpha1.UnitPrices{"gpu": price.DivInt(gpus, places)}
}

// card is the canonical name of a GPU, and its memory where the model is sold in
// several sizes: an A100 of 80 GB costs more than one of 40.
func card(name string, memory v1alpha1.Amount) (string, v1alpha1.Amount) {
	_, model, named := gpunames.Normalize(name, 0)
	if memory.IsZero() {
		memory = named
	}
	if _, _, only := gpunames.Normalize(model, 0); !only.IsZero() {
		return model, v1alpha1.Amount{}
	}
	return model, memory
}

// of makes a quote's card that of a name and, where it is known, a size.
func (q Quote) of(name string, memory v1alpha1.Amount) Quote {
	q.Model, q.Memory = card(name, memory)
	return q
}

// Options say how quotes become a table.
type Options struct {
	// Name of the table.
	Name string
	// Cloud that the quotes are of, for the names of clusters nobody named: "<cloud>-<region>".
	Cloud string
	// Providers are the clusters of each region; nil makes one up for each region.
	Providers map[string][]string
	// Machines that count; empty is all.
	Machines []string
}

// Table makes one row a provider, model and memory. Of several machines with a
// model the cheapest GPU counts, on demand and spot each; how far they lie apart is noted.
func Table(quotes []Quote, o Options) (*v1alpha1.PriceTable, []string, error) {
	type key struct {
		provider, model string
		memory          v1alpha1.Amount
	}
	type row struct {
		price v1alpha1.TablePrice
		high  v1alpha1.Decimal
	}
	rows := map[key]*row{}
	currency, notes := "", map[string]bool{}
	for _, q := range quotes {
		if len(o.Machines) > 0 && q.Machine != "" && !slices.Contains(o.Machines, q.Machine) {
			continue
		}
		if currency == "" {
			currency = q.Currency
		}
		if q.Currency != currency {
			return nil, nil, fmt.Errorf("prices in %s and in %s: a table has one currency; import them one after the other", currency, q.Currency)
		}
		for _, provider := range o.providers(q.Region, notes) {
			k := key{provider, q.Model, q.Memory}
			if rows[k] == nil {
				rows[k] = &row{price: v1alpha1.TablePrice{Provider: provider, Model: q.Model, Memory: v1alpha1.MemorySize{Amount: q.Memory}}}
			}
			r := rows[k]
			r.price.PerHour, r.price.Spot = cheaper(r.price.PerHour, q.PerHour), cheaper(r.price.Spot, q.Spot)
			if gpu, ok := q.PerHour["gpu"]; ok && gpu.Cmp(r.high) > 0 {
				r.high = gpu
			}
		}
	}
	out := &v1alpha1.PriceTable{
		TypeMeta: v1alpha1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindPriceTable},
		Metadata: v1alpha1.Metadata{Name: o.Name}, Spec: v1alpha1.PriceTableSpec{Currency: currency},
	}
	for k, r := range rows {
		if len(r.price.PerHour) == 0 {
			notes[fmt.Sprintf("%s %s: only a spot price is known, and a row needs one on demand; left out", k.provider, k.model)] = true
			continue
		}
		if low, ok := r.price.PerHour["gpu"]; ok && r.high.Cmp(low) > 0 {
			notes[fmt.Sprintf("%s %s: %s to %s a GPU by machine, taken is the cheapest; choose with --machines", k.provider, k.model, low, r.high)] = true
		}
		out.Spec.Prices = append(out.Spec.Prices, r.price)
	}
	slices.SortFunc(out.Spec.Prices, func(a, b v1alpha1.TablePrice) int {
		return cmp.Or(strings.Compare(a.Provider, b.Provider), strings.Compare(a.Model, b.Model), a.Memory.Cmp(b.Memory.Amount))
	})
	return out, slices.Sorted(maps.Keys(notes)), nil
}

// cheaper takes the lower of two prices, unit by unit.
func cheaper(a, b v1alpha1.UnitPrices) v1alpha1.UnitPrices {
	if len(b) == 0 {
		return a
	}
	out := v1alpha1.UnitPrices{}
	maps.Copy(out, a)
	for name, d := range b {
		if have, ok := out[name]; !ok || d.Cmp(have) < 0 {
			out[name] = d
		}
	}
	return out
}

// providers are the clusters that a region's prices hold for.
func (o *Options) providers(region string, notes map[string]bool) []string {
	if o.Providers == nil {
		if region == "" {
			return []string{o.Cloud}
		}
		return []string{o.Cloud + "-" + region}
	}
	if region == "" {
		var all []string
		for _, list := range o.Providers {
			all = append(all, list...)
		}
		slices.Sort(all)
		return slices.Compact(all)
	}
	list := o.Providers[region]
	if len(list) == 0 {
		notes["region "+region+": no provider cluster is there; left out"] = true
	}
	return list
}
