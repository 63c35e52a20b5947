//go:build e2e

package liqo

import (
	"fmt"
	"strings"
)

// attack has tenant vision reach for the namespace that nlp's pods run in at paris, as
// it would have before remote names belonged to tenants: it maps a namespace of its own
// to nlp's, and ends that. Both tenants' pods run on unmodified Liqo meanwhile.
func (f *fleet) attack() {
	f.t.Helper()
	const remote = "nlp-rome"
	f.run("rome", "create", "secret", "generic", "prod", "-n", "nlp", "--from-literal=password=theirs")
	f.says("paris", "prod", "get", "secret", "prod", "-n", remote, "-o", "jsonpath={.metadata.name}") // Liqo brings it there
	uid, err := f.kubectl("paris", "get", "namespace", remote, "-o", "jsonpath={.metadata.uid}")
	if err != nil {
		f.t.Fatal(err)
	}
	unharmed := func(when string) {
		f.t.Helper()
		f.says("paris", uid, "get", "namespace", remote, "-o", "jsonpath={.metadata.uid}{.metadata.deletionTimestamp}")
		f.says("paris", "dGhlaXJz", "get", "secret", "prod", "-n", remote, "-o", "jsonpath={.data.password}")
		out, err := f.kubectl("rome", "get", "namespacemaps.offloading.liqo.io", "-A", "-o", "jsonpath={range .items[*]}{.spec.desiredMapping}{\"\\n\"}{.status.currentMapping}{\"\\n\"}{end}")
		if err != nil || strings.Contains(out, `"loot":`) || strings.Count(out, remote) == 0 {
			f.t.Errorf("%s the mappings are %s, %v", when, out, err)
		}
		if out, err := f.kubectl("paris", "get", "pods", "-n", remote, "-o", "jsonpath={.items[*].metadata.labels}"); err != nil || strings.Contains(out, "loot") {
			f.t.Errorf("%s pods of vision are in %s: %s, %v", when, remote, out, err)
		}
	}
	tenant := func(more string) {
		f.t.Helper()
		text := "apiVersion: fleetbroker.io/v1alpha1\nkind: Tenant\nmetadata: {name: vision}\nspec: {consumers: [rome], namespaces: [vision, \"vision-*\", loot]" + more + "}\n"
		if _, err := f.Platform.CommitAndPush(f.ctx, "Namespaces of vision", map[string]string{"tenants/vision.yaml": text}); err != nil {
			f.t.Fatal(err)
		}
	}
	says := func(want string) {
		f.t.Helper()
		f.Eventually("the intent to be kept from "+remote, func() error {
			git, err := f.Platform.Git(f.ctx, "ls-remote", "origin", "ledger")
			if err != nil {
				return err
			}
			head, _, _ := strings.Cut(strings.TrimSpace(git), "\t")
			if _, err := f.Platform.Git(f.ctx, "fetch", "-q", "origin", "ledger"); err != nil {
				return err
			}
			state, err := f.Platform.Git(f.ctx, "grep", "-h", "-e", "message", "-e", "reason", head, "--", "contracts/vision")
			if err == nil && !strings.Contains(state, want) {
				err = fmt.Errorf("the ledger says\n%s", state)
			}
			return err
		})
	}
	theft := strings.NewReplacer("name: vision, create: true", "name: loot, create: true, namespaceMappingStrategy: SelectedName, remoteNamespaceName: "+remote).Replace(intent("vision", "steal", 1))
	tenant("")
	f.Put("vision", "steal", theft)
	says(remote + " is what a namespace of tenant nlp is called at providers")
	unharmed("a name that its tenant may not have:")

	// The platform team's own mistake: the tenant's file lists the name. nlp has it, and
	// keeps it.
	tenant(", remoteNamespaces: [" + remote + "]")
	says(remote + " at paris is what namespace nlp of tenant nlp in rome is mapped to")
	unharmed("a name that the tenant's file lists:")

	f.Remove("vision", "steal")
	tenant("")
	unharmed("after the intent is gone:")
}
