package hostile

import (
	"slices"
	"strings"
)

// named is an intent with another name, the file's own staying.
func named(file0, name string) Input {
	return file(file0, Intent("vision", name, ""))
}

// Specs are intents of which one field is hostile.
func Specs() []Input {
	return fine(slices.Concat(numbers(), counts(), terms(), places()),
		"n-labels-ours", "n-label-value", "n-annotations", "w-long",
		"g-model", "g-model-markup", "g-model-escape", // no card is called so
		"t-window-same", "c-list", "c-nots", "c-ors", "c-regex", "c-zero", "c-overflow", "c-dyn", "c-comment", "c-empty", // no backtracking; what fails when it is asked matches nothing
		"l-labels", "l-provider")
}

func numbers() []Input {
	return []Input{
		named("n-capitals", "N-CAPITALS"),
		named("n-dots", ".."),
		named("n-path", "../nlp/good"),
		named("n-slash", "a/b"),
		named("n-long", strings.Repeat("n", 254)),
		named("n-64", strings.Repeat("n", 64)),
		named("n-cyrillic", "g\u043e\u043ed"),
		named("n-wide", "ｇood"),
		named("n-zero-width", "go\u200bod"),
		named("n-direction", "\"\\u202edoog\""),
		named("n-dash", "-x"),
		named("n-dash-end", "x-"),
		named("n-digits", "123"),
		named("n-empty", "\"\""),
		named("n-null", "~"),
		named("n-list", "[a]"),
		named("n-proto", "__proto__"),
		named("n-emoji", "\U0001f4a5"),
		named("n-newline", "\"a\\nb\""),
		named("n-nul", "\"a\\0b\""),
		named("n-trailer", "\"a\\n\\nContract: a - -> Reserved\""),
		named("n-same", "n-twin"),
		named("n-twin", "n-twin"),
		file("n-tenant", Intent("nlp", "n-tenant", "")),
		file("n-tenant-path", Intent("../nlp", "n-tenant-path", "")),
		file("n-labels-ours", strings.Replace(Intent("vision", "n-labels-ours", ""), "namespace: vision}", "namespace: vision, labels: {fleetbroker.io/consumer: nlp}}", 1)),
		file("n-label-key", strings.Replace(Intent("vision", "n-label-key", ""), "namespace: vision}", "namespace: vision, labels: {\"x\\n/approve\\n@root\": no}}", 1)),
		file("n-label-value", strings.Replace(Intent("vision", "n-label-value", ""), "namespace: vision}", "namespace: vision, labels: {a: \"=HYPERLINK(1)\"}}", 1)),
		file("n-finalizers", strings.Replace(Intent("vision", "n-finalizers", ""), "namespace: vision}", "namespace: vision, finalizers: [x]}", 1)),
		file("n-owner", strings.Replace(Intent("vision", "n-owner", ""), "namespace: vision}", "namespace: vision, ownerReferences: [{kind: Node}]}", 1)),
		file("n-annotations", strings.Replace(Intent("vision", "n-annotations", ""), "namespace: vision}", "namespace: vision, annotations: {a: "+strings.Repeat("x", 300_000)+"}}", 1)),
		spec("r-negative", "  replicas: -1\n"),
		spec("r-zero", "  replicas: 0\n"),
		spec("r-two-billion", "  replicas: 2000000000\n"),
		spec("r-10001", "  replicas: 10001\n"),
	}
}

