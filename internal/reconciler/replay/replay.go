package replay

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/trust"
)

// History is the objects of a fleet repository.
type History interface {
	tree.Store
	// Commit is a commit's body as it is stored.
	Commit(h tree.Hash) ([]byte, error)
}

// ErrNoDecision is a commit in which nothing was decided that could be decided
// again.
var ErrNoDecision = errors.New("nothing was decided in it")

// Result is a decision made again.
type Result struct {
	// Commit that carries the decision; Base is the ledger's, Inputs the inputs'
	// commit that it was made on, Market the snapshot, Now its time.
	Commit string `json:"commit"`
	Base   string `json:"base,omitempty"`
	Inputs string `json:"inputs"`
	Market string `json:"market"`
	Now    string `json:"now"`
	// Plan is the digest that the commit states, Replayed that of the decision
	// made again, of the files that the commit has.
	Plan     string `json:"plan"`
	Replayed string `json:"replayed"`
	// Same: both are one, and the commit holds just what it says.
	Same bool `json:"same"`
	// Files of the ledger that were decided, and those of them that are not as
	// the commit has them, by path.
	Files       int          `json:"files"`
	Differences []Difference `json:"differences"`
	// Part is set where the commit has a part of the round only, and says which;
	// Elsewhere are the files of the rest.
	Part      string   `json:"part,omitempty"`
	Elsewhere []string `json:"elsewhere,omitempty"`
	// Rules that decided, where this program does not know them: then nothing was
	// made again, and nothing is said of the decision.
	Rules int `json:"rules,omitempty"`
	// NotMadeAgain says so.
	NotMadeAgain string `json:"notMadeAgain,omitempty"`
	// Decided is the plan made again.
	Decided *planner.Plan `json:"-"`
}

// Difference is a file of the ledger that was decided otherwise. Empty text:
// the file is not there after the commit, or would not be.
type Difference struct {
	Path      string `json:"path"`
	Committed string `json:"committed"`
	Replayed  string `json:"replayed"`
}

// Replayer replays commits of one history.
type Replayer struct {
	History History
	// Published reads what was published on a day.
	Published func(ctx context.Context, when time.Time) (gitrepo.Published, error)
	// Root is the trust root that the daemon held the inputs to; nil: none.
	Root *trust.Root

	days map[string]gitrepo.Published
	// reader has what earlier replays read of files that have not changed since,
	// rights what their verifiers did.
	reader, rights *fleet.Reader
}

// commit is one of the ledger's.
type commit struct {
	hash tree.Hash
	gitobj.CommitData
}

func (c *commit) trailer(name string) string {
	if all := gitobj.Trailers(c.Message, name); len(all) > 0 {
		return all[0]
	}
	return ""
}

func (r *Replayer) commit(h tree.Hash) (*commit, error) {
	raw, err := r.History.Commit(h)
	if err != nil {
		return nil, fmt.Errorf("read commit %s: %w", h.Short(), err)
	}
	data, err := gitobj.ParseCommit(raw)
	if err != nil {
		return nil, fmt.Errorf("read commit %s: %w", h.Short(), err)
	}
	return &commit{h, data}, nil
}

// tree of a commit; of none it is empty.
func (r *Replayer) tree(h tree.Hash) (tree.Tree, error) {
	if h.IsZero() {
		return tree.Tree{}, nil
	}
	c, err := r.commit(h)
	if err != nil {
		return tree.Tree{}, err
	}
	return tree.Tree{Store: r.History, Root: c.Tree}, nil
}

// Carries reports whether a commit carries decisions that were recorded.
func (r *Replayer) Carries(h tree.Hash) (bool, error) {
	c, err := r.commit(h)
	if err != nil {
		return false, err
	}
	return c.trailer(Trailer) != "", nil
}

