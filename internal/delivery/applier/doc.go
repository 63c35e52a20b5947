// Package applier reads what Flux and Argo CD show about the manifests that they apply
// to a consumer: what keeps a tenant's from being applied, and whether the newest are.
//
//	Kustomizations, GitRepositories ─► Flux.Verdict ─┐
//	Applications ────────────────────► ArgoCD ───────┴─► Verdict
//
// # Invariants
//
//   - Pure: objects in, values out. Package delivery watches the objects.
//   - Objects are untrusted: a field of another type counts as absent.
//   - Trouble of an object that applies only what all tenants share is every tenant's.
//   - Without an object that applies a tenant's manifests, Flux is in trouble, because it
//     works from the cluster that it applies to. Argo CD is not: it mostly works from
//     another cluster.
//
// Only package delivery imports it. All functions may be called from several goroutines.
package applier
