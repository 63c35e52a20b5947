package reading

import (
	"strings"
	"testing"
)

func TestObjects(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"documents":            {"apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: b, namespace: a}\n", "Namespace/a Secret/b"},
		"JSON":                 {`{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}`, "Namespace/a"},
		"a list":               {"apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Namespace, metadata: {name: a}}\n- {apiVersion: v1, kind: Secret, metadata: {name: b}}\n", "Namespace/a Secret/b"},
		"empty documents":      {"---\n# nothing\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n---\n", "Namespace/a"},
		"kustomize's file":     {"apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nmetadata: {name: k}\n", ""},
		"Flux's, an object":    {"apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: k}\n", "Kustomization/k"},
		"no object":            {"spec: {replicas: 1}\n", "error"},
		"without a name":       {"apiVersion: v1\nkind: Namespace\nmetadata: {}\n", ""},
		"no YAML":              {"a: [\n", "error"},
		"one, and then a typo": {"apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n---\nb: [\n", "error"},
	} {
		list, err := Objects([]byte(c.text))
		var got []string
		for _, u := range list {
			got = append(got, u.GetKind()+"/"+u.GetName())
		}
		if err != nil {
			got = []string{"error"}
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%s: got %q (%v), want %q", name, text, err, c.want)
		}
	}
}
