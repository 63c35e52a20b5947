package manifests

import (
	"bytes"
	"embed"
	"path"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// policyFiles keep tenants apart on a consumer. They were tried against real
// Liqo v1.2.0 on Kubernetes 1.36, where MutatingAdmissionPolicy is v1; test/e2e/policies
// runs every case on a real API server.
//
//go:embed policies/*.yaml
var policyFiles embed.FS

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

// Policies are the admission policies of a consumer that has contracts, by path.
// They are all that follows from its Cluster file alone.
func Policies(consumer string, cluster *v1alpha1.Cluster) map[string][]byte {
	out := map[string][]byte{}
	for _, name := range policyNames() {
		out[path.Join(Dir(consumer), namespacesDir, policiesDir, name)] = admitting(policy(name), cluster)
	}
	return out
}

// policies renders the admission policies of a consumer, or their absence.
func (r *render) policies(consumer string, present bool) {
	var listed []string
	for file, content := range Policies(consumer, r.clusters[consumer]) {
		r.out.Files[file] = nil
		if present {
			listed = append(listed, path.Base(file))
			r.out.Files[file] = content
		}
	}
	slices.Sort(listed)
	r.kustomization(path.Join(Dir(consumer), namespacesDir, policiesDir), listed)
}

// lastDeliverer ends the namespace guard's list of who applies manifests.
const lastDeliverer = "'system:serviceaccount:argocd:argocd-application-controller'"

// admitting is a policy with the further users of a cluster that apply manifests
// there. The reader of Cluster files takes only names that need no quoting.
func admitting(policy []byte, cluster *v1alpha1.Cluster) []byte {
	if cluster == nil || len(cluster.Spec.Deliverers) == 0 {
		return policy
	}
	list := lastDeliverer
	for _, user := range cluster.Spec.Deliverers {
		list += ",\n      '" + user + "'"
	}
	return bytes.ReplaceAll(policy, []byte(lastDeliverer), []byte(list))
}

// policy is one policy file.
func policy(name string) []byte {
	text, err := policyFiles.ReadFile(path.Join(policiesDir, name))
	if err != nil {
		panic(err) // embedded: cannot fail
	}
	return append([]byte(Header), text...)
}
