package market_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/market"
)

// What one provider says costs the same beside a hundred others and beside ten
// thousand: each of them is heard every interval, by every replica.
func TestOneWordCostsTheSameInACrowd(t *testing.T) {
	const few, many = 100, 10_000
	crowds := map[int]*market.Market{few: crowd(t, few), many: crowd(t, many)}
	n := uint64(1)
	for _, one := range []struct {
		what string
		say  func(m *market.Market) error
	}{
		{"it is vouched for", func(m *market.Market) error {
			m.Vouch(provider(42))
			return nil
		}},
		{"its list still holds", func(m *market.Market) error { return m.Report(provider(42), gen(1, 1), nil, false) }},
		{"a new list", func(m *market.Market) error {
			n++
			return m.Report(provider(42), gen(1, n), flavors(42, int64(n))[:1], true) //nolint:gosec // a small number
		}},
	} {
		took := map[int]time.Duration{}
		for size, m := range crowds {
			var each []time.Duration
			for range 101 {
				begun := time.Now()
				if err := one.say(m); err != nil {
					t.Fatal(err)
				}
				each = append(each, time.Since(begun))
			}
			slices.Sort(each)
			took[size] = each[len(each)/2]
		}
		said := fmt.Sprintf("%s: %v among %d providers, %v among %d", one.what, took[few], few, took[many], many)
		t.Log(said)
		if took[many] > 10*took[few]+20*time.Microsecond {
			t.Error(said)
		}
	}
}

// crowd is a market of providers with a flavor each.
func crowd(t *testing.T, size int) *market.Market {
	m := market.New(market.Options{Now: time.Now})
	for p := range size {
		report(t, m, provider(p), gen(1, 1), flavors(p, 0)[:1]...)
	}
	return m
}
