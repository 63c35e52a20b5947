package doctor

import (
	"cmp"
	"fmt"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// manyConsumers is to how many consumers a daemon delivers by itself without a word.
const manyConsumers = 50

// DeliveryNote names a fleet whose daemon delivers to so many consumers itself that their
// agents should; "" for any other. byDefault is Fleet.defaults.delivery.
func DeliveryNote(clusters map[string]*v1alpha1.Cluster, byDefault string) string {
	direct := 0
	for _, c := range clusters {
		if c.HasRole(v1alpha1.RoleConsumer) && cmp.Or(c.Spec.Delivery, byDefault, "direct") == "direct" {
			direct++
		}
	}
	if direct <= manyConsumers {
		return ""
	}
	return fmt.Sprintf("the daemon delivers to %d consumers itself, with a credential and watches for each; let their agents do it: delivery: agent in their files (docs/scale.md)", direct)
}
