// Package flux runs Flux's unmodified source-controller and
// kustomize-controller on a cluster of package env, as plain processes.
//
//	git server ──► source-controller ──archive──► kustomize-controller ──► kube-apiserver
//
// Each acts as the ServiceAccount that Flux's own installation gives it, so
// that policies know it by its name. Both listen on the loopback interface
// alone, and neither needs anything but its kubeconfig: Flux has no webhooks of
// its own in the cluster.
//
// # Callers and concurrency
//
// End-to-end tests and benchmarks. A Flux is used by one goroutine.
package flux
