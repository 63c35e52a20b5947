package cli

import (
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/spf13/pflag"
	agentmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/yaml"

	_ "github.com/fleetbroker/fleetbroker/internal/agent" // registers its metrics
	"github.com/fleetbroker/fleetbroker/internal/monitoring"
	"github.com/fleetbroker/fleetbroker/internal/server"
	"github.com/fleetbroker/fleetbroker/internal/tracing/otlp"
	"github.com/fleetbroker/fleetbroker/test/tools"
)

// described are the metrics of the daemon and of the agent: their help by name.
func described(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for name, m := range descriptions(t) {
		out[name] = m.help
	}
	return out
}

// metric is what there is to say of one.
type metric struct{ help, labels string }

// descriptions are the metrics of the daemon and of the agent by name.
func descriptions(t *testing.T) map[string]metric {
	t.Helper()
	var flags otlp.Flags
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.Register(fs)
	if err := fs.Parse([]string{"--tracing-endpoint", "http://127.0.0.1:1"}); err != nil {
		t.Fatal(err)
	}
	traces, err := flags.Open(t.Context(), "fleetbroker", "", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(traces.Close)
	all := append(traces.Collectors("fleetbroker_agent_trace_spans_total"), agentmetrics.Registry.(prometheus.Collector)) //nolint:forcetypeassert // it is a Registry
	all = append(all, (&runOptions{}).collectors(&daemon{traces: traces}, server.Operators{}, nil)...)
	descs := make(chan *prometheus.Desc)
	go func() {
		defer close(descs)
		server.NewMetrics().Describe(descs)
		for _, c := range all {
			c.Describe(descs)
		}
	}()
	out, said := map[string]metric{}, regexp.MustCompile(`fqName: ("(?:[^"\\]|\\.)+"), help: ("(?:[^"\\]|\\.)*")(?:, unit: "[^"]*")?, constLabels: \{.*\}, variableLabels: \{(.*)\}\}$`)
	for d := range descs {
		words := said.FindStringSubmatch(d.String())
		if words == nil {
			t.Fatalf("%s has neither name nor help", d)
		}
		name, err := strconv.Unquote(words[1])
		help, err2 := strconv.Unquote(words[2])
		if err = errors.Join(err, err2); err != nil {
			t.Fatalf("%s: %v", d, err)
		}
		out[name] = metric{help, strings.ReplaceAll(words[3], ",", ", ")}
	}
	return out
}

// The page of monitoring lists every metric of the daemon and the agent, and no other:
// go test ./internal/cli -run TestMetricsAreListed -update writes it.
func TestMetricsAreListed(t *testing.T) {
	const page, heading = "../../fleet-repo-template/docs/monitoring.md", "\n## All metrics\n"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, _, found := strings.Cut(string(text), heading)
	var b strings.Builder
	b.WriteString(before + heading + `
Generated from the programs: those named ` + "`fleetbroker_agent_`" + ` are agents', the others the daemon's.
Next to them are those of the Go runtime and the process, of agents controller-runtime's too.

| metric | labels | what |
|---|---|---|
`)
	metrics := descriptions(t)
	for _, name := range slices.Sorted(maps.Keys(metrics)) {
		if m := metrics[name]; strings.HasPrefix(name, "fleetbroker_") {
			labels := ""
			if m.labels != "" {
				labels = "`" + m.labels + "`"
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", name, labels, m.help)
		}
	}
	if f := flag.Lookup("update"); f != nil && f.Value.String() == "true" {
		if err := os.WriteFile(page, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	} else if !found || b.String() != string(text) {
		t.Error("docs/monitoring.md does not list the metrics as they are: go test ./internal/cli -run TestMetricsAreListed -update")
	}
}

// Metrics of the daemon and the agent keep to Prometheus's conventions, by its own linter:
// as they are gathered of a daemon that runs and of what an agent registers, and, of those
// that have no series there, by name and help.
func TestMetricsKeepToTheConventions(t *testing.T) {
	dir, _, bare, _ := initFleet(t)
	d := startRun(t, "--state-dir", filepath.Join(dir, "state"), "--repo", "file://"+bare, "--poll-interval", "200ms")
	defer d.end()
	d.await("/readyz", http.StatusOK)
	res, err := http.Get("http://" + d.operators + "/metrics") //nolint:noctx // the test's own
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	gathered, err := parser.TextToMetricFamilies(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	agents, err := agentmetrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	families := slices.Collect(maps.Values(gathered))
	for _, f := range agents {
		if gathered[f.GetName()] == nil && strings.HasPrefix(f.GetName(), "fleetbroker_") {
			gathered[f.GetName()], families = f, append(families, f)
		}
	}
	ours := 0
	for name := range gathered {
		if strings.HasPrefix(name, "fleetbroker_") {
			ours++
		}
	}
	for name, help := range described(t) {
		if gathered[name] == nil {
			families = append(families, &dto.MetricFamily{Name: &name, Help: &help, Type: dto.MetricType_UNTYPED.Enum(), Metric: []*dto.Metric{{Untyped: &dto.Untyped{Value: new(float64)}}}})
		}
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "fleetbroker_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
	if ours < 30 || len(families) < 80 {
		t.Errorf("%d families of ours were gathered, of %d", ours, len(families))
	}
}

// Each expression of a panel is PromQL, by Prometheus's own parser.
func TestDashboardsAreQueries(t *testing.T) {
	promtool, err := tools.Find(t.Context(), "promtool", os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	check := func(exprs []string) error {
		var rules []any
		for i, expr := range exprs {
			rules = append(rules, map[string]any{"record": fmt.Sprintf("panel:%d", i), "expr": expr})
		}
		text, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "panels", "rules": rules}}})
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "panels.yaml")
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.CommandContext(t.Context(), promtool, "check", "rules", "--lint=none", file).CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	}
	var exprs []string
	for _, b := range monitoring.Dashboards() {
		for _, p := range b.Panels {
			for _, q := range p.Queries {
				for _, v := range b.Variables {
					q.Expr = strings.ReplaceAll(q.Expr, "$"+v.Name, ".*")
				}
				if exprs = append(exprs, q.Expr); strings.Contains(q.Expr, "$") {
					t.Errorf("%s: %s: a variable that the dashboard does not have: %s", b.UID, p.Title, q.Expr)
				}
			}
		}
	}
	if err := check(exprs); err != nil || len(exprs) < 40 {
		t.Errorf("%d expressions: %v", len(exprs), err)
	}
	if check([]string{`sum by (x (fleetbroker_gpus)`}) == nil {
		t.Error("what is no PromQL passes")
	}
}

// Every metric that an alert or a panel names exists.
func TestAlertsAndDashboardsNameMetricsThatExist(t *testing.T) {
	metrics, named := described(t), regexp.MustCompile(`\b(?:fleetbroker|process|go)_[a-z0-9_]+\b`)
	used := map[string]bool{}
	check := func(where, expr string) {
		for _, name := range named.FindAllString(expr, -1) {
			for _, part := range []string{"_bucket", "_sum", "_count"} {
				if base, cut := strings.CutSuffix(name, part); cut && metrics[base] != "" {
					name = base
				}
			}
			if used[name] = true; metrics[name] == "" {
				t.Errorf("%s: there is no metric %s", where, name)
			}
		}
	}
	for _, a := range monitoring.Alerts() {
		check(a.Name, a.Expr)
	}
	for _, b := range monitoring.Dashboards() {
		for _, v := range b.Variables {
			check(b.UID, v.Metric)
		}
		for _, p := range b.Panels {
			for _, q := range p.Queries {
				check(b.UID+": "+p.Title, q.Expr)
			}
		}
	}
	if len(used) < 30 {
		t.Errorf("%d metrics are shown, which is not all of it", len(used))
	}
	for name := range metrics {
		if strings.HasPrefix(name, "fleetbroker_") && !used[name] {
			t.Logf("neither an alert nor a panel shows %s", name)
		}
	}
}

// ruleCase is how an alert begins, and how it does not.
type ruleCase struct {
	alert, series string
	// firing and calm are values a minute, as promtool writes them.
	firing, calm string
	// labels beside the severity, and summary, of the alert that fires.
	labels  map[string]string
	summary string
}

var ruleCases = []ruleCase{
	{"FleetbrokerDown", `up`, "1x120", "", map[string]string{"program": "fleetbroker"}, "No replica of fleetbroker is scraped: nothing is decided, and no agent's report is taken."},
	{"FleetbrokerDeaf", `fleetbroker_deaf{pod="a"}`, "1x120", "0x120", nil, "Fewer than half of the providers that hold contracts report: nothing is moved, refused or queued."},
	{"FleetbrokerMarketStoreCut", `fleetbroker_market_store_cut{pod="a"}`, "1x120", "0 1 1 0x117", map[string]string{"pod": "a"}, "Replica a cannot use the market's store: it hears no agent and places nothing."},
	{"FleetbrokerMarketStoreForeignWriter", `fleetbroker_market_store_foreign_writes_total{pod="a"}`, "0x110 1x10", "1x120", nil, "An account other than the daemon's wrote objects of the market's store. They are ignored; the log names object and manager."},
	{"FleetbrokerEtcdHalfFull", `etcd_mvcc_db_total_size_in_bytes{pod="etcd-0"}`, "1610612736x120", "1000000000x120", nil, "etcd uses 75% of its quota: at the quota it takes no writes, and the cluster with the market's objects is read-only."},
	{"FleetbrokerMarketStoreRefuses", `fleetbroker_market_store_refused{pod="a"}`, "3x120", "0x120", map[string]string{"pod": "a"}, "The cluster refuses 3 objects of the market's store: what those providers changed is not sold."},
	{"FleetbrokerLeaseRefused", `fleetbroker_leader_lease_refused{pod="a"}`, "1x120", "0x120", map[string]string{"pod": "a"}, "Replica a may not write the Lease of who decides."},
	{"FleetbrokerNoLeader", `fleetbroker_leader{pod="a"}`, "0x120", "1x120", nil, "Replicas run and none of them decides: nothing is placed, released or moved."},
	{"FleetbrokerReplicaLags", `fleetbroker_ledger_sequence{pod="a"}`, "5x120", "0+1x115 115x5", map[string]string{"pod": "a"}, "Replica a is 110 commits behind what another one knew of the ledger five minutes ago."},
	{"FleetbrokerRemoteUnanswered", `fleetbroker_remote_unanswered_seconds{pod="a"}`, "0x60 0+60x60", "0x100 0+60x3 0x17", map[string]string{"pod": "a"}, "The git server has not answered replica a for 59m 0s: nothing is decided."},
	{"FleetbrokerRoundsFail", `fleetbroker_rounds_total{outcome="unchanged",pod="a"}`, "5x120", "0+1x120", map[string]string{"pod": "a"}, "Rounds of replica a fail, and none has succeeded for ten minutes: nothing is decided there."},
	{"FleetbrokerTrustAlarm", `fleetbroker_trust_alarms{pod="a"}`, "2x120", "0x120", nil, "What the repository says of itself contradicts what was signed before: look before anything is merged."},
	{"FleetbrokerPlansDiffer", `fleetbroker_planner_checks_total{result="different",pod="a"}`, "0x60 1x60", "0x120", nil, "A plan differed from the one made from nothing. The latter was taken; report it."},
	{"FleetbrokerPlannerFault", `fleetbroker_planner_faults_total{pod="a"}`, "0x90 1x30", "0x120", nil, "The planner's session could not be updated, and plans were made from nothing."},
	{"FleetbrokerStateUnwritten", `fleetbroker_state_unwritten{pod="a"}`, "2x120", "0x120", map[string]string{"pod": "a"}, "Replica a cannot write 2 files of its state directory."},
	{"FleetbrokerCertificateEnds", `fleetbroker_certificate_expiry_timestamp_seconds{use="agent",cluster="paris",pod="a"}`, "2500000x120", "2700000x120", map[string]string{"use": "agent", "cluster": "paris"}, "The certificate of use agent of cluster paris ends in 28d 20h 26m 40s: whoever meets it is refused then."},
	{"FleetbrokerCertificateEndsSoon", `fleetbroker_certificate_expiry_timestamp_seconds{use="broker",cluster="",pod="a"}`, "600000x120", "700000x120", map[string]string{"use": "broker"}, "The certificate of use broker ends in 6d 20h 40m 0s: whoever meets it is refused then."},
	{"FleetbrokerPushesConflict", `fleetbroker_push_conflicts_total{pod="a"}`, "0+30x120", "0+1x120", nil, "Pushes are refused all the time because others move the branch."},
	{"FleetbrokerPushesHeld", `fleetbroker_push_held_seconds{pod="a"}`, "90x120", "30x120", nil, "The forge's limits hold pushes back for 1m 30s."},
	{"FleetbrokerInputsUnverified", `fleetbroker_inputs_unverified{pod="a"}`, "2x120", "0x120", nil, "2 files of the inputs are not acted on, because no authorised account has signed them."},
	{"FleetbrokerSourceFrozen", `fleetbroker_source_frozen{source="vision",pod="a"}`, "1x120", "0x120", map[string]string{"source": "vision"}, "Nothing new is taken of the repository vision."},
	{"FleetbrokerNotDelivered", `fleetbroker_delivery_refused{cluster="rome",pod="a"}`, "4x120", "0x120", map[string]string{"cluster": "rome"}, "4 things are not delivered to cluster rome."},
	{"FleetbrokerProviderNotHeard", `fleetbroker_provider_unreported_seconds{provider="paris",state="Lost",pod="a"}`, "3600x120", "_x120", map[string]string{"provider": "paris", "state": "Lost"}, "Provider paris is Lost: no report for 1h 0m 0s."},
	{"FleetbrokerReportsRefused", `fleetbroker_advert_total{cluster="paris",result="rejected",pod="a"}`, "0+1x120", "0x120", map[string]string{"cluster": "paris"}, "Reports of cluster paris are refused."},
	{"FleetbrokerProviderContradicted", `fleetbroker_provider_condition{provider="paris",type="PriceContradicted",pod="a"}`, "1x120", "0x120", map[string]string{"provider": "paris", "type": "PriceContradicted"}, "Provider paris needs a look: PriceContradicted."},
	{"FleetbrokerContractDegraded", `fleetbroker_contracts{phase="Degraded",reason="NotHeld",pod="a"}`, "2x120", "0x120", nil, "2 contracts are Degraded: their providers do not keep them."},
	{"FleetbrokerConsumerUnreachable", `fleetbroker_contracts{phase="Active",reason="ConsumerUnreachable",pod="a"}`, "3x120", "3x100 0x20", nil, "3 contracts are of consumers that cannot be reached: what becomes of them is not seen, and nothing is delivered there."},
	{"FleetbrokerContractNotActive", `fleetbroker_contracts{phase="Peering",reason="",pod="a"}`, "1x120", "1x110 0 1x9", nil, "1 contracts or more have been Reserved or Peering for half an hour."},
	{"FleetbrokerContractReleasing", `fleetbroker_contracts{phase="Releasing",reason="",pod="a"}`, "1x120", "1x110 0 1x9", nil, "1 contracts or more have been Releasing for an hour: something holds them."},
	{"FleetbrokerSLABroken", `fleetbroker_sla_breaches{kind="late",pod="a"}`, "2x120", "0x120", map[string]string{"kind": "late"}, "2 contracts break the sla of their intents: late."},
	{"FleetbrokerContractsEnd", `fleetbroker_contracts_expiring{pod="a"}`, "3x120", "0x120", nil, "3 contracts come to the end of their terms."},
	{"FleetbrokerIntentWaits", `fleetbroker_queue_oldest_seconds{pod="a"}`, "90000x120", "80000x120", nil, "An intent has waited for 1d 1h 0m 0s."},
	{"FleetbrokerBudgetNearLimit", `fleetbroker_budget_used{tenant="vision",currency="EUR",pod="a"}`, "95x120", "50x120", map[string]string{"tenant": "vision", "currency": "EUR"}, "Tenant vision has used 95% of its budget of this month."},
	{"FleetbrokerNotificationsFail", `fleetbroker_notifications_total{tenant="vision",result="failed",pod="a"}`, "0+1x120", "0+1x60 61x60", map[string]string{"tenant": "vision"}, "Tenant vision is told nothing: its notifications fail, and none has arrived for half an hour."},
	{"FleetbrokerTracesLost", `fleetbroker_trace_spans_total{result="failed",pod="a"}`, "0+5x120", "0+5x60 300x60", map[string]string{"result": "failed"}, "Spans of traces do not reach the collector: failed."},
	{"FleetAgentNotAccepted", `fleetbroker_agent_last_accepted_timestamp_seconds{cluster="paris",pod="a"}`, "3600x120", "0+60x120", map[string]string{"cluster": "paris"}, "No broker has taken a report of cluster paris for 1h 0m 0s."},
}

// Each alert fires when what it is about is so, and not before, by Prometheus's own
// evaluation.
func TestAlertsFire(t *testing.T) {
	t.Parallel()
	promtool, err := tools.Find(t.Context(), "promtool", os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	rules, err := filepath.Abs("../../fleet-repo-template/install/monitoring/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	alerts := map[string]monitoring.Alert{}
	for _, a := range monitoring.Alerts() {
		alerts[a.Name] = a
	}
	var tests []any
	for _, c := range ruleCases {
		a := alerts[c.alert]
		delete(alerts, c.alert)
		labels := map[string]string{"severity": a.Severity}
		maps.Copy(labels, c.labels)
		fires := map[string]any{"exp_labels": labels, "exp_annotations": map[string]string{"summary": c.summary, "runbook_url": monitoring.Runbook + "#" + a.Entry}}
		for values, expected := range map[string][]any{c.firing: {fires}, c.calm: {}} {
			series := []any{map[string]string{"series": `fleetbroker_budget_limit{tenant="vision",currency="EUR",pod="a"}`, "values": "100x120"},
				map[string]string{"series": `fleetbroker_rounds_total{outcome="error",pod="a"}`, "values": "0+2x120"},
				map[string]string{"series": `fleetbroker_ledger_sequence{pod="b"}`, "values": "0+1x120"},
				map[string]string{"series": `etcd_server_quota_backend_bytes{pod="etcd-0"}`, "values": "2147483648x120"}}
			if c.alert != "FleetbrokerDown" || values == c.calm {
				series = append(series, map[string]string{"series": `fleetbroker_build_info{program="fleetbroker",pod="a"}`, "values": "1x120"})
			}
			if values != "" {
				series = append(series, map[string]string{"series": c.series, "values": values})
			}
			tests = append(tests, map[string]any{
				"name": c.alert + " with " + values, "interval": "1m", "input_series": series,
				"alert_rule_test": []any{map[string]any{"eval_time": "2h", "alertname": c.alert, "exp_alerts": expected}},
			})
		}
	}
	for name := range alerts {
		t.Errorf("%s has no case", name)
	}
	text, err := yaml.Marshal(map[string]any{"rule_files": []string{rules}, "evaluation_interval": "1m", "tests": tests})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "alerts.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"check", "rules", rules}, {"test", "rules", file}} {
		if out, err := exec.CommandContext(t.Context(), promtool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}
