//go:build e2e

package liqo

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/fleetbroker/fleetbroker/test/env/rig"
)

// way lets the daemon's and the doctor's way to a cluster be another one, and
// returns what puts the first back.
func (f *fleet) way(cluster string, kubeconfig []byte) (back func()) {
	f.t.Helper()
	file := filepath.Join(f.Dir, "kubeconfigs", cluster+".kubeconfig")
	was, err := os.ReadFile(file)
	if err != nil {
		f.t.Fatal(err)
	}
	put := func(content []byte) {
		if content == nil {
			err = os.Remove(file)
		} else {
			err = os.WriteFile(file, content, 0o600)
		}
		if err != nil {
			f.t.Fatal(err)
		}
	}
	put(kubeconfig)
	return func() { put(was) }
}

// dead ends a program of Liqo and returns what starts it again.
func (f *fleet) dead(cluster, program string) (back func()) {
	f.t.Helper()
	if err := f.Liqos[cluster].Kill(program); err != nil {
		f.t.Fatal(err)
	}
	return func() {
		f.t.Helper()
		if err := f.Liqos[cluster].Start(f.ctx, program); err != nil {
			f.t.Fatal(err)
		}
	}
}

// refused is a policy that keeps objects from being made unless an expression
// holds.
func refused(name, resources, unless string) string {
	return fmt.Sprintf(`apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: %[1]s}
spec:
  failurePolicy: Fail
  matchConstraints: {resourceRules: [{apiGroups: ["*"], apiVersions: ["*"], operations: [CREATE], resources: [%[2]s]}]}
  validations: [{expression: %[3]q, message: not yet}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: %[1]s}
spec: {policyName: %[1]s, validationActions: [Deny]}
`, name, resources, unless)
}

// refuses waits until such a policy is in force for an object.
func (f *fleet) refuses(cluster, manifest string) {
	f.t.Helper()
	file := filepath.Join(f.t.TempDir(), "probe.yaml")
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		f.t.Fatal(err)
	}
	f.Eventually(cluster+" refuses what must not be there", func() error {
		_, err := f.kubectl(cluster, "create", "--dry-run=server", "-f", file)
		if err == nil {
			return errors.New("it is taken")
		}
		if !strings.Contains(err.Error(), "not yet") {
			return err
		}
		return nil
	})
}

// bind puts a pod that fits no node onto one, past the scheduler.
func (f *fleet) bind(namespace, node string) {
	f.t.Helper()
	pod, err := f.kubectl("rome", "get", "pods", "-n", namespace, "--field-selector", "spec.nodeName=", "-o", "jsonpath={.items[0].metadata.name}")
	if err != nil {
		f.t.Fatal(err)
	}
	file := filepath.Join(f.t.TempDir(), "binding.json")
	binding := fmt.Sprintf(`{"apiVersion":"v1","kind":"Binding","metadata":{"name":%q},"target":{"apiVersion":"v1","kind":"Node","name":%q}}`, pod, node)
	if err := os.WriteFile(file, []byte(binding), 0o600); err != nil {
		f.t.Fatal(err)
	}
	f.run("rome", "create", "--raw", "/api/v1/namespaces/"+namespace+"/pods/"+pod+"/binding", "-f", file)
}

// stubborn is a pod that goes to a virtual node though its namespace is not
// offloaded.
const stubborn = `apiVersion: v1
kind: Pod
metadata: {name: stubborn, namespace: vision}
spec:
  tolerations: [{key: virtual-node.liqo.io/not-allowed, operator: Exists}]
  containers:
  - name: main
    image: example.org/train
    resources: {limits: {nvidia.com/gpu: 1, cpu: "1", memory: 1Gi}}
`

// budget keeps the only pod of deployment in vision.
const budget = `---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: train, namespace: vision}
spec: {minAvailable: 1, selector: {matchLabels: {app: train}}}
`

// name is the first object of a kind in a namespace.
func (f *fleet) name(cluster, kind, namespace string) string {
	f.t.Helper()
	out, err := f.kubectl(cluster, "get", kind, "-n", namespace, "-o", "jsonpath={.items[0].metadata.name}")
	if err != nil {
		f.t.Fatal(err)
	}
	return out
}

// git runs git in the platform team's clone.
func (f *fleet) git(args ...string) string {
	f.t.Helper()
	out, err := f.Platform.Git(f.ctx, args...)
	if err != nil {
		f.t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

// unwrite takes a contract's slice out of the ledger's branch, and rewrite puts
// the daemon's last commit back.
func (f *fleet) unwrite(contract string) func() {
	return func() {
		f.t.Helper()
		f.git("fetch", "origin", rig.Ledger)
		f.git("checkout", "--detach", "FETCH_HEAD")
		path := f.git("ls-files", "manifests/*"+contract+"*")
		if path == "" {
			f.t.Fatal("the ledger has no manifests of ", contract)
		}
		f.git(append([]string{"rm", "-q", "--"}, strings.Fields(path)...)...)
		f.git("commit", "-q", "-m", "Take the slice of "+contract+" away")
		f.git("push", "origin", "HEAD:"+rig.Ledger)
	}
}

func (f *fleet) rewrite() {
	f.t.Helper()
	f.git("push", "--force", "origin", "HEAD~1:"+rig.Ledger)
	f.git("checkout", "main")
}
