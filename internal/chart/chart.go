package chart

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	fleetrepo "github.com/fleetbroker/fleetbroker/fleet-repo-template"
	"github.com/fleetbroker/fleetbroker/internal/api/version"
	"github.com/fleetbroker/fleetbroker/internal/manifests"
)

//go:embed all:files
var own embed.FS

// Name of the chart, and of the directory that Helm packs.
const Name = "fleetbroker"

// Lock is the file of package laid by which a second run knows what people edited.
const Lock = ".fleetbroker.lock"

// idMark stands for the fleet's id while names are made.
const idMark = "f0f0f0f0f0"

// released is a version as Helm wants it, after a v.
var released = regexp.MustCompile(`^v([0-9]+\.[0-9]+\.[0-9]+(?:-[0-9A-Za-z.-]+)?)$`)

// Files are the chart's, by slash-separated path, for a version of the programs. One that
// was not released has the chart's version 0.0.0-dev. Where releases are (URL or URL#REGISTRY)
// says where the images are, as far as it can; else their registry is a sample.
func Files(number, releases string) (map[string][]byte, error) {
	out := map[string][]byte{}
	err := fs.WalkDir(own, "files", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		out[strings.TrimPrefix(name, "files/")], err = own.ReadFile(name)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the chart: %w", err)
	}
	chart, app := "0.0.0-dev", "latest"
	if m := released.FindStringSubmatch(number); m != nil {
		chart, app = m[1], number
	}
	out["Chart.yaml"] = []byte(strings.NewReplacer("VERSION", chart, "APP", app).Replace(string(out["Chart.yaml"])))
	if registry := version.Registry(releases); registry != "" {
		out["values.yaml"] = []byte(strings.ReplaceAll(string(out["values.yaml"]), "{repository: registry.example.org/", "{repository: "+registry+"/"))
	}
	for _, base := range []string{"broker", "agent"} {
		if err := templates(out, base); err != nil {
			return nil, fmt.Errorf("make the chart of install/%s: %w", base, err)
		}
	}
	if err := monitors(out); err != nil {
		return nil, fmt.Errorf("make the chart of install/%s: %w", monitoring, err)
	}
	return out, nil
}

// templates adds a base's files as templates.
func templates(out map[string][]byte, base string) error {
	text, err := fs.ReadFile(fleetrepo.Files, path.Join("install", base, "kustomization.yaml"))
	if err != nil {
		return err
	}
	var k struct{ Resources []string }
	if err := yaml.Unmarshal(text, &k); err != nil {
		return err
	}
	w := &rewriter{base: base, namespace: "$.Release.Namespace", done: map[string]bool{}}
	when := map[string]string{}
	if base == "agent" { // one form of admission
		const webhook = "webhook/webhook.yaml"
		k.Resources = append(k.Resources, webhook)
		when["request-owner.yaml"] = "{{- if ne .Values.agent.admission \"webhook\" }}\n"
		when[webhook] = "{{- if eq .Values.agent.admission \"webhook\" }}\n"
	}
	for _, file := range k.Resources {
		text, err := fs.ReadFile(fleetrepo.Files, path.Join("install", base, file))
		if err != nil {
			return err
		}
		switch file {
		case "namespace.yaml": // is the release's
		case "crds.yaml":
			out[path.Join("templates", base, file)] = []byte(crds(base, string(text)))
		default:
			body, err := w.file(string(text))
			if err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
			if when[file] != "" {
				body = when[file] + body + "{{- end }}\n"
			}
			out[path.Join("templates", base, path.Base(file))] = []byte("{{- if .Values." + base + ".enabled }}\n" + body + "{{- end }}\n")
		}
	}
	return w.complete()
}

// monitoring is the directory of what the Prometheus operator is given.
const monitoring = "monitoring"

// monitors adds what says how daemon and agent are scraped, in Prometheus's namespace and
// off by default: a cluster without the operator does not know the kinds.
func monitors(out map[string][]byte) error {
	w := &rewriter{base: monitoring, namespace: "$.Values.monitoring.namespace", done: map[string]bool{}}
	for base, file := range map[string]string{"broker": "servicemonitor.yaml", "agent": "podmonitor.yaml"} {
		text, err := fs.ReadFile(fleetrepo.Files, path.Join("install", monitoring, file))
		if err != nil {
			return err
		}
		body, err := w.file(string(text))
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		out[path.Join("templates", base, file)] = []byte("{{- if and .Values." + base + ".enabled .Values.monitoring.enabled }}\n" + body + "{{- end }}\n")
	}
	return w.complete()
}

// crds are templates that stay when the release goes.
func crds(base, text string) string {
	text = strings.ReplaceAll(text, "\nmetadata:\n", "\nmetadata:\n{{- if $.Values.crds.keep }}\n  annotations: {helm.sh/resource-policy: keep}\n{{- end }}\n")
	return "{{- if and .Values." + base + ".enabled .Values.crds.install }}\n" + text + "{{- end }}\n"
}

