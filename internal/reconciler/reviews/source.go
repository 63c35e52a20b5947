package reviews

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/escape"
	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/strictyaml"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/fleet/sourced"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/reconciler"
	"github.com/fleetbroker/fleetbroker/internal/review"
	"github.com/fleetbroker/fleetbroker/internal/sources"
)

// Source is a tenant's own repository as its reviews need it.
type Source interface {
	// Name in fleet.yaml.
	Name() string
	// Pull reads the head of a pull request by its ref; sources.Keeper.Pull.
	Pull(ctx context.Context, ref string, bounds gitrepo.SideBounds) (*sources.Pull, error)
	// Frozen is why nothing new is taken of it, "" when it is in order.
	Frozen() string
}

// copied is the commit of the source that is acted on in a view, zero when none is.
func (r *Reviews) copied(view *reconciler.View) tree.Hash {
	record := view.Fleet.Copies[r.opts.Source.Name()]
	if record == nil {
		return tree.Hash{}
	}
	h, err := tree.ParseHash(record.Commit)
	if err != nil {
		return tree.Hash{} // the audit finds it
	}
	return h
}

func because(why string) string {
	if why == "" {
		return ""
	}
	return ": " + why
}

// frozen is the comment on a merged pull request whose source is frozen, "" when it is
// not.
func (r *Reviews) frozen() string {
	if r.opts.Source == nil {
		return ""
	}
	why := r.opts.Source.Frozen()
	if why == "" {
		return ""
	}
	return fmt.Sprintf("%s\n**Not acted on:** nothing new is taken of this repository: %s. What was in force before stays in force.\n", review.ReservedMarker, escape.Markdown(why))
}

// planSource reviews a pull request of a source.
func (r *Reviews) planSource(ctx context.Context, view *reconciler.View, b *base, e *entry) (review.Result, error) {
	head, err := tree.ParseHash(e.pr.Head)
	if err != nil {
		return review.Result{}, fmt.Errorf("read pull request %d: %w", e.pr.Number, err)
	}
	p, err := r.opts.Source.Pull(ctx, e.pr.Ref, boundsOf(e.pr))
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, sources.ErrNotCopied):
		return review.Result{}, errMoved
	case err != nil:
		return review.Result{}, fmt.Errorf("read pull request %d: %w", e.pr.Number, err)
	case p.Commit != head, p.Refused == "" && p.Acted != r.copied(view):
		return review.Result{}, errMoved
	case p.Refused != "":
		return review.Refusal(head, p.Refused), nil
	case p.Base.IsZero():
		return review.Refusal(head, "it has no history in common with "+r.opts.Branch), nil
	}
	r.planning.Lock()
	defer r.planning.Unlock()
	source := r.opts.Source.Name()
	in := review.Input{Head: head, Base: p.Acted, Branch: r.opts.Branch, Source: source, Before: b.side, Signatures: view.Trust.State(), Signed: p.Signed}
	mem := tree.NewMemory()
	base, theirs := mem.Build(p.BaseFiles), mem.Build(p.Files)
	if in.Changes, err = review.ChangesOfSource(source, base, theirs, p.Ignored); err != nil {
		return review.Result{}, err
	}
	ours, err := copyOf(b.ledger, source)
	if err != nil {
		return review.Result{}, err
	}
	merged, conflicts, err := tree.Merge(base, mem.Build(ours), theirs)
	if err != nil {
		return review.Result{}, err
	}
	if in.Conflicts = conflicts; len(conflicts) > 0 {
		return review.Of(in), nil
	}
	files, err := filesOf(merged)
	if err != nil {
		return review.Result{}, err
	}
	if why := tooMuch(files); why != "" {
		return review.Refusal(head, why), nil
	}
	if e.pr.Fork {
		of := told{head: e.pr.Head, inputs: b.inputs.Root, copied: p.Acted}
		if why, err := r.try(e, of, in.Changes, func() (*trial, error) { return sourceTrial(view, b, source, files) }); err != nil {
			return review.Result{}, err
		} else if why != "" {
			return review.Refusal(head, why), nil
		}
	}
	return r.mergeSource(ctx, b, e, p, files, in)
}

