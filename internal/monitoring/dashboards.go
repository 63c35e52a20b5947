package monitoring

// Panel is one figure of a dashboard.
type Panel struct {
	Title string
	// Kind is stat, timeseries, table or bargauge.
	Kind string
	// Unit as Grafana names it: short, s, percentunit, ops.
	Unit string
	// Width of 24, and Height in rows.
	Width, Height int
	// Queries, with the legend of each.
	Queries []Query
	// Help says what it means.
	Help string
}

// Query is PromQL with its legend.
type Query struct{ Expr, Legend string }

// Board is a dashboard.
type Board struct {
	UID, Title string
	// Variables are choices: a label's name, and the metric that has its values.
	Variables []Variable
	Panels    []Panel
}

// Variable is a choice at the head of a dashboard.
type Variable struct{ Name, Metric string }

// Dashboards of a fleet.
func Dashboards() []Board {
	return []Board{fleetBoard(), tenantBoard(), plannerBoard(), agentBoard()}
}

func fleetBoard() Board {
	return Board{UID: "fleetbroker-fleet", Title: "fleetbroker / Fleet", Panels: []Panel{
		{"Fleet", "stat", "short", 24, 3, []Query{{`max by (fleet, currency) (fleetbroker_fleet_info)`, "{{fleet}}, in {{currency}}"}}, ""},
		{"GPUs free", "stat", "short", 4, 4, []Query{{`max(sum without (model) (fleetbroker_gpus{kind="free"}))`, "free"}}, "For sale now, of all models."},
		{"GPUs held", "stat", "short", 4, 4, []Query{{`max(sum without (model) (fleetbroker_gpus{kind="held"}))`, "held"}}, "By contracts."},
		{"Intents that wait", "stat", "short", 4, 4, []Query{{`max(sum without (reason) (fleetbroker_intents{state="Queued"}))`, "queued"}}, ""},
		{"Longest wait", "stat", "s", 4, 4, []Query{{`max(fleetbroker_queue_oldest_seconds)`, "oldest"}}, "Of the intent that has waited longest."},
		{"Spend per hour", "stat", "short", 4, 4, []Query{{`max by (currency) (fleetbroker_spend_per_hour)`, "{{currency}}"}}, ""},
		{"Deaf", "stat", "short", 4, 4, []Query{{`max(fleetbroker_deaf)`, "deaf"}}, "1 while too few providers report, so that nothing is moved, refused or queued."},
		{"GPUs by model", "timeseries", "short", 12, 8, []Query{
			{`max by (model) (fleetbroker_gpus{kind="held"})`, "{{model}} held"}, {`max by (model) (fleetbroker_gpus{kind="free"})`, "{{model}} free"},
		}, ""},
		{"GPUs held and idle, by model", "timeseries", "short", 12, 8, []Query{{`max by (model) (fleetbroker_gpus{kind="idle"})`, "{{model}} idle"}, {`max by (model) (fleetbroker_gpus{kind="held"})`, "{{model}} held"}}, "Idle: of active contracts without a pod, as far as agents report pods."},
		{"GPUs beyond capacity, by model", "timeseries", "short", 12, 8, []Query{{`max by (model) (fleetbroker_gpus{kind="oversold"})`, "{{model}} oversold"}, {`max by (model) (fleetbroker_gpus{kind="headroom"})`, "{{model}} headroom"}}, "Oversold: used and held beyond what there is. Headroom: what overcommit lets be sold still."},
		{"Intents by state and reason", "timeseries", "short", 12, 8, []Query{{`max by (state, reason) (fleetbroker_intents)`, "{{state}} {{reason}}"}}, ""},
		{"Contracts by phase", "timeseries", "short", 8, 8, []Query{{`sum by (phase) (max by (phase, reason) (fleetbroker_contracts))`, "{{phase}}"}}, ""},
		{"Providers by state", "timeseries", "short", 8, 8, []Query{{`max by (state) (fleetbroker_providers)`, "{{state}}"}}, ""},
		{"Not delivered", "timeseries", "short", 8, 8, []Query{{`max by (cluster) (fleetbroker_delivery_refused)`, "{{cluster}}"}}, "Files that nothing renders to, objects of no admissible form."},
		{"Time to reserve, and to usable capacity", "timeseries", "s", 12, 8, []Query{
			{`histogram_quantile(0.5, sum by (le) (rate(fleetbroker_time_to_reserve_seconds_bucket[1h])))`, "reserved, median"},
			{`histogram_quantile(0.95, sum by (le) (rate(fleetbroker_time_to_reserve_seconds_bucket[1h])))`, "reserved, 95 of 100"},
			{`histogram_quantile(0.95, sum by (le) (rate(fleetbroker_time_to_active_seconds_bucket[1h])))`, "active, 95 of 100"},
		}, "From an intent's first sight."},
		{"Contracts that entered a phase", "timeseries", "ops", 12, 8, []Query{{`sum by (phase) (rate(fleetbroker_reservations_total[15m]))`, "{{phase}}"}}, ""},
	}}
}

