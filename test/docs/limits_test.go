package docs

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/celenv"
	"github.com/fleetbroker/fleetbroker/internal/api/kustomize"
	"github.com/fleetbroker/fleetbroker/internal/api/strictyaml"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/review"
)

// grouped is a number as the page writes it: 4,000,000.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// The page of limits has the figures that the programs hold to.
func TestLimits_AreThoseOfThePrograms(t *testing.T) {
	page, err := os.ReadFile("../../fleet-repo-template/docs/limits.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for line := range strings.SplitSeq(string(page), "\n") {
		if cells := strings.Split(strings.Trim(line, "| "), " | "); len(cells) > 1 {
			rows[cells[0]] = cells[1]
		}
	}
	figure := map[string]string{
		"`replicas` of one intent": grouped(v1alpha1.DefaultReplicas),
		"`contracts`":              grouped(v1alpha1.DefaultContracts),
		"`intents`":                grouped(v1alpha1.DefaultIntents),
		"`files`":                  fmt.Sprintf("%s, of them %d kustomizations", grouped(v1alpha1.DefaultFiles), v1alpha1.MaxKustomizations),
		"`bytes` of all files":     string(v1alpha1.DefaultBytes),
		"`conditions` of all tenants, in one round": grouped(v1alpha1.DefaultConditions) + " units",
		"`work` of one tenant, in one round":        grouped(v1alpha1.DefaultWork) + " units",

		"bytes of a file":                         fmt.Sprintf("%d MiB", strictyaml.MaxSize>>20),
		"documents of a file":                     grouped(strictyaml.MaxDocuments),
		"a kustomization: files and bytes read":   fmt.Sprintf("%s and %d MiB", grouped(kustomize.MaxFiles), kustomize.MaxBytes>>20),
		"a kustomization: objects and bytes made": fmt.Sprintf("%s and %d MiB", grouped(kustomize.MaxObjects), kustomize.MaxMade>>20),
		"a kustomization: kustomizations loaded, one that is named twice counted twice":                                                 grouped(kustomize.MaxLoads),
		"a kustomization: what its objects, and what is done to them, cost by their count (about a microsecond of processor time each)": grouped(int64(kustomize.OfIntents)),
		"an overlay: the same, with all manifests of its consumer":                                                                      grouped(int64(kustomize.OfOverlay)),
		"cost of one evaluation of `placement.where`":                                                                                   grouped(celenv.MaxCost) + " units",
		"cost of one evaluation of a policy of the fleet":                                                                               grouped(celenv.MaxPolicyCost) + " units",
		"characters of an expression":                                                                                                   grouped(celenv.MaxSource),

		"`alternatives`": grouped(v1alpha1.MaxAlternatives), "`schedule.windows`": grouped(v1alpha1.MaxWindows), "`placement.spread`": grouped(v1alpha1.MaxSpread),
		"`purchase`": grouped(v1alpha1.MaxPurchase), "`gpu.models`": grouped(v1alpha1.MaxModels), "`offload.namespaces`": grouped(v1alpha1.MaxOffload),
		"`podSelector.matchExpressions`, `values` of each": grouped(v1alpha1.MaxExpressions) + ", " + grouped(v1alpha1.MaxValues),
		"`virtualNode.taints`":                             grouped(v1alpha1.MaxTaints), "`virtualNode.shares`": grouped(v1alpha1.MaxShares), "nodes of a contract": grouped(v1alpha1.MaxShares), "other lists of names": grouped(v1alpha1.MaxNames),

		"entries of a commit's tree, each directory counted wherever it is named": grouped(tree.DefaultBounds.Entries),
		"levels of directories":                      grouped(int64(tree.DefaultBounds.Depth)),
		"bytes of all files, counted likewise":       fmt.Sprintf("%d GiB", tree.DefaultBounds.Bytes>>30),
		"files of a pull request that are looked at": grouped(review.MaxFiles),
	}
	for row, want := range figure {
		if rows[row] != want {
			t.Errorf("limits.md, row %q: got %q, want %q", row, rows[row], want)
		}
	}
}
