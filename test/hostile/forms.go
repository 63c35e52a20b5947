package hostile

import (
	"slices"
	"strings"
)

// Forms are intents and files of the platform whose values have two readings: names in other
// forms of Unicode, tags and merge keys of YAML, numbers and instants at the edges, conditions
// and patches that grow.
func Forms() []Input {
	return fine(slices.Concat(formsOfYAML(), formsOfNumbers(), formsOfTime(), formsOfConditions(), formsOfRelations(), formsOfBuilds(), formsOfPrices()), formsFine...)
}

// formsFine are read as they are written, and do no harm.
var formsFine = []string{
	"u-punycode", "u-tag-verbatim", "u-tag-map", "u-json", "u-line-separator", "u-anchor-long",
	"u-merge-spec", "u-merge-twice", "u-merge-alias", "m-egress", "m-budget-max", "s-cycle", "s-lists-both", "s-spread-none", "s-purchase-twice", "x-annotations",
	"i-comma", "i-centuries", "i-book-end", "i-grace", "i-gap", "i-days",
	"e-split", "e-timestamp", "e-zone", "e-map-keys", "e-index", "e-string-nul", "e-bytes", "e-line", // what fails when it is asked matches nothing
	"y-table-overlap", "y-table-wide", "y-table-max", // of a cluster that there is not
}

func formsOfYAML() []Input {
	good := func(n string) string { return Intent("vision", n, "") }
	with := func(n, was, is string) Input { return file(n, strings.Replace(good(n), was, is, 1)) }
	return []Input{
		named("u-decomposed", "cafe\u0301"),
		named("u-composed", "caf\u00e9"),
		named("u-ligature", "\ufb01ne"),
		named("u-kelvin", "\u212a8s"),
		named("u-dotless", "v\u0131sion"),
		named("u-dash", "go\u2010od"),
		named("u-slash", "nlp\u2215good"),
		named("u-variation", "good\ufe0f"),
		named("u-tag-letters", "good\U000e0067"),
		named("u-punycode", "xn--good-0ra"),
		file("u-tenant-form", Intent("v\u0131sion", "u-tenant-form", "")),
		with("u-consumer-form", "consumer: rome", "consumer: r\u03bfme"),
		with("u-no", "consumer: rome", "consumer: no"),
		with("u-null", "consumer: rome", "consumer: !!null rome"),
		with("u-float", "consumer: rome", "consumer: !!float rome"),
		with("u-timestamp", "consumer: rome", "consumer: !!timestamp 2026-11-23"),
		with("u-tag-verbatim", "consumer: rome", "consumer: !<tag:yaml.org,2002:str> rome"),
		with("u-tag-map", "resources: {", "resources: !!map {"),
		with("u-tag-escaped", "consumer: rome", "consumer: !%73%74r rome"),
		with("u-line-separator", "consumer: rome", "consumer: \"ro\\\n    me\""),
		with("u-block-name", "name: u-block-name,", "name: \"u-block-name\\u2028\","),
		with("u-merge-spec", "  consumer: rome", "  <<: {priority: 1000}\n  consumer: rome"),
		with("u-merge-twice", "  consumer: rome", "  <<: {priority: 1}\n  <<: {priority: 2}\n  consumer: rome"),
		with("u-merge-alias", "  resources: {", "  <<: &m {objective: cost}\n  <<: *m\n  resources: {"),
		with("u-key-question", "  consumer: rome", "  ? consumer\n  : rome\n  ? consumer\n  : milan"),
		with("u-key-block", "  consumer: rome", "  ? |-\n    consumer\n  : rome\n  consumer: milan"),
		with("u-anchor-long", "consumer: rome", "consumer: &"+strings.Repeat("a", 200_000)+" rome"),
		file("u-json", `{"apiVersion":"fleetbroker.io/v1alpha1","kind":"ResourceIntent","metadata":{"name":"u-json","namespace":"vision"},"spec":{"consumer":"rome","resources":{"gpu":1},"offload":{"namespaces":[{"name":"vision","create":true}]}}}`),
		file("u-json-twice", `{"apiVersion":"fleetbroker.io/v1alpha1","kind":"ResourceIntent","metadata":{"name":"u-json-twice","namespace":"vision"},"spec":{"consumer":"rome","resources":{"gpu":1}},"\u0073pec":{"consumer":"rome","resources":{"gpu":64}}}`),
		file("u-json-surrogate", `{"apiVersion":"fleetbroker.io/v1alpha1","kind":"ResourceIntent","metadata":{"name":"a\ud800","namespace":"vision"}}`),
		file("u-utf32", "\x00\x00\xfe\xffa"),
		file("u-stream", good("u-stream")+"\x04"),
		file("u-conflict", "<<<<<<< HEAD\n"+good("u-conflict")+"=======\n"+good("u-conflict")+">>>>>>> evil\n"),
		file("u-helm", strings.Replace(good("u-helm"), "consumer: rome", "consumer: {{ .Values.evil }}", 1)),
		file("u-lfs", "version https://git-lfs.github.com/spec/v1\noid sha256:"+strings.Repeat("0", 64)+"\nsize 1\n"),
		file("u-crypt", "\x00GITCRYPT\x00"+strings.Repeat("x", 100)),
		file("u-sops", good("u-sops")+"sops: {mac: \"ENC[AES256_GCM,data:x,type:str]\"}\n"),
		headed("u-anchors-million", "x: ["+strings.TrimSuffix(strings.Repeat("&a x,", 100_000), ",")+"]\n"),
		headed("u-alias-chain", aliasChain(5000)),
		headed("u-quotes", "a: ["+strings.TrimSuffix(strings.Repeat("'',", 200_000), ",")+"]\n"),
		headed("u-plain-breaks", "a: x\n"+strings.Repeat("\n", 200_000)+"  y\n"),
		headed("u-nested-keys", strings.Repeat("{", 300)+strings.Repeat("}: x", 300)+"\n"),
	}
}