// counts are numbers of replicas, priorities, money and time.
func counts() []Input {
	return []Input{
		spec("r-64-bits", "  replicas: 9223372036854775808\n"),
		spec("r-exponent", "  replicas: 1e9\n"),
		spec("r-fraction", "  replicas: 1.5\n"),
		spec("r-hex", "  replicas: 0x7fffffff\n"),
		spec("r-octal", "  replicas: 0o77777\n"),
		spec("r-text", "  replicas: \"1\"\n"),
		spec("r-underscore", "  replicas: 1_000_000\n"),
		spec("r-inf", "  replicas: .inf\n"),
		spec("r-range", "  replicas: {min: 5, max: 1}\n"),
		spec("r-range-huge", "  replicas: {min: 1, max: 4000000000}\n"),
		spec("p-negative", "  priority: -1\n"),
		spec("p-1001", "  priority: 1001\n"),
		spec("p-overflow", "  priority: 4294967297\n"),
		spec("w-nan", "  weights: {cost: .nan}\n"),
		spec("w-inf", "  weights: {cost: .inf}\n"),
		spec("w-negative", "  weights: {cost: -1}\n"),
		spec("w-huge", "  weights: {cost: 1e308}\n"),
		spec("w-long", "  weights: {cost: 0."+strings.Repeat("3", 10_000)+"}\n"),
		resources("q-exponent", "{cpu: 1e30, gpu: 1}"),
		resources("q-exponent-huge", "{cpu: 1e2147483647, gpu: 1}"),
		resources("q-exponent-small", "{cpu: 1e-2147483647, gpu: 1}"),
		resources("q-negative", "{cpu: -1, gpu: 1}"),
		resources("q-empty", "{cpu: \"\", gpu: 1}"),
		resources("q-words", "{cpu: 4 cores}"),
		resources("q-suffix", "{memory: 16GBB}"),
		resources("q-exa", "{memory: 999999999999Ei}"),
		resources("q-tiny", "{cpu: 0.0000000000000000001}"),
		resources("q-digits", "{cpu: \""+strings.Repeat("9", 100_000)+"\"}"),
		resources("q-wide", "{cpu: \"４\"}"),
		resources("q-arabic", "{cpu: \"٤\"}"),
		resources("q-nan", "{memory: NaN}"),
		resources("q-inf", "{memory: .inf}"),
		resources("q-bool", "{cpu: true}"),
		resources("q-list", "{cpu: [1]}"),
		resources("q-time", "{cpu: 2026-11-23}"),
		resources("q-sixty", "{cpu: 190:20:30}"),
		resources("q-name", "{\"x\\n@root\": 1}"),
		resources("q-name-path", "{\"../../etc/passwd\": 1}"),
		resources("q-names", "{"+strings.TrimSuffix(many(5000, "example.com/r%d: 1,"), ",")+"}"),
		resources("g-huge", "{gpu: 99999999999999999999}"),
		resources("g-negative", "{gpu: -1}"),
		resources("g-fraction", "{gpu: 0.5}"),
		resources("g-form", "{gpu: \"L4:1:1\"}"),
		resources("g-form-empty", "{gpu: \":\"}"),
		resources("g-form-count", "{gpu: \"L4:-1\"}"),
		resources("g-form-huge", "{gpu: \"L4:99999999999999999999\"}"),
		resources("g-model", "{gpu: {count: 1, models: [\"nvidi\u0430-h100\"]}}"),
		resources("g-model-markup", "{gpu: {count: 1, models: [\"<script>alert(1)</script>\"]}}"),
		resources("g-model-escape", "{gpu: {count: 1, models: [\"\\e[2J\"]}}"),
		resources("g-models", "{gpu: {count: 1, models: ["+strings.TrimSuffix(many(5000, "m%d,"), ",")+"]}}"),
		resources("g-memory", "{gpu: {count: 1, memory: \"-1Gi\"}}"),
	}
}

