//go:build e2e

package liqo

// ready waits until a contract's Node carries its intent's taint and is ready
// for pods.
func (f *fleet) ready(node, intent string) {
	f.t.Helper()
	f.says("rome", intent+" True", "get", "node", node, "-o",
		"jsonpath={.spec.taints[?(@.key==\"fleetbroker.io/intent\")].value} {.status.conditions[?(@.type==\"Ready\")].status} {.spec.unschedulable}")
}

// uid is an object's identity on rome.
func (f *fleet) uid(kind, name string) string {
	f.t.Helper()
	out, err := f.kubectl("rome", "get", kind, name, "-n", "liqo-tenant-paris", "-o", "jsonpath={.metadata.uid}")
	if err != nil {
		f.t.Fatal(err)
	}
	return out
}
