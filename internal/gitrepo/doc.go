// Package gitrepo is the write-back: it reads the fleet repository and is the
// only writer of its ledger. It works on a bare copy without a worktree: blobs,
// the touched trees, one commit, one pack of only the new objects, sent
// straight to the server with the ref's old and new value. (go-git's worktree
// costs O(repository) a file; git-and-flux measurements: seconds against
// milliseconds.)
//
// Invariants
//   - A commit counts once the remote acknowledged it, or, its answer lost,
//     once the re-read ref contains it. Until then Commit returns no success
//     and no reader sees it; ErrUnknown means that nobody may be told anything
//     before a later Fetch decides.
//   - Every push is compare-and-swap at the server. Two are not forward: the branch
//     of offers, which is ours alone, is put on a commit next to its last; and a
//     ledger whose head cannot be taken in is set back to what stood, once it is
//     known that only commits of others are dropped (SetBack). Whatever a server
//     answers, its text is never parsed: the refs are read again.
//   - A commit is moved to a new parent only when what it was planned on (the
//     inputs, the paths it read, the paths it writes) is the same there and
//     nobody foreign wrote generated paths in between; else ErrReplan.
//   - The remote is the truth. Everything on the local disk can be deleted at
//     any time; it is cloned again and swapped in. The exception is
//     accepted.json, which remembers the accepted heads beside the remote's
//     refs/fleetbroker/accepted/*: a head that does not descend from both
//     stops everything with ErrRewritten until AcceptRewrite.
//   - A market ref moves forward only: one that does not come after what this
//     process, or accepted.json, knows of it is put back, with an alarm. It is a hint,
//     and never stops the ledger.
//   - Equal requests on equal parents give byte-equal commits (signatures by
//     ed25519 keys included).
//
// Crashes: before the push, nothing has happened anywhere. Between push and
// answer, the next Fetch sees the commit or does not; names derive from
// intents, so planning again converges. After the answer, local state is only
// behind, and the next Fetch brings it up.
//
// Objects of acknowledged commits and of small fetches stay in memory and are
// written out as one pack from time to time, so that a commit costs no local
// disk operation and packs do not pile up; after a crash they are fetched
// again.
//
// Who calls it: reconciler, server and cli. fleet and ledger see only
// tree.Tree values.
//
// Concurrency: a Repo is safe for concurrent use. Fetch, Commit and the other
// verbs run one at a time, under one lock, across the network. Tree values
// already handed out stay readable meanwhile and for good, by many at once
// (package packs reads them).
package gitrepo
