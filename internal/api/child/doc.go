// Package child runs work on others' input in a process of its own, which is
// this binary executed again with bounds of memory and processor time and an
// empty environment.
//
//	Parent.Ask ─► request ─► child: Serve's work ─► answer, refusal or Death
//	Parent.Follow: the same, with news of ServeTelling's work, until a context ends
//
// Invariants:
//
//   - That a child dies is no verdict on its input (Death). Death.Convicts is
//     false when another killed it, the machine was out of memory, or it could
//     not be started.
//   - Bounds are those of each request: processor time counts from its begin,
//     memory is RLIMIT_DATA. (RLIMIT_AS counts addresses that a Go program only
//     reserves.)
//   - A binary that imports a package that calls Serve in its init can be its own
//     child, tests included: the process exits before main.
//
// Packages kustomize (builds), poison (trials of suspect inputs) and simulate/jobs
// (simulations of the dashboard) call it. A
// Parent is safe for concurrent use: requests take turns.
package child
