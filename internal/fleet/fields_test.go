package fleet

import (
	"strings"
	"testing"
)

// A wrong value of any field of a fleet, a tenant or a flavor is told with its
// place and what to write instead.
func TestWrongValuesOfPolicies(t *testing.T) {
	const head = "apiVersion: fleetbroker.io/v1alpha1\nkind: "
	write := map[string]func(spec string) (path, content string){
		"fleet": func(spec string) (string, string) {
			return "fleet.yaml", head + "Fleet\nmetadata: {name: acme}\nspec:\n  " + spec + "\n"
		},
		"tenant": func(spec string) (string, string) {
			return "tenants/vision.yaml", head + "Tenant\nmetadata: {name: vision}\nspec:\n  " + spec + "\n"
		},
		"flavor": func(spec string) (string, string) {
			return "flavors/paris/odd.yaml", head + "Flavor\nmetadata: {name: odd, namespace: paris}\nspec:\n  " + spec + "\n"
		},
	}
	for _, c := range []struct{ kind, spec, want string }{
		{"fleet", "currency: euro", `:5:13: spec.currency: "euro" is not a currency`},
		{"fleet", "timezone: Mars", `:5:13: spec.timezone: "Mars" is not a timezone`},
		{"fleet", "rates: [{from: USD, to: EUR, rate: \"0\", date: 2026-11-01}]", `:5:38: spec.rates[0].rate: 0 is not more than 0`},
		{"fleet", "rates: [{from: EUR, to: EUR, rate: \"1\", date: 2026-11-01}]", ":5:11: spec.rates[0] converts EUR into itself"},
		{"fleet", "transfer: [{from: a, to: \"\", perGi: \"1\"}]", ":5:14: spec.transfer[0]: name the regions under from and to"},
		{"fleet", "transfer: [{from: a, to: b, perGi: \"-1\"}]", "spec.transfer[0].perGi: -1 is negative"},
		{"fleet", "latency: [{from: rome, to: paris, ms: -3}]", "spec.latency[0].ms: -3 is less than 0"},
		{"fleet", "latency: [{from: rome, to: pariss, ms: 3}]", `:5:30: no cluster is called "pariss", and no cluster or flavor in this repo names it as its region (did you mean "paris"?)`},
		{"fleet", "weights: {cost: 7}", ":5:19: spec.weights.cost: 7 is not between 0 and 1"},
		{"fleet", "defaults: {memory: 8GB}", `:5:22: spec.defaults.memory: "8GB" is not a quantity`},
		{"fleet", "defaults: {cpu: \"4611686018427388\"}", `spec.defaults.cpu: "4611686018427388" is too large`},
		{"fleet", "defaults: {pods: \"1.5\"}", `spec.defaults.pods: "1.5": must be a whole number`},
		{"fleet", "defaults: {duration: 30}", `:5:24: spec.defaults.duration: "30" is not a duration: write a number with a unit`},
		{"fleet", "defaults: {delivery: mail}", `spec.defaults.delivery: unknown value "mail"; write one of direct`},
		{"fleet", "policies: [{name: Eu, require: \"true\"}]", `spec.policies[0].name "Eu": only lower-case letters`},
		{"fleet", "policies: [{name: eu, require: flavor.prise.hourly < 1.0}]", `:5:40: spec.policies[0].require: unknown field "prise" (did you mean "price"?)`},
		{"fleet", "warmPools: [{name: a, consumer: rome, count: -1, resources: {gpu: 1}}]", "spec.warmPools[0].count: -1 is not between 0 and 10000"},
		{"fleet", "warmPools: [{name: a, consumer: rome, count: 1, resources: {gpu: 0}}]", "spec.warmPools[0].resources.gpu: a count of 0 asks for no GPU"},
		{"fleet", "writeBack: {mode: pul}", `spec.writeBack.mode: unknown value "pul"`},
		{"fleet", "verification: {mode: sgned}", `did you mean "signed"?`},
		{"fleet", "policies: [{name: eu, match: {consumers: [rmoe]}, require: \"true\"}]", `there is no cluster rmoe (did you mean "rome"?)`},
		{"fleet", "policies: [{name: eu, match: {labels: {Tier/: gold}}, require: \"true\"}]", "spec.policies[0].match.labels"},
		{"fleet", "policies: [{name: eu, match: {models: [\"\"]}, require: \"true\"}]", "spec.policies[0].match.models[0] is empty"},
		{"fleet", "policies: [{name: eu, match: {aboveHourly: \"-1\"}, require: \"true\"}]", "spec.policies[0].match.aboveHourly: -1 is negative"},
		{"fleet", "policies: [{name: eu, match: {models: [H100]}, require: flavor.prise.hourly < 1.0}]", `:5:65: spec.policies[0].require: unknown field "prise"`},
		{"fleet", "safety: {silence: 30s}", ":5:21: spec.safety.silence: 30s is not between 45s and 24h"},
		{"fleet", "safety: {silence: 48h}", "spec.safety.silence: 48h is not between 45s and 24h"},
		{"fleet", "safety: {maxEnds: -1}", "spec.safety.maxEnds: -1 is less than 0"},
		{"fleet", "writeBack: {pushes: {perMinute: -1}}", "spec.writeBack.pushes.perMinute: -1 is not between 0 and 6000"},
		{"fleet", "writeBack: {pushes: {perMinute: 6001}}", "spec.writeBack.pushes.perMinute: 6001 is not between 0 and 6000"},
		{"fleet", "writeBack: {pushes: {perMinute: 6, burst: 1001}}", "spec.writeBack.pushes.burst: 1001 is not between 1 and 1000"},
		{"fleet", "writeBack: {pushes: {burst: -1}}", "spec.writeBack.pushes.burst: -1 is not between 1 and 1000"},
		{"fleet", "writeBack: {pushes: {perMinute: 0, burst: 3}}", "spec.writeBack.pushes.burst: 3; pushes have no limit with perMinute: 0, so leave burst out"},
		{"fleet", "consolidation: {threshold: \"0\"}", "spec.consolidation.threshold: 0 is not more than 0; leave it out for 0.5"},
		{"fleet", "scarcity: \"0.9\"", "spec.scarcity: 0.9 is not between 1 and 1000; it is below how many times the cheapest price an intent may be placed at to leave that to others: 1 for never, or leave it out for 1.5"},
		{"fleet", "peering: {auto: maybe}", `:5:19: spec.peering.auto: "maybe" is text; write true or false`},
		{"fleet", "enrollment: opn", `did you mean "open"?`},

		{"tenant", "consumers: []", "spec.consumers is empty"},
		{"tenant", "consumers: [rmoe]", `:5:15: there is no cluster rmoe (did you mean "rome"?)`},
		{"tenant", "{consumers: [rome], providers: {deny: [pari]}}", `there is no cluster pari (did you mean "paris"?)`},
		{"tenant", "{consumers: [rome], namespaces: [kube-system]}", "is never offloaded"},
		{"tenant", "{consumers: [rome], quota: {gpu: -1}}", "spec.quota.gpu: -1 is less than 0"},
		{"tenant", "{consumers: [rome], quota: {contracts: -1}}", "spec.quota.contracts: -1 is less than 0"},
		{"tenant", "{consumers: [rome], quota: {cpu: \"-3\"}}", `spec.quota.cpu: "-3" is not a quantity`},
		{"tenant", "{consumers: [rome], quota: {cpu: \"4611686018427388\"}}", `spec.quota.cpu: "4611686018427388" is too large; write one that can be counted, or leave it out`},
		{"tenant", "{consumers: [rome], quota: {memory: 64}}", "spec.quota.memory: 64 is 64 bytes; write 64Gi"},
		{"tenant", "{consumers: [rome], quota: {byModel: {H100: -2}}}", "spec.quota.byModel.H100: -2 is less than 0"},
		{"tenant", "{consumers: [rome], quota: {maxBorrow: {pods: 3}}}", "pods cannot be borrowed; gpu, cpu and memory can"},
		{"tenant", "{consumers: [rome], quota: {maxBorrow: {gpu: 3}}}", "spec.quota has no gpu, so there is nothing to exceed"},
		{"tenant", "{consumers: [rome], quota: {maxDuration: 3days}}", `"3days" is not a duration`},
		{"tenant", "{consumers: [rome], budget: {monthly: \"-5\"}}", "spec.budget.monthly: -5 is not more than 0; leave it out for no limit"},
		{"tenant", "{consumers: [rome], budget: {hourly: \"0\"}}", "spec.budget.hourly: 0 is not more than 0"},
		{"tenant", "{consumers: [rome], budget: {monthly: \"5\", currency: CHF}}", "no rate turns CHF into EUR; add one under spec.rates"},
		{"tenant", "{consumers: [rome], budget: {atLimit: halt}}", `unknown value "halt"; write one of warn, stop, end`},
		{"tenant", "{consumers: [rome], maxPriority: 2000}", "spec.maxPriority: 2000 is not between 0 and 1000"},
		{"tenant", "{consumers: [rome], weight: -1}", "spec.weight: -1 is not between"},
		{"tenant", "{consumers: [rome], signers: [{principal: a, publicKey: foo}]}", "spec.signers[0].publicKey is neither"},
		{"tenant", "{consumers: [rome], notify: [{events: [actve], urlSecretRef: {name: a}}]}", `did you mean "active"?`},

		{"flavor", "{capacity: {cpu: 4}, price: {currency: EUR, perHour: {cpu: \"1\"}, windows: [{from: \"08:00\", to: \"08:00\", perHour: {cpu: \"2\"}}]}}", "spec.price.windows[0]: from and to are the same, so that it is open for 24 hours from 08:00 on"},
		{"flavor", "{capacity: {cpu: 1}, type: Slice}", `unknown value "Slice"; write one of K8Slice`},
		{"flavor", "capacity: {cpus: 1}", `unknown resource "cpus" (did you mean "cpu"?)`},
		{"flavor", "{capacity: {cpu: 1}, used: {cpu: 2}}", "spec.used.cpu is more than the capacity"},
		{"flavor", "{capacity: {cpu: 1}, scalableTo: {cpus: 2}}", `unknown resource "cpus"`},
		{"flavor", "{capacity: {memory: 64Gi}, used: {memory: 24}}", "spec.used.memory: 24 is 24 bytes; write 24Gi"},
		{"flavor", "{capacity: {memory: 64Gi}, scalableTo: {memory: 128}}", "spec.scalableTo.memory: 128 is 128 bytes; write 128Gi"},
		{"flavor", "{capacity: {memory: 64Gi}, partition: {min: {memory: 8}}}", "spec.partition.min.memory: 8 is 8 bytes; write 8Gi"},
		{"flavor", "{capacity: {memory: 64Gi}, partition: {step: {ephemeral-storage: 8}}}", "spec.partition.step.ephemeral-storage: 8 is 8 bytes; write 8Gi"},
		{"flavor", "{capacity: {gpu: 1}, gpu: {memory: 80}}", `"80" is not a memory size: write a number with Gi or GB, such as 80Gi`},
		{"flavor", "{capacity: {gpu: 1}, gpu: {sharing: sliced}}", "write one of none, mig, time-slicing, mps"},
		{"flavor", "{capacity: {gpu: 1}, gpu: {profile: big}}", `spec.gpu.profile: "big" is not a MIG profile; write for example 1g.10gb`},
		{"flavor", "{capacity: {gpu: 1}, gpu: {computeCapability: nine}}", `"nine" is not a version`},
		{"flavor", "{capacity: {gpu: 1}, gpu: {unitsPerGPU: -1}}", "spec.gpu.unitsPerGPU: -1 is not between"},
		{"flavor", "{capacity: {gpu: 1}, gpu: {resourceName: gpu}}", "write for example nvidia.com/gpu"},
		{"flavor", "{capacity: {gpu: 2}, gpu: {model: nvidia-l4}, partition: {min: {gpu: 3}}}", "spec.partition.min.gpu is more than the capacity, so nothing of it can be sold"},
		{"flavor", "{capacity: {cpu: 1}, price: {currency: euro}}", `"euro" is not a currency`},
		{"flavor", "{capacity: {cpu: 1}, price: {perHour: {gpus: \"1\"}}}", `unknown price "gpus" (did you mean "gpu"?)`},
		{"flavor", "{capacity: {cpu: 1}, price: {perHour: {gpu: \"-1\"}}}", "spec.price.perHour.gpu: -1 is negative"},
		{"flavor", "{capacity: {cpu: 1}, price: {perHour: {gpu: \"1\"}, flat: \"3\"}}", "write either flat or perHour"},
		{"flavor", "{capacity: {cpu: 1}, price: {windows: [{from: \"8\", to: \"09:00\", perHour: {gpu: \"1\"}}]}}", `spec.price.windows[0].from: "8" is not a time of day`},
		{"flavor", "{capacity: {cpu: 1}, price: {reserved: {perHour: {cpu: \"1\"}}}}", `spec.price.reserved.perHour is a map; the prices of a term are reserved's own: write reserved: {term: 8760h, gpu: "1.90"}`},
		{"flavor", "{capacity: {cpu: 1}, properties: {latencyMs: -3}}", "spec.properties.latencyMs: -3 is less than 0"},
		{"flavor", "{capacity: {cpu: 1}, properties: {carbon: -1}}", "spec.properties.carbon: -1 is less than 0"},
		{"flavor", "{capacity: {cpu: 1}, properties: {reliability: \"1.2\"}}", "spec.properties.reliability: 1.2 is not between 0 and 1"},
		{"flavor", "{capacity: {cpu: 1}, overcommit: {cpu: \"0\"}}", "spec.overcommit.cpu: 0 is not more than 0; leave it out to sell what there is"},
		{"flavor", "{capacity: {cpu: 1}, overcommit: {maxRisk: \"2\"}}", "spec.overcommit.maxRisk: 2 is not between 0 and 1"},
		{"flavor", "{capacity: {cpu: 1}, class: broker}", `cluster paris declares no slice class "broker"`},
		{"flavor", "{capacity: {cpu: 1}, cordon: maybe}", "write true or false without quotes"},
		{"flavor", "{capacity: {cpu: 1}, drain: tomorrow}", "write RFC 3339"},
	} {
		path, content := write[c.kind](c.spec)
		list := diagnostics(read(t, NewReader(), base().with(path, content), nil))
		found := false
		for _, d := range list {
			found = found || strings.Contains(d, " "+path+":5:") && strings.Contains(d, c.want)
		}
		if !found {
			t.Errorf("%s of %s: got %q, want %s", c.spec, c.kind, list, c.want)
		}
	}
}
