// Package liqo is the end-to-end suite on the real thing: the unmodified
// controllers of Liqo v1.2.0 on real kube-apiservers, with schedulers, virtual
// kubelets and (fake) nodes that run pods, two agents, the daemon and a git
// server. A team's commit ends as a pod that runs on the provider's nodes.
//
// The tests run in a network of their own (env.Isolate), two fleets at once, for
// most of their time is waiting for Liqo. They have the build
// tag e2e.
package liqo
