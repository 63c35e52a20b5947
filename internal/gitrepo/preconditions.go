package gitrepo

import (
	"context"
	"slices"
)

// preconditions compare what the request was planned on with the ledger's
// present head.
func (w *writer) preconditions(ctx context.Context, c composed) error {
	r := w.r
	head := r.refs[r.ledgerRef]
	if head == w.base {
		return nil
	}
	replan := &ErrReplan{Head: head}
	if !w.base.IsZero() {
		ok, err := r.isAncestor(w.base, head)
		if err != nil {
			return err
		}
		if !ok {
			return &ErrReplan{Head: head, Paths: []string{"."}}
		}
	}
	v := r.ledger(w.base)
	before, err := v.tree(w.base)
	if err != nil {
		return err
	}
	after, err := v.tree(head)
	if err != nil {
		return err
	}
	if replan.Inputs, err = w.inputsChanged(); err != nil {
		return err
	}
	reads := w.req.Reads
	if reads == nil {
		reads = []string{"contracts"}
	}
	for _, p := range slices.Concat(c.paths(), reads) {
		was, err := find(before, p)
		if err != nil {
			return err
		}
		is, err := find(after, p)
		if err != nil {
			return err
		}
		if was != is {
			replan.Paths = append(replan.Paths, p)
		}
	}
	if replan.Foreign, err = r.foreign(ctx, *r.identity.Load(), w.base, head, nil, r.offered()); err != nil {
		return err
	}
	if replan.Inputs || len(replan.Paths) > 0 || len(replan.Foreign) > 0 {
		return replan
	}
	w.base = head
	return nil
}

// inputsChanged compares what people wrote at the inputs' commit acted on and
// at their present head.
func (w *writer) inputsChanged() (bool, error) {
	r := w.r
	head := r.refs[r.inputsRef]
	if head == w.req.Inputs || w.req.Inputs.IsZero() {
		return head != w.req.Inputs, nil
	}
	v := r.inputs(w.req.Inputs)
	before, err := v.tree(w.req.Inputs)
	if err != nil {
		return false, err
	}
	after, err := v.tree(head)
	if err != nil {
		return false, err
	}
	for _, p := range r.opts.InputPaths {
		was, err := find(before, p)
		if err != nil {
			return false, err
		}
		is, err := find(after, p)
		if err != nil {
			return false, err
		}
		if was != is {
			return true, nil
		}
	}
	return false, nil
}
