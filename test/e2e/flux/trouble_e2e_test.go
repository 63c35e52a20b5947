//go:build e2e && full

package flux

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/rig"
)

// refusal refuses the slice of one contract, as an admission policy of the
// platform's own might.
const refusal = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: no-slice}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [authentication.liqo.io], apiVersions: [v1beta1], operations: [CREATE], resources: [resourceslices]}
  validations:
  - {expression: "!object.metadata.name.startsWith('vision-refused-')", message: no slices today}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: no-slice}
spec: {policyName: no-slice, validationActions: [Deny]}
`

// reads waits until the contract of an intent stands on the ledger in a phase,
// with a reason that contains all of some words; none: without a reason.
func (f *fleet) reads(tenant, intent string, phase v1alpha1.Phase, words ...string) {
	f.t.Helper()
	f.Eventually(fmt.Sprintf("%s/%s is %s because of %q", tenant, intent, phase, words), func() error {
		bare := f.Git.RepoDir(rig.Repo)
		dir := path.Join("contracts", tenant, v1alpha1.IntentShard(intent), intent) + "/"
		files, err := env.Git(f.ctx, bare, "ls-tree", "--name-only", rig.Ledger, dir)
		if err != nil {
			return err
		}
		for _, file := range strings.Fields(files) {
			if strings.HasPrefix(path.Base(file), "_") {
				continue
			}
			text, err := env.Git(f.ctx, bare, "show", rig.Ledger+":"+file)
			if err != nil {
				return err
			}
			var c v1alpha1.Contract
			if err := yaml.Unmarshal([]byte(text), &c); err != nil {
				return err
			}
			said := c.Status.Phase == phase && (len(words) > 0 || c.Status.Reason == "")
			for _, word := range words {
				said = said && strings.Contains(c.Status.Why(), word)
			}
			if !said {
				return fmt.Errorf("it is %s: %q", c.Status.Phase, c.Status.Why())
			}
			return nil
		}
		return fmt.Errorf("%s has no contract", dir)
	})
}

// What keeps Flux from applying a contract stands in its reason, by watch: the
// daemon looks by itself only every ten minutes here.
func TestTroubleIsTold(t *testing.T) {
	f := start(t, "10m", "paris")
	f.Put("vision", "train", intent("train", 1))
	f.Contract("vision", "train", "Reserved", "Peering")
	f.follow()
	f.Contract("vision", "train", "Active")

	suspend := func(kind, name string, on bool) {
		f.kubectl("patch", kind, name, "-n", "flux-system", "--type", "merge", "-p", fmt.Sprintf(`{"spec":{"suspend":%t}}`, on))
	}
	const kustomization, source = "kustomizations.kustomize.toolkit.fluxcd.io", "gitrepositories.source.toolkit.fluxcd.io"
	suspend(kustomization, "fleet-vision", true)
	f.Put("vision", "waits", intent("waits", 1))
	f.reads("vision", "waits", v1alpha1.PhaseReserved, "DeliveryFailed: Kustomization flux-system/fleet-vision is suspended: flux resume kustomization fleet-vision -n flux-system")
	suspend(kustomization, "fleet-vision", false)
	f.reads("vision", "waits", v1alpha1.PhaseActive)

	suspend(source, "fleet-ledger", true)
	f.Put("vision", "unread", intent("unread", 1))
	f.reads("vision", "unread", v1alpha1.PhaseReserved, "DeliveryFailed: GitRepository flux-system/fleet-ledger is suspended: flux resume source git fleet-ledger -n flux-system")
	suspend(source, "fleet-ledger", false)
	f.reads("vision", "unread", v1alpha1.PhaseActive)

	file := filepath.Join(f.Dir, "refusal.yaml")
	if err := os.WriteFile(file, []byte(refusal), 0o600); err != nil {
		t.Fatal(err)
	}
	f.kubectl("apply", "-f", file)
	f.says("1", "get", "validatingadmissionpolicy", "no-slice", "-o", "jsonpath={.status.observedGeneration}")
	f.Put("vision", "refused", intent("refused", 1))
	f.reads("vision", "refused", v1alpha1.PhaseReserved, "DeliveryFailed: Kustomization flux-system/fleet-vision: ", "no slices today")
	f.kubectl("delete", "-f", file)
	f.reads("vision", "refused", v1alpha1.PhaseActive)

	f.unsigned()

	// Applied, and never healthy: nobody grants anything.
	if err := f.agent.Stop(); err != nil {
		t.Fatal(err)
	}
	f.Put("vision", "sick", intent("sick", 1))
	f.reads("vision", "sick", v1alpha1.PhasePeering, "DeliveryFailed: Kustomization flux-system/fleet-vision: ", "ResourceSlice/liqo-tenant-paris/vision-sick-0-")
	if _, err := f.Agent(f.ctx, "paris", f.daemon); err != nil {
		t.Fatal(err)
	}
	f.reads("vision", "sick", v1alpha1.PhaseActive)
	f.Sound()
}

// unsigned has somebody push to the ledger while the daemon is away: Flux sees that
// the daemon has not signed it and applies nothing of it.
func (f *fleet) unsigned() {
	f.t.Helper()
	verified := []string{"get", "gitrepositories.source.toolkit.fluxcd.io", "fleet-ledger", "-n", "flux-system", "-o", `jsonpath={.status.conditions[?(@.type=="SourceVerified")].status}`}
	f.says("True", verified...)
	if err := f.daemon.Kill(); err != nil {
		f.t.Fatal(err)
	}
	git := func(args ...string) {
		f.t.Helper()
		if out, err := f.Platform.Git(f.ctx, args...); err != nil {
			f.t.Fatal(out, err)
		}
	}
	git("fetch", "-q", "origin", "ledger")
	git("checkout", "-q", "-B", "evil", "FETCH_HEAD")
	dir := filepath.Join(f.Platform.Dir, "manifests", "rome", "namespaces")
	evil := "apiVersion: v1\nkind: Namespace\nmetadata: {name: evil, labels: {pod-security.kubernetes.io/enforce: privileged}}\n"
	listing, err := os.ReadFile(filepath.Join(dir, "kustomization.yaml"))
	if err != nil {
		f.t.Fatal(err)
	}
	for name, text := range map[string]string{"evil.yaml": evil, "kustomization.yaml": string(listing) + "- \"evil.yaml\"\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			f.t.Fatal(err)
		}
	}
	git("add", "-A")
	git("commit", "-q", "-m", "evil")
	git("push", "-q", "origin", "evil:ledger")
	git("checkout", "-q", "main")
	f.says("False", verified...)
	f.reconciled()
	if out := f.kubectl("get", "namespaces", "-o", "name"); strings.Contains(out, "evil") {
		f.t.Errorf("what nobody signed was applied: %s", out)
	}
	if err := f.daemon.Restart(f.ctx); err != nil {
		f.t.Fatal(err)
	}
	f.says("True", verified...) // it is undone, by a commit that is signed
	f.heard()
}
