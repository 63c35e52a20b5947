// Package demo shows the whole of fleetbroker on one machine, with real
// components: three kube-apiservers, a git server, three agents and the
// daemon. A team's commit becomes a reserved, versioned, applied slice of GPUs,
// and is given back.
//
// Liqo is not part of it: its CRDs are there, its controllers are not, so the
// contract gets as far as Peering, and the demo says so.
//
// `fleetbroker demo` calls Run. It starts child processes and ends them all
// before it returns.
package demo
