package gitrepo

import (
	"fmt"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
)

// staged is a commit ready to be pushed. A zero commit: nothing changes.
type staged struct {
	commit, parent tree.Hash
	info           Commit
	keys           []string
	objects        gitobj.Set // those of the ledger, for the local copy
	market         marketTip
	cmds           []Command
	pack           []byte
}

// marketTip is the market commit pushed last and the objects of its tree,
// which the server therefore has.
type marketTip struct {
	ref    string
	commit tree.Hash
	root   tree.Hash
	known  map[tree.Hash]bool
}

// stage builds the commit of a change on the ledger's present head.
func (w *writer) stage(c composed, items []Item) (staged, error) {
	r := w.r
	st := staged{parent: r.refs[r.ledgerRef], keys: keysOf(items), objects: gitobj.Set{}}
	parent, repair, err := r.ground(st.parent)
	if err != nil {
		return staged{}, err
	}
	root, err := gitobj.Edit(parent, c.change, st.objects)
	if err != nil {
		return staged{}, err
	}
	was := tree.Hash{}
	if !st.parent.IsZero() {
		c, err := r.info(st.parent)
		if err != nil {
			return staged{}, err
		}
		was = c.Tree
	}
	if !w.req.Empty && (root == was || was.IsZero() && root == emptyTree) {
		return staged{}, nil
	}
	if o, ok := repair[root]; ok {
		st.objects[root] = o
	}
	when, err := w.when(st.parent)
	if err != nil {
		return staged{}, err
	}
	var parents []tree.Hash
	if !st.parent.IsZero() {
		parents = []tree.Hash{st.parent}
	}
	message := c.message
	if !w.offer {
		if message, err = r.numbered(message, st.parent); err != nil {
			return staged{}, err
		}
	}
	if st.commit, err = r.makeCommit(st.objects, root, parents, when, message); err != nil {
		return staged{}, err
	}
	data, err := gitobj.ParseCommit(st.objects[st.commit].Data)
	if err != nil {
		return staged{}, err
	}
	st.info = Commit{
		Hash: st.commit, Tree: root, Parents: parents, Author: data.Author, Committer: data.Committer,
		Message: data.Message, Signed: data.Signature != "",
	}
	wire := gitobj.Set{}
	if err := r.stageMarket(&st, wire, &w.req); err != nil {
		return staged{}, err
	}
	st.cmds = append(st.cmds, Command{Ref: r.ledgerRef, Old: st.parent, New: st.commit})
	if err := r.stageAccepted(&st, w.req.accepts()); err != nil {
		return staged{}, err
	}
	for h, o := range st.objects {
		wire[h] = o
	}
	st.pack, err = r.packed(wire)
	return st, err
}

// packed is a pack for the remote: compressed, unless it is in this process.
func (r *Repo) packed(wire gitobj.Set) ([]byte, error) {
	if in, ok := r.remote.(interface{ InProcess() bool }); ok && in.InProcess() {
		return wire.PackStored()
	}
	return wire.Pack()
}

// when is the committer's time: the plan's, never before that of our last
// commit. One far ahead of our clock stops the writing; anybody else's date says
// nothing.
func (w *writer) when(parent tree.Hash) (time.Time, error) {
	when := w.req.When.UTC().Truncate(time.Second)
	if parent.IsZero() {
		return when, nil
	}
	last, err := w.r.last(parent)
	if err != nil || last.IsZero() {
		return when, err
	}
	if ahead := last.When().Sub(w.r.opts.Now()); ahead > clockTolerance {
		return time.Time{}, &ErrClock{Parent: last.Hash, Ahead: ahead.Round(time.Second)}
	}
	if last.When().After(when) {
		when = last.When().UTC()
	}
	return when, nil
}

// maxSeek bounds how many commits of others are looked through for one of ours.
const maxSeek = 4096

// LastOwn is when the newest commit of ours at a head was made, zero where there
// is none.
func (r *Repo) LastOwn(head tree.Hash) (time.Time, error) {
	c, err := r.last(head)
	if err != nil || c.IsZero() {
		return time.Time{}, err
	}
	return c.When(), nil
}

// last is the commit of ours that a head has last, that with the latest date
// where merges join several; zero where there is none.
func (r *Repo) last(head tree.Hash) (Commit, error) {
	var out Commit
	id := *r.identity.Load()
	seen := map[tree.Hash]bool{}
	for queue := []tree.Hash{head}; len(queue) > 0 && len(seen) < maxSeek; queue = queue[1:] {
		h := queue[0]
		if h.IsZero() || seen[h] {
			continue
		}
		seen[h] = true
		c, err := r.info(h)
		if err != nil {
			return out, err
		}
		ours, err := r.byUs(id, h)
		switch {
		case err != nil:
			return out, err
		case !ours:
			queue = append(queue, c.Parents...)
		case out.IsZero() || c.When().After(out.When()):
			out = c
		}
	}
	return out, nil
}