// Replay makes the decision of a commit again. Errors: ErrNoDecision,
// gitrepo.ErrPruned, and what cannot be read.
func (r *Replayer) Replay(ctx context.Context, h tree.Hash) (*Result, error) {
	c, err := r.commit(h)
	if err != nil {
		return nil, err
	}
	if out := otherRules(c); out != nil {
		return out, nil
	}
	known, err := r.known(ctx, c)
	if err != nil {
		return nil, err
	}
	w, err := known.World()
	if err != nil {
		return nil, err
	}
	w.Rules = rulesOf(c)
	p := planner.Decide(w)
	decided, err := filesOf(p, w.Rules < planner.ReasonRules)
	if err != nil {
		return nil, err
	}
	out := &Result{
		Commit: h.String(), Base: known.Base, Inputs: known.Inputs, Market: known.Market.Root.String(), Now: known.Now.UTC().Format(time.RFC3339),
		Plan: c.trailer("Plan"), Part: c.trailer(PartTrailer), Decided: p, Differences: []Difference{},
	}
	if err := r.compare(out, c, decided); err != nil {
		return nil, err
	}
	if why := otherwise(p, w.Rules); why != "" && !out.Same {
		out.Rules, out.Differences, out.Decided = w.Rules, []Difference{}, nil
		out.NotMadeAgain = fmt.Sprintf("decided by rules %d, not made again: %s", w.Rules, why)
	}
	return out, nil
}

// otherwise says what of a plan this program does not decide by the older rules that
// it was asked for, "" for nothing.
func otherwise(p *planner.Plan, rules int) string {
	switch {
	case p.Solved() && rules < planner.SolvedRules:
		return fmt.Sprintf("this program solves what came at once by rules %d and higher only", planner.SolvedRules)
	case p.Reworded() && rules < planner.ReasonRules:
		return fmt.Sprintf("this program writes other words of the same trouble by rules %d and higher only", planner.ReasonRules)
	case p.Reordered() && rules < planner.OrderRules:
		return fmt.Sprintf("this program serves what waits with a budget of its own in another order by rules %d and higher only", planner.OrderRules)
	}
	return ""
}

// RulesTrailer numbers the planner's rules that made a commit's decisions.
const RulesTrailer = "Rules"

// rulesOf numbers the rules that made a commit's decisions: the first where it
// is from before they were numbered.
func rulesOf(c *commit) int {
	n, err := strconv.Atoi(c.trailer(RulesTrailer))
	if err != nil {
		return 1
	}
	return n
}

// otherRules is the result for a decision by rules that this program does not
// know, nil where it does.
func otherRules(c *commit) *Result {
	n := rulesOf(c)
	if n >= 1 && n <= planner.Rules || c.trailer(Trailer) == "" {
		return nil
	}
	return &Result{
		Commit: c.hash.String(), Inputs: c.trailer("Inputs"), Market: c.trailer("Market"), Now: c.trailer("Now"), Plan: c.trailer("Plan"),
		Part: c.trailer(PartTrailer), Differences: []Difference{}, Rules: n,
		NotMadeAgain: fmt.Sprintf("decided by rules %d, not made again: this program knows rules 1 to %d", n, planner.Rules),
	}
}

// known gathers what the round knew.
func (r *Replayer) known(ctx context.Context, c *commit) (Known, error) {
	if c.trailer(Trailer) == "" {
		return Known{}, fmt.Errorf("commit %s: %w", c.hash.Short(), ErrNoDecision)
	}
	var hashes [3]tree.Hash
	for i, name := range []string{"Inputs", "Market", Trailer} {
		var err error
		if hashes[i], err = tree.ParseHash(c.trailer(name)); err != nil {
			return Known{}, fmt.Errorf("commit %s: its trailer %s: %w", c.hash.Short(), name, err)
		}
	}
	now, err := time.Parse(time.RFC3339, c.trailer("Now"))
	if err != nil {
		return Known{}, fmt.Errorf("commit %s: its trailer Now: %w", c.hash.Short(), err)
	}
	day, err := r.day(ctx, now)
	if err != nil {
		return Known{}, err
	}
	k := Known{Now: v1alpha1.TimeOf(now), Inputs: hashes[0].String()}
	if k.Market, err = day.Market(hashes[1]); err != nil {
		return Known{}, err
	}
	text, err := day.Round(hashes[2])
	if err != nil {
		return Known{}, err
	}
	if k.Record, err = Decode(text); err != nil {
		return Known{}, err
	}
	var base tree.Hash
	if k.Base != "" {
		if base, err = tree.ParseHash(k.Base); err != nil {
			return Known{}, fmt.Errorf("what the round knew: base: %w", err)
		}
	}
	at, err := r.tree(base)
	if err != nil {
		return Known{}, err
	}
	if k.Ledger, _, err = ledger.Read(ctx, at, nil); err != nil {
		return Known{}, fmt.Errorf("read the ledger at %s: %w", base.Short(), err)
	}
	if at, err = withRequests(at, k.Requests); err != nil {
		return Known{}, fmt.Errorf("what the round knew: requests: %w", err)
	}
	k.Fleet, err = r.inputs(ctx, hashes[0], at, tree.Tree{Store: r.History, Root: c.Tree}, k.Record, now)
	return k, err
}

