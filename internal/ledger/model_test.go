package ledger_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
)

// drawChanges draws changes that are legal on l: new contracts, changed ones
// (another phase, flavor or namespace), removed ones, states and spends.
func drawChanges(t *rapid.T, l *ledger.Ledger) ledger.Changes {
	var ch ledger.Changes
	touched := map[string]bool{}
	phases := []v1alpha1.Phase{v1alpha1.PhaseReserved, v1alpha1.PhaseActive, v1alpha1.PhaseDegraded, v1alpha1.PhaseReleasing, v1alpha1.PhaseReleased}
	for range rapid.IntRange(0, 6).Draw(t, "contracts") {
		tenant := rapid.SampledFrom([]string{"bio", "nlp", "vision"}).Draw(t, "tenant")
		intent := fmt.Sprintf("job-%d", rapid.IntRange(0, 4).Draw(t, "intent"))
		c := contract(tenant, intent, int32(rapid.IntRange(0, 2).Draw(t, "replica")), 0)
		if touched[c.Metadata.Name] {
			continue
		}
		touched[c.Metadata.Name] = true
		before := l.Contract(c.Metadata.Name)
		if before != nil && rapid.Bool().Draw(t, "remove") {
			ch.Contracts = append(ch.Contracts, model.Change{Before: before})
			continue
		}
		c.Status.Phase = rapid.SampledFrom(phases).Draw(t, "phase")
		c.Spec.Provider = rapid.SampledFrom([]string{"paris", "paris-2", "oslo"}).Draw(t, "provider")
		c.Spec.Flavor = rapid.SampledFrom([]string{"h100", "h100-b"}).Draw(t, "flavor")
		c.Spec.Consumer = rapid.SampledFrom([]string{"rome", "rom"}).Draw(t, "consumer")
		c.Spec.Offload.Namespaces[0].Name = rapid.SampledFrom([]string{"a", "ab"}).Draw(t, "namespace")
		ch.Contracts = append(ch.Contracts, model.Change{Before: before, After: c})
	}
	for range rapid.IntRange(0, 2).Draw(t, "states") {
		s := state("nlp", fmt.Sprintf("job-%d", rapid.IntRange(0, 4).Draw(t, "state")))
		if touched[s.Metadata.Name] {
			continue
		}
		touched[s.Metadata.Name] = true
		before := l.State("nlp", s.Metadata.Name)
		if before != nil && rapid.Bool().Draw(t, "removeState") {
			ch.States = append(ch.States, model.StateChange{Before: before})
			continue
		}
		ch.States = append(ch.States, model.StateChange{Before: before, After: s})
	}
	if rapid.Bool().Draw(t, "spend") {
		s := &v1alpha1.Spend{
			TypeMeta: v1alpha1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindSpend},
			Metadata: v1alpha1.Metadata{Name: "2026-10", Namespace: "bio"},
		}
		for i := range rapid.IntRange(0, 2).Draw(t, "entries") {
			s.Entries = append(s.Entries, v1alpha1.SpendEntry{Contract: fmt.Sprint("c", i), Amount: dec("1.5"), Currency: "EUR"})
		}
		ch.Spends = append(ch.Spends, s)
	}
	return ch
}

// view is everything a ledger answers, in text.
func view(l *ledger.Ledger) string {
	var out strings.Builder
	line := func(what string, list []*v1alpha1.Contract) {
		fmt.Fprintf(&out, "%s:", what)
		for _, c := range list {
			fmt.Fprint(&out, " ", c.Metadata.Name, c.Status.Phase, c.Spec.Provider, c.Spec.Flavor, c.Spec.Consumer, namespace(c))
		}
		fmt.Fprintln(&out)
	}
	fmt.Fprintln(&out, l.Held(), l.Len(), l.Tenants(), l.Providers(), l.Consumers())
	all := slices.Collect(l.Contracts())
	line("contracts", all)
	for _, c := range all {
		n, in := c.Metadata.Namespace, c.Spec.Intent.Name
		line(n+"/"+in, l.ByIntent(n, in))
	}
	for s := range l.States() {
		fmt.Fprintln(&out, "state", s.Metadata.Namespace, s.Metadata.Name)
	}
	for _, p := range []string{"paris", "paris-2", "oslo"} {
		line("by "+p, l.HeldBy(p))
		for _, f := range []string{"h100", "h100-b"} {
			line("on "+p+f, l.HeldOn(p, f))
		}
	}
	for _, c := range []string{"rome", "rom"} {
		line("in "+c, l.Consumer(c))
	}
	for _, tenant := range []string{"bio", "nlp", "vision"} {
		for _, s := range l.Spends(tenant) {
			fmt.Fprintln(&out, "spend", tenant, s.Metadata.Name, s.Entries)
		}
		sum := l.Totals(tenant)
		fmt.Fprintln(&out, "totals", tenant, sum.Contracts, sum.CPU, sum.Memory, sum.MilliCards(), sum.ByModel(), sum.Hourly)
	}
	return out.String()
}

func namespace(c *v1alpha1.Contract) string { return c.Spec.Offload.Namespaces[0].Name }

// TestThreeRoutesToOneLedger: changing a ledger in memory, reading the changed
// files on top of the ledger before, and reading them from nothing give the
// same answers, after any sequence of changes; and no older ledger notices.
func TestThreeRoutesToOneLedger(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ctx := context.Background()
		base := map[string][]byte{}
		inMemory, reread := ledger.Empty(), ledger.Empty()
		for range rapid.IntRange(1, 5).Draw(t, "commits") {
			ch := drawChanges(t, inMemory)
			was := view(inMemory)
			before := inMemory
			inMemory = inMemory.With(ch)
			if was != view(before) {
				t.Fatal("With changed the ledger it started from")
			}
			puts, deletes, err := ch.Files()
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range deletes {
				delete(base, name)
			}
			for name, b := range puts {
				base[name] = b
			}
			var problems []ledger.Problem
			reread, problems, err = ledger.Read(ctx, build(base), reread)
			if err != nil || len(problems) > 0 {
				t.Fatal(problems, err)
			}
			cold, _, err := ledger.Read(ctx, build(base), nil)
			if err != nil {
				t.Fatal(err)
			}
			over, _, err := ledger.Read(ctx, build(base), inMemory)
			if err != nil {
				t.Fatal(err)
			}
			want := view(cold)
			for name, l := range map[string]*ledger.Ledger{"in memory": inMemory, "read again": reread, "read over memory": over} {
				if got := view(l); got != want {
					t.Fatalf("%s:\n%s\nread from nothing:\n%s", name, got, want)
				}
			}
		}
	})
}
