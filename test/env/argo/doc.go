// Package argo runs Argo CD's unmodified application controller, repo server
// and ApplicationSet controller on a cluster of package env, as plain processes.
//
//	git server ──► repo server ──manifests──► application controller ──► kube-apiserver
//	                 │    └──► kustomize            └──► further clusters (AddCluster)
//	                 └──► Redis (miniredis)
//
// Accounts, rights, CRDs and ConfigMaps are those of Argo CD's own manifests/install.yaml,
// and each controller acts as its ServiceAccount, so that policies know it by its
// name. What that file runs as Deployments runs here as children of the test:
// they listen on the loopback interface, and the in-cluster address means the
// cluster that Argo CD is installed on (ARGOCD_FAKE_IN_CLUSTER). Argo CD's API server
// and its web page are left out: nothing of the fleet goes through them, and Refresh
// does to the Applications what its webhook does.
//
// # Callers and concurrency
//
// End-to-end tests. An Argo is used by one goroutine, but for Refresh, which may be called
// from any.
package argo
