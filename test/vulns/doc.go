// Package vulns holds the project's dependencies to what is published about
// them, without a network: testdata/osv.jsonl is the part of the Go
// vulnerability database (github.com/golang/vulndb, CC-BY 4.0) that concerns
// modules of a go.mod here and the standard library, one report a line, as of
// the commit that testdata/origin names.
//
//   - The tests compare versions with it: a module of the programs with a
//     report that stands against a package that is linked fails; what stands
//     against the modules of test servers is listed in testdata/servers.txt.
//   - Command check (make vuln) runs govulncheck, on https://vuln.go.dev where it
//     can be reached and on this pinned part otherwise, and says which.
//   - Command pin writes the part anew from a checkout of the database.
//
// Only commands and tests here import it. The functions are pure but for
// reading files, and may be called from any goroutine.
package vulns
