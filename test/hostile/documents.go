package hostile

import (
	"slices"
	"strings"
)

// Documents are files that are no orderly YAML, or hold something else than
// what belongs there.
func Documents() []Input {
	return fine(slices.Concat(texts(), yamls()), "y-bom", "y-crlf", "y-cr", "y-two", "y-tag-str", "y-alias-good")
}

// texts are documents whose bytes, or whose number, are out of order.
func texts() []Input {
	good := func(n string) string { return Intent("vision", n, "") }
	return []Input{
		file("y-empty", ""),
		file("y-comment", "# nothing\n"),
		file("y-open-list", "a: [b\n"),
		file("y-open-quote", "a: \"b\n"),
		file("y-tab", "spec:\n\tcpu: 1\n"),
		file("y-nul", "a: \x00\n"),
		file("y-binary", "\x00\x01\xff\xfe"),
		file("y-not-utf8", "a: \xff\xfe\n"),
		file("y-overlong", "a: \xc0\xaf\n"),
		file("y-surrogate", "a: \xed\xa0\x80\n"),
		file("y-utf16", "\xff\xfea\x00:\x00 \x001\x00"),
		file("y-bom", "\ufeff"+good("y-bom")),
		file("y-bom-inside", strings.Replace(good("y-bom-inside"), "spec:", "\ufeffspec:", 1)),
		file("y-escape", "a: \"\\x1b[2J\"\n\x1b[2J: 1\n"),
		file("y-del", "a\x7f: 1\n"),
		file("y-c1", "a\u0085b: 1\n"),
		file("y-bad-escape", "a: \"\\q\"\n"),
		file("y-crlf", strings.ReplaceAll(good("y-crlf"), "\n", "\r\n")),
		file("y-cr", strings.ReplaceAll(good("y-cr"), "\n", "\r")),
		file("y-list", "- a\n- b\n"),
		file("y-scalar", "x\n"),
		file("y-number", "1\n"),
		file("y-null", "~\n"),
		file("y-bool", "true\n"),
		file("y-two", good("y-two")+"---\n"+good("y-two-b")),
		file("y-two-same", good("y-two-same")+"---\n"+good("y-two-same")),
		file("y-thousand-documents", strings.Repeat("---\n{}\n", 1000)),
		file("y-directive", "%YAML 9.9\n---\n"+good("y-directive")),
		file("y-tag-directive", "%TAG ! tag:evil.example,2026:\n---\n"+good("y-tag-directive")),
		file("y-end", good("y-end")+"...\ngarbage: [\n"),
		file("y-tag-python", "!!python/object/apply:os.system [id]\n"),
		file("y-tag-binary", strings.Replace(good("y-tag-binary"), "consumer: rome", "consumer: !!binary cm9tZQ==", 1)),
		file("y-tag-own", strings.Replace(good("y-tag-own"), "consumer: rome", "consumer: !x rome", 1)),
		file("y-tag-str", strings.Replace(good("y-tag-str"), "consumer: rome", "consumer: !!str rome", 1)),
		headed("y-tag-set", "spec: !!set {a, b}\n"),
		headed("y-tag-omap", "spec: !!omap [a: 1]\n"),
		headed("y-tag-merge", "!!merge <<: {a: 1}\n"),
		headed("y-alias-own", "a: &a [*a]\n"),
		headed("y-alias-own-map", "a: &a {b: *a}\n"),
		file("y-alias-unknown", "a: *b\n"),
	}
}