// aliasChain are anchors, each an alias of the one before in a list.
func aliasChain(n int) string { return "a0: &a0 [x]\n" + many(n, "b%d: &b%[1]d [*a0]\n") }

func formsOfNumbers() []Input {
	out := []Input{}
	for _, q := range [][2]string{
		{"plus", "+1"}, {"space", " 1"}, {"space-after", "1 "}, {"hex", "0x10"}, {"underscore", "1_000"}, {"two-suffixes", "1Kik"}, {"exponent-suffix", "1e3Ki"},
		{"exponent-bare", "1e"}, {"exponent-sign", "1e+-3"}, {"suffix", "Ki"}, {"dot", "."}, {"minus-zero", "-0.1"}, {"comma", "1,000"}, {"full-width", "１Gi"}, {"newline", "1\\nGi"},
		{"64-bits", "9223372036854775808"}, {"unsigned", "18446744073709551616"}, {"exa", "8Ei"}, {"exponent-wide", "1e" + strings.Repeat("0", 10_000) + "1"}, {"zeros-wide", "0." + strings.Repeat("0", 100_000) + "1"},
	} {
		out = append(out, resources("m-"+q[0], "{memory: \""+q[1]+"\", gpu: 1}"))
	}
	return append(out,
		resources("m-gpu-zero", "{gpu: \"H100:0\"}"),
		resources("m-gpu-plus", "{gpu: \"H100:+1\"}"),
		resources("m-gpu-wide", "{gpu: \"H100:１\"}"),
		resources("m-gpu-exponent", "{gpu: \"H100:1e3\"}"),
		resources("m-gpu-memory", "{gpu: {count: 1, memory: 9223372036854775807Ei}}"),
		resources("m-pods-max", "{cpu: 9223372036854775807, memory: 7Ei, pods: 9223372036854775807, gpu: 1}"),
		spec("m-sum-overflows", "  replicas: 10000\n  alternatives: [{cpu: 9223372036854775, memory: 7Ei, gpu: 9223372036854775807}]\n"),
		spec("m-egress", "  data: {region: eu, sizeGi: 9223372036854775807, egressGiPerHour: 9223372036854775807}\n"),
		spec("m-budget-max", "  budget: {maxHourly: \"9223372036854.775808\", maxTotal: \"9223372036854.775808\"}\n"),
		spec("m-budget-currency", "  budget: {maxHourly: \"1\", currency: \"€\"}\n"),
		spec("m-carbon", "  placement: {maxCarbon: -9223372036854775808}\n"),
		spec("m-min-replicas", "  minReplicas: -2147483648\n"),
		spec("m-unavailable", "  update: {maxUnavailable: -1}\n"),
		spec("m-parts", "  split: {maxParts: 2147483647, minGPU: -1}\n"),
		spec("m-weights-denormal", "  weights: {cost: 5e-324, latency: 5e-324}\n"),
	)
}

