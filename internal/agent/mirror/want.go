package mirror

import (
	"time"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetbroker/fleetbroker/internal/api/crd"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
)

// labelReplicated is on the provider's copy of a consumer's ResourceSlice
// (Liqo v1.2.0, pkg/consts/replication.go).
const labelReplicated = "liqo.io/replicated"

// State is what is shown.
type State struct {
	// Cluster by its id.
	Cluster string
	// Now by the agent's clock, for terms that run out.
	Now time.Time
	// Flavors as they were last collected.
	Flavors []v1alpha1.Flavor
	// Instructions that count, nil while none were heard: mirrors of contracts then stay as they are.
	Instructions *wire.Instructions
	// Slices of the cluster, both its own and those replicated to it.
	Slices []authv1beta1.ResourceSlice
	// Refused says why contracts are not honoured.
	Refused map[string]string
}

// Picture is the objects that should be there.
type Picture struct {
	Advertisements []*crd.Advertisement
	Providers      []*crd.ProviderInstruction
	Reservations   []*crd.ReservationInstruction
}

// Want is the picture of a state.
func Want(s State) Picture {
	var p Picture
	for i := range s.Flavors {
		p.Advertisements = append(p.Advertisements, advertisement(&s.Flavors[i], s.Flavors))
	}
	if s.Instructions == nil {
		return p
	}
	copies, own := map[[2]string]*authv1beta1.ResourceSlice{}, map[string]bool{}
	for i := range s.Slices {
		o := &s.Slices[i]
		switch {
		case o.Labels[labelReplicated] != "true":
			own[o.Name] = true
		case o.Spec.ConsumerClusterID != nil:
			copies[[2]string{string(*o.Spec.ConsumerClusterID), o.Name}] = o
		}
	}
	for i := range s.Instructions.Provide {
		c := &s.Instructions.Provide[i]
		p.Providers = append(p.Providers, provider(c, copies[[2]string{c.ConsumerLiqoID, c.Slice}], s))
	}
	for i := range s.Instructions.Consume {
		c := &s.Instructions.Consume[i]
		p.Reservations = append(p.Reservations, &crd.ReservationInstruction{
			ObjectMeta: meta(c.Contract),
			Spec:       crd.ReservationInstructionSpec{Agreed: agreed(c), TargetClusterID: c.Provider, Endpoint: c.ProviderEndpoint},
			Status:     crd.ReservationInstructionStatus{Phase: string(c.Phase), Reason: c.Reason, Message: c.Message, Delivered: own[c.Slice], Expiring: expiring(c, s.Now)},
		})
	}
	return p
}

func meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Labels: map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy}}
}

func advertisement(f *v1alpha1.Flavor, all []v1alpha1.Flavor) *crd.Advertisement {
	s := &f.Spec
	a := &crd.Advertisement{ObjectMeta: meta(f.Metadata.Name), Spec: crd.AdvertisementSpec{
		ClusterID: f.Metadata.Namespace, Flavor: f.Metadata.Name, Architecture: s.Architecture, Region: s.Location.Region,
		Class: s.Class, NodeSelector: s.NodeSelector, Cordon: s.Cordon, Drain: instant(s.Drain),
	}}
	if g := s.GPU; g != nil {
		a.Spec.GPUModel, a.Spec.GPUTier, a.Spec.GPUResource = g.Model, g.Tier, g.ResourceName
		if !g.Memory.IsZero() {
			a.Spec.GPUMemory = g.Memory.Canonical(v1alpha1.Memory)
		}
	}
	var pool []ledger.Member
	for i := range all {
		pool = append(pool, ledger.Member{Flavor: &all[i]})
	}
	figures := ledger.Figures(ledger.Member{Flavor: f}, pool, "")
	left := ledger.Available(figures)
	for name, n := range left { // what is not limited is no figure
		if _, listed := s.Capacity[name]; !listed {
			delete(left, name)
		} else if n.Int64() < 0 {
			left[name] = v1alpha1.Amount{}
		}
	}
	a.Status = crd.AdvertisementStatus{
		Capacity: s.Capacity.Canonical(), Used: s.Used.Canonical(), Held: figures.Held.Canonical(), Available: left.Canonical(),
		Contracts: int32(len(s.Held)),
	}
	return a
}

func provider(c *wire.Instruction, slice *authv1beta1.ResourceSlice, s State) *crd.ProviderInstruction {
	p := &crd.ProviderInstruction{
		ObjectMeta: meta(c.Contract),
		Spec:       crd.ProviderInstructionSpec{Agreed: agreed(c), RequesterClusterID: c.Consumer},
		Status:     crd.ProviderInstructionStatus{Phase: string(c.Phase), Slice: "Absent", Message: c.Why()},
	}
	if slice != nil {
		p.Status.Slice, p.Status.Granted = "Pending", granted(slice.Status.Resources)
		for _, condition := range slice.Status.Conditions {
			if condition.Type != authv1beta1.ResourceSliceConditionTypeResources {
				continue
			}
			p.Status.Slice = string(condition.Status)
			if condition.Status == authv1beta1.ResourceSliceConditionDenied {
				p.Status.Message = condition.Message
			}
		}
		want := c.Resources.Canonical()
		p.Status.Enforced = c.Phase.Charged() && p.Status.Slice == string(authv1beta1.ResourceSliceConditionAccepted) && equal(p.Status.Granted, want)
	}
	if why := s.Refused[c.Contract]; why != "" {
		p.Status.Message = "refused: " + why
	}
	return p
}

func agreed(c *wire.Instruction) crd.Agreed {
	return crd.Agreed{
		ReservationName: c.Intent, Contract: c.Contract, Slice: c.Slice, Tenant: c.Tenant, Intent: c.Intent, Flavor: c.Flavor,
		Resources: c.Resources.Canonical(), StartsAt: instant(c.Term.Start), ExpiresAt: instant(c.Term.End),
	}
}

// expiring reports whether a contract ends soon, as notifications reckon it.
func expiring(c *wire.Instruction, now time.Time) bool {
	return ledger.Expiring(&v1alpha1.Contract{Spec: v1alpha1.ContractSpec{Term: c.Term}, Status: v1alpha1.ContractStatus{Phase: c.Phase}}, v1alpha1.TimeOf(now))
}

// granted is a resource list in canonical text.
func granted(list corev1.ResourceList) map[string]string {
	out := make(map[string]string, len(list))
	for name, q := range list {
		out[string(name)] = q.String()
	}
	return out
}

// equal compares quantities; one that is zero may be missing.
func equal(have, want map[string]string) bool {
	for name, q := range want {
		if have[name] != q && q != "0" {
			return false
		}
	}
	for name, q := range have {
		if _, named := want[name]; !named && q != "0" {
			return false
		}
	}
	return true
}

func instant(t v1alpha1.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	out := metav1.NewTime(t.UTC().Truncate(time.Second))
	return &out
}
