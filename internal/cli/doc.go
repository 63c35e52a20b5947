// Package cli is the fleetbroker command: one file a command, each with an
// options struct, a constructor that only parses and a run function that acts.
//
// Rules for what is printed. Results go to standard output, everything else to
// standard error with the prefix "fleetbroker: ". An error says what is wrong
// and, on lines that begin with "hint: ", what to type. A table on a terminal
// has ages ("6m") and reasons that are cut to its width; in a pipe it has tabs, RFC 3339
// times and nothing is cut. Both have a header, unless --no-headers (package tables).
// Colours are for terminals only, and NO_COLOR turns them off; --color decides. Nothing
// here asks questions. Called as kubectl-fleetbroker it is kubectl's plugin, and names
// itself so.
//
// Exit codes are made in one place (exit.go) from typed errors; no command
// calls os.Exit. 0 is fine or no change, 2 from `plan` is changes, 3 from `audit verify`
// a part that was not judged, 1 everything else.
//
// The commands read a fleet repo from a directory or a URL (source.go), a
// market from files or a running daemon (offers.go), and join both with the
// ledger into the planner's world (gather.go), with the same code the
// reconciler uses. No command writes to a remote but `run`, `reconcile` and
// `release`.
//
// Main calls Run; tests call it too, with streams of their own. A command runs
// once, in one goroutine.
//
// # What commands show
//
// How the commands come by what they show:
//
//	flowchart LR
//	  dir[directory] --> source
//	  url[URL] --> source
//	  source -- files --> fleet
//	  source -- ledger branch --> ledger
//	  file["--market FILE"] --> market
//	  daemon["--market URL"] --> market
//	  fleet -- flavors/ --> market
//	  fleet --> world
//	  ledger --> world
//	  market --> world
//	  world --> decide["planner.Decide, planner.Explain"]
//	  decide --> report["planner/report"] --> text[text, JSON, YAML, markdown]
//
// The world is built by the package that builds the daemon's (reconciler/world), and drawn
// by the renderer that draws everybody's (planner/report): an offline plan and a daemon's
// differ only in what they know of the market.
//
// Tests: testdata holds one script a topic (go test ./internal/cli,
// -update for expected output); clusters_e2e_test.go needs real API servers (-tags e2e).
package cli
