package account

import (
	"fmt"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// Shares are by dominant resource fairness (Ghodsi et al., NSDI 2011), weighted:
//
//	share = max(cards ÷ all cards, CPU ÷ all CPU, memory ÷ all memory) ÷ weight
//
// over what is charged now, in billionths.

// billionths a share is counted in.
const billionths = 1_000_000_000

// Fleet is all there is of what a share is made of: thousandths of cards and of
// cores, bytes.
type Fleet struct{ MilliCards, CPU, Memory int64 }

// AddCards counts units of cards, so many of which are one card.
func (f *Fleet) AddCards(units, perCard int64) { f.MilliCards += wideQuo(units, 1000, perCard) }

// AddRest counts everything else.
func (f *Fleet) AddRest(cpu, memory int64) {
	f.CPU = v1alpha1.AmountOf(f.CPU).Add(v1alpha1.AmountOf(cpu)).Int64()
	f.Memory = v1alpha1.AmountOf(f.Memory).Add(v1alpha1.AmountOf(memory)).Int64()
}

// wideQuo is a × b ÷ c, 0 when there is nothing to divide by.
func wideQuo(a, b, c int64) int64 {
	if c <= 0 || a <= 0 {
		return 0
	}
	return quantity.Wide{}.AddProduct(a, b, 1).Quo(uint64(c))
}

// shareOf is the tenant's dominant share of a fleet, its weight aside, and of
// what. It is remembered: all that ask ask of one fleet.
func (t *Tenant) shareOf(all *Fleet) (share int64, of string) {
	if t.shareAt == t.changes+1 {
		return t.share, t.shareName
	}
	share, of = wideQuo(t.totals.MilliCards().Int64(), billionths, all.MilliCards), "GPUs"
	if s := wideQuo(t.totals.CPU.Int64(), billionths, all.CPU); s > share {
		share, of = s, "CPU"
	}
	if s := wideQuo(t.totals.Memory.Int64(), billionths, all.Memory); s > share {
		share, of = s, "memory"
	}
	t.share, t.shareName, t.shareAt = share, of, t.changes+1
	return share, of
}

// Share is the tenant's weighted share of a fleet; whoever has least is next.
func (t *Tenant) Share(all *Fleet) int64 {
	share, _ := t.shareOf(all)
	return share / t.weight()
}

func (t *Tenant) weight() int64 { return int64(max(t.Spec.Weight, 1)) }

// ServedBefore is why a tenant goes before another, "" where its share is not
// the less.
func (t *Tenant) ServedBefore(other *Tenant, all *Fleet) string {
	if t.Share(all) >= other.Share(all) {
		return ""
	}
	theirs, of := t.shareOf(all)
	ours, ourOf := other.shareOf(all)
	if ourOf == of {
		ourOf = ""
	} else {
		ourOf = " of its " + ourOf
	}
	return fmt.Sprintf("tenant %s is served first: it holds %s of the fleet's %s%s, %s %s%s%s",
		t.Name, percent(theirs), of, t.weightText(), other.Name, percent(ours), ourOf, other.weightText())
}

func (t *Tenant) weightText() string {
	if t.weight() == 1 {
		return ""
	}
	return fmt.Sprintf(" at weight %d", t.weight())
}

// percent is a share in words.
func percent(share int64) string {
	return fmt.Sprintf("%d.%d %%", share*100/billionths, share*1000/billionths%10)
}
