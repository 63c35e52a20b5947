package server

import (
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/fleetbroker/fleetbroker/internal/api/strictjson"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/market"
	"github.com/fleetbroker/fleetbroker/internal/market/store"
)

// maxAdvertisement bounds an advertisement of the first form, a few numbers.
const maxAdvertisement = 64 << 10

// advertisedFlavor is the name of the one flavor that an advertisement makes:
// agents of the first form tell neither pools nor models.
const advertisedFlavor = "cluster"

// advertisements are the last ones heard, for GET. They are a courtesy to
// agents of the first form: a restart forgets them until the next report.
type advertisements struct {
	mu    sync.Mutex
	last  map[string]wire.Advertisement
	epoch map[string]uint64
}

func newAdvertisements() *advertisements {
	return &advertisements{last: map[string]wire.Advertisement{}, epoch: map[string]uint64{}}
}

func (s *advertisements) put(ad wire.Advertisement) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last[ad.ClusterID] = ad
}

func (s *advertisements) get(cluster string) (wire.Advertisement, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ad, ok := s.last[cluster]
	return ad, ok
}

// next is a generation above all that this daemon has given the cluster. The
// first form has none of its own, so the time of receipt stands in for it;
// two within one tick of the clock still differ.
func (s *advertisements) next(cluster string, nanos uint64) wire.Generation {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.epoch[cluster] = max(s.epoch[cluster]+1, nanos)
	return wire.Generation{Epoch: s.epoch[cluster], N: 1}
}

// postAdvertisement takes the report of a Liqo resource agent
// (POST /api/v1/advertisements).
func (a *agents) postAdvertisement(w http.ResponseWriter, r *http.Request) {
	body, err := readBody(w, r, maxAdvertisement)
	if err != nil {
		a.count(identityOf(r).Name, bodyResult(err))
		refuseBody(w, err, maxAdvertisement)
		return
	}
	var ad wire.Advertisement
	if err := strictjson.Decode(body, &ad); err != nil {
		a.refused(w, identityOf(r).Name, http.StatusBadRequest, "BadReport", "read the advertisement: "+err.Error())
		return
	}
	if !a.admit(w, r, ad.ClusterID, v1alpha1.RoleProvider) {
		return
	}
	flavor, err := flavorOf(ad)
	if err != nil {
		a.refused(w, ad.ClusterID, http.StatusBadRequest, "BadReport", err.Error())
		return
	}
	if a.answerReport(w, ad.ClusterID, a.reportV1(r, ad.ClusterID, flavor)) {
		a.legacy.put(ad)
		answer := wire.AdvertisementAnswer{Advertisement: a.known(ad)}
		if a.Broker != nil {
			answer.ProviderInstructions = a.Broker.Owed(ad.ClusterID)
		}
		answerJSON(w, http.StatusOK, answer)
	}
}

// reportV1 hands an advertisement to the market as its cluster's newest report:
// the first form has no generation by which it could be older than another.
func (a *agents) reportV1(r *http.Request, cluster string, flavor v1alpha1.Flavor) error {
	var err error
	at := uint64(max(a.Now().UnixNano(), 0))
	for range 2 {
		generation := a.legacy.next(cluster, at)
		err = a.Reports.Report(r.Context(), store.Report{
			Cluster: cluster, Generation: generation, Certificate: serialOf(r),
			Content: &wire.FlavorReport{Flavors: []v1alpha1.Flavor{flavor}},
		})
		var stale *market.StaleEpochError
		if !errors.As(err, &stale) {
			break
		}
		at = stale.Last.Epoch + 1 // somebody reported for the cluster from a clock that is ahead
	}
	return err
}

// getAdvertisement answers with the caller's own last advertisement, and an
// operator with anybody's.
func (a *agents) getAdvertisement(w http.ResponseWriter, r *http.Request) {
	cluster := r.PathValue("id")
	if !mayRead(w, r, cluster) {
		return
	}
	ad, ok := a.legacy.get(cluster)
	if !ok {
		refuse(w, http.StatusNotFound, "NotFound", "cluster %s has advertised nothing since the daemon started", cluster)
		return
	}
	answerJSON(w, http.StatusOK, a.known(ad))
}

// known is an advertisement with our own reckoning of what is reserved and of
// what is left: the ledger's, not the agent's.
func (a *agents) known(ad wire.Advertisement) wire.Advertisement {
	if a.Broker == nil {
		return ad
	}
	held := a.Broker.Held(ad.ClusterID)
	ad.Resources.Reserved = &held
	left := func(name, all, used, reserved string) string {
		sum := v1alpha1.Amount{}
		for i, text := range []string{all, used, reserved} {
			if text == "" {
				continue
			}
			amount, err := v1alpha1.ParseAmount(name, text)
			switch {
			case err != nil:
				return "" // it was taken once, so that it can be read
			case i == 0:
				sum = amount
			default:
				sum = sum.Sub(amount)
			}
		}
		if all == "" {
			return ""
		}
		return sum.Max(v1alpha1.Amount{}).Canonical(name)
	}
	all, used := ad.Resources.Allocatable, ad.Resources.Allocated
	ad.Resources.Available = wire.Quantities{
		CPU: left(v1alpha1.CPU, all.CPU, used.CPU, held.CPU), Memory: left(v1alpha1.Memory, all.Memory, used.Memory, held.Memory),
		GPU: left(v1alpha1.GPU, all.GPU, used.GPU, held.GPU), Storage: left(v1alpha1.EphemeralStorage, all.Storage, used.Storage, held.Storage),
	}
	return ad
}

// flavorOf makes one flavor of an advertisement: capacity is what is
// allocatable on ready nodes, used what its pods request. Its own reckoning of
// `reserved` and `available` is ignored; the ledger knows better.
func flavorOf(ad wire.Advertisement) (v1alpha1.Flavor, error) {
	capacity, err := resourcesOf(ad.Resources.Allocatable)
	if err != nil {
		return v1alpha1.Flavor{}, fmt.Errorf("resources.allocatable: %w", err)
	}
	used, err := resourcesOf(ad.Resources.Allocated)
	if err != nil {
		return v1alpha1.Flavor{}, fmt.Errorf("resources.allocated: %w", err)
	}
	f := v1alpha1.Flavor{
		TypeMeta: v1alpha1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindFlavor},
		Metadata: v1alpha1.Metadata{Name: advertisedFlavor, Namespace: ad.ClusterID},
		Spec:     v1alpha1.FlavorSpec{Type: "K8Slice", Capacity: capacity, Used: used, Class: "default"},
	}
	if !capacity[v1alpha1.GPU].IsZero() {
		// The first form counts nvidia.com/gpu and says nothing of the model.
		f.Spec.GPU = &v1alpha1.FlavorGPU{Vendor: "nvidia", UnitsPerGPU: 1, ResourceName: "nvidia.com/gpu"}
	}
	return f, nil
}

func resourcesOf(q wire.Quantities) (v1alpha1.Resources, error) {
	out := v1alpha1.Resources{}
	for name, text := range map[string]string{
		v1alpha1.CPU: q.CPU, v1alpha1.Memory: q.Memory, v1alpha1.GPU: q.GPU, v1alpha1.EphemeralStorage: q.Storage,
	} {
		if text == "" {
			continue
		}
		amount, err := v1alpha1.ParseAmount(name, text)
		if err != nil {
			return nil, err
		}
		out[name] = amount
	}
	return out, nil
}
