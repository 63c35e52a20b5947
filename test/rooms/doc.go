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
package rooms