// place is a text of a base that a value replaces.
type place struct{ from, to string }

// places are what people fill in, by base. Each is in one of the base's files.
var places = map[string][]place{
	"broker": {
		pulling,
		{"  replicas: 2\n", "  replicas: {{ .Values.broker.replicas }}\n"},
		{"        image: fleetbroker\n", "        image: {{ include \"fleetbroker.image\" (dict \"image\" .Values.broker.image \"chart\" .Chart) | quote }}\n"},
		{"        - --repo=https://git.example.org/acme/fleet.git\n", "        - {{ printf \"--repo=%s\" .Values.broker.repo | quote }}\n"},
		{"        - --git-user=fleetbroker\n", "        - {{ printf \"--git-user=%s\" .Values.broker.gitUser | quote }}\n"},
		{".fleetbroker-each.fleetbroker.svc:", ".fleetbroker-each.{{ .Release.Namespace }}.svc:"},
		{"        - --log-format=json\n", "        - --log-format=json\n{{- with .Values.tracing.endpoint }}\n        - {{ printf \"--tracing-endpoint=%s\" . | quote }}\n{{- end }}\n{{- range .Values.broker.extraArgs }}\n        - {{ . | quote }}\n{{- end }}\n"},
		{"  egress:\n", "  egress:\n{{- if .Values.tracing.endpoint }}\n  - to:\n    - namespaceSelector:\n        matchLabels: {kubernetes.io/metadata.name: {{ .Values.tracing.namespace | quote }}}\n    ports:\n{{- range .Values.tracing.ports }}\n    - {port: {{ . }}, protocol: TCP}\n{{- end }}\n{{- end }}\n"},
		{"  type: LoadBalancer\n", "  type: {{ .Values.broker.service.type }}\n"},
		{"serviceAccount: {name: fleetbroker, namespace: fleetbroker}", "serviceAccount: {name: fleetbroker, namespace: {{ .Release.Namespace | quote }}}"},
		{"\n  # A cache of the repo", "\n{{- if .Values.broker.state.ephemeral }}\n      - name: state\n        emptyDir: {sizeLimit: {{ .Values.broker.state.size | quote }}}\n{{- else }}\n  # A cache of the repo"},
		{"      accessModes: [ReadWriteOnce]\n", "      accessModes: [ReadWriteOnce]\n{{- with .Values.broker.state.storageClass }}\n      storageClassName: {{ . | quote }}\n{{- end }}\n"},
		{"        requests: {storage: 5Gi}\n", "        requests: {storage: {{ .Values.broker.state.size | quote }}}\n{{- end }}\n"},
	},
	"agent": {
		pulling,
		{"  replicas: 2 ", "  replicas: {{ .Values.agent.replicas }} "},
		{"        image: fleet-agent\n", "        image: {{ include \"fleetbroker.image\" (dict \"image\" .Values.agent.image \"chart\" .Chart) | quote }}\n"},
		{"        - --cluster-id=paris\n", "        - {{ printf \"--cluster-id=%s\" .Values.agent.clusterID | quote }}\n"},
		{"        - --broker-url=https://broker.example.org:8443 ", "        - {{ printf \"--broker-url=%s\" .Values.agent.brokerURL | quote }} "},
		{"        - --leader-election-namespace=fleetbroker\n", "        - --leader-election-namespace={{ .Release.Namespace }}\n"},
		{"        - --log-format=json\n", "        - --log-format=json\n{{- if eq .Values.agent.admission \"webhook\" }}\n        - --webhook-bind-address=:9443\n        - --webhook-configuration=fleetbroker-{{ with $.Values.fleet.id }}{{ . }}-{{ end }}intent-tolerations\n{{- end }}\n{{- with .Values.tracing.endpoint }}\n        - {{ printf \"--tracing-endpoint=%s\" . | quote }}\n{{- end }}\n{{- range .Values.agent.extraArgs }}\n        - {{ . | quote }}\n{{- end }}\n"},
		{"        - {name: metrics, containerPort: 8080}\n", "        - {name: metrics, containerPort: 8080}\n{{- if eq .Values.agent.admission \"webhook\" }}\n        - {name: webhook, containerPort: 9443}\n{{- end }}\n"},
		{"    - {port: 8080, protocol: TCP}\n", "    - {port: 8080, protocol: TCP}\n{{- if eq .Values.agent.admission \"webhook\" }}\n  - ports:\n    - {port: 9443, protocol: TCP}\n{{- end }}\n"},
		{"apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingAdmissionPolicy", "apiVersion: admissionregistration.k8s.io/{{ .Values.agent.admission }}\nkind: MutatingAdmissionPolicy"},
		{"service: {name: fleet-agent-webhook, namespace: fleetbroker, ", "service: {name: fleet-agent-webhook, namespace: {{ .Release.Namespace | quote }}, "},
		{"  egress:\n", "  egress:\n{{- if .Values.tracing.endpoint }}\n  - to:\n    - namespaceSelector:\n        matchLabels: {kubernetes.io/metadata.name: {{ .Values.tracing.namespace | quote }}}\n    ports:\n{{- range .Values.tracing.ports }}\n    - {port: {{ . }}, protocol: TCP}\n{{- end }}\n{{- end }}\n"},
		{"'system:serviceaccount:fleetbroker:fleet-agent'", "'system:serviceaccount:{{ .Release.Namespace }}:fleet-agent'"},
		{"request.namespace in ['default', 'fleetbroker']", "request.namespace in ['default', '{{ .Release.Namespace }}']"},
	},
	monitoring: {
		{"\n  labels: {app.kubernetes.io/name: fleetbroker}\n", "\n  labels: {app.kubernetes.io/name: fleetbroker" + moreLabels + "}\n"},
		{"\n  labels: {app.kubernetes.io/name: fleet-agent}\n", "\n  labels: {app.kubernetes.io/name: fleet-agent" + moreLabels + "}\n"},
		{"{matchNames: [fleetbroker]}", "{matchNames: [{{ .Release.Namespace | quote }}]}"},
		{"    interval: 30s\n", "    interval: {{ .Values.monitoring.interval }}\n"},
		{"      serverName: broker.example.org\n", "      serverName: {{ .Values.monitoring.serverName | quote }}\n"},
		{"      caFile: /etc/prometheus/secrets/fleetbroker-ca/ca.crt\n", "      caFile: {{ .Values.monitoring.caFile | quote }}\n"},
		{"      credentials: {name: prometheus-token, key: token}\n", "      credentials: {name: {{ .Values.monitoring.tokenSecret.name | quote }}, key: {{ .Values.monitoring.tokenSecret.key | quote }}}\n"},
	},
}