func terms() []Input {
	return []Input{
		spec("t-duration-negative", "  schedule: {duration: -1h}\n"),
		spec("t-duration-zero", "  schedule: {duration: 0s}\n"),
		spec("t-duration-huge", "  schedule: {duration: 99999999999h}\n"),
		spec("t-duration-iso", "  schedule: {duration: P1Y}\n"),
		spec("t-duration-digits", "  schedule: {duration: "+strings.Repeat("9", 50_000)+"h}\n"),
		spec("t-duration-float", "  schedule: {duration: 1e9h}\n"),
		spec("t-duration-bare", "  schedule: {duration: 8}\n"),
		spec("t-date-30", "  schedule: {notBefore: 2026-02-30T00:00:00Z}\n"),
		spec("t-date-leap", "  schedule: {notBefore: 2026-12-31T23:59:60Z}\n"),
		spec("t-date-10000", "  schedule: {notBefore: 10000-01-01T00:00:00Z}\n"),
		spec("t-date-year-0", "  schedule: {notBefore: 0000-01-01T00:00:00Z}\n"),
		spec("t-date-9999", "  schedule: {notBefore: 9999-12-31T23:59:59Z}\n"),
		spec("t-date-bare", "  schedule: {notBefore: 2026-11-23}\n"),
		spec("t-date-zone", "  schedule: {notBefore: \"2026-11-23T00:00:00+99:99\"}\n"),
		spec("t-date-number", "  schedule: {notBefore: 1790000000}\n"),
		spec("t-date-order", "  schedule: {notBefore: 2027-01-02T00:00:00Z, deadline: 2027-01-01T00:00:00Z}\n"),
		spec("t-zone-path", "  schedule: {windows: [{from: \"20:00\", to: \"06:00\", timezone: ../../../etc/passwd}]}\n"),
		spec("t-zone-local", "  schedule: {windows: [{from: \"20:00\", to: \"06:00\", timezone: Local}]}\n"),
		spec("t-zone-unknown", "  schedule: {windows: [{from: \"20:00\", to: \"06:00\", timezone: Europe/Atlantis}]}\n"),
		spec("t-zone-long", "  schedule: {windows: [{from: \"20:00\", to: \"06:00\", timezone: "+strings.Repeat("Z", 10_000)+"}]}\n"),
		spec("t-window-25", "  schedule: {windows: [{from: \"25:00\", to: \"06:00\"}]}\n"),
		spec("t-window-sixty", "  schedule: {windows: [{from: 20:00, to: \"06:00\", days: [1]}]}\n"),
		spec("t-window-same", "  schedule: {windows: [{from: \"06:00\", to: \"06:00\"}]}\n"),
		spec("t-window-day", "  schedule: {windows: [{days: [Blursday], from: \"20:00\", to: \"06:00\"}]}\n"),
		spec("t-windows-5000", "  schedule: {windows: ["+strings.TrimSuffix(strings.Repeat("{from: \"20:00\", to: \"06:00\", timezone: Europe/Rome},", 5000), ",")+"]}\n"),
		spec("b-negative", "  budget: {maxHourly: \"-1\"}\n"),
		spec("b-exponent", "  budget: {maxHourly: 1e3}\n"),
		spec("b-exponent-text", "  budget: {maxHourly: \"1e999999999\"}\n"),
		spec("b-digits", "  budget: {maxHourly: \""+strings.Repeat("9", 10_000)+"\"}\n"),
		spec("b-places", "  budget: {maxHourly: \"0."+strings.Repeat("1", 40)+"\"}\n"),
		spec("b-nan", "  budget: {maxHourly: .nan}\n"),
		spec("b-words", "  budget: {maxHourly: lots}\n"),
		spec("b-plus", "  budget: {maxHourly: \"+1\"}\n"),
		spec("b-formula", "  budget: {maxHourly: \"=1+1\"}\n"),
		spec("b-comma", "  budget: {maxHourly: \"1,5\"}\n"),
		spec("c-syntax", "  placement: {where: 'flavor.gpu.interconect == '}\n"),
		spec("c-field", "  placement: {where: 'flavor.locaton.country == \"FR\"'}\n"),
		spec("c-number", "  placement: {where: '1'}\n"),
		spec("c-function", "  placement: {where: 'exec(\"id\")'}\n"),
		spec("c-now", "  placement: {where: 'now() > timestamp(\"2026-01-01T00:00:00Z\")'}\n"),
		spec("c-nested", "  placement: {where: '"+nested(5)+"'}\n"),
		spec("c-list", "  placement: {where: '1 in ["+strings.TrimSuffix(strings.Repeat("1,", 1_900), ",")+"]'}\n"),
		spec("c-parens", "  placement: {where: '"+strings.Repeat("(", 2_000)+"true"+strings.Repeat(")", 2_000)+"'}\n"),
		spec("c-nots", "  placement: {where: '"+strings.Repeat("!", 4_000)+"true'}\n"),
		spec("c-ors", "  placement: {where: 'true"+strings.Repeat(" || true", 500)+"'}\n"),
		spec("c-ternary", "  placement: {where: '"+strings.Repeat("true ? ", 280)+"true"+strings.Repeat(" : true", 280)+"'}\n"),
		spec("c-regex", "  placement: {where: '\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!\".matches(\"(a+)+$\")'}\n"),
		spec("c-regex-huge", "  placement: {where: 'flavor.name.matches(\"((((x{1,1000}){1,1000}){1,1000}){1,1000})\")'}\n"),
		spec("c-concat", "  placement: {where: '"+strings.Repeat("(\"a\" + ", 400)+"\"a\""+strings.Repeat(")", 400)+" == \"\"'}\n"),
		spec("c-zero", "  placement: {where: '1 / 0 == 1'}\n"),
		spec("c-overflow", "  placement: {where: '9223372036854775807 + 1 == 0'}\n"),
		spec("c-number-huge", "  placement: {where: '"+strings.Repeat("9", 4_000)+" == 1'}\n"),
		spec("c-dyn", "  placement: {where: 'dyn([[]]).map(x, [x, x]).map(x, [x, x]).size() > 0'}\n"),
		spec("c-unicode", "  placement: {where: 'fl\u0430vor.name == \"x\"'}\n"),
		spec("c-comment", "  placement: {where: 'true // \u202e evil'}\n"),
		spec("c-empty", "  placement: {where: ''}\n"),
		spec("c-long", "  placement: {where: '\""+strings.Repeat("x", 200_000)+"\" == \"\"'}\n"),
	}
}

