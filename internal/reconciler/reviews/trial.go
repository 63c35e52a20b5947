package reviews

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/child"
	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/strictyaml"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	"github.com/fleetbroker/fleetbroker/internal/reconciler"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/world"
	"github.com/fleetbroker/fleetbroker/internal/review"
)

// What a fork's pull request may bring. Counts decide what is refused; they are
// the same on every machine.
const (
	forkFiles    = 500
	forkIntents  = 200
	forkReplicas = 1_000
	// forkConditions are units of work of placement.where: a hundredth of what all
	// intents of a fleet may cost a round by default.
	forkConditions = v1alpha1.DefaultConditions / 100
	// trialFiles, trialBytes and trialOffers are what it is tried with beside the
	// files that it changes: directories whole, or not at all, and the first offers.
	trialFiles  = 2_000
	trialBytes  = 8 << 20
	trialOffers = 2_000
)

// trialName is the process in which a fork's files are tried.
const trialName = "fleetbroker: fork"

// forkBounds are those of that process.
var forkBounds = child.Bounds{Memory: 256 << 20, CPU: 5}

func init() {
	child.Serve(trialName, func(request []byte) ([]byte, error) {
		var t trial
		if err := json.Unmarshal(request, &t); err != nil {
			return nil, err
		}
		why, err := t.run()
		return []byte(why), err
	})
}

// trial is what a fork brings, and as much of the fleet as is needed to read and
// to plan it alone.
type trial struct {
	Now   v1alpha1.Time
	Files map[string][]byte
	// Copies are the files of a source, by their paths on the ledger; none of a fork of
	// the fleet repo.
	Copies map[string][]byte
	// Known are the intents of the base, by path and digest: they are read with
	// the others, and not planned.
	Known  map[string]bool
	Offers []*model.Offer
	// Market is how many offers there are, of which Offers are some.
	Market int

	files, bytes int // how many of trialFiles and trialBytes are left
}

// run reads and plans it and says why it is refused, "" when it is not. It runs in
// the child.
func (t *trial) run() (why string, err error) {
	src := fleet.Sources{Inputs: tree.NewMemory().Build(t.Files)}
	if len(t.Copies) > 0 {
		src.Copies = tree.NewMemory().Build(t.Copies)
	}
	f, err := fleet.NewReader().ReadAll(context.Background(), src)
	if err != nil {
		return "", err
	}
	policy := *f.Policy
	w := planner.World{
		Now: t.Now, Fleet: &policy, FleetName: f.Name, Clusters: f.Clusters, Tenants: f.Tenants,
		Policies: f.Policies, Ledger: ledger.Empty(), Offers: t.Offers,
	}
	replicas := int64(0)
	for _, it := range world.Intents(f, nil) {
		if !t.Known[knownBy(it)] {
			w.Intents = append(w.Intents, it)
			replicas += max(1, int64(it.Spec.Replicas.Max))
		}
	}
	switch {
	case len(w.Intents) > forkIntents:
		return fmt.Sprintf("it adds or changes %d intents, and at most %d are read of a fork", len(w.Intents), forkIntents), nil
	case replicas > forkReplicas:
		return fmt.Sprintf("its intents ask for %d replicas, and at most %d are planned of a fork", replicas, forkReplicas), nil
	}
	policy.Limits.Conditions = max(1, int64(forkConditions)*int64(len(t.Offers))/int64(max(t.Market, 1)))
	for _, d := range planner.Decide(w).Intents {
		if d.Code == lifecycle.CodeConditions {
			return fmt.Sprintf("its conditions (placement.where) cost more than %d units of work on the offers of this fleet, which is what a fork has", forkConditions), nil
		}
	}
	return "", nil
}

func knownBy(it *model.Intent) string { return it.Path + "\x00" + it.Digest }

// tried is what came of a trial, which holds for a head and the inputs it was
// tried with.
type tried struct {
	of  told
	why string
}