// pulling gives the accounts what their images are pulled with.
var pulling = place{
	"\nautomountServiceAccountToken: false             # its pods ask for it\n",
	"\nautomountServiceAccountToken: false             # its pods ask for it\n{{- with .Values.imagePullSecrets }}\nimagePullSecrets:\n{{- range . }}\n- name: {{ . | quote }}\n{{- end }}\n{{- end }}\n",
}

// moreLabels are those by which a Prometheus selects what it scrapes.
const moreLabels = "{{ range $name, $value := .Values.monitoring.labels }}, {{ $name | quote }}: {{ $value | quote }}{{ end }}"

// clusterWide are kinds without a namespace.
var clusterWide = []string{
	"ClusterRole", "ClusterRoleBinding", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
	"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "MutatingWebhookConfiguration", "PriorityLevelConfiguration", "FlowSchema",
}

// rewriter makes templates of one base's files, and knows which places it has found.
type rewriter struct {
	base string
	// namespace is the value that names that of the objects.
	namespace string
	done      map[string]bool
}

// complete is an error for a place that no file had.
func (w *rewriter) complete() error {
	for _, p := range places[w.base] {
		if !w.done[p.from] {
			return fmt.Errorf("no file has %q, for which the chart has a value", p.from)
		}
	}
	return nil
}

func (w *rewriter) file(text string) (string, error) {
	if strings.Contains(text, "{{") {
		return "", fmt.Errorf("it has {{, which a template would take for its own")
	}
	text = string(manifests.NameInstall(idMark, []byte(text)))
	for _, p := range places[w.base] {
		if strings.Contains(text, p.from) {
			text, w.done[p.from] = strings.ReplaceAll(text, p.from, p.to), true
		}
	}
	// Subjects of bindings.
	text = strings.ReplaceAll(text, ", namespace: fleetbroker}", ", namespace: {{ $.Release.Namespace | quote }}}")
	docs := strings.Split(text, "\n---\n")
	for i, doc := range docs {
		var o struct{ Kind string }
		if m := regexp.MustCompile(`(?m)^kind: (\S+)$`).FindStringSubmatch(doc); m != nil {
			o.Kind = m[1]
		}
		if o.Kind == "" {
			return "", fmt.Errorf("a document has no kind")
		}
		if !slices.Contains(clusterWide, o.Kind) {
			docs[i] = strings.Replace(doc, "\nmetadata:\n", "\nmetadata:\n  namespace: {{ "+w.namespace+" | quote }}\n", 1)
		}
	}
	text = strings.Join(docs, "\n---\n")
	text = strings.ReplaceAll(text, idMark+"-", "{{ with $.Values.fleet.id }}{{ . }}-{{ end }}")
	text = strings.ReplaceAll(text, idMark+".", "{{ with $.Values.fleet.id }}{{ . }}.{{ end }}")
	if strings.Contains(text, idMark) {
		return "", fmt.Errorf("the fleet's id is in a name in a way that the chart does not know")
	}
	return strings.TrimRight(text, "\n") + "\n", nil
}
