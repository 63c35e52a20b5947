// Package rooms holds the rules by which the code is laid out, as tests:
// who may import whom, what lies at the top of the repository, and what every
// source file owes its reader. It has no code of its own.
//
// # Who may import whom
//
// A room is a directory of internal, with everything below it.
//
//   - api imports no other room;
//   - ledger and manifests import only api, planner and notify only api and
//     ledger;
//   - forge imports no other room, review only api, fleet, ledger and planner;
//   - gitrepo, market and delivery are known together only to reconciler,
//     server, cli and the mains: everybody else knows at most one of them;
//   - nobody imports reconciler but cli and the mains.
//
// Imports count through others too: planner may not reach market by way of
// ledger. Packages under test are exempt, and so are the imports of _test.go
// files: a test may join whatever it likes.
//
// The planner is several packages, in an order of floors: each imports only those that
// come before it (imports_test.go).
//
// # How large it may get
//
// A file of code has at most 600 lines, a package 4,000 without its tests; the few that
// had more when this was laid down have a figure each, which may only fall. A struct of
// the planner declares at most 25 fields and a type at most 60 methods. What a package
// comment of the planner names exists: files, and who asks for a phase by its name
// (docs_test.go).
package rooms
