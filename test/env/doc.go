// Package env runs the real servers that the project is tested and shown on:
// Kubernetes clusters (etcd, kube-apiserver, kube-controller-manager), git
// repositories over http and ssh, and the plain git client a team would use.
//
//	┌──────────── one Cluster, all on 127.0.0.1 ────────────┐
//	│ etcd ◄── kube-apiserver ◄── kube-controller-manager   │   GitServer: git http-backend
//	│            ▲ own CA, RBAC      (no kubelets: Nodes    │   SSHServer: git over ssh
//	│            │                    are objects only)     │   Team:      git clone, commit, push
//	└────────────┼──────────────────────────────────────────┘
//	      rest.Config, kubeconfig per identity
//
// Callers are the end-to-end tests, through package envtest, which ties what
// is started to a test, and `make demo`. Nothing here imports testing.
//
// # Invariants
//
//   - Everything listens on the loopback interface only.
//   - What was started is ended: Stop asks with SIGTERM and then kills, by
//     process id; where the kernel can do it (Linux), servers die with the
//     process that started them, however it ends.
//   - Ports are reserved by a file lock for as long as they are used, so that
//     tests of several packages may run at once.
//   - A faulty server is faulty in one of two ways that matter to a writer:
//     what was sent was not persisted, or was persisted though it failed.
//
// # Concurrency
//
// All methods may be called from several goroutines, but a Cluster's Stop,
// Restart and their like take turns. Several clusters may be started at once.
package env
