// Package domain is the kind of domain that the replicas of an intent share
// (placement.within), and what domains have room for: values, without jobs or contracts.
//
//	kind.go   which kind an intent's replicas share, and the rule on one of them
//	rooms.go  what a domain comes to for replicas, counted offer by offer
//
// Invariants:
//   - An intent that names no domain has one by its gang, its spread and the fleet's
//     default alone (Of).
//   - Equal offers give equal orders of domains: ties go by name.
//
// Called by packages place and beyond, and by planner's last check. Pure functions of their
// arguments.
package domain
