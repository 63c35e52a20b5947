package mirror

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	"github.com/fleetbroker/fleetbroker/internal/api/crd"
)

func TestNewsOfAContract(t *testing.T) {
	end := metav1.NewTime(time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC))
	later := metav1.NewTime(end.Add(time.Hour))
	for name, c := range map[string]struct {
		was, is shown
		want    string
	}{
		"nothing":       {shown{"Active", "Accepted", "", &end, false}, shown{"Active", "Accepted", "", &end, false}, ""},
		"only words":    {shown{"Degraded", "Accepted", "a", nil, false}, shown{"Degraded", "Accepted", "b", nil, false}, ""},
		"usable":        {shown{"Peering", "Pending", "", nil, false}, shown{"Active", "Accepted", "", nil, false}, "Normal Active the contract is Active"},
		"degraded":      {shown{"Active", "Accepted", "", nil, false}, shown{"Degraded", "Accepted", "FlavorShrunk", nil, false}, "Warning Degraded the contract is Degraded: FlavorShrunk"},
		"denied":        {shown{"Peering", "Pending", "", nil, false}, shown{"Peering", "Denied", "no room", nil, false}, "Warning SliceDenied its slice is denied: no room"},
		"renewed":       {shown{"Active", "Accepted", "", &end, false}, shown{"Active", "Accepted", "", &later, false}, "Normal Renewed its term ends at 2026-12-01T09:00:00Z"},
		"without end":   {shown{"Active", "Accepted", "", &end, false}, shown{"Active", "Accepted", "", nil, false}, "Normal Renewed its term has no end any more"},
		"gets an end":   {shown{"Active", "Accepted", "", nil, false}, shown{"Active", "Accepted", "", &end, false}, "Normal Renewed its term ends at 2026-12-01T08:00:00Z"},
		"ends soon":     {shown{"Active", "", "", &end, false}, shown{"Active", "", "", &end, true}, "Warning Expiring it ends at 2026-12-01T08:00:00Z: a longer schedule.duration of its intent extends it"},
		"is ending":     {shown{"Active", "", "", &end, true}, shown{"Active", "", "", &end, true}, ""},
		"two at a time": {shown{"Active", "Accepted", "", nil, false}, shown{"Degraded", "Denied", "x", nil, false}, "Warning Degraded the contract is Degraded: x; Warning SliceDenied its slice is denied: x"},
	} {
		var got []string
		for _, n := range newsOf(c.was, c.is) {
			got = append(got, fmt.Sprintf("%s %s %s", n.kind, n.reason, n.note))
		}
		if text := strings.Join(got, "; "); text != c.want {
			t.Errorf("%s: told is %q, want %q", name, text, c.want)
		}
	}
}

// Only what stood before has news: neither the first picture of a contract, nor
// its last.
func TestNewsAreOfWhatStands(t *testing.T) {
	one := func(name, phase string) *crd.ProviderInstruction {
		return &crd.ProviderInstruction{ObjectMeta: meta(name), Status: crd.ProviderInstructionStatus{Phase: phase}}
	}
	to := events.NewFakeRecorder(10)
	have := []*crd.ProviderInstruction{one("stands", "Active"), one("goes", "Releasing"), one("just-made", "")}
	want := []*crd.ProviderInstruction{one("stands", "Degraded"), one("comes", "Reserved"), one("just-made", "Reserved")}
	tell(to, have, want, shownProvider)
	close(to.Events)
	var got []string
	for e := range to.Events {
		got = append(got, e)
	}
	if len(got) != 1 || !strings.Contains(got[0], "Degraded") {
		t.Errorf("told is %q", got)
	}
}