func tenantBoard() Board {
	return Board{UID: "fleetbroker-tenant", Title: "fleetbroker / Tenant", Variables: []Variable{{"tenant", "fleetbroker_spend_total"}}, Panels: []Panel{
		{"Budget used", "bargauge", "percentunit", 12, 6, []Query{
			{`max by (tenant, currency) (fleetbroker_budget_used{tenant=~"$tenant"}) / max by (tenant, currency) (fleetbroker_budget_limit{tenant=~"$tenant"})`, "{{tenant}} {{currency}}"},
		}, "Of this month."},
		{"Forecast of the month", "bargauge", "percentunit", 12, 6, []Query{
			{`max by (tenant, currency) (fleetbroker_budget_forecast{tenant=~"$tenant"}) / max by (tenant, currency) (fleetbroker_budget_limit{tenant=~"$tenant"})`, "{{tenant}} {{currency}}"},
		}, "With the contracts of now."},
		{"Spend by day", "timeseries", "short", 12, 8, []Query{{`max by (tenant, currency) (increase(fleetbroker_spend_total{tenant=~"$tenant"}[1d]))`, "{{tenant}} {{currency}}"}}, ""},
		{"Saved by day, against list prices", "timeseries", "short", 12, 8, []Query{{`max by (tenant, currency) (delta(fleetbroker_savings{tenant=~"$tenant"}[1d]))`, "{{tenant}} {{currency}}"}}, "Below 0 where price windows cost more than the list."},
		{"Contracts that end soon", "timeseries", "short", 12, 8, []Query{{`max by (tenant) (fleetbroker_contracts_expiring{tenant=~"$tenant"})`, "{{tenant}}"}}, "Within a tenth of their term, a day at the most."},
		{"Notifications", "timeseries", "ops", 12, 8, []Query{{`sum by (tenant, result) (rate(fleetbroker_notifications_total{tenant=~"$tenant"}[15m]))`, "{{tenant}} {{result}}"}}, ""},
	}}
}

