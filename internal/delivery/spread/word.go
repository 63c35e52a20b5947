package spread

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/delivery"
)

// observe is what the replica that delivers to a cluster says of each contract. What it
// does not see counts as absent only if it goes by the manifests that are known here.
func (p *place) observe(want delivery.Desired, now time.Time) map[string]v1alpha1.ConsumerObservation {
	out := make(map[string]v1alpha1.ConsumerObservation, len(want.Contracts))
	silent := p.word == nil || now.Sub(p.at) >= fresh
	for _, c := range want.Contracts {
		name := c.Metadata.Name
		if silent {
			out[name] = v1alpha1.ConsumerObservation{Message: p.away(want, now)}
			continue
		}
		o, told := p.word.Contracts[name]
		o = o.Apart()
		if !told {
			o = v1alpha1.ConsumerObservation{Reachable: true}
		}
		if p.word.Root != want.Tree.Root.String() {
			for _, seen := range []*v1alpha1.Presence{&o.Slice, &o.VirtualNode, &o.Node} {
				if *seen == v1alpha1.Absent {
					*seen = v1alpha1.Unknown
				}
			}
		}
		out[name] = o
	}
	return out
}

// away says that no replica is known to deliver to a cluster; "" for who has only just
// begun to listen.
func (p *place) away(want delivery.Desired, now time.Time) string {
	switch {
	case !p.at.IsZero():
		return fmt.Sprintf("no replica has reported what it sees in cluster %s since %s", want.Cluster.Metadata.Name, p.at.UTC().Format(time.RFC3339))
	case now.Sub(p.began) < 2*fresh:
		return ""
	}
	return fmt.Sprintf("no replica reports what it sees in cluster %s", want.Cluster.Metadata.Name)
}

// same reports whether two words say the same.
func same(a, b *wire.Observed) bool {
	return a.Root == b.Root && a.Applied == b.Applied && a.Leading == b.Leading && a.Pending == b.Pending && a.Problem == b.Problem &&
		a.Differs == b.Differs && a.Admission == b.Admission && slices.Equal(a.Troubles, b.Troubles) &&
		maps.EqualFunc(a.Contracts, b.Contracts, func(a, b v1alpha1.ConsumerObservation) bool { return a.Equal(&b) })
}

// sameMaps reports whether two hold the very same maps.
func sameMaps(a, b map[string]map[string]v1alpha1.ConsumerObservation) bool {
	return maps.EqualFunc(a, b, func(a, b map[string]v1alpha1.ConsumerObservation) bool {
		return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
	})
}
