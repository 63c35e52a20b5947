package writers

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
)

// ReplicaTrailer names the daemon that wrote a commit, or Operator.
const ReplicaTrailer = "Replica"

// Operator is the name in commits of commands that make one round and end.
const Operator = "-"

// Young is for how long a commit shows that its daemon lives.
const Young = 2 * time.Minute

// maxSeek bounds how far back the newest commit of a daemon is looked for.
const maxSeek = 4096

// Repo is what is asked of the fleet repository.
type Repo interface {
	Info(commit tree.Hash) (gitrepo.Commit, error)
	MadeByUs(commit tree.Hash) (bool, error)
}

// Turns says whose turn it is, by the ledger.
type Turns struct {
	// Self is this daemon's name; "" and Operator never stand by.
	Self string
	// Elected reports whether daemons with a name hold elections among each other; nil:
	// they do not. It then stands by for commits without one alone.
	Elected func() bool
	// Now is the clock. It is needed.
	Now func() time.Time
	// Log may be nil.
	Log *slog.Logger

	head  tree.Hash // that was looked at last
	until time.Time // zero: it does not stand by
	why   string
}

// Over reports, once, that a wait has ended: the ledger may have moved since.
func (t *Turns) Over() bool {
	now := t.Now()
	if t.until.IsZero() || now.Before(t.until) && t.until.Sub(now) <= Young {
		return false
	}
	t.end()
	return true
}

// StandsBy is why this daemon stands by, "" when it does not.
func (t *Turns) StandsBy() string { return t.why }

// Until is when a wait ends; zero: there is none.
func (t *Turns) Until() time.Time { return t.until }

// Follow takes over a head of the ledger.
func (t *Turns) Follow(repo Repo, head tree.Hash) error {
	if t.Self == "" || t.Self == Operator || head == t.head {
		return nil
	}
	newest, err := Newest(repo, head)
	if err != nil {
		return fmt.Errorf("look who wrote the ledger: %w", err)
	}
	t.head = head
	name := newest.Trailer(ReplicaTrailer)
	now := t.Now()
	until := newest.When().Add(Young)
	if latest := now.Add(Young); until.After(latest) { // its clock is ahead
		until = latest
	}
	if newest.IsZero() || name == t.Self || name != "" && t.Elected != nil && t.Elected() || !until.After(now) {
		t.end()
		return nil
	}
	t.begin(name, until)
	return nil
}

func (t *Turns) begin(name string, until time.Time) {
	why := fmt.Sprintf("stands by: another daemon, %s, writes this ledger, and the two share no market store; this one decides once that one has written nothing for %s", name, Young)
	if name == "" {
		why = fmt.Sprintf("stands by: a daemon of an older version writes this ledger; this one decides once that one has written nothing for %s", Young)
	}
	if t.until = until; t.why == why {
		return
	}
	t.why = why
	if t.Log != nil {
		t.Log.Warn("stands by: another daemon writes this ledger", "replica", name, "remedy", "stop one of the two, or let them share a store with --market-store=kubernetes")
	}
}

func (t *Turns) end() {
	if t.why != "" && t.Log != nil {
		t.Log.Info("stands by no longer")
	}
	t.until, t.why = time.Time{}, ""
}

// Newest is the newest commit of a daemon's that a head contains, zero for none.
// What others wrote, and operators, is passed over.
func Newest(repo Repo, head tree.Hash) (newest gitrepo.Commit, err error) {
	err = walk(repo, head, func(c gitrepo.Commit, ours bool) bool {
		if !ours || c.Trailer(ReplicaTrailer) == Operator {
			return true
		}
		if newest.IsZero() || c.When().After(newest.When()) {
			newest = c
		}
		return false
	})
	return newest, err
}

// walk goes from a head to its ancestors, and behind those that look says further of.
func walk(repo Repo, head tree.Hash, look func(c gitrepo.Commit, ours bool) (further bool)) error {
	seen, queue := map[tree.Hash]bool{}, []tree.Hash{head}
	for len(queue) > 0 && len(seen) < maxSeek {
		h := queue[0]
		queue = queue[1:]
		if h.IsZero() || seen[h] {
			continue
		}
		seen[h] = true
		c, err := repo.Info(h)
		if err != nil {
			return err
		}
		ours, err := repo.MadeByUs(h)
		if err != nil {
			return err
		}
		if look(c, ours) {
			queue = append(queue, c.Parents...)
		}
	}
	return nil
}