func formsOfTime() []Input {
	window := func(name, w string) Input { return spec(name, "  schedule: {windows: [{"+w+"}]}\n") }
	at := func(name, t string) Input { return spec(name, "  schedule: {notBefore: \""+t+"\"}\n") }
	return []Input{
		at("i-9999-west", "9999-12-31T23:59:59-23:59"),
		at("i-0000-east", "0000-01-01T00:00:00+23:59"),
		at("i-24", "2026-12-31T24:00:00Z"),
		at("i-lower", "2026-12-31t23:00:00z"),
		at("i-nanos", "2026-12-31T23:00:00."+strings.Repeat("9", 50_000)+"Z"),
		at("i-comma", "2026-12-31T23:00:00,5Z"),
		at("i-minus", "-2026-12-31T23:00:00Z"),
		at("i-unicode", "２026-12-31T23:00:00Z"),
		at("i-zone-name", "2026-12-31T23:00:00 CET"),
		spec("i-centuries", "  schedule: {notBefore: 2199-12-31T23:59:59Z, duration: 2562047h}\n"),
		spec("i-book-past", "  schedule: {notBefore: 0001-01-01T00:00:00Z, duration: 1h, book: true}\n"),
		spec("i-book-end", "  schedule: {notBefore: 2199-12-31T23:59:59Z, duration: 2562047h47m, book: true}\n"),
		spec("i-deadline-past", "  schedule: {deadline: 0001-01-01T00:00:00Z}\n"),
		spec("i-duration-sum", "  schedule: {duration: 2562047h47m16s854ms775us808ns}\n"),
		spec("i-duration-parts", "  schedule: {duration: "+strings.Repeat("1h", 50_000)+"}\n"),
		spec("i-grace", "  preemption: {grace: 2562047h}\n"),
		window("i-zone-offset", "from: \"20:00\", to: \"06:00\", timezone: \"+05:30\""),
		window("i-zone-rules", "from: \"20:00\", to: \"06:00\", timezone: posixrules"),
		window("i-zone-right", "from: \"20:00\", to: \"06:00\", timezone: right/UTC"),
		window("i-zone-slash", "from: \"20:00\", to: \"06:00\", timezone: Europe/Rome/"),
		window("i-zone-dot", "from: \"20:00\", to: \"06:00\", timezone: Europe/./Rome"),
		window("i-zone-case", "from: \"20:00\", to: \"06:00\", timezone: europe/rome"),
		window("i-zone-nul", "from: \"20:00\", to: \"06:00\", timezone: \"UTC\\0\""),
		window("i-gap", "from: \"02:15\", to: \"02:45\", days: [Sun], timezone: Europe/Rome"),
		window("i-24-00", "from: \"24:00\", to: \"24:00\""),
		window("i-seconds", "from: \"20:00:01\", to: \"06:00\""),
		window("i-days", "from: \"20:00\", to: \"06:00\", days: ["+strings.TrimSuffix(strings.Repeat("Mon,", 5000), ",")+"]"),
	}
}

