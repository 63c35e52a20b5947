package fleet

import (
	"slices"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
)

// Kustomizations that reach for what is outside of the tenant's directory and bases/, by any
// way of writing it, make nothing: the directory is frozen with a reason, nothing of a
// neighbour's, of the machine's or of the network's is read, and the other intents are.
func TestKustomizationsReachNothingElse(t *testing.T) {
	const dir = "intents/vision/k/small/"
	secret := intent("vision", "stolen", "resources: {cpu: 1}")
	with := func(text string) []string {
		return []string{dir + "kustomization.yaml", text, dir + "ok.yaml", secret, "intents/audio/secret.yaml", secret, "clusters/secret.yaml", secret}
	}
	list := map[string][]string{}
	for _, ref := range []string{
		"https://evil.example.org/base", "http://169.254.169.254/latest", "HTTPS://evil.example.org/x", "https:/evil.example.org/x", "git::https://evil.example.org/x.git", "git@evil.example.org:x/y.git", "ssh://git@evil.example.org/x",
		"github.com/evil/repo", "github.com/evil/repo//base?ref=main", "gh:evil/repo", "evil.example.org/x.git", "evil.example.org/x?ref=v1", "file:///etc", "oci://evil.example.org/x", "s3::https://s3.example.org/x",
		"/etc", "/etc/passwd", "../../../../../etc/passwd", "../../../audio", "../../../audio/secret.yaml", "../../../../clusters/secret.yaml", "../../../../bases/../clusters", "../../../../bases/../intents/audio",
		"./../../../audio", "a/../../../../audio", "..", "../..", ".", "", "nothing.yaml", "ok.yaml/..", "\\\\evil\\share", "~/x", "$HOME/x", "ok.yaml\\u0000.txt",
	} {
		for _, field := range []string{"resources", "bases", "components"} {
			list[field+" "+ref] = with(field + ": [\"" + strings.ReplaceAll(ref, `\\`, `\\\\`) + "\"]\n")
		}
	}
	for name, text := range map[string]string{
		"patch of another's file":    "resources: [ok.yaml]\npatches: [{path: ../../../audio/secret.yaml}]\n",
		"patch of the machine's":     "resources: [ok.yaml]\npatches: [{path: /etc/passwd}]\n",
		"patch by address":           "resources: [ok.yaml]\npatches: [{path: 'https://evil.example.org/p.yaml'}]\n",
		"patch by another case":      "resources: [ok.yaml]\npatches: [{PATH: 'https://evil.example.org/p.yaml'}]\n",
		"merge by address":           "resources: [ok.yaml]\npatchesStrategicMerge: ['https://evil.example.org/p.yaml']\n",
		"merge of the machine's":     "resources: [ok.yaml]\npatchesStrategicMerge: [/etc/passwd]\n",
		"json6902 of the machine's":  "resources: [ok.yaml]\npatchesJson6902: [{path: /etc/passwd, target: {kind: ResourceIntent, name: stolen}}]\n",
		"replacement of the machine": "resources: [ok.yaml]\nreplacements: [{path: /etc/passwd}]\n",
		"replacement by address":     "resources: [ok.yaml]\nreplacements: [{path: 'https://evil.example.org/r.yaml'}]\n",
		"configuration by address":   "resources: [ok.yaml]\nconfigurations: ['https://evil.example.org/c.yaml']\n",
		"configuration elsewhere":    "resources: [ok.yaml]\nconfigurations: [../../../audio/secret.yaml]\n",
		"a chart":                    "resources: [ok.yaml]\nhelmCharts: [{name: x, repo: 'https://evil.example.org'}]\n",
		"a chart, other case":        "resources: [ok.yaml]\nHELMCHARTS: [{name: x, repo: 'https://evil.example.org'}]\n",
		"old charts":                 "resources: [ok.yaml]\nhelmChartInflationGenerator: [{chartName: x}]\n",
		"globals of charts":          "resources: [ok.yaml]\nhelmGlobals: {chartHome: /etc}\n",
		"a generator":                "resources: [ok.yaml]\ngenerators: [ok.yaml]\n",
		"a transformer":              "resources: [ok.yaml]\ntransformers: [ok.yaml]\n",
		"a validator":                "resources: [ok.yaml]\nvalidators: [ok.yaml]\n",
		"a schema":                   "resources: [ok.yaml]\nopenapi: {path: 'https://evil.example.org/s.json'}\n",
		"crds":                       "resources: [ok.yaml]\ncrds: [/etc/passwd]\n",
		"a config map of a file":     "resources: [ok.yaml]\nconfigMapGenerator: [{name: x, files: [/etc/passwd]}]\n",
		"a secret of the env":        "resources: [ok.yaml]\nsecretGenerator: [{name: x, envs: [/proc/self/environ]}]\n",
		"build metadata":             "resources: [ok.yaml]\nbuildMetadata: [originAnnotations]\n",
		"resources, other case":      "Resources: ['https://evil.example.org']\n",
		"a key twice":                "resources: [ok.yaml]\nresources: ['https://evil.example.org']\n",
		"two documents":              "resources: [ok.yaml]\n---\nresources: ['https://evil.example.org']\n",
		"a list":                     "- https://evil.example.org\n",
		"itself":                     "resources: [../small]\n",
		"by an alias":                "metadata: {name: &x 'https://evil.example.org/x'}\nresources: [*x]\n",
		"by a merge key":             "metadata: &m {name: x}\n<<: {helmCharts: [{name: x}]}\nresources: [ok.yaml]\n",
	} {
		list[name] = with(text)
	}
	reader := NewReader()
	for name, files := range list {
		f := read(t, reader, kustomized().with(files...), nil)
		said := strings.Join(diagnostics(f), "\n")
		frozen := slices.ContainsFunc(f.Frozen, func(fr model.Freeze) bool { return strings.HasPrefix(dir, fr.Path) })
		if got := names(f); slices.ContainsFunc(got, func(n string) bool { return strings.Contains(n, "stolen") }) || !slices.Contains(got, "vision/a") || !frozen || !strings.Contains(said, "intents/vision") {
			t.Errorf("%s: intents %v, frozen %v\n%.600s", name, got, f.Frozen, said)
		}
		if strings.Contains(said, "root:") || strings.Contains(said, "dial ") || strings.Contains(said, "lookup ") {
			t.Errorf("%s: the machine or the network was asked: %.600s", name, said)
		}
	}
}
