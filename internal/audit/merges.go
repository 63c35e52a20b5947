package audit

import (
	"context"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
)

// continued sets the parent whose ledger a commit continues: of a merge none on
// which another parent has decided since, so that whatever it takes back from there is
// a change that it makes. A merge is nothing by itself where it has what each of the others
// has, or what one of them has and no other's decisions are lost. Else it continues
// the parent with which the fewest are.
func (g *graph) continued(ctx context.Context, c *Commit) error {
	if len(c.Parents) == 0 {
		return nil
	}
	c.From = c.Parents[0]
	if len(c.Parents) == 1 || len(c.Parents) > tree.MaxParents { // too many say nothing
		return nil
	}
	is, err := g.generated(c.Tree)
	if err != nil {
		return err
	}
	best := -1
	for _, p := range c.Parents {
		if old, err := g.outdated(ctx, c, p); err != nil {
			return err
		} else if old {
			continue
		}
		at, err := g.commit(p)
		if err != nil {
			return err
		}
		was, err := g.generated(at.Tree)
		if err != nil {
			return err
		}
		lost, err := g.dropped(ctx, c, p)
		if err != nil {
			return err
		}
		rank := 2 * len(lost)
		if was != is {
			rank++
		}
		if best < 0 || rank < best {
			best, c.From, c.dropped = rank, p, lost
		}
	}
	return nil
}

// outdated reports whether another parent of a merge descends from one, with
// decisions that this one does not know.
func (g *graph) outdated(ctx context.Context, c *Commit, p tree.Hash) (bool, error) {
	for _, other := range c.Parents {
		if other == p {
			continue
		}
		if holds, err := g.Holds(ctx, other, p); err != nil {
			return false, err
		} else if !holds {
			continue
		}
		only, err := g.Only(ctx, other, p)
		if err != nil {
			return false, err
		}
		for _, h := range only {
			if d, err := g.stored(h); err != nil || d.Trailer("Plan") != "" {
				return err == nil, err
			}
		}
	}
	return false, nil
}

// dropped are the generated files that a merge has as its parent kept has them,
// though decisions that only another parent knows had changed them, with what
// that one has.
func (g *graph) dropped(ctx context.Context, c *Commit, kept tree.Hash) ([]change, error) {
	at, err := g.commit(kept)
	if err != nil {
		return nil, err
	}
	var out []change
	seen := map[string]bool{}
	for _, left := range c.Parents {
		if left == kept {
			continue
		}
		decided, err := g.decidedOnly(ctx, left, kept)
		if err != nil {
			return nil, err
		}
		if len(decided) == 0 {
			continue
		}
		of, err := g.commit(left)
		if err != nil {
			return nil, err
		}
		lost, err := g.changes(of.Tree, c.Tree)
		if err != nil {
			return nil, err
		}
		for _, ch := range lost {
			if seen[ch.path] || !decided[ch.path] {
				continue
			}
			if e, err := g.find(at.Tree, ch.path); err != nil {
				return nil, err
			} else if e.Hash == ch.after.Hash {
				seen[ch.path] = true
				out = append(out, ch)
			}
		}
	}
	return out, nil
}

// decidedOnly are the generated files that commits with decisions changed which
// are reachable from left and not from kept.
func (g *graph) decidedOnly(ctx context.Context, left, kept tree.Hash) (map[string]bool, error) {
	only, err := g.Only(ctx, left, kept)
	if err != nil {
		return nil, err
	}
	paths := map[string]bool{}
	for _, h := range only {
		d, err := g.commit(h)
		if err != nil {
			return nil, err
		}
		if d.Trailer("Plan") == "" {
			continue // a branch of people's, which knows the ledger as it was
		}
		counts := map[string]int{}
		parents := d.Parents
		if len(parents) == 0 {
			parents = []tree.Hash{{}}
		}
		for _, p := range parents {
			was := tree.Hash{}
			if !p.IsZero() {
				n, err := g.commit(p)
				if err != nil {
					return nil, err
				}
				was = n.Tree
			}
			changes, err := g.changes(was, d.Tree)
			if err != nil {
				return nil, err
			}
			for _, ch := range changes {
				if counts[ch.path]++; counts[ch.path] == len(parents) {
					paths[ch.path] = true
				}
			}
		}
	}
	return paths, nil
}
