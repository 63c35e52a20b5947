package audit

import "github.com/fleetbroker/fleetbroker/internal/api/tree"

// offer is a commit of ours that people were asked to merge.
type offer struct {
	*Commit
	base [4]tree.Entry // generated directories that it stands on
}

// takeOffers reads the commits that may be offers; those that are not here are
// left out.
func (r *reader) takeOffers(heads []tree.Hash) error {
	r.offers = map[[4]tree.Entry][]offer{}
	for _, h := range heads {
		c, err := r.commit(h)
		if err != nil || len(c.Parents) != 1 || c.Trailer("Plan") == "" {
			continue // pruned, or another account's
		}
		parent, err := r.commit(c.Parents[0])
		if err != nil {
			continue
		}
		is, err := r.generated(c.Tree)
		if err != nil {
			return err
		}
		base, err := r.generated(parent.Tree)
		if err != nil {
			return err
		}
		r.offers[is] = append(r.offers[is], offer{c, base})
	}
	return nil
}

// asOffered is a commit in the words of the offer of ours that it is a squash or
// a rebase of: it does to the generated files just what that does, on the same
// ground. Any other commit is returned as it is.
func (r *reader) asOffered(c *Commit, parent tree.Hash) (*Commit, error) {
	if len(r.offers) == 0 {
		return c, nil
	}
	is, err := r.generated(c.Tree)
	if err != nil {
		return nil, err
	}
	base, err := r.generated(parent)
	if err != nil {
		return nil, err
	}
	for _, o := range r.offers[is] {
		if o.base != base || o.Hash == c.Hash || is == base {
			continue
		}
		said := *o.Commit
		said.Hash, said.Tree, said.From, said.Proof = c.Hash, c.Tree, c.From, o.Hash
		return &said, nil
	}
	return c, nil
}
