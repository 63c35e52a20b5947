package hostile

import (
	"fmt"
	"strings"
)

// Kustomizations are directories whose building is hostile.
func Kustomizations() []Input {
	k := func(name, text string, files ...string) Input {
		return dir(name, "kustomization.yaml", append([]string{"kustomization.yaml", text}, files...)...)
	}
	n := 0
	a := func() string { n++; return Intent("vision", fmt.Sprintf("made-%d", n), "") }
	return fine([]Input{
		k("z-remote", "resources: [https://evil.example/x.yaml]\n"),
		k("z-remote-git", "resources: [\"git::https://evil.example/x.git//y?ref=main\"]\n"),
		k("z-remote-short", "resources: [github.com/evil/x]\n"),
		k("z-absolute", "resources: [/etc/passwd]\n"),
		k("z-up", "resources: [../../nlp]\n"),
		k("z-up-far", "resources: [../../../../../../etc]\n"),
		k("z-own", "resources: [.]\n"),
		k("z-loop", "resources: [b]\n", "b/kustomization.yaml", "resources: [../]\n"),
		k("z-missing", "resources: [nowhere.yaml]\n"),
		k("z-generator", "secretGenerator: [{name: x, literals: [a=b]}]\n"),
		k("z-generator-env", "configMapGenerator: [{name: x, envs: [/proc/self/environ]}]\n"),
		k("z-helm", "helmCharts: [{name: x, repo: https://evil.example}]\n"),
		k("z-helm-globals", "helmGlobals: {chartHome: /}\n"),
		k("z-exec", "generators: [a.yaml]\n", "a.yaml", "apiVersion: x/v1\nkind: X\nmetadata: {name: x, annotations: {config.kubernetes.io/function: \"exec: {path: /bin/sh}\"}}\n"),
		k("z-transformer", "transformers: [a.yaml]\n", "a.yaml", "apiVersion: builtin\nkind: PrefixTransformer\nmetadata: {name: x}\nprefix: x\n"),
		k("z-validator", "validators: [a.yaml]\n", "a.yaml", "kind: X\n"),
		k("z-openapi", "openapi: {path: https://evil.example/s.json}\n"),
		k("z-configurations", "configurations: [/etc/passwd]\n"),
		k("z-crds", "crds: [/etc/passwd]\n"),
		k("z-unknown", "evil: true\n"),
		k("z-kind", "apiVersion: evil/v1\nkind: Kustomization\n"),
		k("z-empty", ""),
		k("z-binary", "\x00"),
		k("z-twice", "resources: []\nresources: []\n"),
		k("z-namespace", "namespace: nlp\nresources: [a.yaml]\n", "a.yaml", a()),
		k("z-prefix", "namePrefix: \"../\"\nresources: [a.yaml]\n", "a.yaml", a()),
		k("z-patch-grows", "resources: [a.yaml]\npatches:\n- target: {kind: ResourceIntent}\n  patch: |\n"+
			strings.Repeat("    - {op: copy, from: /spec, path: /spec/a}\n    - {op: copy, from: /spec, path: /spec/b}\n", 40), "a.yaml", a()),
		k("z-patch-tenant", "resources: [a.yaml]\npatches: [{patch: '[{op: replace, path: /metadata/namespace, value: nlp}]', target: {kind: ResourceIntent}}]\n", "a.yaml", a()),
		k("z-patch-file", "resources: [a.yaml]\npatches: [{path: /etc/passwd}]\n", "a.yaml", a()),
		k("z-patch-many", "resources: [a.yaml]\npatches:\n"+strings.Repeat("- {patch: '[{op: add, path: /spec/priority, value: 1}]', target: {kind: ResourceIntent}}\n", 5000), "a.yaml", a()),
		k("z-replacement", "resources: [a.yaml]\nreplacements: [{path: ../../nlp/good.yaml}]\n", "a.yaml", a()),
		k("z-replicas", "resources: [a.yaml]\nreplicas: [{name: ka, count: 2000000000}]\n", "a.yaml", a()),
		k("z-labels", "resources: [a.yaml]\nlabels: [{pairs: {fleetbroker.io/tenant: nlp}}]\n", "a.yaml", a()),
		k("z-regex", "resources: [a.yaml]\npatches: [{patch: '[]', target: {kind: '((((x{1,1000}){1,1000}){1,1000}){1,1000})'}}]\n", "a.yaml", a()),
		k("z-components", "components: [https://evil.example/x]\n"),
		k("z-secret", "resources: [a.yaml]\n", "a.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: x}\n"),
	}, "z-labels", "z-regex")
}

