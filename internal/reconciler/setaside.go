package reconciler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/escape"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/poison"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/traced"
)

// planSetAside is the Plan of a commit that decides nothing and brings the list
// of what is set aside up to date.
const planSetAside = "set-aside"

// asideTrailer names a piece that is set aside, or read again.
const asideTrailer = "Set-Aside"

// suspected is what this process knows of pieces of the inputs that end
// processes.
type suspected struct {
	// pieces of the inputs at the newest head.
	pieces poison.Pieces
	// out are those that trials of this process leave out: the ledger lists those
	// that are set aside as soon as it can be written.
	out []fleet.Unread
	// listed is the ledger's list as this process saw it last.
	listed []fleet.Unread
	// wrote are the commits of the list in the round under way.
	wrote []gitrepo.Committed
	// lift are those to be tried again.
	lift []string
	// try: suspects may be tried now.
	try bool
	// again: the inputs are to be read again though nothing has changed.
	again bool
}

// suspect tries what was being read when the process before this one ended, and
// notes what is going to be read.
func (r *Reconciler) suspect(heads gitrepo.Heads) error {
	inputs, err := r.opts.Repo.Said(heads.Inputs.Commit.Hash)
	var broken *tree.BrokenError
	if errors.As(err, &broken) {
		return nil // it says nothing, and is not read
	}
	if err != nil {
		return fmt.Errorf("read the inputs at %s: %w", heads.Inputs.Commit.Hash.Short(), err)
	}
	pieces, err := poison.PiecesOf(inputs)
	if err != nil {
		return err
	}
	listed, err := fleet.Recorded(heads.Ledger.Tree)
	if err != nil {
		return err
	}
	r.liftedElsewhere(listed)
	if r.suspected.try && len(r.opts.Watch.Suspects()) > 0 {
		r.suspected.out = slices.DeleteFunc(r.suspected.out, func(u fleet.Unread) bool { return u.Again })
		trial := poison.Trial{Inputs: inputs, Aside: append(slices.Clone(listed), r.suspected.out...), Log: r.opts.Log}
		found, err := trial.Try(r.opts.Watch)
		if err != nil {
			return err
		}
		for _, p := range found {
			if p.Again {
				continue
			}
			r.opts.Log.Error("a piece of the inputs ended the process that read it, alone and twice: it is set aside, and what it last said stays in force", "piece", p.Path, "hash", p.Hash, "why", p.Why)
		}
		r.suspected.out = append(r.suspected.out, found...)
		r.suspected.try, r.suspected.again = false, true
	}
	r.verifier.Without(append(listed, r.suspected.out...))
	r.suspected.pieces = pieces
	r.opts.Watch.Begin(poison.Read, pieces)
	return nil
}

// liftedElsewhere lets go of what trials of this process left out and another
// process has taken off the ledger's list since, by an operator's word: it is tried
// alone again before it is read.
func (r *Reconciler) liftedElsewhere(listed []fleet.Unread) {
	on := func(list []fleet.Unread, u fleet.Unread) bool {
		return slices.ContainsFunc(list, func(l fleet.Unread) bool { return l.Path == u.Path && l.Hash == u.Hash })
	}
	r.suspected.out = slices.DeleteFunc(r.suspected.out, func(u fleet.Unread) bool {
		lifted := on(r.suspected.listed, u) && !on(listed, u)
		if lifted {
			r.opts.Log.Info("a piece of the inputs was lifted by another process: it is tried alone, and read if that goes well", "piece", u.Path, "hash", u.Hash)
			r.opts.Watch.Suspect(u.Path, u.Hash)
			r.suspected.try, r.suspected.again = true, true
		}
		return lifted
	})
	r.suspected.listed = listed
}

// readThrough notes that the inputs were read.
func (r *Reconciler) readThrough(f *fleet.Fleet) {
	r.suspected.again = false
	good := r.suspected.pieces
	for _, u := range f.NotRead {
		if good[u.Path] == u.Hash { // a piece as a whole
			good = lessPiece(good, u.Path)
		}
	}
	r.opts.Watch.Done(poison.Read, good)
}

func lessPiece(pieces poison.Pieces, path string) poison.Pieces {
	out := poison.Pieces{}
	for p, hash := range pieces {
		if p != path {
			out[p] = hash
		}
	}
	return out
}

// unlisted are the pieces that were left out and that the ledger does not list:
// replay cannot know of them otherwise.
func unlisted(in *inputs) []fleet.Unread {
	var out []fleet.Unread
	for _, u := range in.fleet.NotRead {
		if !slices.ContainsFunc(in.ledger.SetAside(), func(p v1alpha1.SetAsidePiece) bool { return p.Path == u.Path && p.Hash == u.Hash }) {
			out = append(out, u)
		}
	}
	return out
}

// asideDue is what the ledger should list: what was left out of this read, but
// for what may be read the next time and what is lifted.
func (r *Reconciler) asideDue(in *inputs) []v1alpha1.SetAsidePiece {
	var out []v1alpha1.SetAsidePiece
	for _, u := range in.fleet.NotRead {
		if u.Again || slices.Contains(r.suspected.lift, u.Path) {
			continue
		}
		p := u.SetAsidePiece
		if i := slices.IndexFunc(in.ledger.SetAside(), func(l v1alpha1.SetAsidePiece) bool { return l.Path == p.Path && l.Hash == p.Hash }); i >= 0 {
			p = in.ledger.SetAside()[i]
		} else {
			p.At = r.now(in)
		}
		out = append(out, p)
	}
	return out
}