// yamls are documents that a reader of YAML could trip over.
func yamls() []Input {
	good := func(n string) string { return Intent("vision", n, "") }
	return []Input{
		headed("y-alias-laughs", "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nd: [*c, *c]\n"),
		file("y-alias-key", "a: &a x\n*a : 1\n"),
		file("y-alias-good", strings.Replace(good("y-alias-good"), "{cpu: 1, memory: 1Gi", "{cpu: 1, memory: &one 1Gi, hugepages-2Mi: *one", 1)),
		headed("y-alias-million", "a: &a "+strings.Repeat("x", 1000)+"\nb: ["+strings.TrimSuffix(strings.Repeat("*a,", 20000), ",")+"]\n"),
		headed("y-anchors", "a: ["+strings.TrimSuffix(many(5000, "&a%d x,"), ",")+"]\n"),
		headed("y-merge", "x: &x {a: 1}\ny: {<<: *x}\n"),
		headed("y-merge-list", "x: &x {a: 1}\ny: {<<: [*x, *x]}\n"),
		file("y-key-twice", Intent("vision", "y-key-twice", "  consumer: rome\n")),
		file("y-key-twice-quoted", Intent("vision", "y-key-twice-quoted", "  \"consumer\": rome\n")),
		file("y-key-twice-escaped", Intent("vision", "y-key-twice-escaped", "  \"c\\u006fnsumer\": rome\n")),
		file("y-key-case", Intent("vision", "y-key-case", "  Consumer: milan\n")),
		file("y-key-look", Intent("vision", "y-key-look", "  \u0441onsumer: milan\n")),
		headed("y-key-null", "~: 1\n"),
		headed("y-key-list", "? [a]\n: 1\n"),
		headed("y-key-map", "? {a: b}\n: 1\n"),
		headed("y-key-number", "1: a\n2: b\n"),
		file("y-key-long", strings.Repeat("k", 100_000)+": 1\n"),
		headed("y-key-newline", "\"x\\n/approve\\n/merge\\n@acme/platform see [the policy](https://evil.example/)\": 1\n"),
		headed("y-key-terminal", "\"\\x1b]0;owned\\a\": 1\n"),
		headed("y-key-direction", "\"\\u202egnp\": 1\n"),
		file("y-deep-flow", strings.Repeat("[", 20_000)+strings.Repeat("]", 20_000)),
		file("y-deep-open", strings.Repeat("[", 100_000)),
		headed("y-deep-maps", "spec: "+strings.Repeat("{a: ", 5_000)+"1"+strings.Repeat("}", 5_000)),
		headed("y-deep-block", deepBlock(1000)),
		file("y-deep-dashes", strings.Repeat("- ", 20_000)+"a\n"),
		file("y-deep-keys", strings.Repeat("? ", 20_000)+"a\n"),
		headed("y-wide", "a: ["+strings.Repeat("x,", 100_000)+"x]\n"),
		headed("y-keys", many(20_000, "k%d: v\n")),
		headed("y-blanks", strings.Repeat("\n", 500_000)+"a: 1\n"),
		headed("y-spaces", strings.Repeat(" ", 500_000)+"a: 1\n"),
		headed("y-comments", strings.Repeat("#\n", 250_000)+"a: 1\n"),
		file("y-hashes", strings.Repeat("#", 900_000)),
		headed("y-folded", "a: >\n"+strings.Repeat("  x\n\n", 50_000)),
		file("y-block-indent", "a: |9\n x\n"),
		file("y-large", "a: "+strings.Repeat("x", 2<<20)+"\n"),
		file("y-json-twice", `{"apiVersion":"fleetbroker.io/v1alpha1","kind":"ResourceIntent","kind":"Tenant"}`),
		file("y-json-deep", strings.Repeat(`{"a":`, 10_000)+"1"+strings.Repeat("}", 10_000)),
		file("y-json-tail", `{"kind":"ResourceIntent"} x`),
		file("k-secret", "apiVersion: v1\nkind: Secret\nmetadata: {name: x}\nstringData: {password: hunter2-hunter2}\n"),
		file("k-list", "apiVersion: v1\nkind: List\nitems: [{kind: Secret}]\n"),
		file("k-pod", "apiVersion: v1\nkind: Pod\nmetadata: {name: x, namespace: kube-system}\nspec: {hostNetwork: true}\n"),
		file("k-policy", "apiVersion: admissionregistration.k8s.io/v1alpha1\nkind: MutatingAdmissionPolicy\nmetadata: {name: x}\n"),
		file("k-fleet", group+"kind: Fleet\nmetadata: {name: acme}\nspec: {currency: EUR}\n"),
		file("k-tenant", group+"kind: Tenant\nmetadata: {name: evil}\nspec: {consumers: [rome]}\n"),
		file("k-contract", group+"kind: Contract\nmetadata: {name: x, namespace: vision}\nspec: {}\n"),
		file("k-setaside", group+"kind: SetAside\nmetadata: {name: x}\n"),
		file("k-root", group+"kind: TrustRoot\nmetadata: {name: x}\nspec: {unsigned: true}\n"),
		file("k-other", strings.Replace(good("k-other"), "ResourceIntent", "ResourceIntend", 1)),
		file("k-case", strings.Replace(good("k-case"), "ResourceIntent", "resourceintent", 1)),
		file("k-version", strings.Replace(good("k-version"), "v1alpha1", "v9", 1)),
		file("k-group", strings.Replace(good("k-group"), "fleetbroker.io", "fleetbroker.io.evil.example", 1)),
		file("k-none", "metadata: {name: x}\n"),
		file("k-kind-list", group+"kind: [ResourceIntent]\n"),
		file("k-status", good("k-status")+"status: {phase: Active}\n"),
		file("k-unknown", Intent("vision", "k-unknown", "  resurces: {}\n")),
	}
}

// headed is an Input of one file that begins as an intent does.
func headed(name, rest string) Input {
	return file(name, group+"kind: ResourceIntent\nmetadata: {name: "+name+", namespace: vision}\n"+rest)
}

func deepBlock(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}
