package planner

import "github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"

// Feature is a field that is understood and not acted on yet.
type Feature struct {
	// Field by its path in the document, such as spec.placement.spread.
	Field string
}

// Message is what people read.
func (f Feature) Message() string { return f.Field + " is not supported yet" }

// Unsupported lists what an intent asks for that is not supported yet. Such an
// intent is refused; what it holds is kept.
func Unsupported(in *v1alpha1.ResourceIntent) []Feature {
	s := &in.Spec
	var out []Feature
	add := func(is bool, field string) {
		if is {
			out = append(out, Feature{"spec." + field})
		}
	}
	if n := s.VirtualNode; n != nil {
		add(len(n.Shares) > 0, "virtualNode.shares")
		add(n.KubeconfigSecretRef != nil && n.KubeconfigSecretRef.Name != "", "virtualNode.kubeconfigSecretRef")
	}
	return out
}

// notes lists what a fleet says that has no effect as the rest of it stands,
// each with the document it stands in.
func (r *round) notes() []string {
	var out []string
	for _, name := range sortedNames(r.w.Tenants) {
		t := &r.w.Tenants[name].Spec
		if unsigned := r.fleet.Verification.Mode != "signed"; unsigned && len(t.Approvers)+len(t.Signers) > 0 {
			out = append(out, "tenant "+name+": spec.approvers and spec.signers are not asked for while spec.verification.mode of fleet.yaml is not signed")
		}
	}
	return out
}