func (r *Replayer) day(ctx context.Context, at time.Time) (gitrepo.Published, error) {
	ref := gitrepo.MarketDay(at)
	if p, ok := r.days[ref]; ok {
		return p, nil
	}
	p, err := r.Published(ctx, at)
	if err != nil {
		return p, err
	}
	r.days = map[string]gitrepo.Published{ref: p} // the next is likely to be of the same day
	return p, nil
}

// filesOf are the ledger's files that a plan writes; nil: deletes. together: in the
// form of before planner.ReasonRules.
func filesOf(p *planner.Plan, together bool) (map[string][]byte, error) {
	changes := p.LedgerChanges()
	if together {
		changes.Contracts = slices.Clone(changes.Contracts)
		for i := range changes.Contracts {
			if c := &changes.Contracts[i]; c.After != nil {
				c.After = ledger.Together(c.After)
			}
		}
	}
	puts, deletes, err := changes.Files()
	if err != nil {
		return nil, err
	}
	for _, path := range deletes {
		if _, written := puts[path]; !written {
			puts[path] = nil
		}
	}
	return puts, nil
}

// compare lays what was decided again beside what the commit did.
func (r *Replayer) compare(out *Result, c *commit, decided map[string][]byte) error {
	var parent tree.Hash
	if len(c.Parents) > 0 {
		parent = c.Parents[0]
	}
	before, err := r.tree(parent)
	if err != nil {
		return err
	}
	after := tree.Tree{Store: r.History, Root: c.Tree}
	did, err := changed(before, after)
	if err != nil {
		return err
	}
	again := map[string]tree.Hash{}
	for path, content := range decided {
		is := tree.Hash{}
		if content != nil {
			is = tree.BlobHash(content)
		}
		was, err := entry(before, path)
		if err != nil {
			return err
		}
		if was != is {
			again[path] = is
		}
	}
	out.Files = len(again)
	both := maps.Clone(again)
	maps.Copy(both, did)
	for _, path := range slices.Sorted(maps.Keys(both)) {
		is, committed := did[path]
		want, wanted := again[path]
		switch {
		case committed && wanted && is == want:
		case !committed && out.Part != "":
			out.Elsewhere = append(out.Elsewhere, path)
			delete(again, path)
		default:
			d := Difference{Path: path, Replayed: string(decided[path])}
			if !wanted {
				d.Replayed = content(before, path)
			}
			d.Committed = content(after, path)
			out.Differences = append(out.Differences, d)
		}
	}
	out.Replayed = ledger.Digest(again)
	out.Same = len(out.Differences) == 0 && out.Replayed == out.Plan
	return nil
}

// changed are the ledger's files in which two trees differ, but for the list of
// what is set aside, which no plan writes.
func changed(before, after tree.Tree) (map[string]tree.Hash, error) {
	a, err := before.Sub(ledger.Root)
	if err != nil {
		return nil, err
	}
	b, err := after.Sub(ledger.Root)
	if err != nil {
		return nil, err
	}
	out := map[string]tree.Hash{}
	err = tree.Diff(a, b, func(path string, _, is tree.Entry) error {
		if path != ledger.SetAsideFile {
			out[ledger.Root+"/"+path] = is.Hash
		}
		return nil
	})
	return out, err
}

func entry(t tree.Tree, path string) (tree.Hash, error) {
	if t.IsZero() {
		return tree.Hash{}, nil
	}
	e, err := t.Find(path)
	if errors.Is(err, fs.ErrNotExist) {
		return tree.Hash{}, nil
	}
	return e.Hash, err
}

// content is a file's text, empty where there is none.
func content(t tree.Tree, path string) string {
	if t.IsZero() {
		return ""
	}
	b, err := t.ReadFile(path, 0)
	if err != nil {
		return ""
	}
	return strings.ToValidUTF8(string(b), "?")
}
