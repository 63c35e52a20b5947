package ledger_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
)

// A renamed intent's contract leaves one directory and arrives in another.
// Whichever of the two is read first, the contract keeps its capacity.
func TestReadFollowsARename(t *testing.T) {
	for i := range 16 {
		was := contract("vision", "train", 0, 0)
		now := *was
		now.Spec.Intent.Name = fmt.Sprintf("other%d", i)
		before := files(t, nil, ledger.Changes{Contracts: []model.Change{{After: was}}})
		after := files(t, before, ledger.Changes{Contracts: []model.Change{{Before: was, After: &now}}})
		prev, _, err := ledger.Read(context.Background(), build(before), nil)
		if err != nil {
			t.Fatal(err)
		}
		l, problems, err := ledger.Read(context.Background(), build(after), prev)
		if err != nil || len(problems) > 0 {
			t.Fatal(err, problems)
		}
		if c := l.Contract(was.Metadata.Name); c == nil || c.Spec.Intent.Name != now.Spec.Intent.Name {
			t.Errorf("renamed to %s: the contract of that name is %+v", now.Spec.Intent.Name, c)
		}
		if held := l.HeldOn(was.Spec.Provider, was.Spec.Flavor); len(held) != 1 {
			t.Errorf("renamed to %s: %d contracts hold capacity, want 1", now.Spec.Intent.Name, len(held))
		}
	}
}
