package fleet

import (
	stdctx "context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/nearest"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/fleet/naming"
	"github.com/fleetbroker/fleetbroker/internal/fleet/parallel"
)

// Reader reads fleet repos and keeps what did not change from one read to the
// next. It belongs to one goroutine at a time.
type Reader struct {
	programs *programs
	deaths   deaths
	aside    asides
	prev     reading
}

// reading is what one read has found; the next one starts from it.
type reading struct {
	fleetFile *file
	groups    map[section]*dir
	intents   *dir
	requests  *dir
	sources   map[string][]*dir // copies of sources, by tenant
	sourced   map[string]*dir   // the same by path
	bases     tree.Hash
	limits    limits
	over      map[string]exceeded // why a tenant's directory is not read, by tenant
	policy    *policySet
	contexts  *contexts
	tenants   map[string]*tenantReading
}

// NewReader returns a Reader that knows nothing yet.
func NewReader() *Reader { return &Reader{programs: &programs{}} }

// Sources are what a Fleet is read from.
type Sources struct {
	// Inputs is the tree that people write.
	Inputs tree.Tree
	// Ledger is the tree whose requests/ hold the intents that came through the API; empty: none.
	Ledger tree.Tree
	// Copies is the tree whose sources/ hold the copies of sources; empty: Ledger.
	Copies tree.Tree
	// Last is the newest Fleet, nil after a start.
	Last *Fleet
	// Aside are pieces of the inputs that are not read, beside those that the
	// ledger lists.
	Aside []Unread
	// Older are trees of inputs that were good before, newest first; empty ones are skipped.
	Older []tree.Tree
	// Rationed: a tenant that changes many files or kustomizations at once is read in
	// parts, so that the others do not wait; until the last it is frozen
	// (Fleet.Unfinished).
	Rationed bool
	// Starting: this is a daemon's first read. All files are read, and of a tenant's
	// kustomizations as many as startRations rations build.
	Starting bool
}

// startRations are some five seconds of processor time.
const startRations = 20

// builds is the ration of a tenant's kustomizations.
func (s Sources) builds() int64 {
	switch {
	case s.Rationed:
		return ration
	case s.Starting:
		return startRations * ration
	}
	return math.MaxInt64
}

// Read is ReadAll without requests.
func (r *Reader) Read(ctx stdctx.Context, t tree.Tree, last *Fleet, older ...tree.Tree) (*Fleet, error) {
	return r.ReadAll(ctx, Sources{Inputs: t, Last: last, Older: older})
}

// ReadAll reads a fleet repo. A broken fleet, tenant, cluster, flavor or price
// file keeps its version of the last Fleet, else that of the first of the older
// trees in which it is good. Only failures of the store are errors: what is
// wrong with the files is in the Fleet.
func (r *Reader) ReadAll(ctx stdctx.Context, src Sources) (*Fleet, error) {
	t := src.Inputs
	if err := r.follow(src); err != nil {
		return nil, err
	}
	now := reading{groups: map[section]*dir{}}
	s := &scanner{store: t.Store, aside: r.aside}
	stray, err := r.scan(t, s, &now)
	if err != nil {
		return nil, err
	}
	own := len(s.parse)
	if err := r.scanRequests(src.Ledger, s, &now); err != nil {
		return nil, err
	}
	err = parallel.Each(ctx, len(s.parse), func(i int) error {
		if i < own {
			return s.parse[i].read(t.Store, r.programs)
		}
		return s.parse[i].read(src.Ledger.Store, r.programs)
	})
	if err != nil {
		return nil, err
	}
	if now.policy, err = r.policies(&now, t, src.Last, src.Older); err != nil {
		return nil, err
	}
	f := now.policy.fleet(t.Root)
	if err := r.readSources(ctx, &now, src.copies(), f); err != nil {
		return nil, err
	}
	if err := r.readIntents(ctx, &now, t.Store, limitsOf(f.Policy), src.Rationed); err != nil {
		return nil, err
	}
	if r.prev.policy != nil && now.policy == r.prev.policy {
		now.contexts = r.prev.contexts
	} else {
		now.contexts = newContexts(f, r.prev.contexts)
	}
	if err := r.readTenants(ctx, &now, src); err != nil {
		r.prev.tenants = nil // files were checked against what this read found: gather their results again
		return nil, err
	}
	assemble(f, &now, stray)
	f.NotRead = now.unreadOf(r.aside)
	f.Unfinished = slices.ContainsFunc(f.NotRead, func(u Unread) bool { return u.Rest && r.aside.of(u.Path, u.Hash) == nil })
	r.prev = now
	return f, nil
}

// Validate lists what is wrong with a tree.
func Validate(ctx stdctx.Context, t tree.Tree) ([]Diagnostic, error) {
	f, err := NewReader().Read(ctx, t, nil)
	if err != nil {
		return nil, err
	}
	return f.Diagnostics, nil
}

// sections are the directories of a fleet repo's inputs.
var sections = map[string]section{clustersDir: secClusters, tenantsDir: secTenants, flavorsDir: secFlavors, pricesDir: secPrices, intentsDir: secIntents}

