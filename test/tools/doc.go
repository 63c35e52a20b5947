// Package tools builds and finds the real servers that tests and the demo run:
// etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kubectl,
// Liqo, helm (for its chart), kwok, which lets fake nodes run pods, and Flux;
// Argo CD's controllers, with the Redis and the kustomize that they need; Gitea, which is
// the forge of the tests and needs a C compiler for its sqlite;
// the linter of `make lint`, the linter of the template's workflows, and Prometheus's tool
// for rules.
//
// Nothing is downloaded but Go modules. Each program has a module of its own
// under this directory (its dependencies would fight with the project's), whose
// go.mod and go.sum are checked in, so that a build here is the same build
// everywhere. The modules are not part of this module: `go build ./...` and
// `go vet ./...` never see them.
//
// # Where programs come from
//
// Find looks, in this order, at
//
//  1. KUBEBUILDER_ASSETS, when set: the directory that holds etcd,
//     kube-apiserver and the others already built. A program missing there is
//     an error, never quietly replaced.
//  2. PATH, for kubectl alone: any recent one will do, because it is only a client.
//  3. the cache: FLEETBROKER_TOOLS_DIR, or fleetbroker/tools in the user's cache
//     directory, and in it <module>-<version>-<go version>/bin/<program>.
//  4. a build into that cache, from the checkout the caller runs in.
//
// # Invariants
//
//   - A program in the cache is whole: builds happen beside it and are renamed
//     into place.
//   - Two processes never build the same module at once: the second waits for a
//     lock file and then finds the program there.
//   - A new version, or a new Go, gets a new directory; nothing is overwritten.
//
// Callers are test/env, test/tools/build and through them the end-to-end tests
// and `make demo`. All functions may be called from several goroutines.
package tools
