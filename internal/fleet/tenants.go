package fleet

import (
	stdctx "context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/strictyaml"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/fleet/links"
	"github.com/fleetbroker/fleetbroker/internal/fleet/parallel"
)

// tenantReading is one tenant's directories under intents/ and requests/ and in
// copies of sources, read and checked; each may be nil.
type tenantReading struct {
	root     *dir
	requests *dir
	sources  []*dir
	against  *context
	bases    tree.Hash
	limits   limits
	// over is why its directory is not read.
	over exceeded
	// kustomized are the results of its kustomizations, by directory.
	kustomized map[string]*build
	// opened are the kustomizations that were read, by directory.
	opened  map[string]*kustomizationFile
	intents []*model.Intent
	diags   []Diagnostic
	frozen  []model.Freeze
	unread  []Unread
}

// readTenants reads every tenant's directories. Files that lie in no tenant's
// directory are read as those of a tenant without a name.
func (r *Reader) readTenants(ctx stdctx.Context, now *reading, src Sources) error {
	now.tenants = map[string]*tenantReading{}
	if d := now.intents; d != nil {
		loose := *d
		loose.subs = nil
		if len(loose.refused) > 0 || slices.ContainsFunc(loose.files, func(f *file) bool { return f != nil }) || loose.kust != "" {
			now.tenants[""] = readLoose(&loose)
		}
	}
	roots, requests := byTenant(now.intents), byTenant(now.requests)
	names := sortedKeys(roots)
	for _, name := range sortedKeys(requests) {
		if roots[name] == nil {
			names = append(names, name)
		}
	}
	for _, name := range sortedKeys(now.sources) {
		if roots[name] == nil && requests[name] == nil {
			names = append(names, name)
		}
	}
	for _, name := range names {
		tr := &tenantReading{root: roots[name], requests: requests[name], sources: now.sources[name], against: now.contexts.of(name), bases: now.bases, limits: now.limits, over: now.over[name]}
		if prev := r.prev.tenants[name]; prev.same(tr) {
			now.tenants[name] = prev
			continue
		}
		if err := r.readTenant(ctx, r.prev.tenants[name], tr, src); err != nil {
			return err
		}
		now.tenants[name] = tr
	}
	return nil
}

func byTenant(d *dir) map[string]*dir {
	out := map[string]*dir{}
	if d == nil {
		return out
	}
	for _, sub := range d.subs {
		if sub != nil {
			out[tenantOf(sub)] = sub
		}
	}
	return out
}

// same: neither directory changed, nor what their intents are checked against.
func (tr *tenantReading) same(next *tenantReading) bool {
	return tr != nil && tr.dirs(next) && tr.against == next.against && tr.limits == next.limits && tr.over == next.over &&
		(tr.bases == next.bases || len(tr.kustomized) == 0) && !slices.ContainsFunc(tr.unread, func(u Unread) bool { return u.Again })
}

// dirs: the directories are the same.
func (tr *tenantReading) dirs(next *tenantReading) bool {
	return tr.root == next.root && tr.requests == next.requests && slices.Equal(tr.sources, next.sources)
}

// readLoose reports files beside the tenants' directories.
func readLoose(d *dir) *tenantReading {
	tr := &tenantReading{diags: slices.Clone(d.refused)}
	if d.kust != "" {
		p := d.path + "/" + d.kust
		tr.diags = append(tr.diags, Diagnostic{File: p, Line: 1, Column: 1, Severity: Error, Code: "BadPlace", Message: "a kustomization belongs to one tenant; move it into that tenant's directory"})
		tr.frozen = append(tr.frozen, model.Freeze{Path: d.path + "/", Why: tr.diags[len(tr.diags)-1].String()})
	}
	for _, f := range d.files {
		if f != nil {
			tr.diags = append(tr.diags, f.diags...)
			tr.frozen = append(tr.frozen, model.Freeze{Path: f.path, Why: f.why()})
		}
	}
	return tr
}

