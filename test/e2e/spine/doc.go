// Package spine tests the whole daemon end to end on real servers: git over
// http, ssh and as a directory, kube-apiservers with Liqo's CRDs, the two
// programs as processes. After each story the checker judges the whole history
// of the ledger, with code that the daemon does not share, and the cluster must
// have what the ledger says.
//
//	go test -tags e2e ./test/e2e/spine [-run TestMistakes] [-v]
//
// Each test starts a rig of its own (test/env/rig) and tells one story in
// steps that build on each other; two run at a time. It needs Linux and, for
// the story of the full disk, the right to mount. Nothing waits for a fixed
// time but the check that nothing happens.
//
//   - story: place, resize, replace, release; two daemons under contention
//   - lives: terms, waits, replicas, renames, shared namespaces
//   - mistakes: a hundred bad files; a merge that empties intents/
//   - structure: fleet, tenant, cluster files and branches taken away; odd
//     entries of git; daemons that hang or are killed again and again
//   - agents: silent, lost, back, shrunk, grown; deaf daemons
//   - foreign: strangers' commits on the ledger; rewritten histories
//   - faults: the git server fails in every way; a daemon killed at each step
//   - outage: consumers down and drifting; a full disk
//   - onebranch: inputs and ledger on one branch; retention
//   - sources: fifty tenants with repositories of their own
//   - operate: shadow, suspension, metrics, hand-over, ssh, signatures
package spine
