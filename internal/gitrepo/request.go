package gitrepo

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/escape"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
)

// Item is one intent's share of a commit.
type Item struct {
	// Key names the item in results; unique within a request.
	Key string
	// Group: items of one non-empty group are never committed apart (what is
	// placed on capacity and what gives that capacity up, for one).
	Group string
	// Puts are files written, Deletes paths removed (a directory whole). Two
	// items may write one path only with equal bytes; what depends on several
	// items comes from Request.Compose.
	Puts    map[string][]byte
	Deletes []string
	// Line says in the commit message what is done; Trailers are ready-made
	// `Key: value` lines of this item.
	Line     string
	Trailers []string
}

// Composed is what a commit of certain items has beside theirs.
type Composed struct {
	// Subject is the first line when there are several items.
	Subject  string
	Puts     map[string][]byte
	Deletes  []string
	Trailers []string
}

// Request is one commit to the ledger.
type Request struct {
	// Base is the ledger's head that the request was planned on, Inputs the
	// inputs' commit it acted on.
	Base, Inputs tree.Hash
	// Verified is the inputs' commit to note as accepted; zero: Inputs.
	Verified tree.Hash
	Items    []Item
	// Compose gives what depends on the items together: the subject, and shared
	// files (a kustomization.yaml that lists files) as they must be when these
	// items are put on this parent's tree. It is called for every attempt: after
	// a refusal with fewer items, and then with what landed in the parent. It
	// must depend on nothing else. Nil: none.
	Compose func(parent tree.Tree, items []Item) (Composed, error)
	// Empty: the commit is made though it changes no file, for what its trailers say.
	Empty bool
	// Trailers go once at the end: Inputs, Market, Plan, Now.
	Trailers []string
	// When is the committer's time; it is World.Now. A parent that is newer
	// (within the clocks' tolerance) lends its own.
	When time.Time
	// Market is the snapshot to publish with this commit; zero: none.
	Market tree.Tree
	// Round is what else the items were decided on; it is published beside the
	// market, and only with it.
	Round []byte
	// Reads are paths whose content the plan depended on beside the inputs and
	// the paths it writes; if one differs on a newer parent, it is planned
	// again. Nil means everything under contracts, which is right for whatever
	// takes capacity: another writer's new contract may have taken the same.
	// An empty slice means none.
	Reads []string
}

// Result is what Commit achieved; it is valid also beside an error.
type Result struct {
	// Commits landed, in order; more than one only after a refusal.
	Commits []Committed
	// Unchanged are items that change nothing on the ledger.
	Unchanged []string
	// Refused are items that the remote refuses though others pass.
	Refused []Refusal
	// Conflicts is how often another writer was faster.
	Conflicts int
}

// Committed is one commit that is on the remote's ledger.
type Committed struct {
	Commit Commit
	Keys   []string
}

// Refusal is an item that the remote refuses.
type Refusal struct {
	Key   string
	Cause error
}

// accepts is the inputs' commit that landing accepts.
func (q *Request) accepts() tree.Hash {
	if q.Verified.IsZero() {
		return q.Inputs
	}
	return q.Verified
}

// Head is the last commit that landed; zero: none.
func (r Result) Head() tree.Hash {
	if len(r.Commits) == 0 {
		return tree.Hash{}
	}
	return r.Commits[len(r.Commits)-1].Commit.Hash
}

// check refuses what no caller should ask for.
func (q *Request) check(generated []string) error {
	seen := map[string]bool{}
	content := map[string][]byte{}
	for _, it := range q.Items {
		if it.Key == "" || seen[it.Key] {
			return fmt.Errorf("commit request: item key %q is empty or not unique", it.Key)
		}
		seen[it.Key] = true
		for p, b := range it.Puts {
			if old, ok := content[p]; ok && !bytes.Equal(old, b) {
				return fmt.Errorf("commit request: two items write %s differently", p)
			}
			content[p] = b
		}
		for p := range it.Puts {
			if err := inside(generated, p); err != nil {
				return err
			}
		}
		for _, p := range it.Deletes {
			if err := deletable(generated, p); err != nil {
				return err
			}
		}
	}
	if q.When.IsZero() {
		return fmt.Errorf("commit request: no time")
	}
	return nil
}

