package reconciler

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/manifests"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/writers"
)

// planRender is the Plan of a commit that decides nothing and brings manifests
// up to how they are rendered now.
const planRender = "render"

// renewed is what of the ledger's manifests was found to be as it is rendered.
type renewed struct {
	// numbers of rendering and rules at a ledger's commit.
	numbers writers.Numbers
	// of are consumers, with what they were compared at; due are those whose
	// manifests were found to be others, which may wait for a review, or for who may
	// write.
	of, due map[string]*comparison
}

type comparison struct {
	tree      tree.Hash // of the consumer's manifests
	contracts []*v1alpha1.Contract
	facts     *manifests.Facts
	item      *gitrepo.Item // what brings them up, nil when they are as they should be
	of        *ledger.Ledger
}

// renew brings the ledger's manifests up to how they are rendered now, before
// anything is delivered: after an upgrade all that it renders otherwise, and
// after a change of Cluster files those of their consumers. It says what waits
// meanwhile, by consumer, and whether it wrote.
func (r *Reconciler) renew(ctx context.Context, in *inputs) (waits map[string]string, wrote bool, err error) {
	number := r.renewed.numbers.Renderer
	waits = map[string]string{}
	var items []gitrepo.Item
	r.deliver.known.Follow(in.ledger, in.fleet)
	since, told := r.deliver.since(in), r.differing()
	for _, name := range r.consumers(in) {
		facts := r.deliver.factsOf(in, since, name)
		last, compared := r.renewed.of[name]
		_, due := r.renewed.due[name]
		switch {
		case number < manifests.Renderer, due, told[name], compared && !last.facts.Covers(facts):
		default:
			continue
		}
		if number < manifests.Renderer {
			waits[name] = fmt.Sprintf("the ledger has rendering %d of its manifests, and this program renders %d", number, manifests.Renderer)
		}
		if gone := r.deliver.known.Undescribed(name); gone != "" {
			waits[name] = fmt.Sprintf("clusters/%s.yaml is gone while contracts with %[1]s are held: put it back, or release them", gone)
			continue
		}
		item, err := r.compare(in, name, facts)
		if err != nil {
			return nil, false, err
		}
		if item == nil {
			delete(waits, name)
			continue
		}
		one := *item // the remembered one stays as it is
		one.Line += whyAgain(number, compared)
		items = append(items, one)
	}
	if len(items) == 0 || r.shadow(in) {
		return waits, false, nil
	}
	wrote, err = r.writeRendering(ctx, in, items, waits)
	return waits, wrote, err
}

func whyAgain(number int, compared bool) string {
	switch {
	case number == 0:
		return fmt.Sprintf(": rendering %d; the one before had no number", manifests.Renderer)
	case number < manifests.Renderer:
		return fmt.Sprintf(": rendering %d instead of %d", manifests.Renderer, number)
	case compared:
		return ": its contracts and Cluster files say otherwise now"
	}
	return ": they were not what its contracts and Cluster files render to"
}

// differing are the consumers of which delivery says that the ledger has other
// manifests than are rendered.
func (r *Reconciler) differing() map[string]bool {
	if d, ok := r.opts.Delivery.(interface{ Differing() map[string]bool }); ok {
		return d.Differing()
	}
	return nil
}

// renewOne looks at a consumer that was not yet compared in this process; the
// next round brings it up. It runs in rounds that have nothing to write, and
// reports whether there is more to do.
func (r *Reconciler) renewOne(in *inputs) (again bool) {
	if r.shadow(in) {
		return false
	}
	r.deliver.known.Follow(in.ledger, in.fleet)
	since, done := r.deliver.since(in), false
	for _, name := range r.consumers(in) {
		_, compared := r.renewed.of[name]
		if _, due := r.renewed.due[name]; compared || due || r.deliver.known.Undescribed(name) != "" {
			continue
		}
		if done {
			return true
		}
		item, err := r.compare(in, name, r.deliver.factsOf(in, since, name))
		if err != nil {
			r.opts.Log.Warn("manifests are not compared with what is rendered", "consumer", name, "error", err)
			continue
		}
		if done = true; item != nil {
			return true
		}
	}
	return false
}

// consumers are the clusters of the fleet that have contracts or manifests.
func (r *Reconciler) consumers(in *inputs) []string {
	has := map[string]bool{}
	for _, name := range in.ledger.Consumers() {
		has[name] = true
	}
	if sub, err := in.heads.Ledger.Tree.Sub(manifests.Root); err == nil {
		entries, _ := sub.Entries() // what cannot be listed is found out by who reads it
		for _, e := range entries {
			has[e.Name] = true
		}
	}
	maps.DeleteFunc(has, func(name string, _ bool) bool { return in.fleet.Clusters[name] == nil })
	return slices.Sorted(maps.Keys(has))
}

