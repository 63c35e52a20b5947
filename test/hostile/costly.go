package hostile

import (
	"fmt"
	"strings"

	"github.com/fleetbroker/fleetbroker/test/bounded"
)

// Costly are inputs that cost much by themselves, or that touch what all tenants
// share. At is a part of the reason, with the file before it.
func Costly() []Input {
	one := func(name, at, path, text string) Input {
		return Input{Name: name, At: at, Files: map[string]string{path: text}}
	}
	const a = "intents/vision/a.yaml"
	out := []Input{
		one("replicas-two-billion", "more than the 10000", a, asking("vision", "a", "{cpu: 1m}", "  replicas: 2000000000\n")),
		one("replicas-no-gang", "more than the 10000", a, asking("vision", "a", "{cpu: 1m}", "  replicas: 1000000\n  gang: false\n")),
		one("alias-bytes", "aliases expand", a, group+"kind: ResourceIntent\nmetadata:\n  name: a\n  namespace: vision\n  annotations: {a: &a "+strings.Repeat("x", 100_000)+many(9_000, ", k%d: *a")+"}\nspec: {resources: {gpu: 1}}\n"),
		one("label-keys", "", a, strings.Replace(Intent("vision", "a", ""), "namespace: vision}", "namespace: vision, labels: {"+strings.TrimSuffix(many(60_000, "k%d: v,"), ",")+"}}", 1)),
		one("laughs-in-kustomize", "aliases expand", "intents/vision/k/kustomization.yaml", "resources: [a.yaml]\n"),
		one("kustomize-doubling", "loads more than 1000", "intents/vision/k/kustomization.yaml", "resources: [l19]\n"),
		one("kustomize-thousand", "", "intents/vision/k/kustomization.yaml", "resources: ["+strings.TrimSuffix(many(1000, "a%d.yaml,"), ",")+"]\n"),
		one("kustomize-replacement-grows", "ended twice", "intents/vision/k/kustomization.yaml", "resources: [a.yaml]\n"+bounded.Bomb("ResourceIntent", "spec")),
		one("conditions", "units", "intents/vision/c0.yaml", ""),
		one("intents-2000", "", "intents/vision/m0.yaml", ""),
		one("documents-3000", "", "intents/vision/m0.yaml", ""),
		one("files-bad-2000", "the YAML cannot be read", "intents/vision/m0.yaml", ""),
		one("big-files-20", "larger than 1024 KiB", "intents/vision/b0.yaml", ""),
		one("full-files-10", "intents/vision/b1.yaml", "intents/vision/b0.yaml", ""),
		one("windows", "5000 entries", a, Intent("vision", "a", "  schedule: {windows: ["+strings.TrimSuffix(strings.Repeat("{from: \"20:00\", to: \"06:00\", timezone: Europe/Rome},", 5000), ",")+"]}\n")),
		one("replicas-10000", "", a, asking("vision", "a", "{cpu: 1m}", "  replicas: 10000\n  gang: false\n")),
		one("gang-10000", "", a, asking("vision", "a", "{cpu: 1m}", "  replicas: 10000\n")),
		one("together-64", "", "intents/vision/k0.yaml", ""),
		one("together-256", "at most 64 may", "intents/vision/k0.yaml", ""),
		one("split-hundred-parts", "", a, asking("vision", "a", "{gpu: 400, cpu: 4}", partsOfMoney)),
		one("split-hundred-parts-32-ways", "", a, asking("vision", "a", "{gpu: 400, cpu: 4}", partsOfMoney+"  alternatives: ["+strings.TrimPrefix(strings.TrimSuffix(many(33, "{gpu: 4%02d, cpu: 4},"), ","), "{gpu: 400, cpu: 4},")+"]\n")),
		one("book-900", "", "tenants/vision.yaml", group+"kind: Tenant\nmetadata: {name: vision}\nspec: {consumers: [rome], namespaces: [vision, \"vision-*\"], quota: {book: true}}\n"),
		one("tenant-takes-all", "narrow one of them", "tenants/grab.yaml", group+"kind: Tenant\nmetadata: {name: grab}\nspec: {consumers: [rome], namespaces: [\"*\"]}\n"),
		one("tenants-1000", "", "tenants/t0.yaml", ""),
		one("clusters-1000", "", "clusters/c0.yaml", ""),
		one("flavors-2000", "", "flavors/paris/f0.yaml", ""),
		one("policy-costs", "fleet.yaml", "fleet.yaml", Fleet()["fleet.yaml"]+"  policies:\n  - name: slow\n    require: '"+nested(5)+"'\n"),
		one("fleet-twice", "fleet.yaml", "fleet.yaml", Fleet()["fleet.yaml"]+"---\n"+Fleet()["fleet.yaml"]),
		one("fleet-garbage", "fleet.yaml", "fleet.yaml", "\x00"),
		one("fleet-laughs", "fleet.yaml", "fleet.yaml", "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nd: [*c, *c]\n"),
		one("fleet-limits", "fleet.yaml", "fleet.yaml", Fleet()["fleet.yaml"]+"  limits: {replicas: -1}\n"),
		one("fleet-latency", "fleet.yaml", "fleet.yaml", Fleet()["fleet.yaml"]+"  latency: [{from: rome, to: paris, ms: -1}]\n"),
		one("contracts-in-inputs", "", "contracts/vision/aa/x/x.yaml", group+"kind: Contract\nmetadata: {name: x}\n"),
		one("deep", "deeper than 32 directories", "intents/vision/"+strings.Repeat("d/", 40)+"x.yaml", Intent("vision", "deep", "")),
		one("crl-garbage", "", "pki/revoked.crl", "-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----\n"),
		one("crl-huge", "", "pki/revoked.crl", strings.Repeat("A", 3<<20)),
	}
	for i := range out {
		out[i].expand()
		out[i].Fine = out[i].At == ""
		out[i].Stops = out[i].Name == "contracts-in-inputs" || strings.HasPrefix(out[i].Name, "fleet-")
	}
	return out
}