// readTenant reads what a tenant's directories hold.
func (r *Reader) readTenant(ctx stdctx.Context, prev, tr *tenantReading, src Sources) error {
	root := tr.root
	if tr.over != (exceeded{}) {
		tr.exceeds(root, tr.over)
		switch {
		case tr.over.rest:
			tr.unread = append(tr.unread, restOf(root))
			if tr.kustomized == nil && prev != nil { // the next read goes on with them
				tr.kustomized, tr.opened = prev.kustomized, prev.opened
			}
		case tr.over.code != codeOverLimit:
			tr.unread = append(tr.unread, r.aside[root.path+"/"])
		}
		root = nil
	}
	files, stores := tr.files(root, src)
	var kusts []*dir
	for _, top := range append([]*dir{root, tr.requests}, tr.sources...) {
		top.walk(func(d *dir) {
			tr.diags = append(tr.diags, d.refused...)
			tr.frozen = append(tr.frozen, d.frozen...)
			if d.kust != "" {
				kusts = append(kusts, d)
			}
		})
	}
	var makes exceeded
	if len(kusts) > 0 {
		var old map[string]*build
		k := &kustomizer{left: src.builds(), tree: src.Inputs, allowed: []string{root.path, basesDir}, within: places{root.hash, tr.bases}, known: map[string]*kustomizationFile{}}
		if prev != nil {
			old, k.kept = prev.kustomized, prev.opened
		}
		made, over, err := r.kustomize(k, root, kusts, old, tr.limits.bytes)
		if err != nil {
			return err
		}
		if over.rest {
			tr.over, tr.kustomized, tr.opened, tr.diags, tr.frozen = over, made, k.known, nil, nil
			return r.readTenant(ctx, prev, tr, src)
		}
		tr.kustomized, tr.opened, makes = made, k.known, over
		for _, p := range sortedKeys(made) {
			files = append(files, made[p].result)
		}
	}
	var changed atomic.Bool
	err := parallel.Each(ctx, len(files), func(i int) error {
		if files[i].checkTogether(tr.against, stores(i)) {
			changed.Store(true)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if prev != nil && !changed.Load() && len(kusts) == 0 && prev.dirs(tr) && prev.limits == tr.limits && prev.over == tr.over {
		tr.intents, tr.diags, tr.frozen, tr.unread = prev.intents, prev.diags, prev.frozen, prev.unread
		return nil
	}
	tr.gather(files, stores)
	if n := int64(len(tr.intents)); n > tr.limits.intents {
		makes = overLimit("the tenant has %d intents, and at most %d are read (limits.intents of the fleet)", n, tr.limits.intents)
	}
	if makes != (exceeded{}) {
		tr.intents = nil
		tr.exceeds(root, makes)
		tr.exceeds(tr.requests, makes)
		for _, d := range tr.sources {
			tr.exceeds(d, makes)
		}
	}
	return nil
}

// files are those of all directories, with the store of each; what is appended is the inputs'.
func (tr *tenantReading) files(root *dir, src Sources) (files []*file, stores func(int) tree.Store) {
	files = filesOf(root)
	own := len(files)
	files = append(files, filesOf(tr.requests)...)
	asked := len(files)
	for _, d := range tr.sources {
		files = append(files, filesOf(d)...)
	}
	copied := len(files)
	return files, func(i int) tree.Store {
		switch {
		case i >= own && i < asked:
			return src.Ledger.Store
		case i >= asked && i < copied:
			return src.copies().Store
		}
		return src.Inputs.Store
	}
}

// gather sorts the intents of all files, freezes what is named twice, and
// collects what is wrong.
func (tr *tenantReading) gather(files []*file, store func(int) tree.Store) {
	tenant := tr.against.tenantName
	n := 0
	for _, f := range files {
		n += len(f.intents)
	}
	list := make([]*model.Intent, 0, n)
	frozen := map[string]bool{}
	for _, f := range files {
		list = append(list, f.intents...)
		tr.diags = append(tr.diags, f.diags...)
		tr.diags = append(tr.diags, f.together...)
		if !f.broken {
			continue
		}
		if f.aside != nil {
			tr.unread = append(tr.unread, *f.aside)
		}
		fr := model.Freeze{Path: f.path, Why: f.why()}
		if f.made != "" {
			fr.Path = f.made + "/"
		}
		tr.frozen = append(tr.frozen, fr)
		for _, name := range f.named {
			frozen[name] = true
			tr.frozen = append(tr.frozen, model.Freeze{Tenant: tenant, Intent: name, Why: f.why()})
		}
	}
	byName := func(a, b *model.Intent) int { return strings.Compare(a.Metadata.Name, b.Metadata.Name) }
	if !slices.IsSortedFunc(list, byName) { // files are mostly called like their intents
		slices.SortStableFunc(list, byName)
	}
	defer func() { tr.diags = sortDiagnostics(tr.diags) }()
	byPath := map[string]int{}
	open := func(in *model.Intent) *strictyaml.Document {
		if len(byPath) == 0 {
			for k, f := range files {
				byPath[f.path] = k
			}
		}
		k := byPath[in.Path]
		return files[k].open(in, store(k))
	}
	linked := sync.OnceValue(func() *links.Graph { return links.New(list) })
	tr.intents = make([]*model.Intent, 0, n)
	for i := 0; i < len(list); {
		j := i + 1
		for j < len(list) && list[j].Metadata.Name == list[i].Metadata.Name {
			j++
		}
		if j > i+1 {
			tr.duplicates(list[i:j], open)
		} else if !frozen[list[i].Metadata.Name] {
			tr.intents = append(tr.intents, tr.checkSiblings(list[i], list, linked, open))
		}
		i = j
	}
}

// duplicates freezes an intent that several documents name, with a diagnostic
// at each.
func (tr *tenantReading) duplicates(same []*model.Intent, open func(*model.Intent) *strictyaml.Document) {
	name := same[0].Metadata.Name
	why := ""
	for i, in := range same {
		other := same[(i+1)%len(same)]
		d := Diagnostic{
			File: in.Path, Line: 1, Column: 1, Severity: Error, Code: "Duplicate", Intent: in.Metadata.Namespace + "/" + name,
			Message: fmt.Sprintf("intent %s is in %s too; rename or delete one of them, until then nothing of it changes", name, other.Path),
		}
		if doc := open(in); doc != nil {
			d.Line, d.Column = doc.At("metadata", "name")
		}
		if tr.diags = append(tr.diags, d); why == "" {
			why = d.String()
		}
	}
	tr.frozen = append(tr.frozen, model.Freeze{Tenant: same[0].Metadata.Namespace, Intent: name, Why: why})
}

// open parses the document of one of a file's intents again for its places,
// nil when there are none.
func (f *file) open(in *model.Intent, store tree.Store) *strictyaml.Document {
	for _, doc := range f.docs {
		if doc.object == any(in.ResourceIntent) {
			return f.reopen(doc, store)
		}
	}
	return nil
}