func formsOfConditions() []Input {
	where := func(name, expression string) Input { return spec(name, "  placement: {where: '"+expression+"'}\n") }
	return []Input{
		where("e-own-pattern", `flavor.name.matches(flavor.name + "(a|a)*$")`),
		where("e-pattern-labels", `flavor.labels.all(k, k.matches(flavor.labels[k]))`),
		where("e-pattern-large", `flavor.name.matches("\\pL{1000}\\pN{1000}")`),
		where("e-pattern-repeated", `flavor.name.findAll("((a{9}){10}b){10}").size() > 0`),
		where("e-format", `"%s".format([flavor]) == ""`),
		where("e-bind", `cel.bind(x, [1,2,3], x.all(y, x.all(z, z > y)))`),
		where("e-split", `flavor.name.split("").map(x, flavor.name.split("")).size() > 0`),
		where("e-join", `[flavor.name].join("x").replace("x", "xxxxxxxx").replace("x", "xxxxxxxx").size() > 0`),
		where("e-base64", `base64.encode(bytes(flavor.name)) == ""`),
		where("e-duration", `duration("999999999999h") > duration("0s")`),
		where("e-timestamp", `timestamp("9999-12-31T23:59:59Z") + duration("1h") > timestamp(0)`),
		where("e-zone", `timestamp(0).getHours("../../../etc/passwd") == 0`),
		where("e-optional", `flavor.?labels[?"x"].orValue("") == ""`),
		where("e-type", `type(flavor) == type(intent)`),
		where("e-map-keys", `{1: 1, 1: 2}[1] == 1`),
		where("e-map-wide", "{"+strings.TrimSuffix(many(300, "%d: {},"), ",")+"}.size() > 0"),
		where("e-index", `[1][9223372036854775807] == 1`),
		where("e-select-deep", "flavor"+strings.Repeat(".x", 1_500)),
		where("e-call-deep", "flavor.name"+strings.Repeat(".trim()", 300)+" == \"\""),
		where("e-exists-one", `[1,2,3,4,5,6,7,8,9,10].exists_one(a, [1,2,3,4,5,6,7,8,9,10].exists_one(b, [1,2,3,4,5,6,7,8,9,10].exists_one(c, a == b)))`),
		where("e-string-nul", `flavor.name == "\x00\u202e\U0010ffff"`),
		where("e-bytes", `b"\xff\xfe" == bytes(flavor.name)`),
		where("e-not-utf8", `string(b"\xff") == ""`),
		where("e-reserved", `flavor.in == 1`),
		where("e-assign", `flavor.name = "x"`),
		where("e-line", "true\n    || false"),
		where("e-message", `google.protobuf.Struct{fields: {}} == null`),
	}
}

