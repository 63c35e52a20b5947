package ledger_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/genyaml"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
)

// What Legible lets pass is read again, and what it refuses is not.
func TestLegible(t *testing.T) {
	far := v1alpha1.Time{Time: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}
	for name, change := range map[string]func(*v1alpha1.Contract){
		"":                   func(*v1alpha1.Contract) {},
		"a negative length":  func(c *v1alpha1.Contract) { c.Spec.Grace.Duration = -time.Hour },
		"the year 10000":     func(c *v1alpha1.Contract) { c.Spec.Term.End = far },
		"no phase":           func(c *v1alpha1.Contract) { c.Status.Phase = "" },
		"larger than a file": func(c *v1alpha1.Contract) { c.Spec.Intent.Author = strings.Repeat("x", 9<<20) },
	} {
		c := contract("vision", "train", 0, 0)
		change(c)
		b, err := ledger.Encode(c)
		if err != nil {
			t.Fatal(err)
		}
		puts := map[string][]byte{ledger.ContractPath(c): b}
		l, _, err := ledger.Read(t.Context(), build(puts), nil)
		if err != nil {
			t.Fatal(err)
		}
		if said := ledger.Legible(puts); (said == nil) != (name == "") || (l.Broken() == nil) != (name == "") {
			t.Errorf("%s: legible: %v, read: %v", name, said, l.Broken())
		}
	}
}

// A month's spend never outgrows what is read: what it has no room for stays in the tree.
func TestRetire_AFullMonthStays(t *testing.T) {
	amount := v1alpha1.MustDecimal("123456789012.123456")
	s := &v1alpha1.Spend{
		TypeMeta: v1alpha1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindSpend},
		Metadata: v1alpha1.Metadata{Name: "2026-11", Namespace: "vision"},
	}
	for i := range 23_900 {
		s.Entries = append(s.Entries, v1alpha1.SpendEntry{
			Contract: fmt.Sprintf("%s-%08d", strings.Repeat("c", 54), i), Intent: strings.Repeat("i", 63), Provider: strings.Repeat("p", 63),
			Amount: amount, List: amount, Currency: "EUR",
		})
	}
	b, err := genyaml.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	base := map[string][]byte{ledger.SpendPath("vision", "2026-11"): b}
	for i := range int32(400) {
		c := contract("vision", strings.Repeat("j", 63), i, 0)
		c.Status.Phase, c.Status.Since = v1alpha1.PhaseReleased, at("2026-11-21T08:00:00Z")
		c.Status.Accrued, c.Status.Months = &amount, map[string]v1alpha1.MonthCost{"2026-11": {Amount: amount, List: amount}}
		if base[ledger.ContractPath(c)], err = genyaml.Marshal(c); err != nil {
			t.Fatal(err)
		}
	}
	l, _, err := ledger.Read(t.Context(), build(base), nil)
	if err != nil || l.Broken() != nil {
		t.Fatal(err, l.Broken())
	}
	books := ledger.Books{Currency: "EUR"}
	ch := books.Retire(l, at("2026-12-21T08:00:00Z"), 0, nil)
	next, _, err := ledger.Read(t.Context(), build(files(t, base, ch)), nil)
	if err != nil || next.Broken() != nil || len(ch.Contracts) != 100 {
		t.Fatalf("%d leave; %v, %v", len(ch.Contracts), err, next.Broken())
	}
	if again := books.Retire(next, at("2026-12-21T08:00:00Z"), 0, nil); len(again.Contracts)+len(again.States)+len(again.Spends) != 0 {
		t.Errorf("more leave: %d", len(again.Contracts))
	}
	was, err1 := books.MonthSpend(l, "vision", at("2026-11-22T08:00:00Z"))
	is, err2 := books.MonthSpend(next, "vision", at("2026-11-22T08:00:00Z"))
	if err1 != nil || err2 != nil || was.Cmp(is) != 0 {
		t.Errorf("spent were %s, are %s; %v, %v", was, is, err1, err2)
	}
}
