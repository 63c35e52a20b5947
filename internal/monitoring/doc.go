// Package monitoring is what watches a fleet with Prometheus and Grafana: alerts with
// their runbook entries, and dashboards, as values from which files are written.
//
//	Alerts, Dashboards ─► gen ─► fleet-repo-template/install/monitoring/
//
// Invariants:
//   - Every metric that an alert or a panel names is one of the daemon's or the agent's
//     (TestMetricsExist), and every alert leads to an entry of the runbook (test/docs).
//   - An alert is about something that somebody has to do, and says who sees it and what
//     it means; severity critical means that the fleet does not act, or will not within days, warning that a part
//     of it does not do as it was told, info that somebody decides.
//   - The written files are what these values say (TestFresh). Nothing here runs in the
//     daemon.
//
// The generator and tests call it. All are values, safe for concurrent use.
package monitoring

//go:generate go run ./gen -out ../../fleet-repo-template/install/monitoring