func plannerBoard() Board {
	return Board{UID: "fleetbroker-planner", Title: "fleetbroker / Planner and ledger", Panels: []Panel{
		{"Time to plan a round", "timeseries", "s", 12, 8, []Query{
			{`histogram_quantile(0.5, sum by (le) (rate(fleetbroker_decision_seconds_bucket[5m])))`, "median"},
			{`histogram_quantile(0.99, sum by (le) (rate(fleetbroker_decision_seconds_bucket[5m])))`, "99 of 100"},
		}, ""},
		{"Where it goes", "timeseries", "s", 12, 8, []Query{{`sum by (step) (rate(fleetbroker_planner_step_seconds_sum[5m]))`, "{{step}}"}}, "Seconds of each second, by step."},
		{"Commit and push", "timeseries", "s", 12, 8, []Query{
			{`histogram_quantile(0.5, sum by (le) (rate(fleetbroker_commit_seconds_bucket[5m])))`, "median"},
			{`histogram_quantile(0.99, sum by (le) (rate(fleetbroker_commit_seconds_bucket[5m])))`, "99 of 100"},
		}, ""},
		{"Pushes within a minute, and the budget", "timeseries", "short", 12, 8, []Query{{`max(fleetbroker_push_budget_used)`, "pushes"}, {`max(fleetbroker_push_budget_limit)`, "budget"}}, "0 is without limit."},
		{"Rounds by outcome", "timeseries", "ops", 12, 8, []Query{{`sum by (outcome) (rate(fleetbroker_rounds_total[5m]))`, "{{outcome}}"}}, "A round with outcome error decided nothing."},
		{"The git server has not answered for", "timeseries", "s", 12, 8, []Query{{`max by (pod) (fleetbroker_remote_unanswered_seconds)`, "{{pod}}"}}, "0 while it answers."},
		{"Push conflicts", "timeseries", "ops", 8, 8, []Query{{`sum(rate(fleetbroker_push_conflicts_total[5m]))`, "conflicts"}}, ""},
		{"Plans checked against one from nothing", "timeseries", "ops", 8, 8, []Query{{`sum by (result) (rate(fleetbroker_planner_checks_total[1h]))`, "{{result}}"}}, ""},
		{"Writes of the market's store", "timeseries", "ops", 8, 8, []Query{{`sum by (kind, result) (rate(fleetbroker_market_store_writes_total[5m]))`, "{{kind}} {{result}}"}}, ""},
		{"Spans of traces", "timeseries", "ops", 24, 6, []Query{{`sum by (result) (rate(fleetbroker_trace_spans_total[5m]))`, "{{result}}"}}, "Nothing while traces are off. What is dropped or failed did not reach the collector."},
		{"Memory", "timeseries", "bytes", 12, 8, []Query{{`max by (pod) (process_resident_memory_bytes{job=~".*fleetbroker.*"})`, "{{pod}}"}}, ""},
		{"Processor", "timeseries", "short", 12, 8, []Query{{`sum by (pod) (rate(process_cpu_seconds_total{job=~".*fleetbroker.*"}[5m]))`, "{{pod}}"}}, "Cores."},
	}}
}

func agentBoard() Board {
	return Board{UID: "fleetbroker-agents", Title: "fleetbroker / Agents", Variables: []Variable{{"cluster", "fleetbroker_agent_flavors"}}, Panels: []Panel{
		{"Since the last report that was taken", "timeseries", "s", 12, 8, []Query{{`time() - max by (cluster) (fleetbroker_agent_last_accepted_timestamp_seconds{cluster=~"$cluster"})`, "{{cluster}}"}}, "Silent after three intervals of 30 s."},
		{"Reports by result, as agents say", "timeseries", "ops", 12, 8, []Query{{`sum by (result) (rate(fleetbroker_agent_reports_total{cluster=~"$cluster"}[5m]))`, "{{result}}"}}, ""},
		{"Reports by result, as the daemon says", "timeseries", "ops", 12, 8, []Query{{`sum by (result) (rate(fleetbroker_advert_total{cluster=~"$cluster"}[5m]))`, "{{result}}"}}, ""},
		{"Slices answered", "timeseries", "ops", 12, 8, []Query{{`sum by (verdict, reason) (rate(fleetbroker_agent_slices_answered_total{cluster=~"$cluster"}[15m]))`, "{{verdict}} {{reason}}"}}, ""},
		{"Flavors offered", "timeseries", "short", 12, 8, []Query{{`max by (cluster) (fleetbroker_agent_flavors{cluster=~"$cluster"})`, "{{cluster}}"}}, ""},
		{"Providers that need a look", "table", "short", 12, 8, []Query{{`max by (provider, type) (fleetbroker_provider_condition)`, ""}}, ""},
	}}
}
