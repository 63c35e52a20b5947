// Package within keeps a report within what brokers take. Who may make a pod, a slice or a
// node in a cluster may write there what no report may have: a hundred resources, amounts
// that no machine has, thousands of names. A broker refuses such a report whole, and the
// cluster would count as silent, for all who have contracts there.
//
// Invariants:
//   - What is left out never makes more free: a slice that is not reported by its name is
//     reported as the provider's own use, amounts are cut in capacities and in use alike, and
//     what no node has and no contract is of nobody uses.
//   - What is orderly stays as it is. Contracts go before slices that Liqo granted, and
//     those before names that only pods' labels have.
//   - What is left out is a problem in words.
//
// The bounds are those of package market (check.go, pods.go), with room, and of Events. Package
// agent calls it with each report, request and mirror with each Event. Pure; safe for
// concurrent use.
package within
