package delivery

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/manifests"
)

// derived are the manifests that a consumer's contracts and Cluster files
// render to, followed from change to change. What lies in the ledger's tree is
// compared with them and goes nowhere: who can write there can write no more
// than the daemon would have.
type derived struct {
	facts     *manifests.Facts
	contracts map[string]*v1alpha1.Contract
	index     manifests.Index
	// files is what each file should be, by path in the consumer's tree; nil: nothing was made yet.
	files map[string]tree.Hash
	// ledger is the tree that was compared last; differs says of its paths why
	// they are not as they should be.
	ledger  tree.Tree
	differs map[string]string
}

// next is what is rendered after a change, and the files in which that differs
// from what it was; nil content means that a file is gone.
func (d *derived) next(consumer string, want Desired) (*derived, map[string][]byte, error) {
	now := &derived{facts: want.Facts, contracts: make(map[string]*v1alpha1.Contract, len(want.Contracts)), files: maps.Clone(d.files)}
	var changes []model.Change
	for _, c := range want.Contracts {
		if c.Spec.Consumer != consumer {
			continue
		}
		now.contracts[c.Metadata.Name] = c
		if was := d.contracts[c.Metadata.Name]; !manifests.Alike(was, c) {
			changes = append(changes, model.Change{Before: was, After: c})
		}
	}
	for name, was := range d.contracts {
		if now.contracts[name] == nil {
			changes = append(changes, model.Change{Before: was})
		}
	}
	now.index = d.index.With(changes)
	made := d.files != nil && d.facts.Same(want.Facts)
	var out manifests.Output
	var err error
	if made {
		out, err = want.Facts.Update(now.index, changes)
	} else {
		now.files = map[string]tree.Hash{}
		out, err = want.Facts.Consumer(now.index, consumer)
	}
	if err != nil {
		return nil, nil, err
	}
	changed := map[string][]byte{}
	for file, text := range out.Files {
		name := strings.TrimPrefix(file, manifests.Dir(consumer)+"/")
		if text == nil {
			delete(now.files, name)
			changed[name] = nil
			continue
		}
		now.files[name] = tree.BlobHash(text)
		changed[name] = text
	}
	for name := range d.files { // where all of it was rendered again
		if _, still := now.files[name]; !still {
			changed[name] = nil
		}
	}
	maps.DeleteFunc(changed, func(name string, text []byte) bool {
		was, had := d.files[name]
		return text == nil && !had || text != nil && had && was == now.files[name]
	})
	return now, changed, now.compare(d, changed, want.Tree)
}

// compare holds the ledger's tree to what is rendered: where either changed.
func (d *derived) compare(was *derived, changed map[string][]byte, ledger tree.Tree) error {
	d.ledger, d.differs = ledger, maps.Clone(was.differs)
	if d.differs == nil {
		d.differs = map[string]string{}
	}
	look := map[string]bool{}
	for name := range changed {
		look[name] = true
	}
	err := tree.Diff(was.ledger, ledger, func(name string, _, _ tree.Entry) error {
		look[name] = true
		return nil
	})
	if err != nil {
		return fmt.Errorf("compare the ledger with what its contracts render to: %w", err)
	}
	for name := range look {
		is, err := ledger.Find(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("compare the ledger with what its contracts render to: %w", err)
		}
		want, rendered := d.files[name]
		delete(d.differs, name)
		switch {
		case err == nil && rendered && (is.Hash != want || is.Kind != tree.File):
			d.differs[name] = "differs from what its contracts and Cluster files render to"
		case err == nil && !rendered && !leftEmpty(name, is):
			d.differs[name] = "is there, and nothing renders to it"
		case err != nil && rendered:
			d.differs[name] = "is missing, though contracts and Cluster files render to it"
		}
	}
	return nil
}

// leftEmpty reports whether a file is what is left of a directory that Flux or
// Argo CD follows, of which no contract tells any more.
func leftEmpty(name string, is tree.Entry) bool {
	return path.Base(name) == "kustomization.yaml" && is.Kind == tree.File && is.Hash == emptyListing
}

var emptyListing = tree.BlobHash(manifests.EmptyListing())

// all is everything that is rendered, by path in the consumer's tree.
func (d *derived) all(consumer string) (map[string][]byte, error) {
	out, err := d.facts.Consumer(d.index, consumer)
	if err != nil {
		return nil, err
	}
	files := make(map[string][]byte, len(out.Files))
	for file, text := range out.Files {
		files[strings.TrimPrefix(file, manifests.Dir(consumer)+"/")] = text
	}
	return files, nil
}

// refusals say what of the ledger's tree is not applied, in order, for people;
// byContract are the contracts whose own manifests are among it.
func (d *derived) refusals(consumer string) (list []string, byContract map[string]string) {
	byContract = map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(d.differs)) {
		text := fmt.Sprintf("%s/%s %s: what is rendered is applied instead", manifests.Dir(consumer), name, d.differs[name])
		list = append(list, text)
		if contract := contractOfFile(name); d.contracts[contract] != nil && byContract[contract] == "" {
			byContract[contract] = text
		}
	}
	return list, byContract
}

// contractOfFile is the contract whose slice or virtual node a file holds.
func contractOfFile(name string) string {
	base := strings.TrimSuffix(path.Base(name), ".yaml")
	if contract, is := strings.CutSuffix(base, "-slice"); is {
		return contract
	}
	if at := strings.LastIndex(base, "-virtualnode"); at > 0 {
		return base[:at]
	}
	return ""
}
