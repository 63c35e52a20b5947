package examined

import (
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/doctor"
)

// Wide says what is well too; a cluster's finding is counted and shown once, not again with
// each of its contracts, and one of a contract's own next to it.
func TestExamination_Text(t *testing.T) {
	trouble := doctor.Finding{Link: doctor.LinkAccess, Where: "cluster paris", Cause: "there is no way to it", Remedy: "name a kubeconfig"}
	own := doctor.Finding{Link: doctor.LinkPods, Where: "pod a", Cause: "it is Pending", Remedy: "wait"}
	e := &Examination{
		Clusters: []Cluster{{"paris", []doctor.Finding{trouble}}, {"rome", nil}},
		Contracts: []doctor.Diagnosis{
			{Contract: "vision-a", Tenant: "vision", Intent: "a", Phase: "Active", Checked: []doctor.Link{doctor.LinkIntent, doctor.LinkManifest}},
			{Contract: "vision-b", Tenant: "vision", Intent: "b", Phase: "Active", Findings: []doctor.Finding{trouble, own}},
		},
	}
	plain, wide := e.Text(false), e.Text(true)
	for _, text := range []string{plain, wide} {
		if strings.Count(text, "there is no way to it") != 1 || strings.Count(text, "it is Pending") != 1 || !strings.Contains(text, "2 clusters looked at, 2 contracts (1 well), 2 findings.") {
			t.Errorf("got\n%s", text)
		}
	}
	for _, well := range []string{"cluster rome is well", "vision-a (vision/a) is Active\n  well: intent, manifest"} {
		if strings.Contains(plain, well) || !strings.Contains(wide, well) {
			t.Errorf("%q: want it in the wide form alone; wide is\n%s", well, wide)
		}
	}
}