// try has a fork's files read and planned alone, in a process with bounds, before
// the daemon reads them: what kills that process twice is refused. It says why a
// plan is not made, "" when one is.
func (r *Common) try(e *entry, of told, c review.Changes, collect func() (*trial, error)) (why string, err error) {
	if e.tried.of == of {
		return e.tried.why, nil
	}
	if n := len(c.Work) + len(c.Policy) + len(c.Generated) + len(c.Other); n > forkFiles {
		why = fmt.Sprintf("it changes %d files, and at most %d are read of a fork", n, forkFiles)
	} else if len(c.Work) > 0 {
		t, err := collect()
		if err != nil {
			return "", err
		}
		request, err := json.Marshal(t)
		if err != nil {
			return "", fmt.Errorf("try what a fork brings: %w", err)
		}
		if why, err = r.ask(request); err != nil {
			return "", err
		}
	}
	if why != "" {
		why += ": split it, or have a person with write access push it to a branch of this repository"
	}
	e.tried = tried{of, why}
	return why, nil
}

// ask has the child try, and once more when it dies of it.
func (r *Common) ask(request []byte) (why string, err error) {
	for range 2 {
		var answer []byte
		answer, err = r.trials.Ask(request, r.bounds)
		var death *child.Death
		switch {
		case err == nil:
			return string(answer), nil
		case !errors.As(err, &death) || !death.Convicts:
			return "", fmt.Errorf("try what a fork brings: %w", err)
		}
		why = "reading and planning its files alone failed twice: " + death.Error()
	}
	return why, nil
}

// newTrial collects what a fork is tried with: policy in force, what the fork
// changes, and the directories of its tenants and of bases that fit.
func newTrial(view *reconciler.View, b *base, merged tree.Tree, c review.Changes) (*trial, error) {
	t, err := emptyTrial(view, b)
	if err != nil {
		return nil, err
	}
	if err := t.directory(merged, "bases"); err != nil {
		return nil, err
	}
	tenants := map[string]bool{}
	for _, path := range c.Work {
		if parts := strings.SplitN(path, "/", 3); len(parts) == 3 && parts[0] == "intents" && !tenants[parts[1]] {
			tenants[parts[1]] = true
			if err := t.directory(merged, "intents/"+parts[1]); err != nil {
				return nil, err
			}
			if err := t.file(b.inputs, "tenants/"+parts[1]+".yaml"); err != nil {
				return nil, err
			}
		}
		if err := t.file(merged, path); err != nil {
			return nil, err
		}
	}
	for _, it := range b.side.World.Intents {
		if tenants[it.Metadata.Namespace] {
			t.Known[knownBy(it)] = true
		}
	}
	return t, nil
}

// emptyTrial is one with the policy of the base and its first offers.
func emptyTrial(view *reconciler.View, b *base) (*trial, error) {
	t := &trial{
		Now: view.World.Now, Files: map[string][]byte{}, Known: map[string]bool{}, Offers: view.World.Offers, Market: len(view.World.Offers),
		files: trialFiles, bytes: trialBytes,
	}
	t.Offers = t.Offers[:min(len(t.Offers), trialOffers)]
	if err := t.directory(b.inputs, "clusters"); err != nil {
		return nil, err
	}
	return t, t.file(b.inputs, "fleet.yaml")
}

// file takes a file; one that is not there, is no file or is too large is left out.
func (t *trial) file(from tree.Tree, name string) error {
	e, err := from.Find(name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && e.Kind != tree.File && e.Kind != tree.Executable {
		return nil
	}
	if err == nil {
		t.Files[name], err = from.Store.File(e.Hash, strictyaml.MaxSize)
	}
	if errors.Is(err, tree.ErrTooLarge) {
		delete(t.Files, name)
		return nil
	}
	return err
}

var errLarge = errors.New("it is large")

// directory takes a directory that fits into what is left.
func (t *trial) directory(from tree.Tree, dir string) error {
	e, err := from.Find(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && e.Kind != tree.Dir {
		return nil
	}
	if err != nil {
		return err
	}
	files := map[string][]byte{}
	err = tree.Tree{Store: from.Store, Root: e.Hash}.Walk(func(name string, e tree.Entry) error {
		if t.files--; t.files < 0 || t.bytes < 0 {
			return errLarge
		}
		if e.Kind != tree.File && e.Kind != tree.Executable {
			return nil
		}
		content, err := from.Store.File(e.Hash, strictyaml.MaxSize)
		if errors.Is(err, tree.ErrTooLarge) {
			return nil
		}
		t.bytes -= len(content)
		files[dir+"/"+name] = content
		return err
	})
	if errors.Is(err, errLarge) {
		return nil
	}
	maps.Copy(t.Files, files)
	return err
}