// expand adds the further files of an input.
func (i *Input) expand() {
	add := func(n int, path string, text func(n int) string) {
		for k := range n {
			i.Files[fmt.Sprintf(path, k)] = text(k)
		}
	}
	switch i.Name {
	case "together-64", "together-256": // each names all others
		of := 64
		if i.Name == "together-256" {
			of = 256
		}
		add(of, "intents/vision/k%d.yaml", func(n int) string {
			var others strings.Builder
			for k := 1; k < of; k++ {
				fmt.Fprintf(&others, ",k%d", (n+k)%of)
			}
			return Intent("vision", fmt.Sprintf("k%d", n), "  placement: {together: ["+others.String()[1:]+"]}\n")
		})
	case "split-hundred-parts", "split-hundred-parts-32-ways":
		i.Files["flavors/paris/h100.yaml"] = madeFlavor(0)
		add(2000, "flavors/paris/f%d.yaml", func(n int) string {
			return strings.Replace(madeFlavor(n), "gpu: 1}", fmt.Sprintf("gpu: %d}", n%13+1), 1)
		})
		delete(i.Files, "flavors/paris/f0.yaml") // it is called as h100.yaml's
	case "book-900":
		for _, name := range []string{"a", "b"} {
			i.Files["intents/vision/"+name+".yaml"] = Intent("vision", name, "  replicas: 900\n  gang: "+fmt.Sprint(name == "b")+
				"\n  schedule: {notBefore: 2099-12-01T00:00:00Z, deadline: 2099-12-31T00:00:00Z, duration: 1h, book: true}\n")
		}
		i.Files["fleet.yaml"] = Fleet()["fleet.yaml"] + "  bookings: {maxAhead: 876000h}\n"
	case "laughs-in-kustomize":
		var b strings.Builder
		b.WriteString("kind: X\nmetadata:\n  a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n")
		for k := 1; k < 9; k++ {
			fmt.Fprintf(&b, "  a%d: &a%[1]d [%s]\n", k, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", k-1), 10), ","))
		}
		i.Files["intents/vision/k/a.yaml"] = b.String()
	case "kustomize-doubling":
		i.Files["intents/vision/k/l0/kustomization.yaml"] = "resources: [a.yaml]\n"
		i.Files["intents/vision/k/l0/a.yaml"] = Intent("vision", "a", "")
		for k := 1; k < 20; k++ {
			for _, side := range []string{"a", "b"} {
				i.Files[fmt.Sprintf("intents/vision/k/l%d%s/kustomization.yaml", k, side)] = fmt.Sprintf("resources: [../l%d]\nnameSuffix: -%s\n", k-1, side)
			}
			i.Files[fmt.Sprintf("intents/vision/k/l%d/kustomization.yaml", k)] = fmt.Sprintf("resources: [../l%da, ../l%[1]db]\n", k)
		}
	case "kustomize-replacement-grows":
		i.Files["intents/vision/k/a.yaml"] = Intent("vision", "a", "")
	case "kustomize-thousand":
		add(1000, "intents/vision/k/a%d.yaml", func(n int) string { return Intent("vision", fmt.Sprintf("a-%d", n), "") })
	case "conditions":
		add(20, "intents/vision/c%d.yaml", func(n int) string {
			return Intent("vision", fmt.Sprintf("c%d", n), fmt.Sprintf("  placement: {where: '%s && %d > 0'}\n", nested(4), n+1))
		})
		add(200, "flavors/paris/f%d.yaml", madeFlavor)
	case "intents-2000":
		add(2000, "intents/vision/m%d.yaml", func(n int) string { return Intent("vision", fmt.Sprintf("m%d", n), "  priority: 1000\n") })
	case "documents-3000":
		add(30, "intents/vision/m%d.yaml", func(n int) string {
			var b strings.Builder
			for k := range 100 {
				b.WriteString("---\n" + Intent("vision", fmt.Sprintf("m%d-%d", n, k), ""))
			}
			return b.String()
		})
	case "files-bad-2000":
		add(2000, "intents/vision/m%d.yaml", func(int) string { return "a: [" })
	case "big-files-20":
		add(20, "intents/vision/b%d.yaml", func(int) string { return strings.Repeat("#", 2<<20) })
	case "full-files-10":
		add(10, "intents/vision/b%d.yaml", func(int) string { return "a: [" + strings.Repeat("x, ", 300_000) + "x]\n" })
	case "tenants-1000":
		add(1000, "tenants/t%d.yaml", func(n int) string {
			return fmt.Sprintf("%skind: Tenant\nmetadata: {name: t%d}\nspec: {consumers: [rome], namespaces: [\"t%[2]d-*\"]}\n", group, n)
		})
	case "clusters-1000":
		add(1000, "clusters/c%d.yaml", func(n int) string {
			return fmt.Sprintf("%skind: Cluster\nmetadata: {name: c%d}\nspec: {roles: [provider]}\n", group, n)
		})
	case "flavors-2000":
		add(2000, "flavors/paris/f%d.yaml", madeFlavor)
	}
}

// partsOfMoney asks for replicas of up to a hundred parts that cost a little more than may be
// paid: each number of parts that holds them fails at its last.
const partsOfMoney = "  replicas: 5\n  gang: false\n  split: {maxParts: 100, minGPU: 1}\n  budget: {maxHourly: \"1090\"}\n"

func madeFlavor(n int) string {
	return fmt.Sprintf("%skind: Flavor\nmetadata: {name: f%d, namespace: paris}\nspec:\n  capacity: {cpu: \"8\", memory: 64Gi, pods: \"40\", gpu: 1}\n  gpu: {vendor: nvidia, model: nvidia-h100, resourceName: nvidia.com/gpu}\n", group, n)
}