// Others are files of the platform that are hostile: clusters, tenants,
// flavors and prices. Who writes them has rights, and makes mistakes.
func Others() []Input {
	cluster := func(name, spec string) Input {
		return at(name, "clusters/"+name+".yaml", group+"kind: Cluster\nmetadata: {name: "+name+"}\nspec: "+spec+"\n")
	}
	tenant := func(name, spec string) Input {
		return at(name, "tenants/"+name+".yaml", group+"kind: Tenant\nmetadata: {name: "+name+"}\nspec: "+spec+"\n")
	}
	flavor := func(name, spec string) Input {
		return at(name, "flavors/paris/"+name+".yaml", group+"kind: Flavor\nmetadata: {name: "+name+", namespace: paris}\nspec: "+spec+"\n")
	}
	return fine([]Input{
		cluster("cl-role", "{roles: [king]}"),
		cluster("cl-no-role", "{}"),
		cluster("cl-price", "{roles: [provider], defaultPrice: {currency: EUR, perHour: {gpu: \"-1\"}}}"),
		cluster("cl-price-exponent", "{roles: [provider], defaultPrice: {currency: EUR, perHour: {gpu: \"1e99\"}}}"),
		cluster("cl-currency", "{roles: [provider], defaultPrice: {currency: \"<b>\", perHour: {gpu: \"1\"}}}"),
		cluster("cl-location", "{roles: [provider], location: {region: \"x\\n/approve\", country: ZZZ}}"),
		cluster("cl-liqo", "{roles: [consumer], liqo: {namespace: \"../x\"}}"),
		cluster("cl-delivery", "{roles: [consumer], delivery: carrier-pigeon}"),
		at("cl-name", "clusters/cl-name.yaml", group+"kind: Cluster\nmetadata: {name: rome}\nspec: {roles: [provider]}\n"),
		at("cl-path", "clusters/cl-path.yaml", group+"kind: Cluster\nmetadata: {name: \"../rome\"}\nspec: {roles: [provider]}\n"),
		tenant("te-consumers", "{consumers: [nowhere]}"),
		tenant("te-none", "{}"),
		tenant("te-namespaces", "{consumers: [rome], namespaces: [\"kube-*\"]}"),
		tenant("te-namespaces-foreign", "{consumers: [rome], namespaces: [shared]}"),
		tenant("te-namespaces-other", "{consumers: [rome], namespaces: [shared]}"),
		tenant("te-namespaces-form", "{consumers: [rome], namespaces: [\"**[\"]}"),
		tenant("te-quota", "{consumers: [rome], quota: {gpu: 1e30}}"),
		tenant("te-quota-negative", "{consumers: [rome], quota: {gpu: -1}}"),
		tenant("te-budget", "{consumers: [rome], budget: {monthly: 1e9}}"),
		tenant("te-key-private", "{consumers: [rome], signers: [{principal: a, publicKey: '-----BEGIN OPENSSH PRIVATE KEY-----'}]}"),
		tenant("te-key-garbage", "{consumers: [rome], signers: [{principal: a, publicKey: 'ssh-ed25519 AAAA'}]}"),
		tenant("te-key-options", "{consumers: [rome], signers: [{principal: a, publicKey: 'cert-authority ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ4mPlYzO0RYVgAwWoEXSWrW4GwqjqGSUSzfQhW0Qq8y'}]}"),
		tenant("te-notify", "{consumers: [rome], notify: [{urlSecretRef: {name: ../x, key: url}, events: [all]}]}"),
		tenant("te-secrets", "{consumers: [rome], secrets: [{consumer: rome, namespace: kube-system, name: x}]}"),
		at("te-reserved", "tenants/fleetbroker.yaml", group+"kind: Tenant\nmetadata: {name: fleetbroker}\nspec: {consumers: [rome]}\n"),
		flavor("fl-capacity", "{capacity: {cpu: 1e30}}"),
		flavor("fl-negative", "{capacity: {cpu: -1}}"),
		flavor("fl-used", "{capacity: {cpu: 1}, used: {cpu: 2}}"),
		flavor("fl-price", "{capacity: {cpu: 1}, price: {currency: EUR, perHour: {cpu: \"-0.1\"}}}"),
		flavor("fl-windows", "{capacity: {cpu: 1}, price: {currency: EUR, perHour: {cpu: \"1\"}, windows: ["+strings.TrimSuffix(strings.Repeat("{from: \"20:00\", to: \"06:00\", timezone: Europe/Rome, perHour: {cpu: \"1\"}},", 2000), ",")+"]}}"),
		flavor("fl-units", "{capacity: {gpu: 1}, gpu: {vendor: x, model: z, resourceName: a/b, unitsPerGPU: -7}}"),
		flavor("fl-resource", "{capacity: {gpu: 1}, gpu: {vendor: x, model: z, resourceName: \"../x\"}}"),
		at("fl-foreign", "flavors/paris/fl-foreign.yaml", group+"kind: Flavor\nmetadata: {name: fl-foreign, namespace: rome}\nspec: {capacity: {cpu: 1}}\n"),
		at("fl-cluster", "flavors/nowhere/x.yaml", group+"kind: Flavor\nmetadata: {name: x, namespace: nowhere}\nspec: {capacity: {cpu: 1}}\n"),
		at("pr-garbage", "prices/x.yaml", "a: ["),
		at("pr-kind", "prices/table.yaml", group+"kind: PriceTable\nmetadata: {name: table}\nspec: {currency: EUR, entries: [{provider: \"*\", perHour: {gpu: \"-1\"}}]}\n"),
		at("d-top", "Intents/vision/x.yaml", Intent("vision", "x", "")),
		at("d-unknown-tenant", "intents/evil/x.yaml", Intent("evil", "x", "")),
		at("d-file", "intents/x.yaml", Intent("vision", "x", "")),
		at("d-ext", "intents/vision/x.json", Intent("vision", "x", "")),
		at("d-hidden", "intents/vision/.x.yaml", Intent("vision", "hidden", "")),
		at("d-newline", "intents/vision/a\nb.yaml", Intent("vision", "newline", "")),
		at("d-escape", "intents/vision/\x1b[2J.yaml", Intent("vision", "escape", "")),
		at("d-markup", "intents/vision/[x](javascript:alert(1)).yaml", "a: ["),
		{Name: "d-not-utf8", At: "intents/vision/\ufffd.yaml", Files: map[string]string{"intents/vision/\xff.yaml": Intent("vision", "not-utf8", "")}},
	}, "te-secrets", "fl-windows", "fl-used", "fl-cluster", "d-top", "d-ext", "d-hidden")
}
