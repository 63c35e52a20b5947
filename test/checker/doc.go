// Package checker walks the history of a ledger branch and says where an
// invariant of the design was broken, naming the commit.
//
// It is the judge of the end-to-end tests and of the simulation, so it shares
// no code with the planner, the ledger or the renderer: it reads files as
// plain YAML with types of its own and does its own arithmetic
// (resource.Quantity). What it checks, at every commit of the branch:
//
//   - history is linear, no commit is empty, and every commit that changes a
//     contract says so in a Contract trailer with the phases it saw;
//   - contracts never appear twice, change phase only along the legal edges,
//     and end only out of Releasing, or because another took over their slice
//     as it is in the same commit (a claim of a warm one);
//   - a commit that places or enlarges leaves, for each flavor it did that on,
//     held contracts + local use within capacity × overcommit, as reported in
//     the market snapshot that the contract names (found on the market refs);
//   - tenants stay within their GPU quota as the inputs of that commit say, when
//     the commit places or enlarges;
//   - the manifests of that very commit hold a slice with the contracted
//     resources for each contract that should have one, and for no other.
//
// Callers: test/e2e, test/sim. Not safe for concurrent use.
package checker
