//go:build e2e

package flux

import (
	"fmt"
	"slices"
	"strings"
)

// delivered are the kinds that whoever delivers applies.
const delivered = "resourceslices.authentication.liqo.io,virtualnodes.offloading.liqo.io,namespaceoffloadings.offloading.liqo.io," +
	"validatingadmissionpolicies,validatingadmissionpolicybindings,mutatingadmissionpolicies,mutatingadmissionpolicybindings"

// objects are the delivered ones, with what changes when somebody makes them
// again or fights over them.
func (f *fleet) objects() string {
	f.t.Helper()
	const line = `{range .items[*]}{.kind} {.metadata.name} {.metadata.uid} {.metadata.generation}{"\n"}{end}`
	return f.kubectl("get", delivered, "-A", "-l", "app.kubernetes.io/managed-by=fleetbroker", "-o", "jsonpath="+line) + "\n" +
		f.kubectl("get", "namespaces", "vision", "liqo-tenant-paris", "-o", `jsonpath={range .items[*]}{.kind} {.metadata.name} {.metadata.uid}{"\n"}{end}`) + "\n" +
		f.kubectl("get", "nodes", "-o", `jsonpath={range .items[*]}{.kind} {.metadata.name} {.metadata.uid}{"\n"}{end}`)
}

// peaceful fails the test when Flux, asked to look again, and the daemon write
// anything of what was delivered, or anything is not what it was before.
func (f *fleet) peaceful(before string) {
	f.t.Helper()
	f.reconciled() // what was under way
	writes := len(f.writes())
	for range 2 {
		f.reconciled()
	}
	if now := f.writes(); len(now) > writes {
		f.t.Errorf("nothing is to be done, and somebody wrote:\n%s", strings.Join(now[writes:], "\n"))
	}
	if now := f.objects(); now != before {
		f.t.Errorf("the objects were\n%s\nand are\n%s", before, now)
	}
}

// writes are the calls by Flux and daemon that changed what is delivered.
func (f *fleet) writes() []string {
	f.t.Helper()
	calls, err := f.Clusters["rome"].Calls("")
	if err != nil {
		f.t.Fatal(err)
	}
	var out []string
	for _, c := range calls {
		who := strings.Contains(c.User, "kustomize-controller") || strings.Contains(c.User, "fleetbroker:admin")
		what := slices.ContainsFunc(strings.Split(delivered, ","), func(kind string) bool {
			resource, _, _ := strings.Cut(kind, ".")
			return c.Resource == resource
		}) || c.Resource == "namespaces" && c.Name == "vision"
		if who && what && c.Subresource == "" && c.Verb != "get" && c.Verb != "list" && c.Verb != "watch" && !strings.Contains(c.URI, "dryRun") {
			out = append(out, c.String())
		}
	}
	return out
}

// reconciled has every Kustomization looked at once more.
func (f *fleet) reconciled() {
	f.t.Helper()
	f.asked++
	stamp := fmt.Sprint("look-", f.asked)
	f.kubectl("annotate", "kustomizations.kustomize.toolkit.fluxcd.io", "--all", "-n", "flux-system", "--overwrite", "reconcile.fluxcd.io/requestedAt="+stamp)
	f.says("True "+stamp+" True "+stamp, "get", "kustomizations.kustomize.toolkit.fluxcd.io", "-n", "flux-system", "-o",
		`jsonpath={range .items[*]}{.status.conditions[?(@.type=="Ready")].status} {.status.lastHandledReconcileAt} {end}`)
}

// managers are the field managers of an object.
func (f *fleet) managers(kind, namespace, name string) string {
	f.t.Helper()
	return f.kubectl("get", kind, name, "-n", namespace, "--show-managed-fields", "-o", "jsonpath={.metadata.managedFields[*].manager}")
}
