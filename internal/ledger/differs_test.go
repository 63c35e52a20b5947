package ledger_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
)

func TestDiffers(t *testing.T) {
	base := big(t, 3, 20, 2)
	prev, _, err := ledger.Read(context.Background(), build(base), nil)
	if err != nil {
		t.Fatal(err)
	}
	names := func(a, b *ledger.Ledger) map[string]bool {
		out := map[string]bool{}
		for tenant, intent := range a.Differs(b) {
			out[tenant+"/"+intent] = true
		}
		return out
	}
	if got := names(prev, prev); len(got) != 0 {
		t.Errorf("a ledger differs from itself in %v", got)
	}
	if got := names(prev, ledger.Empty()); len(got) != 60 {
		t.Errorf("%d of 60 differ from nothing", len(got))
	}
	if got := names(ledger.Empty(), prev); len(got) != 60 {
		t.Errorf("%d of 60 are missing from nothing", len(got))
	}
	was := contract("team-001", "job-00010", 0, 0)
	ch := ledger.Changes{
		Contracts: []model.Change{{Before: was}},
		States:    []model.StateChange{{After: state("team-002", "fresh")}, {Before: state("team-000", "job-00003")}},
	}
	want := "map[team-000/job-00003:true team-001/job-00010:true team-002/fresh:true]"
	if got := names(prev.With(ch), prev); fmt.Sprint(got) != want {
		t.Errorf("after changes %v, want %s", got, want)
	}
	read, _, err := ledger.Read(context.Background(), build(files(t, base, ch)), prev)
	if err != nil {
		t.Fatal(err)
	}
	if got := names(read, prev); fmt.Sprint(got) != want {
		t.Errorf("after reading %v, want %s", got, want)
	}
	for range read.Differs(prev) {
		break // stops when asked to
	}
}
