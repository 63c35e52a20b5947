package poison

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/child"
	"github.com/fleetbroker/fleetbroker/internal/api/strictyaml"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/market"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/world"
)

// childName is the name under which a process is the child that reads and plans.
const childName = "fleetbroker: read"

func init() { child.Serve(childName, serve) }

// serve reads the files as a fleet and plans it on what the files offer.
func serve(request []byte) ([]byte, error) {
	var files map[string][]byte
	if err := gob.NewDecoder(bytes.NewReader(request)).Decode(&files); err != nil {
		return nil, err
	}
	f, err := fleet.NewReader().Read(context.Background(), tree.NewMemory().Build(files), nil)
	if err != nil {
		return nil, err
	}
	now := time.Unix(0, 0).UTC()
	m := market.New(market.Options{Now: func() time.Time { return now }})
	m.SetInputs(market.Inputs{Fleet: f.Policy, Clusters: f.Clusters, Flavors: f.Flavors, Prices: f.Prices})
	planner.Decide(world.Build(world.Input{Now: v1alpha1.TimeOf(now), Fleet: f, Ledger: ledger.Empty(), Market: m.Snapshot()}))
	return nil, nil
}

const (
	// convicts is how often a child must end on a piece.
	convicts = 2
	// maxTries bounds the children of one piece's trial.
	maxTries = 100
	// perByte is the memory that a byte of inputs may take beyond the bounds of any
	// child, and perSecond the bytes that one second of processor time is given for
	// (measured: 100,000 intents of 40 MiB take 900 MiB and 17 s).
	perByte   = 32
	perSecond = 256 << 10
	// planning is processor time that a plan may take, in seconds (limits.conditions).
	planning = 30
)

// Trial tries pieces of one tree.
type Trial struct {
	Inputs tree.Tree
	// Aside are pieces that are left out already.
	Aside []fleet.Unread
	Log   *slog.Logger

	parent child.Parent
	files  map[string][]byte
	hashes Pieces
	tries  int
	why    string
}

// errInconclusive: the child ended for a reason that says nothing of its input.
var errInconclusive = errors.New("the trial was ended from outside")

// Try tries suspects alone, those of them that the tree has, and returns what is
// to be left out. Each that was tried is no suspect any more; one whose trial
// was ended from outside stays one (Again).
func (t *Trial) Try(w *Watch) (out []fleet.Unread, err error) {
	t.parent.Name = childName
	defer t.parent.Close()
	suspects := w.Suspects()
	for _, name := range suspects.sorted() {
		hash, err := hashOf(t.Inputs, name)
		if err != nil {
			return nil, err
		}
		if hash != suspects[name] {
			w.Tried(name)
			continue
		}
		t.Log.Info("trying alone what was being read when the process before this one ended", "piece", name, "hash", hash)
		t.tries = 0
		found, err := t.piece(name)
		switch {
		case errors.Is(err, errInconclusive):
			out = append(out, fleet.Unread{SetAsidePiece: v1alpha1.SetAsidePiece{Path: name, Hash: hash, Why: t.why}, Again: true})
			continue
		case err != nil:
			return nil, err
		}
		w.Tried(name)
		for _, p := range found {
			t.Aside, out = append(t.Aside, fleet.Unread{SetAsidePiece: p}), append(out, fleet.Unread{SetAsidePiece: p})
		}
	}
	return out, nil
}

// piece is what of a suspect is to be set aside.
func (t *Trial) piece(name string) ([]v1alpha1.SetAsidePiece, error) {
	t.files, t.hashes = map[string][]byte{}, Pieces{}
	if err := t.gather(name); err != nil {
		return nil, err
	}
	var own []string
	for file := range t.files {
		if file == name || strings.HasPrefix(file, name) && strings.HasSuffix(name, "/") {
			own = append(own, file)
		}
	}
	slices.Sort(own)
	if ends, err := t.ends(own, own, convicts); err != nil || !ends {
		return nil, err
	}
	why := t.why
	least, err := t.narrow(own, own)
	if err != nil {
		return nil, err
	}
	if whole := len(least) > 1 && tenantsOwn(name); whole || t.tries > maxTries || slices.ContainsFunc(least, t.built) {
		return []v1alpha1.SetAsidePiece{{Path: name, Hash: mustHash(t.Inputs, name), Why: why}}, nil
	}
	var out []v1alpha1.SetAsidePiece
	for _, file := range least {
		out = append(out, v1alpha1.SetAsidePiece{Path: file, Hash: t.hashes[file], Why: why})
	}
	return out, nil
}

