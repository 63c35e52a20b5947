package simulate_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/market"
	"github.com/fleetbroker/fleetbroker/internal/simulate"
)

// queue is a table of demand that waits for long: of several sizes, priorities and
// tenants, three times what the offers hold, at instants that often lie a second apart.
func queue(seed uint64, rows int) string {
	r := rand.New(rand.NewPCG(seed, 7))
	var b strings.Builder
	b.WriteString("name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,creation_time,deletion_time,tenant,priority\n")
	at := 0
	for i := range rows {
		at += r.IntN(3)
		gpus := []int{1, 1, 2, 4}[r.IntN(4)]
		fmt.Fprintf(&b, "j%d,%d,%d,%d,1000,,%d,%d,t%d,%d\n", i, 1000*gpus, 1024*gpus, gpus, at, at+2+r.IntN(40), r.IntN(4), 100*r.IntN(3))
	}
	return b.String()
}

// However long the queue is, what is placed stays for as long as it would have stayed:
// nothing is sold a second before its time.
func TestLongQueues(t *testing.T) {
	offers, err := market.ReadCSV(strings.NewReader("sn,cpu_milli,memory_mib,gpu,model\nn1,64000,262144,8,L4\nn2,64000,262144,8,L4\nn3,64000,262144,4,L4\n"), "x")
	if err != nil {
		t.Fatal(err)
	}
	quota := int64(5)
	tenants := map[string]*v1alpha1.Tenant{}
	for i := range 4 {
		name := fmt.Sprintf("t%d", i)
		tenants[name] = &v1alpha1.Tenant{Metadata: v1alpha1.Metadata{Name: name}, Spec: v1alpha1.TenantSpec{Quota: &v1alpha1.TenantQuota{GPU: &quota}}}
	}
	for seed := range uint64(12) {
		demand, err := market.ReadDemand(strings.NewReader(queue(seed, 120)))
		if err != nil {
			t.Fatal(err)
		}
		r, err := simulate.Run(simulate.Options{
			Offers: offers, Demand: demand, Fleet: &v1alpha1.FleetSpec{Currency: "EUR"}, Policies: []string{simulate.Planner}, Queue: "wait", Start: simulate.Start, Tenants: tenants,
		})
		if err != nil {
			t.Errorf("seed %d: %v", seed, err)
			continue
		}
		if o := r.Policies[0]; o.Placed != 120 || o.Wait.P90 < 60 {
			t.Errorf("seed %d: %d placed, wait %+v", seed, o.Placed, o.Wait)
		}
	}
}
