package fleet

import (
	stdctx "context"
	"fmt"
	"math"
	"sync/atomic"

	"github.com/fleetbroker/fleetbroker/internal/api/bytesize"
	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/fleet/parallel"
)

// limits are what is read of one tenant.
type limits struct{ files, bytes, intents int64 }

// exceeded is why a tenant's directory is not read; the zero value when it is.
type exceeded struct {
	code, why string
	// rest: it is read in parts, and the next read goes on.
	rest bool
}

const codeOverLimit = "OverLimit"

func overLimit(format string, args ...any) exceeded {
	return exceeded{code: codeOverLimit, why: fmt.Sprintf(format, args...) + "; until then nothing of it changes: delete some, or have the limit raised"}
}

func limitsOf(p *v1alpha1.FleetSpec) limits {
	l := p.Limits.Filled()
	bytes := bytesOf(*l.Bytes)
	if bytes <= 0 { // the fleet's check has said it
		bytes = bytesOf(v1alpha1.DefaultBytes)
	}
	return limits{l.Files, bytes, l.Intents}
}

// bytesOf is a quantity in bytes, 0 when it is none.
func bytesOf(q v1alpha1.Quantity) int64 {
	a, err := v1alpha1.ParseAmount(v1alpha1.Memory, string(q))
	if err != nil {
		return 0
	}
	return a.Int64()
}

// ration is what one read takes of one tenant's new files where reads are
// rationed, about a quarter of a second of processor time: a byte costs 1, a file
// perFile and a byte of a condition that is compiled perCompiled. 50,000 small files
// are read in about 25 parts, and the decisions on other tenants' intents wait for one.
const (
	ration      = 1_500_000
	perFile     = 500
	perCompiled = 24
)

// budget is what a tenant's files have taken of its limit, and of its ration of
// this read.
type budget struct {
	left, ration atomic.Int64
	over, rest   atomic.Bool
}

func newBudget(rationed bool) *budget {
	b := &budget{}
	b.ration.Store(math.MaxInt64)
	if rationed {
		b.ration.Store(ration)
	}
	return b
}

// takes reports whether another file is read.
func (b *budget) takes() bool {
	if b.ration.Load() <= 0 {
		b.rest.Store(true)
	}
	return !b.rest.Load() && !b.over.Load()
}

// took counts a file that was read.
func (b *budget) took(size, compiled int64) {
	b.ration.Add(-perFile - size - perCompiled*compiled)
	if b.left.Add(-size) < 0 {
		b.over.Store(true)
	}
}

// readIntents parses the files of all tenants that are within their limits.
// Others are not parsed, and said so in over: how much of them is read must not
// depend on the order. That goes for those that are read in parts, too: two of
// the files may name one intent.
func (r *Reader) readIntents(ctx stdctx.Context, now *reading, store tree.Store, l limits, rationed bool) error {
	now.limits, now.over = l, map[string]exceeded{}
	roots := byTenant(now.intents)
	type due struct {
		file   *file
		budget *budget
	}
	var list []due
	budgets := map[string]*budget{}
	for _, name := range sortedKeys(roots) {
		if prev := r.prev.tenants[name]; prev != nil && prev.root == roots[name] && prev.limits == l && !prev.over.rest {
			if prev.over != (exceeded{}) {
				now.over[name] = prev.over
			}
			continue
		}
		if p := r.aside.of(roots[name].path+"/", roots[name].hash.String()); p != nil {
			code, text := p.text()
			now.over[name] = exceeded{code: code, why: text}
			continue
		}
		if roots[name].oversized {
			now.over[name] = overLimit("the tenant's directory is too large to be looked at: it is deeper than a fleet repo may be (--max-tree-depth), has more than half of the entries or bytes of one (--max-tree-entries, --max-tree-bytes), or the same directories again and again")
			continue
		}
		if n := entriesIn(roots[name]); n > l.files {
			now.over[name] = overLimit("the tenant has %d files, and at most %d are read (limits.files of the fleet)", n, l.files)
			continue
		}
		if n := kustomizationsIn(roots[name]); n > v1alpha1.MaxKustomizations {
			now.over[name] = overLimit("the tenant has %d kustomizations, and at most %d are built", n, v1alpha1.MaxKustomizations)
			continue
		}
		left, err := kustomizedBytes(roots[name], store)
		if err != nil {
			return err
		}
		left = l.bytes - left
		b := newBudget(rationed)
		for _, f := range filesOf(roots[name]) {
			if left -= f.size; !f.parsed {
				list = append(list, due{f, b})
			}
		}
		b.left.Store(left)
		b.over.Store(left < 0)
		budgets[name] = b
	}
	if now.intents != nil { // files in no tenant's directory: few, and none is an intent
		for _, f := range now.intents.files {
			if f != nil && !f.parsed {
				list = append(list, due{f, newBudget(false)})
			}
		}
	}
	err := parallel.Each(ctx, len(list), func(i int) error {
		d := list[i]
		if !d.budget.takes() {
			return nil
		}
		if err := d.file.read(store, r.programs); err != nil {
			return err
		}
		d.budget.took(d.file.size, d.file.compiled)
		return nil
	})
	for name, b := range budgets {
		switch {
		case b.over.Load():
			now.over[name] = overLimit("the tenant's files are larger than %s together, and no more is read (limits.bytes of the fleet)", bytesize.Text(l.bytes))
		case b.rest.Load():
			code, text := restOf(roots[name]).text()
			now.over[name] = exceeded{code: code, why: text, rest: true}
		}
	}
	return err
}

// kustomizationsIn is how many there are: all tenants wait for the builds of one,
// each of which has bounds of its own.
func kustomizationsIn(root *dir) (n int64) {
	root.walk(func(d *dir) {
		if d.kust != "" {
			n++
		}
	})
	return n
}

// kustomizedBytes is the size of all files of kustomizations, which are not read
// one by one.
func kustomizedBytes(root *dir, store tree.Store) (n int64, err error) {
	sizer, ok := store.(tree.Sizer)
	if !ok {
		return 0, nil
	}
	var add func(d *dir, kustomized bool)
	add = func(d *dir, kustomized bool) {
		kustomized = kustomized || d.kust != ""
		for i, e := range d.entries {
			if d.subs[i] != nil {
				add(d.subs[i], kustomized)
				continue
			}
			if !kustomized || err != nil || e.Kind != tree.File && e.Kind != tree.Executable {
				continue
			}
			var size int64
			if size, err = sizer.Size(e.Hash); err != nil {
				err = fmt.Errorf("look at %s/%s: %w", d.path, e.Name, err)
			}
			n += size
		}
	}
	add(root, false)
	return n, err
}

// entriesIn is how many files lie in a directory, those that are not read
// included.
func entriesIn(root *dir) int64 {
	n := int64(0)
	root.walk(func(d *dir) {
		for _, e := range d.entries {
			if e.Kind != tree.Dir {
				n++
			}
		}
	})
	return n
}

// exceeds freezes a directory of a tenant that is over its limits: what it said
// last stays in force, and nothing in it changes.
func (tr *tenantReading) exceeds(d *dir, over exceeded) {
	if d == nil {
		return
	}
	diag := Diagnostic{File: d.path, Line: 1, Column: 1, Severity: Error, Code: over.code, Message: over.why}
	tr.diags = append(tr.diags, diag)
	tr.frozen = append(tr.frozen, model.Freeze{Path: d.path + "/", Why: diag.String()})
}