// built reports whether a file is read as a part of a kustomization.
func (t *Trial) built(file string) bool {
	for dir := path.Dir(file); dir != "."; dir = path.Dir(dir) {
		for _, name := range []string{"kustomization.yaml", "kustomization.yml", "Kustomization"} {
			if _, ok := t.files[dir+"/"+name]; ok {
				return true
			}
		}
	}
	return false
}

// narrow is the least part of a set on which the child ends, as far as halving
// finds it.
func (t *Trial) narrow(own, set []string) ([]string, error) {
	if len(set) == 1 || t.tries > maxTries {
		return set, nil
	}
	var out []string
	for _, half := range [][]string{set[:len(set)/2], set[len(set)/2:]} {
		need := 1
		if len(half) == 1 {
			need = convicts
		}
		ends, err := t.ends(own, half, need)
		if err != nil {
			return nil, err
		}
		if ends {
			least, err := t.narrow(own, half)
			if err != nil {
				return nil, err
			}
			out = append(out, least...)
		}
	}
	if len(out) == 0 { // only together
		return set, nil
	}
	return out, nil
}

// ends reports whether the child ends, that many times, on the files without
// those of own that are not in set.
func (t *Trial) ends(own, set []string, times int) (bool, error) {
	files, size := maps.Clone(t.files), 0
	for _, name := range own {
		delete(files, name)
	}
	for _, name := range set {
		files[name] = t.files[name]
	}
	for _, content := range files {
		size += len(content)
	}
	var request bytes.Buffer
	if err := gob.NewEncoder(&request).Encode(files); err != nil {
		return false, fmt.Errorf("try what was being read: %w", err)
	}
	b := child.Default()
	b.Memory += uint64(size) * perByte         //nolint:gosec // a size
	b.CPU += uint32(planning + size/perSecond) //nolint:gosec // a size
	for range times {
		t.tries++
		_, err := t.parent.Ask(request.Bytes(), b)
		var death *child.Death
		if !errors.As(err, &death) {
			return false, nil // it was read: what it says is for who reads it
		}
		if t.why = death.Why; !death.Convicts {
			return false, errInconclusive
		}
	}
	return true, nil
}

// gather collects a piece's files, and what they are read against.
func (t *Trial) gather(name string) error {
	want := []string{name}
	if tenantsOwn(name) {
		want = append(want, "fleet.yaml", "clusters/", "tenants/", "flavors/", "prices/", "bases/")
	}
	for _, name := range want {
		e, err := t.Inputs.Find(strings.TrimSuffix(name, "/"))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("try %s: %w", name, err)
		}
		if e.Kind != tree.Dir {
			if err := t.file(name, e); err != nil {
				return err
			}
			continue
		}
		sub := tree.Tree{Store: t.Inputs.Store, Root: e.Hash}
		if err := sub.Walk(func(p string, e tree.Entry) error { return t.file(strings.TrimSuffix(name, "/")+"/"+p, e) }); err != nil {
			return fmt.Errorf("try %s: %w", name, err)
		}
	}
	return nil
}

func (t *Trial) file(name string, e tree.Entry) error {
	if e.Kind != tree.File && e.Kind != tree.Executable {
		return nil
	}
	if slices.ContainsFunc(t.Aside, func(p fleet.Unread) bool { return p.Path == name && p.Hash == e.Hash.String() }) {
		return nil
	}
	content, err := t.Inputs.Store.File(e.Hash, strictyaml.MaxSize)
	if errors.Is(err, tree.ErrTooLarge) {
		return nil // it is refused by its size
	}
	if err != nil {
		return fmt.Errorf("try %s: %w", name, err)
	}
	t.files[name], t.hashes[name] = content, e.Hash.String()
	return nil
}