// scan walks the tree's sections and returns what is odd at the top.
func (r *Reader) scan(t tree.Tree, s *scanner, now *reading) ([]Diagnostic, error) {
	entries, err := t.Entries()
	if err != nil {
		return nil, fmt.Errorf("list the inputs: %w", err)
	}
	var stray []Diagnostic
	for _, e := range entries {
		sec, isSection := sections[e.Name]
		switch {
		case e.Name == fleetFile && (e.Kind == tree.File || e.Kind == tree.Executable):
			now.fleetFile = r.prev.fleetFile
			if now.fleetFile == nil || now.fleetFile.hash != e.Hash {
				now.fleetFile = s.file(fleetFile, e.Hash, secFleet)
				s.parse = append(s.parse, now.fleetFile)
			}
		case isSection && e.Kind == tree.Dir:
			d, err := s.scan(r.prev.groups[sec], e.Name, e.Hash, sec, false)
			if err != nil {
				return nil, err
			}
			now.groups[sec] = d
		case isSection || e.Name == fleetFile || e.Name == basesDir && e.Kind != tree.Dir:
			d := &dir{}
			why := naming.Refuse(e.Name, e)
			if why == "" {
				why = fmt.Sprintf("%s is not what is expected under this name", e.Name)
			}
			d.refuse(e.Name, why)
			stray = append(stray, d.refused...)
			if sec == secIntents && isSection {
				now.intents = d
			}
		case e.Name == basesDir:
			now.bases = e.Hash
		case e.Kind == tree.Dir:
			if near := nearest.Of(e.Name, inputDirs); near != "" && !slices.Contains(inputDirs, e.Name) {
				stray = append(stray, Diagnostic{File: e.Name, Line: 1, Column: 1, Message: fmt.Sprintf("the directory %s is not read (did you mean %q?)", e.Name, near), Severity: Warning, Code: "UnknownDirectory"})
			}
		}
	}
	if now.groups[secIntents] != nil {
		now.intents = now.groups[secIntents]
	}
	return stray, nil
}

// scanRequests walks the intents that came through the API.
func (r *Reader) scanRequests(ledger tree.Tree, s *scanner, now *reading) error {
	if ledger.IsZero() {
		return nil
	}
	e, err := ledger.Find(requestsDir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case e.Kind != tree.Dir:
		now.requests = &dir{path: requestsDir}
		why := naming.Refuse(requestsDir, e)
		if why == "" {
			why = fmt.Sprintf("%s is not what is expected under this name", requestsDir)
		}
		now.requests.refuse(requestsDir, why)
		return nil
	}
	s.store = ledger.Store
	now.requests, err = s.scan(r.prev.requests, requestsDir, e.Hash, secRequests, false)
	return err
}

// assemble puts the parts together in their order.
func assemble(f *Fleet, now *reading, stray []Diagnostic) {
	f.Diagnostics = append(f.Diagnostics, stray...)
	n := 0
	names := sortedKeys(now.tenants)
	for _, name := range names {
		n += len(now.tenants[name].intents)
	}
	f.Intents = make([]*model.Intent, 0, n)
	for _, name := range names {
		t := now.tenants[name]
		f.Intents = append(f.Intents, t.intents...)
		f.Frozen = append(f.Frozen, t.frozen...)
		f.Diagnostics = append(f.Diagnostics, t.diags...)
	}
	if now.intents != nil {
		f.Frozen = append(f.Frozen, now.intents.frozen...)
	}
	if now.requests != nil {
		f.Frozen = append(f.Frozen, now.requests.frozen...)
		f.Diagnostics = append(f.Diagnostics, now.requests.refused...)
	}
	f.Frozen = sortFreezes(f.Frozen)
	f.Diagnostics = sortDiagnostics(f.Diagnostics)
}

// filesOf lists the files of a section in git's order.
func filesOf(d *dir) []*file {
	var out []*file
	d.walk(func(d *dir) {
		for _, f := range d.files {
			if f != nil {
				out = append(out, f)
			}
		}
	})
	return out
}

func refusedOf(d *dir) []Diagnostic {
	var out []Diagnostic
	d.walk(func(d *dir) { out = append(out, d.refused...) })
	return out
}

// readOlder is a file's good version in an older tree, nil when it has none.
func (r *Reader) readOlder(older []tree.Tree, p string, sec section) (*file, error) {
	for _, t := range older {
		if t.IsZero() {
			continue
		}
		e, err := t.Find(p)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("look for an older %s: %w", p, err)
		}
		if e.Kind != tree.File && e.Kind != tree.Executable || r.aside.of(p, e.Hash.String()) != nil {
			continue
		}
		f := &file{path: p, hash: e.Hash, sec: sec}
		if err := f.read(t.Store, r.programs); err != nil {
			return nil, err
		}
		if !f.broken {
			return f, nil
		}
	}
	return nil, nil // no older version is an answer, not a failure
}

// tenantOf is the tenant that a directory under intents/ belongs to.
func tenantOf(d *dir) string { return path.Base(d.path) }

// objectsOf are the objects of one kind in files.
func objectsOf[T any](files []*file) []*T {
	var out []*T
	for _, f := range files {
		for _, d := range f.docs {
			if o, ok := d.object.(*T); ok {
				out = append(out, o)
			}
		}
	}
	return out
}
