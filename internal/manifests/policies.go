package manifests

import (
	"embed"
	"path"
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

// policies renders the admission policies of a consumer, or their absence.
func (r *render) policies(consumer string, present bool) {
	dir := path.Join(Dir(consumer), namespacesDir, policiesDir)
	var listed []string
	for _, name := range policyNames() {
		r.out.Files[path.Join(dir, name)] = nil
		if present {
			listed = append(listed, name)
			r.out.Files[path.Join(dir, name)] = policy(name)
		}
	}
	r.kustomization(dir, listed)
}

// policy is one policy file.
func policy(name string) []byte {
	text, err := policyFiles.ReadFile(path.Join(policiesDir, name))
	if err != nil {
		panic(err) // embedded: cannot fail
	}
	return append([]byte(Header), text...)
}
