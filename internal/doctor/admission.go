package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/delivery/versions"
	"github.com/fleetbroker/fleetbroker/internal/manifests"
)

// mutatingVersions are the versions of MutatingAdmissionPolicy by which pods can get their
// tolerations, the newest first.
var mutatingVersions = []string{v1alpha1.AdmissionV1, v1alpha1.AdmissionV1Beta1}

// serves asks for the versions of MutatingAdmissionPolicy that a cluster serves.
func serves(ctx context.Context, config *rest.Config) ([]string, error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	policies := gvr(admission, mutatingVersions[0], "mutatingadmissionpolicies")
	set, err := versions.Served(ctx, client.RESTClient(), versions.Each(policies, mutatingVersions...), func(ctx context.Context, call func(context.Context) error) error { return call(ctx) })
	if err != nil {
		return nil, err
	}
	out := []string{}
	for _, version := range mutatingVersions {
		if policies.Version = version; set[policies] {
			out = append(out, version)
		}
	}
	return out, nil
}

// look notes which forms of admission a cluster can have.
func (c *Cluster) look(ctx context.Context, config *rest.Config) {
	got, err := serves(ctx, config)
	var status apierrors.APIStatus
	switch {
	case err == nil:
		c.Serves = got
	case !errors.As(err, &status): // who is asked does not answer; what is listed says so too
		c.Unreachable = err.Error()
	}
}

// Admission says what gives pods their tolerations in a consumer, "" where that is not
// known.
func (c *Cluster) Admission() string {
	switch {
	case c.Serves == nil:
		return ""
	case c.Form == v1alpha1.AdmissionWebhook:
		return fmt.Sprintf("cluster %s: pods get their tolerations by the webhook of its agent", c.Name)
	}
	const by = "cluster %s: pods get their tolerations by MutatingAdmissionPolicy %s"
	switch {
	case slices.Contains(c.Serves, c.Form):
		return fmt.Sprintf(by, c.Name, c.Form)
	case len(c.Serves) > 0:
		return fmt.Sprintf(by+", which it serves, where a daemon or agent delivers, and else by none: its file asks for %s", c.Name, c.Serves[0], c.Form)
	}
	return fmt.Sprintf("cluster %s: pods get no tolerations: its file asks for MutatingAdmissionPolicy %s, and it serves none", c.Name, c.Form)
}

// admissionForm says what is wrong with the form of admission that a cluster's file names.
func admissionForm(c *Cluster) []Finding {
	if c.Serves == nil || c.Form == v1alpha1.AdmissionWebhook || slices.Contains(c.Serves, c.Form) {
		return nil
	}
	where := "cluster " + c.Name
	if len(c.Serves) > 0 {
		return finding(NoPolicyKinds, where, fmt.Sprintf("it serves MutatingAdmissionPolicy as %s and not as %s, which its file asks for: a daemon or agent that delivers applies the served version, Flux, Argo CD and the install bases do not", c.Serves[0], c.Form),
			"write `admission: %s` into clusters/%s.yaml, and apply what `fleetbroker install %[2]s` writes then", c.Serves[0], c.Name)
	}
	return finding(NoPolicyKinds, where, "it does not serve MutatingAdmissionPolicy, as v1 (Kubernetes 1.36) or v1beta1 (1.34 where switched on): pods get no tolerations, and no owner is written on ResourceRequests",
		"write `admission: webhook` into clusters/%s.yaml, and apply what `fleetbroker install %[1]s` writes then: its agent does it", c.Name)
}

// checkWebhook says why the agent's webhook gives pods nothing.
func checkWebhook(c *Cluster) []Finding {
	if c.Form != v1alpha1.AdmissionWebhook || !c.read(Webhooks) {
		return nil
	}
	const name = "fleetbroker-intent-tolerations"
	at := at(c, Webhooks, "", name)
	list := c.all(Webhooks, func(u *unstructured.Unstructured) bool {
		return u.GetName() == name || "fleetbroker-"+manifests.PolicyName(u.GetName()) == name
	})
	if len(list) == 0 {
		return finding(PolicyMissing, at, "it is missing: pods get no tolerations", "apply what `fleetbroker install %s` writes: the component webhook of install/agent", c.Name)
	}
	for _, u := range list {
		hooks, _, _ := unstructured.NestedSlice(u.Object, "webhooks")
		for _, h := range hooks {
			hook, _ := h.(map[string]any)
			bundle, _, _ := unstructured.NestedString(hook, "clientConfig", "caBundle")
			if strings.TrimSpace(bundle) == "" {
				return finding(PolicyUnbound, at, "it has no caBundle, so that the API server does not trust the agent and refuses pods of tenants' namespaces",
					"see whether the agent runs with --webhook-bind-address, and its log for why it cannot write caBundle")
			}
		}
	}
	return nil
}