// recordAside brings the ledger's list of what is set aside up to what was read,
// before anything is decided on it, and returns what is to be decided on: nil
// when another writer was faster. A ledger that does not take the list stops
// nothing: the pieces are left out all the same.
func (r *Reconciler) recordAside(ctx context.Context, in *inputs) (*inputs, error) {
	for _, path := range r.suspected.lift {
		if !slices.ContainsFunc(in.fleet.NotRead, func(u fleet.Unread) bool { return u.Path == path }) {
			return nil, fmt.Errorf("lift %s: no such piece of the inputs is set aside; those that are: %s", path, pathsOf(in.fleet.NotRead))
		}
	}
	if len(r.suspected.lift) > 0 && r.offers(in) {
		return nil, fmt.Errorf("lift %s: the list of what is set aside is proposed with the decisions of this fleet, and only a change of the file takes a piece off it: change the file (a comment is enough)", strings.Join(r.suspected.lift, ", "))
	}
	due := r.asideDue(in)
	if slices.Equal(due, in.ledger.SetAside()) || r.shadow(in) {
		return in, nil
	}
	item, err := asideItem(in, due)
	if err != nil {
		return nil, err
	}
	if r.offers(in) {
		in.aside = item
		return in, nil
	}
	res, err := r.opts.Repo.Commit(ctx, r.asideRequest(in, item))
	var replan *gitrepo.ErrReplan
	var busy *gitrepo.ErrBusy
	var refused *gitrepo.ErrRefused
	switch {
	case errors.As(err, &replan), errors.As(err, &busy):
		r.ask.Store(true)
		return nil, ctx.Err()
	case errors.As(err, &refused) && len(r.suspected.lift) == 0:
		r.once.Log.Warn("the remote refuses the list of what is set aside", "error", refused.Cause)
		return in, nil
	case err != nil:
		return nil, fmt.Errorf("write what is set aside: %w", err)
	}
	if len(res.Commits) == 0 {
		return in, nil
	}
	lifted := len(r.suspected.lift) > 0
	for _, path := range r.suspected.lift { // tried alone before it is read
		i := slices.IndexFunc(in.fleet.NotRead, func(u fleet.Unread) bool { return u.Path == path })
		r.opts.Watch.Suspect(path, in.fleet.NotRead[i].Hash)
		r.suspected.out = slices.DeleteFunc(r.suspected.out, func(u fleet.Unread) bool { return u.Path == path })
	}
	r.suspected.lift, r.suspected.try, r.suspected.wrote = nil, true, append(r.suspected.wrote, res.Commits...)
	traced.Committed(ctx, r.opts.Log, res.Commits)
	if err := r.advance(ctx, res); err != nil {
		return nil, err
	}
	next, err := r.read(ctx)
	if err != nil || next == nil || !lifted {
		return next, err
	}
	return r.recordAside(ctx, next) // what was lifted may have ended its child again: a single round says so, too
}

// asideItem makes the ledger's list what is due.
func asideItem(in *inputs, due []v1alpha1.SetAsidePiece) (*gitrepo.Item, error) {
	was := in.ledger.SetAside()
	file := ledger.Root + "/" + ledger.SetAsideFile
	item := &gitrepo.Item{Key: planSetAside}
	if len(due) == 0 {
		item.Deletes = []string{file}
	} else {
		content, err := ledger.Encode(v1alpha1.SetAside{TypeMeta: v1alpha1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindSetAside}, Pieces: due})
		if err != nil {
			return nil, err
		}
		item.Puts = map[string][]byte{file: content}
	}
	var said []string
	for _, p := range due {
		if !slices.Contains(was, p) {
			item.Trailers = append(item.Trailers, fmt.Sprintf("%s: %s %s %s", asideTrailer, escape.Field(p.Path), p.Hash, p.Why))
			said = append(said, fmt.Sprintf("set aside %s, which twice ended the process that reads it (%s)", escape.Field(p.Path), p.Why))
		}
	}
	for _, p := range was {
		if !slices.ContainsFunc(due, func(d v1alpha1.SetAsidePiece) bool { return d.Path == p.Path }) {
			item.Trailers = append(item.Trailers, fmt.Sprintf("%s: %s - lifted", asideTrailer, escape.Field(p.Path)))
			said = append(said, fmt.Sprintf("read %s again", escape.Field(p.Path)))
		}
	}
	item.Line = strings.Join(said, ", ")
	return item, nil
}

// asideRequest is the commit of a list alone.
func (r *Reconciler) asideRequest(in *inputs, item *gitrepo.Item) gitrepo.Request {
	req := r.newRequest(in, tree.Hash{}, planSetAside, r.now(in))
	req.Items, req.Reads = []gitrepo.Item{*item}, []string{}
	return req
}

// withAside adds the list to a request with decisions.
func withAside(req gitrepo.Request, item *gitrepo.Item) gitrepo.Request {
	if item == nil {
		return req
	}
	compose := req.Compose
	req.Compose = func(parent tree.Tree, items []gitrepo.Item) (gitrepo.Composed, error) {
		return compose(parent, slices.DeleteFunc(slices.Clone(items), func(it gitrepo.Item) bool { return it.Key == planSetAside }))
	}
	req.Items = append(req.Items, *item)
	return req
}

// asideText names what changes in the list that is proposed, whenever that is, ""
// when nothing does.
func (in *inputs) asideText() string {
	if in.aside == nil {
		return ""
	}
	return strings.Join(in.aside.Trailers, "\n")
}

func pathsOf(list []fleet.Unread) string {
	if len(list) == 0 {
		return "none"
	}
	var out []string
	for _, u := range list {
		out = append(out, u.Path)
	}
	return strings.Join(out, ", ")
}
