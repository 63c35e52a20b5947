package monitoring

import (
	"encoding/json"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"
)

// Runbook is where the fleet repo's runbook is read in a browser; whoever installs the
// rules writes their own in its place.
const Runbook = "https://git.example.org/acme/fleet/src/branch/main/docs/runbook.md"

const notice = "# Generated from internal/monitoring of fleetbroker. Put the address of your own runbook in\n# place of " + Runbook + ".\n"

// Files are the generated files, by path in the directory of monitoring.
func Files() (map[string][]byte, error) {
	groups := map[string]any{"groups": []any{map[string]any{"name": "fleetbroker", "rules": rules()}}}
	plain, err := yaml.Marshal(groups)
	if err != nil {
		return nil, fmt.Errorf("write the rules: %w", err)
	}
	object, err := yaml.Marshal(map[string]any{
		"apiVersion": "monitoring.coreos.com/v1", "kind": "PrometheusRule",
		"metadata": map[string]any{"name": "fleetbroker", "labels": map[string]string{"app.kubernetes.io/name": "fleetbroker"}},
		"spec":     groups,
	})
	if err != nil {
		return nil, fmt.Errorf("write the PrometheusRule: %w", err)
	}
	out := map[string][]byte{"rules.yaml": append([]byte(notice), plain...), "prometheusrule.yaml": append([]byte(notice), object...)}
	for _, b := range Dashboards() {
		text, err := json.MarshalIndent(grafana(b), "", " ")
		if err != nil {
			return nil, fmt.Errorf("write dashboard %s: %w", b.UID, err)
		}
		out[b.UID+".json"] = append(text, '\n')
	}
	return out, nil
}

// rules are the alerts as Prometheus reads them.
func rules() []any {
	var out []any
	for _, a := range Alerts() {
		out = append(out, map[string]any{
			"alert": a.Name, "expr": a.Expr, "for": a.For, "labels": map[string]string{"severity": a.Severity},
			"annotations": map[string]string{"summary": a.Summary, "runbook_url": Runbook + "#" + a.Entry},
		})
	}
	return out
}

// grafana is a board in Grafana's form (schema 41).
func grafana(b Board) map[string]any {
	source := map[string]any{"type": "prometheus", "uid": "${datasource}"}
	variables := []any{map[string]any{"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source"}}
	for _, v := range b.Variables {
		variables = append(variables, map[string]any{
			"name": v.Name, "type": "query", "datasource": source, "refresh": 2, "multi": true, "includeAll": true, "allValue": ".*",
			"query": fmt.Sprintf("label_values(%s, %s)", v.Metric, v.Name), "current": map[string]any{"text": "All", "value": "$__all"},
		})
	}
	var panels []any
	x, y, row := 0, 0, 0
	for i, p := range b.Panels {
		if x+p.Width > 24 {
			x, y, row = 0, y+row, 0
		}
		row = max(row, p.Height)
		var targets []any
		for k, q := range p.Queries {
			target := map[string]any{"refId": string(rune('A' + k)), "expr": q.Expr, "legendFormat": q.Legend, "datasource": source}
			if strings.Contains(q.Expr, "_bucket") { // points of the graph lead to traces
				target["exemplar"] = true
			}
			if p.Kind == "table" {
				target["format"], target["instant"] = "table", true
			}
			targets = append(targets, target)
		}
		panels = append(panels, map[string]any{
			"id": i + 1, "title": p.Title, "description": p.Help, "type": p.Kind, "datasource": source, "targets": targets,
			"gridPos":     map[string]int{"x": x, "y": y, "w": p.Width, "h": p.Height},
			"fieldConfig": map[string]any{"defaults": map[string]any{"unit": p.Unit, "min": 0}, "overrides": []any{}},
		})
		x += p.Width
	}
	return map[string]any{
		"uid": b.UID, "title": b.Title, "schemaVersion": 41, "editable": true, "refresh": "30s", "tags": []string{"fleetbroker"},
		"time": map[string]string{"from": "now-24h", "to": "now"}, "timezone": "browser",
		"templating": map[string]any{"list": variables}, "panels": panels,
	}
}