// makeCommit adds a commit object, signed if there is a key.
func (r *Repo) makeCommit(into gitobj.Set, root tree.Hash, parents []tree.Hash, when time.Time, message string) (tree.Hash, error) {
	id := r.identity.Load()
	who := gitobj.Person{Name: id.Name, Email: id.Email, When: when}
	c := gitobj.CommitData{Tree: root, Parents: parents, Author: who, Committer: who, Message: message}
	if id.Signer != nil {
		sig, err := id.Signer.Sign(c.Payload())
		if err != nil {
			return tree.Hash{}, fmt.Errorf("sign commit: %w", err)
		}
		c.Signature = sig
	}
	return into.Add(gitobj.Commit, c.Encode()), nil
}

// stageMarket adds the market snapshot as a commit on the day's chain, and what
// else was decided on beside it. Objects that the chain's tip is known to hold
// are not sent again.
func (r *Repo) stageMarket(st *staged, wire gitobj.Set, req *Request) error {
	market := req.Market
	if market.IsZero() {
		return nil
	}
	root := market.Root
	var beside []tree.Entry
	if len(req.Round) > 0 {
		beside = []tree.Entry{{Name: marketDir, Kind: tree.Dir, Hash: market.Root}, {Name: roundFile, Kind: tree.File, Hash: tree.BlobHash(req.Round)}}
		root = tree.DirHash(beside)
	}
	ref := MarketDay(req.When)
	tip := r.marketBase(ref)
	known := map[tree.Hash]bool{}
	if !tip.IsZero() && r.market.ref == ref && r.market.commit == tip {
		if r.market.root == root {
			return nil
		}
		known = r.market.known
	}
	next := marketTip{ref: ref, root: root, known: map[tree.Hash]bool{}}
	if err := collect(market, known, next.known, wire); err != nil {
		return fmt.Errorf("market snapshot: %w", err)
	}
	if beside != nil {
		wire.Add(gitobj.Blob, req.Round)
		wire.Add(gitobj.Tree, tree.EncodeDir(beside))
	}
	var parents []tree.Hash
	if !tip.IsZero() {
		parents = []tree.Hash{tip}
	}
	message := Message("", []string{"market snapshot"}, []string{"Market: " + market.Root.String()})
	var err error
	if next.commit, err = r.makeCommit(wire, root, parents, req.When.UTC().Truncate(time.Second), message); err != nil {
		return err
	}
	st.market = next
	st.cmds = append(st.cmds, Command{Ref: ref, Old: r.refs[ref], New: next.commit})
	return nil
}

// collect adds the objects of a tree to wire, but those known already.
func collect(t tree.Tree, known, all map[tree.Hash]bool, wire gitobj.Set) error {
	entries, err := t.Entries()
	if err != nil {
		return err
	}
	all[t.Root] = true
	if !known[t.Root] {
		wire.Add(gitobj.Tree, tree.EncodeDir(entries))
	}
	for _, e := range entries {
		if e.Kind == tree.Dir {
			if err := collect(tree.Tree{Store: t.Store, Root: e.Hash}, known, all, wire); err != nil {
				return err
			}
			continue
		}
		all[e.Hash] = true
		if known[e.Hash] {
			continue
		}
		b, err := t.Store.File(e.Hash, 0)
		if err != nil {
			return fmt.Errorf("%s: %w", e.Name, err)
		}
		wire.Add(gitobj.Blob, b)
	}
	return nil
}

// stageAccepted moves the refs that note the accepted heads, forward only.
// They come last: where the server is not atomic they may only lag.
func (r *Repo) stageAccepted(st *staged, inputs tree.Hash) error {
	st.cmds = append(st.cmds, Command{Ref: acceptedLedgerRef, Old: r.at(acceptedLedgerRef), New: st.commit})
	old := r.refs[acceptedInputsRef]
	forward, err := r.forward(old, inputs)
	if err != nil {
		return err
	}
	if r.alarms[acceptedInputsRef] != "" {
		forward = old != inputs && !inputs.IsZero()
	}
	if forward && r.store.has(inputs) {
		st.cmds = append(st.cmds, Command{Ref: acceptedInputsRef, Old: r.at(acceptedInputsRef), New: inputs})
	}
	return nil
}