// nested is a condition that goes over a list in itself.
func nested(depth int) string {
	out := "true"
	for i := range depth {
		v := string(rune('a' + i))
		out = "[1,2,3,4,5,6,7,8,9,10].all(" + v + ", " + out + ")"
	}
	return out
}

func places() []Input {
	offload := func(name, entry string) Input {
		return spec(name, "  offload: {namespaces: ["+entry+"]}\n")
	}
	return []Input{
		offload("o-system", "{name: kube-system}"),
		offload("o-default", "{name: default}"),
		offload("o-foreign", "{name: nlp}"),
		offload("o-star", "{name: \"*\"}"),
		offload("o-path", "{name: ../nlp}"),
		offload("o-ours", "{name: fleetbroker-system}"),
		offload("o-twice", "{name: vision},{name: vision}"),
		offload("o-remote-foreign", "{name: vision, namespaceMappingStrategy: SelectedName, remoteNamespaceName: nlp-rome}"),
		offload("o-remote-system", "{name: vision, namespaceMappingStrategy: SelectedName, remoteNamespaceName: kube-system}"),
		offload("o-remote-liqo", "{name: vision, namespaceMappingStrategy: SelectedName, remoteNamespaceName: liqo}"),
		offload("o-remote-milan", "{name: vision, namespaceMappingStrategy: SelectedName, remoteNamespaceName: nlp-milan}"),
		offload("o-remote-form", "{name: vision, namespaceMappingStrategy: SelectedName, remoteNamespaceName: \"a/b\"}"),
		offload("o-remote-unused", "{name: vision, remoteNamespaceName: x}"),
		offload("o-strategy", "{name: vision, namespaceMappingStrategy: Evil}"),
		offload("o-pod-strategy", "{name: vision, podOffloadingStrategy: Evil}"),
		offload("o-many", strings.TrimSuffix(many(5000, "{name: vision-%d},"), ",")),
		spec("v-label-system", "  virtualNode: {labels: {node-role.kubernetes.io/control-plane: \"\"}}\n"),
		spec("v-label-ours", "  virtualNode: {labels: {fleetbroker.io/tenant: nlp}}\n"),
		spec("v-label-value", "  virtualNode: {labels: {a: \"x y\"}}\n"),
		spec("v-taint-ours", "  virtualNode: {taints: [{key: fleetbroker.io/tenant, effect: NoSchedule}]}\n"),
		spec("v-taint-effect", "  virtualNode: {taints: [{key: a, effect: Explode}]}\n"),
		spec("v-taint-long", "  virtualNode: {taints: [{key: "+strings.Repeat("k", 400)+", effect: NoSchedule}]}\n"),
		spec("v-secret", "  virtualNode: {kubeconfigSecretRef: {name: nlp-at-paris}}\n"),
		spec("v-secret-path", "  virtualNode: {kubeconfigSecretRef: {name: ../../x}}\n"),
		spec("l-provider", "  placement: {providers: {allow: [\"<b>\"]}}\n"),
		spec("l-regions", "  placement: {regions: ["+strings.TrimSuffix(many(5000, "r%d,"), ",")+"]}\n"),
		spec("l-labels", "  placement: {labels: {country: \"a b\"}}\n"),
		spec("l-alternatives", "  alternatives: ["+strings.TrimSuffix(strings.Repeat("{gpu: 1},", 10_000), ",")+"]\n"),
		spec("l-purchase", "  purchase: [cheap]\n"),
		spec("l-objective", "  objective: \"\\e]0;x\\a\"\n"),
		spec("l-stage", "  stage: conquer\n"),
		spec("l-data", "  data: {region: \"\", sizeGi: -1}\n"),
		spec("l-sla", "  sla: {availability: \"100.1\"}\n"),
		spec("l-latency", "  placement: {maxLatency: -1ms}\n"),
	}
}
