package lifecycle

import (
	"github.com/fleetbroker/fleetbroker/internal/api/escape"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
)

// Missing is what a contract is missing on its consumer to be usable, none for
// nothing; exact: every key is granted as contracted.
func Missing(c *v1alpha1.Contract, obs *v1alpha1.ConsumerObservation) (reason ledger.Reason, exact bool) {
	exact = true
	for name, want := range c.Spec.Resources {
		exact = exact && obs.Granted[name] == want
	}
	switch {
	case obs.SliceDenied != "":
		return because(ledger.DegradedSliceDenied, obs.SliceDenied), exact
	case obs.Slice == v1alpha1.Absent:
		return because(ledger.DegradedSliceMissing, "the ResourceSlice is not on "+c.Spec.Consumer), exact
	case len(obs.Granted) == 0:
		return because(ledger.DegradedGrantedLess, "nothing is granted yet"), false
	}
	if name := less(obs.Granted, c.Spec.Resources); name != "" {
		return because(ledger.DegradedGrantedLess, amounts(name, obs.Granted, c.Spec.Resources)), exact
	}
	switch {
	case obs.VirtualNode == v1alpha1.Absent:
		return because(ledger.DegradedSliceMissing, "the VirtualNode is not on "+c.Spec.Consumer), exact
	case obs.Node == v1alpha1.Absent:
		return because(ledger.DegradedNodeNotReady, "the Node is not on "+c.Spec.Consumer+ownSecret(c)), exact
	case obs.ProviderMessage != "":
		return because(ledger.DegradedUnreachable, obs.ProviderMessage), exact
	case !obs.NodeReady && obs.NodeMessage != "":
		return because(ledger.DegradedNodeNotReady, obs.NodeMessage), exact
	case !obs.NodeReady:
		return because(ledger.DegradedNodeNotReady, "nobody reports of the Node"+ownSecret(c)), exact
	}
	usable := c.Usable()
	if name := less(obs.Allocatable, usable); name != "" {
		return because(ledger.DegradedNodeNotReady, "the Node has "+amounts(name, obs.Allocatable, usable)), exact
	}
	switch {
	case obs.Offloading:
	case obs.OffloadingReason == ledger.DegradedBackOff:
		return because(ledger.DegradedBackOff, obs.OffloadingMessage), exact
	default:
		return because(ledger.DegradedOffloading, obs.OffloadingMessage), exact
	}
	return ledger.Reason{}, exact
}

// amounts is how much there is of how much of a resource is wanted.
func amounts(name string, have, want v1alpha1.Resources) string {
	return have[name].Canonical(name) + " of " + want[name].Canonical(name) + " " + name
}

// ownSecret reminds of the Secret that an intent has the Node made with: only people
// know what is in it.
func ownSecret(c *v1alpha1.Contract) string {
	if n := c.Spec.VirtualNode; n != nil && n.KubeconfigSecretRef != nil && n.KubeconfigSecretRef.Name != "" {
		return ": see whether Secret " + n.KubeconfigSecretRef.Name + " of virtualNode.kubeconfigSecretRef is in Liqo's tenant namespace there, with a kubeconfig that works"
	}
	return ""
}

// less is the first resource, by name, of which there is less than wanted.
func less(have, want v1alpha1.Resources) string {
	found := ""
	for name, n := range want {
		if have[name].Less(n) && (found == "" || name < found) {
			found = name
		}
	}
	return found
}

// because is a reason with a message that a cluster may have made as long as it likes: each
// change of the contract would carry it.
func because(code, message string) ledger.Reason {
	return ledger.Reason{Code: code, Message: escape.Words(message)}
}