func formsOfRelations() []Input {
	return []Input{
		{Name: "s-cycle", At: "intents/vision/s-cycle-a.yaml", Files: map[string]string{
			"intents/vision/s-cycle-a.yaml": Intent("vision", "s-cycle-a", "  placement: {together: [s-cycle-b]}\n"),
			"intents/vision/s-cycle-b.yaml": Intent("vision", "s-cycle-b", "  placement: {together: [s-cycle-c]}\n"),
			"intents/vision/s-cycle-c.yaml": Intent("vision", "s-cycle-c", "  placement: {together: [s-cycle-a]}\n"),
		}},
		{Name: "s-cycle-torn", At: "intents/vision/s-torn-a.yaml", Files: map[string]string{
			"intents/vision/s-torn-a.yaml": Intent("vision", "s-torn-a", "  placement: {together: [s-torn-b], apart: [s-torn-b]}\n"),
			"intents/vision/s-torn-b.yaml": Intent("vision", "s-torn-b", "  placement: {apart: [s-torn-a]}\n"),
		}},
		spec("s-own", "  placement: {together: [s-own]}\n"),
		spec("s-foreign", "  placement: {together: [nlp/good]}\n"),
		spec("s-path", "  placement: {apart: [\"../nlp/good\"]}\n"),
		spec("s-thousands", "  placement: {together: ["+strings.TrimSuffix(many(5000, "x%d,"), ",")+"]}\n"),
		spec("s-within", "  placement: {within: {by: \"../x\", policy: Required}}\n"),
		spec("s-spread", "  placement: {spread: [{by: provider, maxSkew: -1}]}\n"),
		spec("s-spread-none", "  placement: {spread: [{by: provider, maxSkew: 0}]}\n"),
		spec("s-selector", "  offload: {namespaces: [{name: vision, podSelector: {matchLabels: {\"a b\": \"x\\n\"}}}]}\n"),
		spec("s-selector-wide", "  offload: {namespaces: [{name: vision, podSelector: {matchLabels: {"+strings.TrimSuffix(many(5000, "k%d: v,"), ",")+"}}}]}\n"),
		spec("s-selector-expressions", "  offload: {namespaces: [{name: vision, podSelector: {matchExpressions: [{key: a, operator: Evil}]}}]}\n"),
		spec("s-runtime-class", "  virtualNode: {runtimeClassName: \"../x\"}\n"),
		spec("s-shares", "  virtualNode: {shares: [{cpu: 1}, {gpu: -1}]}\n"),
		spec("s-lists-both", "  placement: {providers: {allow: [paris], deny: [paris]}}\n"),
		spec("s-purchase-twice", "  purchase: [spot, spot, spot]\n"),
		spec("s-queue", "  queue: {policy: Wait, timeout: -1h}\n"),
	}
}

func formsOfBuilds() []Input {
	k := func(name, text string, files ...string) Input {
		return dir(name, "kustomization.yaml", append([]string{"kustomization.yaml", "resources: [a.yaml]\n" + text, "a.yaml", Intent("vision", name, "")}, files...)...)
	}
	op := func(name, ops string) Input {
		return k(name, "patches: [{target: {kind: ResourceIntent}, patch: '"+ops+"'}]\n")
	}
	return []Input{
		op("x-index", `[{"op":"add","path":"/spec/offload/namespaces/999999999","value":{"name":"nlp"}}]`),
		op("x-index-minus", `[{"op":"replace","path":"/spec/offload/namespaces/-1/name","value":"nlp"}]`),
		op("x-root", `[{"op":"replace","path":"","value":{}}]`),
		op("x-move", `[{"op":"move","from":"/spec","path":"/spec/spec"}]`),
		op("x-test", `[{"op":"test","path":"/spec/consumer","value":"milan"}]`),
		op("x-kind", `[{"op":"replace","path":"/kind","value":"Secret"}]`),
		op("x-name", `[{"op":"replace","path":"/metadata/name","value":"../../nlp/good"}]`),
		op("x-deep", `[{"op":"add","path":"/spec`+strings.Repeat("/a", 5000)+`","value":1}]`),
		op("x-value-deep", `[{"op":"add","path":"/spec/a","value":`+strings.Repeat("[", 5000)+strings.Repeat("]", 5000)+`}]`),
		k("x-merge-delete", "patches: [{patch: '{apiVersion: fleetbroker.io/v1alpha1, kind: ResourceIntent, metadata: {name: x-merge-delete}, $patch: delete}'}]\n"),
		k("x-name-prefix", "namePrefix: "+strings.Repeat("a", 500_000)+"\n"),
		k("x-images", "images: [{name: x, newName: y}]\n"),
		k("x-vars", "vars: [{name: X, objref: {kind: Secret, name: x, apiVersion: v1}}]\n"),
		k("x-annotations", "commonAnnotations: {config.kubernetes.io/function: \"exec: {path: /bin/sh}\"}\n"),
		k("x-origin", "buildMetadata: [originAnnotations, managedByLabel, transformerAnnotations]\n"),
		k("x-twice", "resources: [a.yaml]\n"),
		k("x-same", "", "kustomization.yml", "resources: [a.yaml]\n"),
		k("x-component-loop", "components: [c]\n", "c/kustomization.yaml", "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\ncomponents: [../c]\n"),
		k("x-component-plain", "components: [c]\n", "c/kustomization.yaml", "resources: []\n"),
		k("x-replacement-index", "replacements: [{source: {kind: ResourceIntent, fieldPath: spec.offload.namespaces.999999999.name}, targets: [{select: {kind: ResourceIntent}, fieldPaths: [spec.consumer]}]}]\n"),
		k("x-replacement-create", "replacements: [{source: {kind: ResourceIntent, fieldPath: metadata.name}, targets: [{select: {kind: ResourceIntent}, fieldPaths: [spec.a.999999999.b], options: {create: true}}]}]\n"),
		k("x-scheme", "patches: [{path: \"file:///etc/passwd\"}]\n"),
		k("x-scp", "components: [\"git@evil.example:x/y.git\"]\n"),
		k("x-query", "components: [\"../../vision/good?ref=main&timeout=999\"]\n"),
		k("x-percent", "components: [\"%2e%2e/nlp\"]\n"),
		k("x-windows", "components: [\"..\\\\nlp\"]\n"),
	}
}

