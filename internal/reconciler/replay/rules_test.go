package replay

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/planner"
)

// one is a history of one commit.
type one struct {
	*tree.Memory
	raw []byte
}

func (o one) Commit(tree.Hash) ([]byte, error) { return o.raw, nil }

// What rules decided that this program does not know is neither made again nor
// called wrong, and said so; what lower ones decided is made again by those.
func TestOtherRulesAreNotMadeAgain(t *testing.T) {
	for _, rules := range []int{0, 1, planner.Rules, planner.Rules + 1} {
		message := fmt.Sprintf("reserve\n\nPlan: sha256:00\nRound: %s\nRules: %d\n", tree.BlobHash(nil), rules)
		raw := gitobj.CommitData{Message: message}.Encode()
		h := gitobj.Object{Type: gitobj.Commit, Data: raw}.Hash()
		res, err := (&Replayer{History: one{tree.NewMemory(), raw}}).Replay(t.Context(), h)
		if rules == 1 || rules == planner.Rules {
			if err == nil {
				t.Errorf("rules that this program knows: not replayed: %+v", res)
			}
			continue
		}
		if err != nil || res.Rules != rules || res.Same || !strings.HasPrefix(res.NotMadeAgain, fmt.Sprintf("decided by rules %d, not made again", rules)) {
			t.Errorf("rules %d: %+v, %v", rules, res, err)
		}
	}
}
