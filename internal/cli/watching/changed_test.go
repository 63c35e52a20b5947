package watching_test

import (
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/cli/watching"
)

func TestChanged(t *testing.T) {
	const table = "TENANT\tNAME\tSTATE\nvision\ta\tQueued\nvision\tb\tPlaced\n"
	const page = "acme main@1\n\nIntents:   2 Queued\n\nPeerings\nA   B\n1   2\n3   4\n\nPods\nC   D\n5   6\n"
	const list = `[{"metadata": {"name": "a", "namespace": "vision"}, "columns": {"state": "Queued"}}, {"metadata": {"name": "b", "namespace": "vision"}}]`
	cases := map[string]struct {
		form, before, now, want string
		gone                    string
	}{
		"the first picture":    {"text", "", table, table, ""},
		"nothing":              {"text", table, table, "", ""},
		"a row":                {"text", table, strings.Replace(table, "Queued", "Placed", 1), "vision\ta\tPlaced\n", ""},
		"a new row":            {"text", table, table + "nlp\ta\tNew\n", "nlp\ta\tNew\n", ""},
		"a row less":           {"text", table, strings.Replace(table, "vision\tb\tPlaced\n", "", 1), "", "vision/b"},
		"a section of a page":  {"text", page, strings.Replace(page, "3   4", "3   5", 1), "Peerings\n3   5\n", ""},
		"a line of a page":     {"text", page, strings.Replace(page, "2 Queued", "1 Queued", 1), "Intents:   1 Queued\n", ""},
		"an object":            {"json", list, strings.Replace(list, "Queued", "Placed", 1), "[\n  {\n    \"metadata\": {\n      \"name\": \"a\",\n      \"namespace\": \"vision\"\n    },\n    \"columns\": {\n      \"state\": \"Placed\"\n    }\n  }\n]\n", ""},
		"an object less":       {"json", list, `[{"metadata": {"name": "b", "namespace": "vision"}}]`, "", "vision/a"},
		"a field":              {"json", `{"a": 1, "b": {"c": 2}}`, `{"a": 1, "b": {"c": 3}}`, "{\n  \"b\": {\n    \"c\": 3\n  }\n}\n", ""},
		"a field in YAML":      {"yaml", "a: 1\nb: 2\n", "a: 1\nb: 3\n", "b: 3\n", ""},
		"an object in YAML":    {"yaml", "- consumer: rome\n  provider: paris\n", "- consumer: rome\n  provider: oslo\n", "- consumer: rome\n  provider: oslo\n", "rome/paris"},
		"a list that is empty": {"json", list, "[]", "", "vision/a vision/b"},
	}
	for name, c := range cases {
		changed, gone, err := watching.Changed(c.form, []byte(c.before), []byte(c.now), 2)
		if err != nil || string(changed) != c.want || strings.Join(gone, " ") != c.gone {
			t.Errorf("%s: got\n%q, gone %q, %v\nwant\n%q, gone %q", name, changed, gone, err, c.want, c.gone)
		}
	}
	if _, _, err := watching.Changed("json", []byte("{"), []byte("[]"), 1); err == nil {
		t.Error("what is no JSON is compared")
	}
}
