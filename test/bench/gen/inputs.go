package gen

import "fmt"

const group = "apiVersion: fleetbroker.io/v1alpha1\n"

// models that flavors have in turn.
var models = []string{"nvidia-h100", "nvidia-a100", "nvidia-l40s", "nvidia-l4"}

// absent is a model that nobody offers: what asks for it waits.
const absent = "amd-mi300x"

// regions that providers lie in, in turn; there are at least as many providers.
const regions = 5

// namespacesPer bounds how many intents share a namespace: the annotation that
// names them must stay below what Kubernetes allows.
const namespacesPer = 200

// TenantName is the i-th tenant's.
func TenantName(i int) string { return fmt.Sprintf("team-%03d", i) }

// IntentName is the j-th intent's of a tenant.
func IntentName(j int) string { return fmt.Sprintf("job-%05d", j) }

// IntentPath is where the j-th intent of the i-th tenant stands.
func IntentPath(i, j int) string {
	return "intents/" + TenantName(i) + "/" + IntentName(j) + ".yaml"
}

func consumer(i int) string { return fmt.Sprintf("home-%02d", i) }
func provider(i int) string { return fmt.Sprintf("site-%03d", i) }

// Inputs are the files that people wrote.
func (o Options) Inputs() map[string][]byte {
	files := map[string][]byte{"fleet.yaml": fmt.Appendf(nil, `%skind: Fleet
metadata: {name: large}
spec:
  currency: EUR
  limits: {work: 1000000000, contracts: 100000} # all of it is placed in one round
  defaults: {delivery: %s}
  writeBack: {mode: push, inputs: %s, branch: %s, statusInterval: 1s, author: {name: fleetbroker, email: fleetbroker@example.org}}
`, group, o.Delivery, InputsBranch, LedgerBranch)}
	for i := range o.Consumers {
		files["clusters/"+consumer(i)+".yaml"] = fmt.Appendf(nil, "%skind: Cluster\nmetadata: {name: %s}\nspec: {roles: [consumer]}\n", group, consumer(i))
	}
	for i := range o.Providers {
		name := provider(i)
		files["clusters/"+name+".yaml"] = fmt.Appendf(nil, "%skind: Cluster\nmetadata: {name: %s}\nspec: {roles: [provider], location: {region: region-%d}}\n", group, name, i%regions)
		for j := range o.Flavors {
			n := i*o.Flavors + j
			files[fmt.Sprintf("flavors/%s/pool-%04d.yaml", name, j)] = o.flavor(name, j, n)
		}
	}
	for i := range o.Tenants {
		files["tenants/"+TenantName(i)+".yaml"] = fmt.Appendf(nil, "%skind: Tenant\nmetadata: {name: %s}\nspec: {consumers: [%s], namespaces: [\"%s*\"]}\n",
			group, TenantName(i), consumer(i%o.Consumers), TenantName(i))
		for j := range o.Intents {
			files[IntentPath(i, j)] = o.intent(i, j)
		}
	}
	return files
}

// flavor is one that n others are cheaper than; each has room for its share of
// the held intents twice over.
func (o Options) flavor(provider string, j, n int) []byte {
	each := 2*o.Tenants*o.Held/(o.Providers*o.Flavors) + 8
	return fmt.Appendf(nil, `%skind: Flavor
metadata: {name: pool-%04d, namespace: %s}
spec:
  architecture: amd64
  capacity: {cpu: "%d", memory: %dGi, pods: "%d", ephemeral-storage: %dGi, gpu: %d}
  gpu: {vendor: nvidia, model: %s, memory: 80Gi, resourceName: nvidia.com/gpu}
  price: {currency: EUR, perHour: {gpu: "%d.%02d", cpu: "0.02", memoryGi: "0.003"}}
`, group, j, provider, 16*each, 128*each, 40*each, 200*each, 2*each, models[n%len(models)], 1+n%4, n%97)
}

// intent is the j-th of the i-th tenant.
func (o Options) intent(i, j int) []byte {
	model, more := models[j%len(models)], ""
	switch {
	case j < o.Held:
	case j < o.Held+o.Waiting:
		model = absent
	default:
		more = "  suspend: true\n"
	}
	return Intent(i, IntentName(j), j, model, more)
}

// NewIntent is a further intent of a tenant, which finds a place.
func NewIntent(i, n int) (path string, content []byte) {
	name := fmt.Sprintf("new-%05d", n)
	return "intents/" + TenantName(i) + "/" + name + ".yaml", Intent(i, name, n, models[n%len(models)], "")
}

// Intent is an intent's file; more is added to its spec.
func Intent(i int, name string, j int, model, more string) []byte {
	return fmt.Appendf(nil, `%skind: ResourceIntent
metadata:
  name: %s
  namespace: %s
  labels: {app: training}
spec:
  resources:
    cpu: "%d"
    memory: 64Gi
    pods: "20"
    ephemeral-storage: 100Gi
    gpu: {count: 1, models: [%s]}
  placement: {regions: [region-%d, region-%d, region-%d]}
  offload: {namespaces: [{name: %s-%d, create: true}]}
%s`, group, name, TenantName(i), 4+j%4, model, (i+j)%regions, (i+j+1)%regions, (i+j+2)%regions, TenantName(i), j/namespacesPer, more)
}
