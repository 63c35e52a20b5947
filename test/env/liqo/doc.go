// Package liqo runs the unmodified programs of Liqo on a cluster of package
// env, as plain processes with the rights that Liqo's own chart gives them.
//
//	chart (in Liqo's module) ─► helm template ─► CRDs, RBAC, webhooks ─► kube-apiserver
//	                                         └─► Deployments ─► processes, with their own arguments
//	VirtualNode ─► Liqo ─► Deployment of a virtual kubelet ─► process (kubelet.go)
//
// There are no kubelets that could start containers, so what the chart's
// Deployments say is started here, and so is each virtual kubelet for which
// Liqo makes a Deployment. Networking, telemetry and the proxy are left out:
// none of it decides where a pod runs.
//
// Liqo's webhook and virtual kubelets listen on all addresses, so a process
// that starts them has to be isolated first (env.Isolate).
//
// # Callers and concurrency
//
// End-to-end tests and `make demo`, through package rig. Several
// clusters may be given Liqo at once; the methods of one Liqo take turns.
package liqo