func formsOfPrices() []Input {
	table := func(name, spec string) Input {
		return at(name, "prices/"+name+".yaml", group+"kind: PriceTable\nmetadata: {name: "+name+"}\nspec: "+spec+"\n")
	}
	tenant := func(name, spec string) Input {
		return at(name, "tenants/"+name+".yaml", group+"kind: Tenant\nmetadata: {name: "+name+"}\nspec: "+spec+"\n")
	}
	overlap := "{from: \"20:00\", to: \"06:00\", timezone: Europe/Rome, perHour: {gpu: \"1\"}},{from: \"22:00\", to: \"23:00\", timezone: Asia/Tokyo, perHour: {gpu: \"0\"}}"
	return []Input{
		table("y-table-overlap", "{currency: EUR, prices: [{provider: nowhere, model: X, perHour: {gpu: \"2\"}, windows: ["+overlap+"]}]}"),
		table("y-table-twice", "{currency: EUR, prices: [{provider: nowhere, model: X, perHour: {gpu: \"2\"}},{provider: nowhere, model: X, perHour: {gpu: \"0\"}}]}"),
		table("y-table-currency", "{currency: \"=1+1\", prices: [{provider: nowhere, perHour: {gpu: \"2\"}}]}"),
		table("y-table-star", "{currency: EUR, prices: [{provider: \"*\", perHour: {gpu: \"2\"}}]}"),
		table("y-table-unit", "{currency: EUR, prices: [{provider: nowhere, perHour: {\"x\\n@root\": \"2\"}}]}"),
		table("y-table-wide", "{currency: EUR, prices: ["+strings.TrimSuffix(many(20_000, "{provider: p%d, perHour: {gpu: \"2\"}},"), ",")+"]}"),
		table("y-table-max", "{currency: EUR, prices: [{provider: nowhere, perHour: {gpu: \"9223372036854.775807\", cpu: \"9223372036854.775807\"}}]}"),
		tenant("y-tenant-star", "{consumers: [rome], namespaces: [\"*-*\"]}"),
		tenant("y-tenant-question", "{consumers: [rome], namespaces: [\"n?p\"]}"),
		tenant("y-tenant-class", "{consumers: [rome], namespaces: [\"[m-o]lp\"]}"),
		tenant("y-tenant-form", "{consumers: [rome], namespaces: [\"v\u0131sion\"]}"),
		tenant("y-tenant-consumers", "{consumers: ["+strings.TrimSuffix(many(5000, "c%d,"), ",")+"]}"),
		tenant("y-tenant-weight", "{consumers: [rome], weight: 1e308}"),
	}
}
