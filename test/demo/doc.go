// Command demo shows the whole of fleetbroker on one machine, with real
// components: three kube-apiservers, a git server, three agents and the
// daemon. A team's commit becomes a reserved, versioned, applied slice of GPUs,
// and is given back.
//
// With Liqo, unmodified controllers of it run on each cluster, and the team's
// pods run on the provider's (fake) nodes; all of it lives in a network of its
// own. Without, its CRDs alone are there, so the contract gets as far as
// Peering, and the demo says so.
//
// `make demo` runs it. It starts child processes and ends them all before it ends. The
// programs themselves know nothing of it: what starts servers has no place in them.
package main
