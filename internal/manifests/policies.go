package manifests

import (
	"bytes"
	"embed"
	"path"
	"strings"
)

// policyFiles keep tenants apart on a consumer. They were tried against real
// Liqo v1.2.0 on Kubernetes 1.36, where MutatingAdmissionPolicy is v1; test/e2e/policies
// runs every case on a real API server.
//
//go:embed policies/*.yaml
var policyFiles embed.FS

// writers stands in the namespace guard for the users that apply manifests.
const writers = "@WRITERS@"

// policyNames lists the policy files in the order of their names.
func policyNames() []string {
	entries, err := policyFiles.ReadDir(policiesDir)
	if err != nil {
		panic(err) // embedded: cannot fail
	}
	out := make([]string, 0, len(entries))
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// policies renders the admission policies of a consumer, or their absence.
func (r *render) policies(consumer string, present bool) {
	dir := path.Join(Dir(consumer), namespacesDir, policiesDir)
	delivery := ""
	if c := r.clusters[consumer]; c != nil {
		delivery = c.Spec.Delivery
	}
	var listed []string
	for _, name := range policyNames() {
		r.out.Files[path.Join(dir, name)] = nil
		if present {
			listed = append(listed, name)
			r.out.Files[path.Join(dir, name)] = policy(name, delivery)
		}
	}
	r.kustomization(dir, listed)
}

// policy is one policy file for a consumer that is delivered to in this way.
func policy(name, delivery string) []byte {
	text, err := policyFiles.ReadFile(path.Join(policiesDir, name))
	if err != nil {
		panic(err) // embedded: cannot fail
	}
	users := []string{"system:serviceaccount:fleetbroker:fleetbroker"}
	switch delivery {
	case "flux":
		users = append(users, "system:serviceaccount:flux-system:kustomize-controller")
	case "argocd":
		users = append(users, "system:serviceaccount:argocd:argocd-application-controller")
	case "agent":
		users = append(users, "system:serviceaccount:fleetbroker:fleet-agent")
	}
	text = bytes.ReplaceAll(text, []byte(writers), []byte("['"+strings.Join(users, "', '")+"']"))
	return append([]byte(Header), text...)
}
