// Package chart makes the Helm chart of daemon and agent. What it installs comes from the
// install bases of the fleet repo's template: each of their files becomes a template, with
// values in place of what people fill in, so that chart and kustomize bases cannot differ.
//
//	fleet-repo-template/install/{broker,agent} ─► rewritten ─┐
//	install/monitoring (ServiceMonitor, PodMonitor) ─────────┤
//	files/ (Chart.yaml, values, schema, helpers, ────────────┼─► Files
//	        certificates of cert-manager)                    ┘
//
// Invariants:
//   - Every object of the two bases is in the chart, but for the Namespace, which is the
//     release's. With the values of the bases, and their namespace, the chart renders what
//     kustomize builds (TestChart_RendersWhatTheBasesBuild of test/e2e/chart).
//   - Monitors are off by default and, with the values of install/monitoring, its own; alerts
//     and dashboards are that directory's alone.
//   - A place that is to be replaced and is not found is an error, never an object with a
//     sample in it.
//   - CRDs are templates with a keep policy: Helm never upgrades those of a directory crds/,
//     and would delete data with a template's.
//
// `fleetbroker install chart` calls it. Files is safe for concurrent use.
package chart
