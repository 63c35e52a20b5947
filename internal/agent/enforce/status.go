package enforce

import (
	"maps"
	"slices"
	"strings"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Labels of a consumer's Node that say what was granted.
const (
	LabelContract = "granted." + v1alpha1.Group + "/contract"
	LabelFlavor   = "granted." + v1alpha1.Group + "/flavor"
	// LabelFleet is the id of the fleet whose agent granted it.
	LabelFleet = "granted." + v1alpha1.Group + "/fleet"
)

// LabelsOf are the labels that describe a flavor's cards.
func LabelsOf(f *v1alpha1.FlavorSpec) map[string]string {
	if g := f.GPU; g != nil {
		return v1alpha1.CardLabels(g.Vendor, g.Model, g.Tier, g.Memory)
	}
	return map[string]string{}
}

// nodeLabels are what the consumer's Node is labelled with. The group's own
// labels are the broker's: Liqo would put ours over its.
func nodeLabels(fleet string, p *Promise, flavor map[string]string) map[string]string {
	out := maps.Clone(flavor)
	if out == nil {
		out = map[string]string{}
	}
	out[LabelContract], out[LabelFlavor], out[LabelFleet] = p.Contract, p.Flavor, fleet
	maps.DeleteFunc(out, func(key, value string) bool {
		return value == "" || strings.HasPrefix(key, v1alpha1.Group+"/") || len(validation.IsValidLabelValue(value)) > 0
	})
	return out
}

// apply writes an answer into a slice's status and reports whether that changes
// it. The condition of Liqo's own authentication stays as it is.
func apply(s *authv1beta1.ResourceSlice, a Answer, now metav1.Time) bool {
	before := s.Status.DeepCopy()
	switch a.Verdict {
	case Leave:
		return false
	case Grant, Withdraw:
		s.Status.Resources = list(a.Resources)
		s.Status.NodeSelector, s.Status.NodeLabels = a.NodeSelector, a.NodeLabels
		setCondition(s, authv1beta1.ResourceSliceConditionAccepted, a, now)
	case Deny:
		setCondition(s, authv1beta1.ResourceSliceConditionDenied, a, now)
	}
	return !apiequality.Semantic.DeepEqual(before, &s.Status)
}

func setCondition(s *authv1beta1.ResourceSlice, status authv1beta1.ResourceSliceConditionStatus, a Answer, now metav1.Time) {
	next := authv1beta1.ResourceSliceCondition{
		Type: authv1beta1.ResourceSliceConditionTypeResources, Status: status, LastTransitionTime: now, Reason: a.Reason, Message: a.Message,
	}
	is := func(c authv1beta1.ResourceSliceCondition) bool { return c.Type == next.Type }
	if at := slices.IndexFunc(s.Status.Conditions, is); at >= 0 {
		if was := s.Status.Conditions[at]; was.Status == status {
			next.LastTransitionTime = was.LastTransitionTime
		}
		s.Status.Conditions[at] = next
		return
	}
	s.Status.Conditions = append(s.Status.Conditions, next)
}

// list is resources in the canonical form: any other is rewritten by Liqo.
func list(r v1alpha1.Resources) corev1.ResourceList {
	out := make(corev1.ResourceList, len(r))
	for name, amount := range r {
		out[corev1.ResourceName(name)] = resource.MustParse(amount.Canonical(name))
	}
	return out
}

// amounts are a slice's quantities in our units. What cannot be counted, such
// as half a device, counts as more than there can be: it is granted to nobody.
func amounts(list corev1.ResourceList) v1alpha1.Resources {
	out := make(v1alpha1.Resources, len(list))
	for name, quantity := range list {
		a, err := v1alpha1.AmountOfQuantity(string(name), quantity)
		if err != nil {
			a = v1alpha1.AmountOf(1 << 60)
		}
		out[string(name)] = a
	}
	return out
}

// quantity is what a slice asks of a resource, as it is written there.
func quantity(s *authv1beta1.ResourceSlice, name string) string {
	q := s.Spec.Resources[corev1.ResourceName(name)]
	return q.String()
}
