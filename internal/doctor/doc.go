// Package doctor finds out why a contract is not usable, and what to do.
//
//	clusters ──Gather──► Picture ──Diagnose──► []Finding: link, where, cause, remedy
//
// A contract's chain has a link for each thing that must be right: the intent's
// file, the manifest in git, the way to each cluster, what is installed there,
// the peering, the policies, slice, virtual node, Node, offloaded namespaces,
// pods, and the provider's side of all this. What goes wrong with Liqo v1.2.0
// often shows nowhere, or as success; each such trap is a check here.
//
// # Invariants
//
//   - A check is a function of the picture alone. Only Gather talks to clusters,
//     and it only reads.
//   - What could not be read proves nothing: a check whose objects are unknown
//     finds nothing, and that they are unknown is a finding of its own.
//   - Each finding names one cause and one remedy that a person can carry out.
//   - Each diagnosis has a code, and a test that makes the trouble on real Liqo:
//     one without fails the tests.
//   - Credentials are looked at for their labels, annotations and dates; none is
//     ever part of a picture.
//
// cli calls it for `fleetbroker doctor`. Nothing is kept between calls; a
// picture is not changed once it was gathered, and may be shared.
package doctor
