// Package quick is `fleetbroker demo --quick`: the story of package demo with everything in
// one process, from the program alone.
//
//	memremote (git) ─► reconciler: read, plan, commit ─► inmem (clusters, Liqo, agents)
//	      ▲ people           ▲ market ◄──────────── reports ┘
//	      └─ clone on disk ◄─┴─ commands of the program itself
//
// Real are the reader of the fleet repo, market, planner, ledger, manifests, commits and
// the commands; the clone is a git repository that stays with --dir. Simulated are git's
// server, the clusters with Liqo, and the agents; Opening says so.
//
// Command is called by package cli, whose commands it is handed as a function. One stage
// runs once. It listens on loopback for its own commands alone.
package quick