// compare lays a consumer's manifests beside what they should be: nil when they
// are that. Either is remembered.
func (r *Reconciler) compare(in *inputs, consumer string, facts *manifests.Facts) (*gitrepo.Item, error) {
	sub, err := in.heads.Ledger.Tree.Sub(manifests.Dir(consumer))
	if err != nil {
		return nil, fmt.Errorf("look at the manifests of %s: %w", consumer, err)
	}
	last := cmp.Or(r.renewed.due[consumer], r.renewed.of[consumer], &comparison{})
	same := facts != nil && last.facts.Same(facts) && last.tree == sub.Root
	if same && last.of == in.ledger {
		return last.item, nil
	}
	contracts := in.ledger.Consumer(consumer)
	if same && slices.EqualFunc(last.contracts, contracts, manifests.Alike) {
		return last.item, nil
	}
	out, err := facts.Consumer(manifests.NewIndex(contracts), consumer)
	if err != nil {
		return nil, fmt.Errorf("render the manifests of %s: %w", consumer, err)
	}
	it := &gitrepo.Item{Key: manifests.Dir(consumer), Puts: map[string][]byte{}, Line: "render manifests of " + consumer + " again"}
	for file, want := range out.Files {
		e, err := in.heads.Ledger.Tree.Find(file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("look at the manifests of %s: %w", consumer, err)
		}
		if e.Hash != tree.BlobHash(want) || e.Kind != tree.File {
			it.Puts[file] = want
		}
	}
	err = sub.Walk(func(name string, e tree.Entry) error {
		file := manifests.Dir(consumer) + "/" + name
		if e.Kind != tree.Dir && out.Files[file] == nil && e.Hash != tree.BlobHash(manifests.EmptyListing()) {
			it.Deletes = append(it.Deletes, file)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look at the manifests of %s: %w", consumer, err)
	}
	if r.renewed.of == nil {
		r.renewed.of, r.renewed.due = map[string]*comparison{}, map[string]*comparison{}
	}
	if len(it.Puts)+len(it.Deletes) > 0 {
		r.renewed.due[consumer] = &comparison{sub.Root, contracts, facts, it, in.ledger}
		return it, nil
	}
	delete(r.renewed.due, consumer)
	r.renewed.of[consumer] = &comparison{sub.Root, contracts, facts, nil, in.ledger}
	return nil, nil
}

// writeRendering commits manifests, or offers them for review; until that is
// merged they wait.
func (r *Reconciler) writeRendering(ctx context.Context, in *inputs, items []gitrepo.Item, waits map[string]string) (bool, error) {
	now := r.now(in)
	req := r.newRequest(in, tree.Hash{}, planRender, now)
	req.Items, req.Reads = items, []string{ledger.Root}
	req.Compose = func(_ tree.Tree, items []gitrepo.Item) (gitrepo.Composed, error) {
		var of []string
		for _, it := range items {
			of = append(of, strings.TrimPrefix(it.Key, manifests.Root+"/"))
		}
		return gitrepo.Composed{Subject: "manifests of " + strings.Join(of, ", ") + " rendered again"}, nil
	}
	if r.offers(in) {
		return r.offerRendering(ctx, in, req, waits)
	}
	res, err := r.opts.Repo.Commit(ctx, req)
	r.ask.Store(true)
	var replan *gitrepo.ErrReplan
	var busy *gitrepo.ErrBusy
	if errors.As(err, &replan) || errors.As(err, &busy) { // the next round sees what moved
		return true, ctx.Err()
	}
	for _, refusal := range res.Refused {
		waits[strings.TrimPrefix(refusal.Key, manifests.Root+"/")] = fmt.Sprintf("the remote refuses its manifests: %v", refusal.Cause)
	}
	if err != nil {
		return false, fmt.Errorf("render manifests again: %w", err)
	}
	return len(res.Commits) > 0, nil
}

// offerRendering takes manifests to the pull request. Until it is merged nothing
// is decided, because the next decision would stand beside manifests of another
// kind.
func (r *Reconciler) offerRendering(ctx context.Context, in *inputs, req gitrepo.Request, waits map[string]string) (bool, error) {
	sum := sha256.New()
	for _, it := range req.Items {
		for _, file := range slices.Sorted(maps.Keys(it.Puts)) {
			fmt.Fprintf(sum, "%s %x\n", file, sha256.Sum256(it.Puts[file]))
		}
		fmt.Fprintln(sum, it.Deletes)
	}
	c, err := r.offer(ctx, in, req, fmt.Sprintf("sha256:%x", sum.Sum(nil)), false)
	if err != nil {
		return false, err
	}
	if in.fleet.Policy.WriteBack.Merge {
		if merged, err := r.mergeOffer(ctx, c); err != nil || merged {
			r.ask.Store(true)
			return merged, err
		}
	}
	in.renewing = true
	for _, it := range req.Items {
		waits[strings.TrimPrefix(it.Key, manifests.Root+"/")] = "how they are rendered now waits for review: merge " + r.offered.pull.URL
	}
	return false, nil
}