// mergeSource reviews what a pull request makes of its source.
func (r *Reviews) mergeSource(ctx context.Context, b *base, e *entry, p *sources.Pull, files map[string][]byte, in review.Input) (review.Result, error) {
	copies, err := sources.Replaced(b.ledger, in.Source, files)
	if err != nil {
		return review.Result{}, err
	}
	after, err := r.side(ctx, b, b.side.Fleet, b.inputs, copies, func(*model.Intent) (string, string) { return e.pr.Head, e.pr.Author })
	if err != nil {
		return review.Result{}, err
	}
	after.World.RemovedBy = map[string]string{}
	for _, path := range in.Changes.Removed {
		after.World.RemovedBy[path] = fmt.Sprintf("%s in pull request %d", e.pr.Author, e.pr.Number)
	}
	in.After = after
	if p.Unsigned != "" { // nothing of it would be taken
		in.After, in.OnceVerified = b.side, &after
		for _, path := range in.Changes.Work {
			in.Unverified = append(in.Unverified, review.Unverified{Path: path, Commit: p.Commit, Author: e.pr.Author, Why: p.Unsigned})
		}
	}
	return review.Of(in), nil
}

// tooMuch is why files are more than is taken of a source, "" when they are not.
func tooMuch(files map[string][]byte) string {
	bytes := 0
	for _, content := range files {
		bytes += len(content)
	}
	switch {
	case len(files) > v1alpha1.MaxSourceFiles:
		return fmt.Sprintf("merged, the repository has %d files of intents, and at most %d are taken", len(files), v1alpha1.MaxSourceFiles)
	case bytes > v1alpha1.MaxSourceBytes:
		return fmt.Sprintf("merged, its files of intents have %d bytes together, and at most %d MiB are taken", bytes, v1alpha1.MaxSourceBytes>>20)
	}
	return ""
}

// copyOf are the files of a source's copy, by path in the source.
func copyOf(ledger tree.Tree, source string) (map[string][]byte, error) {
	sub, err := ledger.Sub(sourced.Dir(source))
	if err != nil {
		return nil, fmt.Errorf("read the copy of source %s: %w", source, err)
	}
	files, err := filesOf(sub)
	delete(files, v1alpha1.SourceFile)
	return files, err
}

func filesOf(t tree.Tree) (map[string][]byte, error) {
	files := map[string][]byte{}
	if t.IsZero() {
		return files, nil
	}
	err := t.Walk(func(p string, e tree.Entry) error {
		if e.Kind != tree.File && e.Kind != tree.Executable {
			return nil
		}
		content, err := t.Store.File(e.Hash, v1alpha1.MaxSourceFile)
		files[p] = content
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read what a source has: %w", err)
	}
	return files, nil
}

// sourceTrial collects what a fork of a source is tried with: policy in force, and the
// source as it would be.
func sourceTrial(view *reconciler.View, b *base, source string, files map[string][]byte) (*trial, error) {
	t, err := emptyTrial(view, b)
	if err != nil {
		return nil, err
	}
	copies, err := sources.Replaced(tree.Tree{}, source, files)
	if err != nil {
		return nil, err
	}
	t.Copies = map[string][]byte{}
	if err := copies.Walk(func(p string, e tree.Entry) error {
		content, err := copies.Store.File(e.Hash, 0)
		if len(content) <= strictyaml.MaxSize || strings.HasSuffix(p, "/"+v1alpha1.SourceFile) {
			t.Copies[p] = content
		}
		return err
	}); err != nil {
		return nil, fmt.Errorf("try what a fork brings: %w", err)
	}
	entry := view.Fleet.Policy.Source(source)
	if entry == nil {
		return nil, fmt.Errorf("try what a fork brings: fleet.yaml names no source %s", source)
	}
	for _, tenant := range slices.Sorted(maps.Keys(b.side.Fleet.Tenants)) {
		if slices.Contains(entry.Tenants, tenant) {
			if err := t.file(b.inputs, "tenants/"+tenant+".yaml"); err != nil {
				return nil, err
			}
		}
	}
	for _, it := range b.side.World.Intents {
		if of, _, ok := sourced.Split(it.Path); ok && of == source {
			t.Known[knownBy(it)] = true
		}
	}
	return t, nil
}
