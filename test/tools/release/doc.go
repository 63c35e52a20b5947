// Command release makes everything of a release, in one directory:
//
//	programs ──► archives of five platforms, an SBOM (SPDX) of each program
//	images   ──► OCI layouts (module test/tools/images)
//	chart    ──► fleetbroker-chart_VERSION.tgz
//	CHANGELOG ─► RELEASE_NOTES.md
//	all      ──► krew manifest, SHA256SUMS; with -key its signature, and the provenance
//	             (SLSA) of archives, programs and chart
//
// Files:
//
//	main.go      flags and order
//	archive.go   programs and their archives
//	notes.go     the version's part of the changelog
//	krew.go      the manifest of the kubectl plugin
//
// Invariants:
//   - The same commit, version, releases and Go make the same bytes, but for signatures:
//     times are the commit's, no path gets in.
//   - Nothing that is there is replaced: the directory must be empty.
//   - What is not in SHA256SUMS is SHA256SUMS, its signature, the provenance, which has a
//     signature in it, and the images, which have digests of their own.
//
// `make release` runs it, the workflow release publishes what it made. One process.
package main
