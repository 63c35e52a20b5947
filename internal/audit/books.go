package audit

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/manifests"
)

// maxFile bounds a generated file, as the ledger does.
const maxFile = 8 << 20

// books are the ledger at a commit, changed in place from one to the next.
type books struct {
	contracts map[string]*v1alpha1.Contract            // by path
	byName    map[string]*v1alpha1.Contract            // by name
	states    map[string]*v1alpha1.IntentState         // by path
	spends    map[string]*v1alpha1.Spend               // by path
	held      map[string]map[string]*v1alpha1.Contract // by provider/flavor and name
	booked    map[string]map[string]*v1alpha1.Contract // the same, of bookings that have not begun
	files     map[string]tree.Hash                     // manifests, by path
	read      spendFiles
	index     manifests.Index
}

func newBooks() books {
	return books{
		contracts: map[string]*v1alpha1.Contract{}, byName: map[string]*v1alpha1.Contract{}, states: map[string]*v1alpha1.IntentState{},
		spends: map[string]*v1alpha1.Spend{}, held: map[string]map[string]*v1alpha1.Contract{}, booked: map[string]map[string]*v1alpha1.Contract{}, files: map[string]tree.Hash{}, read: spendFiles{},
	}
}

// pair is one contract before and after a commit.
type pair struct {
	model.Change
	path string
}

// delta is what a commit changes, decoded.
type delta struct {
	contracts  []pair // by name
	states     map[string][2]*v1alpha1.IntentState
	spends     map[string][2]*v1alpha1.Spend
	unreadable []unreadable
}

type unreadable struct {
	path string
	err  error
}

// errStray is a file below contracts/ that is none of the ledger's.
var errStray = errors.New("no contract, state or spend belongs here")

// take brings the books from one commit to the next.
func (b *books) take(r *reader, changes []change) (*delta, error) {
	d := &delta{states: map[string][2]*v1alpha1.IntentState{}, spends: map[string][2]*v1alpha1.Spend{}}
	before, after := map[string]*v1alpha1.Contract{}, map[string]*v1alpha1.Contract{}
	paths := map[string]string{}
	for _, ch := range changes {
		top, _, _ := strings.Cut(ch.path, "/")
		switch top {
		case manifests.Root:
			if ch.after.Hash.IsZero() {
				delete(b.files, ch.path)
			} else {
				b.files[ch.path] = ch.after.Hash
			}
			continue
		case ledger.RequestsRoot, v1alpha1.SourcesRoot:
			continue
		}
		if ch.path == setAsidePath {
			continue
		}
		content, err := b.content(r, ch)
		if err != nil {
			return nil, err
		}
		var fault error
		switch base := path.Base(ch.path); {
		case base == ledger.StateFile:
			fault = swap(b.states, d.states, ch.path, content)
		case strings.HasPrefix(base, "spend-") && strings.Count(ch.path, "/") == 2:
			fault = b.spend(d, ch.path, content)
		case strings.Count(ch.path, "/") == 4 && strings.HasSuffix(base, ".yaml"):
			was := b.contracts[ch.path]
			if was != nil {
				before[was.Metadata.Name] = was
				paths[was.Metadata.Name] = ch.path
			}
			pairs := map[string][2]*v1alpha1.Contract{}
			if fault = swap(b.contracts, pairs, ch.path, content); fault == nil && content != nil {
				c := pairs[ch.path][1]
				if ledger.ContractPath(c) != ch.path {
					fault = fmt.Errorf("holds the contract of %s", ledger.ContractPath(c))
				}
				after[c.Metadata.Name], paths[c.Metadata.Name] = c, ch.path
			}
		default:
			fault = errStray
		}
		if fault != nil {
			d.unreadable = append(d.unreadable, unreadable{ch.path, fault})
		}
	}
	both := maps.Clone(before)
	maps.Copy(both, after)
	for _, name := range sortedKeys(both) {
		p := pair{model.Change{Before: before[name], After: after[name]}, paths[name]}
		d.contracts = append(d.contracts, p)
		b.book(p)
	}
	b.reindex(d)
	return d, nil
}

func (b *books) content(r *reader, ch change) ([]byte, error) {
	if ch.after.Hash.IsZero() || ch.after.Kind != tree.File {
		return nil, nil
	}
	return r.h.File(ch.after.Hash, maxFile)
}

// swap decodes a file's new content (nil: gone) in place of the old.
func swap[T any](all map[string]*T, changed map[string][2]*T, path string, content []byte) error {
	was := all[path]
	delete(all, path)
	if content == nil {
		changed[path] = [2]*T{was, nil}
		return nil
	}
	is := new(T)
	if err := ledger.Decode(content, is); err != nil {
		return err
	}
	all[path] = is
	changed[path] = [2]*T{was, is}
	return nil
}

// spend is swap for a spend file.
func (b *books) spend(d *delta, path string, content []byte) error {
	was := b.spends[path]
	delete(b.spends, path)
	if content == nil {
		delete(b.read, path)
		d.spends[path] = [2]*v1alpha1.Spend{was, nil}
		return nil
	}
	is, err := b.read.decode(path, content)
	if err != nil {
		return err
	}
	b.spends[path] = is
	d.spends[path] = [2]*v1alpha1.Spend{was, is}
	return nil
}

// book keeps the indexes.
func (b *books) book(p pair) {
	if p.Before != nil {
		delete(b.byName, p.Before.Metadata.Name)
		delete(b.held[flavorOf(p.Before)], p.Before.Metadata.Name)
		delete(b.booked[flavorOf(p.Before)], p.Before.Metadata.Name)
	}
	if p.After == nil {
		return
	}
	b.byName[p.After.Metadata.Name] = p.After
	switch {
	case p.After.Status.Phase.Held():
		put(b.held, p.After)
	case p.After.Status.Phase == v1alpha1.PhaseBooked:
		put(b.booked, p.After)
	}
}

func put(index map[string]map[string]*v1alpha1.Contract, c *v1alpha1.Contract) {
	ref := flavorOf(c)
	if index[ref] == nil {
		index[ref] = map[string]*v1alpha1.Contract{}
	}
	index[ref][c.Metadata.Name] = c
}

func (b *books) reindex(d *delta) {
	var changes []model.Change
	for _, p := range d.contracts {
		changes = append(changes, p.Change)
	}
	if len(changes) > 0 {
		b.index = b.index.With(changes)
	}
}

func flavorOf(c *v1alpha1.Contract) string { return c.Spec.Provider + "/" + c.Spec.Flavor }

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
