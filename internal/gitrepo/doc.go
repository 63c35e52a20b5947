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
//
// # One commit
//
//	sequenceDiagram
//	  participant C as caller (a round)
//	  participant R as Repo
//	  participant S as git server
//	  C->>R: Commit(base, inputs, items)
//	  R->>R: new blobs, only the touched trees, one commit, signed, one pack
//	  R->>S: push (market, ledger old..new, accepted/*), all or none
//	  alt acknowledged
//	    S-->>R: ok
//	    R-->>C: Result: the items are on the ledger
//	  else refused, or no answer
//	    R->>S: which commit are the refs at?
//	    alt the ledger contains our commit
//	      R-->>C: Result (only the answer was lost)
//	    else a ref moved
//	      R->>S: fetch
//	      R->>R: inputs, read paths, written paths the same? nobody foreign?
//	      R->>S: yes: built again on the new parent, pushed again
//	      R-->>C: no: ErrReplan
//	    else nothing moved: a real refusal
//	      R->>S: again in halves, until the culprit stands alone
//	      R-->>C: Result with Refused, or ErrRefused
//	    else no answer at all
//	      R-->>C: ErrUnknown: tell nobody anything; a later Fetch decides
//	    end
//	  end
//
// # What lies where
//
//	flowchart LR
//	  subgraph remote[the remote: the truth]
//	    I[refs/heads/inputs] --- L[refs/heads/ledger] --- A[refs/fleetbroker/accepted/*] --- M[refs/fleetbroker/market/yyyymmdd]
//	  end
//	  subgraph state[state directory: may be deleted at any time]
//	    P[cache-*/objects: packs] --- H[cache-*/heads.json]
//	    J[accepted.json: a second witness against rewritten history]
//	  end
//	  subgraph memory
//	    O[recent objects, written out as one pack from 32 MiB on]
//	  end
//	  remote -->|clone, large fetches| state
//	  remote -->|small fetches, acknowledged commits| memory
//	  memory --> state
//
// # Sub-packages
//
//   - gitobj: git's objects as pure values: trees edited, commits encoded, packs.
//   - pushbudget: so many pushes a minute, and none while the forge asks for none.
//   - memremote: the remote's deterministic twin in memory, with both kinds of fault (not
//     persisted; persisted though it failed), for tests and simulation.
//
// # Measured
//
// go test -bench Commit ./internal/gitrepo/: ten contracts committed to a fleet of 100
// tenants x 1,000 files, in turn with git push of a commit of the same shape to the same
// server. On 2 busy cores: 0.98 of git's time over file, 0.90 over http (git
// http-backend); nearly all of it is the server's. A fetch with nothing new: 2 ms over
// file; reading all 100,000 files: 1.8 s; the clone: 2.4 s.
package gitrepo