// inside keeps the daemon from writing what people write.
func inside(generated []string, p string) error {
	for _, g := range generated {
		if strings.HasPrefix(p, strings.TrimSuffix(g, "/")+"/") {
			return nil
		}
	}
	return fmt.Errorf("commit request: %s is not under %s", p, strings.Join(generated, ", "))
}

// deletable is inside, of a path to delete: it may be a generated directory
// itself, in whose place a file may stand.
func deletable(generated []string, p string) error {
	for _, g := range generated {
		if p == strings.TrimSuffix(g, "/") {
			return nil
		}
	}
	return inside(generated, p)
}

// groups splits the items into what must stay together, in order.
func groups(items []Item) [][]Item {
	var out [][]Item
	at := map[string]int{}
	for _, it := range items {
		if i, ok := at[it.Group]; ok && it.Group != "" {
			out[i] = append(out[i], it)
			continue
		}
		at[it.Group] = len(out)
		out = append(out, []Item{it})
	}
	return out
}

func keysOf(items []Item) []string {
	keys := make([]string, len(items))
	for i, it := range items {
		keys[i] = it.Key
	}
	return keys
}

// composed is a set of items made into one change and one message.
type composed struct {
	change  gitobj.Change
	message string
}

func (q *Request) compose(parent tree.Tree, items []Item, generated []string) (composed, error) {
	var extra Composed
	if q.Compose != nil {
		var err error
		if extra, err = q.Compose(parent, items); err != nil {
			return composed{}, fmt.Errorf("compose commit: %w", err)
		}
	}
	ch := gitobj.Change{Puts: map[string][]byte{}}
	var lines, trailers []string
	for _, it := range items {
		maps.Copy(ch.Puts, it.Puts)
		ch.Deletes = append(ch.Deletes, it.Deletes...)
		if it.Line != "" {
			lines = append(lines, it.Line)
		}
		trailers = append(trailers, it.Trailers...)
	}
	for p, b := range extra.Puts {
		if err := inside(generated, p); err != nil {
			return composed{}, err
		}
		ch.Puts[p] = b
	}
	for _, p := range extra.Deletes {
		if err := deletable(generated, p); err != nil {
			return composed{}, err
		}
	}
	ch.Deletes = append(ch.Deletes, extra.Deletes...)
	trailers = append(append(trailers, extra.Trailers...), q.Trailers...)
	return composed{ch, Message(extra.Subject, lines, trailers)}, nil
}

// Message is a commit message as FORMATS lays it down: the one line as the
// subject, or the given subject (default `<n> changes`) and a line each; then
// the trailers.
func Message(subject string, lines, trailers []string) string {
	var b strings.Builder
	switch {
	case len(lines) == 1:
		b.WriteString(oneLine(lines[0]) + "\n")
	default:
		if subject == "" {
			subject = fmt.Sprintf("%d changes", len(lines))
		}
		b.WriteString(oneLine(subject) + "\n")
		if len(lines) > 0 {
			b.WriteByte('\n')
		}
		for _, l := range lines {
			b.WriteString(oneLine(l) + "\n")
		}
	}
	if len(trailers) > 0 {
		b.WriteByte('\n')
		for _, t := range trailers {
			b.WriteString(oneLine(t) + "\n")
		}
	}
	return b.String()
}

// oneLine keeps names that people chose from adding lines, and with them
// trailers, to a message.
func oneLine(s string) string { return strings.Join(strings.Fields(escape.Line(s)), " ") }

// paths are all paths the items touch.
func (c composed) paths() []string {
	return slices.Concat(slices.Sorted(maps.Keys(c.change.Puts)), c.change.Deletes)
}
