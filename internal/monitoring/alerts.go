package monitoring

// Severities of alerts.
const (
	Critical = "critical"
	Warning  = "warning"
	Info     = "info"
)

// Alert is one rule.
type Alert struct {
	Name string
	// Expr is PromQL that gives a series for each thing that is wrong.
	Expr string
	// For is how long it must be so before anybody is called, as Prometheus writes it.
	For      string
	Severity string
	// Summary says what is wrong, with the series' labels.
	Summary string
	// Entry of the runbook, as an anchor.
	Entry string
}

// certificateEnds names who has the certificate: a cluster's agent, or the daemon.
const certificateEnds = "The certificate of use {{ $labels.use }}{{ with $labels.cluster }} of cluster {{ . }}{{ end }} ends in {{ $value | humanizeDuration }}: whoever meets it is refused then."

// Alerts of a fleet. Replicas of a daemon say the same of the fleet: max() makes one
// alert of theirs.
func Alerts() []Alert {
	return []Alert{
		{"FleetbrokerDown", `absent(fleetbroker_build_info{program="fleetbroker"})`, "5m", Critical,
			"No replica of fleetbroker is scraped: nothing is decided, and no agent's report is taken.", "a-daemon-is-stopped"},
		{"FleetbrokerDeaf", `max(fleetbroker_deaf) == 1`, "5m", Critical,
			"Fewer than half of the providers that hold contracts report: nothing is moved, refused or queued.", "deaf"},
		{"FleetbrokerMarketStoreCut", `fleetbroker_market_store_cut == 1`, "5m", Critical,
			"Replica {{ $labels.pod }} cannot use the market's store: it hears no agent and places nothing.", "the-markets-store-is-out-of-reach"},
		{"FleetbrokerMarketStoreRefuses", `fleetbroker_market_store_refused > 0`, "5m", Warning,
			"The cluster refuses {{ $value }} objects of the market's store: what those providers changed is not sold.", "the-markets-store-refuses-writes"},
		{"FleetbrokerMarketStoreForeignWriter", `max(increase(fleetbroker_market_store_foreign_writes_total[15m])) > 0`, "0m", Warning,
			"An account other than the daemon's wrote objects of the market's store. They are ignored; the log names object and manager.", "another-account-writes-the-markets-objects"},
		{"FleetbrokerEtcdHalfFull", `max(etcd_mvcc_db_total_size_in_bytes / etcd_server_quota_backend_bytes) > 0.5`, "15m", Warning,
			"etcd uses {{ $value | humanizePercentage }} of its quota: at the quota it takes no writes, and the cluster with the market's objects is read-only.", "etcd-is-half-full"},
		{"FleetbrokerLeaseRefused", `fleetbroker_leader_lease_refused == 1`, "5m", Critical,
			"Replica {{ $labels.pod }} may not write the Lease of who decides.", "no-replica-decides"},
		{"FleetbrokerNoLeader", `sum(fleetbroker_leader) == 0`, "5m", Critical,
			"Replicas run and none of them decides: nothing is placed, released or moved.", "no-replica-decides"},
		{"FleetbrokerReplicaLags", `max by (job, namespace) (fleetbroker_ledger_sequence offset 5m) - on (job, namespace) group_right () fleetbroker_ledger_sequence > 0`, "2m", Warning,
			"Replica {{ $labels.pod }} is {{ $value }} commits behind what another one knew of the ledger five minutes ago.", "a-replica-lags"},
		{"FleetbrokerRemoteUnanswered", `fleetbroker_remote_unanswered_seconds > 120`, "5m", Critical,
			"The git server has not answered replica {{ $labels.pod }} for {{ $value | humanizeDuration }}: nothing is decided.", "the-remote-does-not-answer"},
		{"FleetbrokerRoundsFail", `sum without (outcome) (increase(fleetbroker_rounds_total{outcome="error"}[10m])) > 0 unless sum without (outcome) (increase(fleetbroker_rounds_total{outcome!="error"}[10m])) > 0`, "5m", Critical,
			"Rounds of replica {{ $labels.pod }} fail, and none has succeeded for ten minutes: nothing is decided there.", "rounds-fail"},
		{"FleetbrokerTrustAlarm", `max(fleetbroker_trust_alarms) > 0`, "0m", Critical,
			"What the repository says of itself contradicts what was signed before: look before anything is merged.", "a-trust-alarm"},
		{"FleetbrokerPlansDiffer", `sum(increase(fleetbroker_planner_checks_total{result="different"}[1d])) > 0`, "0m", Critical,
			"A plan differed from the one made from nothing. The latter was taken; report it.", "the-planner-session-decided-differently"},
		{"FleetbrokerPlannerFault", `sum(increase(fleetbroker_planner_faults_total[1h])) > 0`, "0m", Warning,
			"The planner's session could not be updated, and plans were made from nothing.", "the-planner-session-could-not-be-updated"},
		{"FleetbrokerStateUnwritten", `fleetbroker_state_unwritten > 0`, "5m", Warning,
			"Replica {{ $labels.pod }} cannot write {{ $value }} files of its state directory.", "the-disk-is-full-or-damaged"},
		{"FleetbrokerCertificateEnds", `min by (use, cluster) (fleetbroker_certificate_expiry_timestamp_seconds) - time() < 30 * 86400`, "1h", Warning,
			certificateEnds, "a-certificate-ends"},
		{"FleetbrokerCertificateEndsSoon", `min by (use, cluster) (fleetbroker_certificate_expiry_timestamp_seconds) - time() < 7 * 86400`, "1h", Critical,
			certificateEnds, "a-certificate-ends"},
		{"FleetbrokerPushesConflict", `sum(rate(fleetbroker_push_conflicts_total[15m])) > 0.1`, "15m", Warning,
			"Pushes are refused all the time because others move the branch.", "pushes-conflict-all-the-time"},
		{"FleetbrokerPushesHeld", `max(fleetbroker_push_held_seconds) > 60`, "5m", Warning,
			"The forge's limits hold pushes back for {{ $value | humanizeDuration }}.", "pushes-wait"},
		{"FleetbrokerInputsUnverified", `max(fleetbroker_inputs_unverified) > 0`, "15m", Warning,
			"{{ $value }} files of the inputs are not acted on, because no authorised account has signed them.", "an-input-is-not-verified"},
		{"FleetbrokerSourceFrozen", `max by (source) (fleetbroker_source_frozen) == 1`, "15m", Warning,
			"Nothing new is taken of the repository {{ $labels.source }}.", "a-source-is-frozen"},
		{"FleetbrokerNotDelivered", `max by (cluster) (fleetbroker_delivery_refused) > 0`, "10m", Warning,
			"{{ $value }} things are not delivered to cluster {{ $labels.cluster }}.", "something-is-not-delivered-notdelivered"},
		{"FleetbrokerProviderNotHeard", `max by (provider, state) (fleetbroker_provider_unreported_seconds) >= 0`, "10m", Warning,
			"Provider {{ $labels.provider }} is {{ $labels.state }}: no report for {{ $value | humanizeDuration }}.", "a-provider-is-silent-or-lost"},
		{"FleetbrokerReportsRefused", `sum by (cluster) (rate(fleetbroker_advert_total{result=~"rejected|limited"}[15m])) > 0`, "15m", Warning,
			"Reports of cluster {{ $labels.cluster }} are refused.", "an-agent-is-held-back-ratelimited"},
		{"FleetbrokerProviderContradicted", `max by (provider, type) (fleetbroker_provider_condition) == 1`, "1h", Info,
			"Provider {{ $labels.provider }} needs a look: {{ $labels.type }}.", "a-provider-needs-a-look-locationcontradicted-pricecontradicted-flavorfileshadowed-refusescontracts"},
		{"FleetbrokerContractDegraded", `sum(max by (phase, reason) (fleetbroker_contracts{phase="Degraded"})) > 0`, "15m", Warning,
			"{{ $value }} contracts are Degraded: their providers do not keep them.", "a-contract-is-degraded"},
		{"FleetbrokerConsumerUnreachable", `sum(max by (phase, reason) (fleetbroker_contracts{reason="ConsumerUnreachable"})) > 0`, "10m", Warning,
			"{{ $value }} contracts are of consumers that cannot be reached: what becomes of them is not seen, and nothing is delivered there.", "a-consumer-cannot-be-reached"},
		{"FleetbrokerSLABroken", `max by (kind) (fleetbroker_sla_breaches) > 0`, "5m", Warning,
			"{{ $value }} contracts break the sla of their intents: {{ $labels.kind }}.", "a-contract-breaks-its-sla"},
		{"FleetbrokerContractNotActive", `min_over_time(sum(max by (phase, reason) (fleetbroker_contracts{phase=~"Reserved|Peering"}))[30m:1m]) > 0`, "0m", Warning,
			"{{ $value }} contracts or more have been Reserved or Peering for half an hour.", "a-contract-stays-reserved-or-peering"},
		{"FleetbrokerContractReleasing", `min_over_time(sum(max by (phase, reason) (fleetbroker_contracts{phase="Releasing"}))[1h:1m]) > 0`, "0m", Warning,
			"{{ $value }} contracts or more have been Releasing for an hour: something holds them.", "a-contract-stays-releasing"},
		{"FleetbrokerContractsEnd", `max(fleetbroker_contracts_expiring) > 0`, "0m", Info,
			"{{ $value }} contracts come to the end of their terms.", "a-term-comes-to-an-end"},
		{"FleetbrokerIntentWaits", `max(fleetbroker_queue_oldest_seconds) > 86400`, "0m", Info,
			"An intent has waited for {{ $value | humanizeDuration }}.", "an-intent-waits-for-long"},
		{"FleetbrokerBudgetNearLimit", `max by (tenant, currency) (fleetbroker_budget_used) / max by (tenant, currency) (fleetbroker_budget_limit) > 0.9`, "15m", Info,
			"Tenant {{ $labels.tenant }} has used {{ $value | humanizePercentage }} of its budget of this month.", "a-budget-is-at-its-limit"},
		{"FleetbrokerNotificationsFail", `sum by (tenant) (increase(fleetbroker_notifications_total{result=~"failed|dropped"}[30m])) > 0 unless sum by (tenant) (increase(fleetbroker_notifications_total{result="sent"}[30m])) > 0`, "30m", Warning,
			"Tenant {{ $labels.tenant }} is told nothing: its notifications fail, and none has arrived for half an hour.", "notifications-do-not-arrive"},
		{"FleetbrokerTracesLost", `sum by (result) (increase(fleetbroker_trace_spans_total{result=~"dropped|failed"}[15m])) > 0`, "15m", Info,
			"Spans of traces do not reach the collector: {{ $labels.result }}.", "traces-do-not-reach-the-collector"},
		{"FleetAgentNotAccepted", `time() - max by (cluster) (fleetbroker_agent_last_accepted_timestamp_seconds) > 120`, "5m", Warning,
			"No broker has taken a report of cluster {{ $labels.cluster }} for {{ $value | humanizeDuration }}.", "a-provider-is-silent-or-lost"},
	}
}
