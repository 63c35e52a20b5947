package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/fleetbroker/fleetbroker/internal/api/strictyaml"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
)

// maxOlderFleets bounds how far back, in commits, a good fleet.yaml is looked
// for when the newest is broken or gone.
const maxOlderFleets = 100

// ledgerBranch reads writeBack.branch from the fleet.yaml of the inputs. As
// everywhere, a broken one keeps its last good version; so does one that is
// gone, because without it the inputs' own branch would be taken for the ledger.
func ledgerBranch(ctx context.Context, remote gitrepo.Remote, opts gitrepo.Options) (string, error) {
	opts.Ledger = opts.Inputs
	repo, err := gitrepo.Open(ctx, remote, opts)
	if err != nil {
		return "", err
	}
	defer func() { _ = repo.Close() }()
	heads, err := repo.Fetch(ctx)
	// As long as the ledger branch is not known, its accepted head cannot be
	// compared with anything.
	var rewritten *gitrepo.ErrRewritten
	if err != nil && !errors.As(err, &rewritten) {
		// What the local copy knows is enough: the loop waits for the remote.
		if t, ok := repo.CachedInputs(); ok {
			if branch, good, berr := branchOf(ctx, t); berr == nil && good {
				return branch, nil
			}
		}
		return "", &awayError{fmt.Errorf("read the fleet repo: %w", err)}
	}
	if heads.Inputs.Commit.IsZero() {
		return "", fmt.Errorf("the fleet repo has no branch %s; push the first inputs there (`fleetbroker init DIR` lays them down), or name another with --inputs", opts.Inputs)
	}
	branch, good, err := branchOf(ctx, heads.Inputs.Tree)
	if broken := errors.As(err, new(*tree.BrokenError)); good || err != nil && !broken {
		return branch, err
	}
	c := heads.Inputs.Commit
	for range maxOlderFleets {
		if len(c.Parents) == 0 {
			break
		}
		if c, err = repo.Info(c.Parents[0]); err != nil {
			return "", fmt.Errorf("read older inputs: %w", err)
		}
		t, err := repo.Tree(c.Hash)
		if err != nil {
			return "", fmt.Errorf("read older inputs: %w", err)
		}
		older, good, err := branchOf(ctx, t)
		if broken := errors.As(err, new(*tree.BrokenError)); good || err != nil && !broken {
			return older, err
		}
	}
	return branch, nil
}

// branchOf is the ledger branch by the fleet.yaml of a tree, and whether there
// is a good one. Only that file is read: a large fleet takes seconds, and the
// loop will read it.
func branchOf(ctx context.Context, t tree.Tree) (branch string, good bool, err error) {
	text, err := t.ReadFile(fleetFile, strictyaml.MaxSize)
	only := map[string][]byte{}
	switch {
	case err == nil:
		only[fleetFile] = text
	case !errors.Is(err, fs.ErrNotExist):
		return "", false, fmt.Errorf("read fleet.yaml: %w", err)
	}
	f, err := fleet.NewReader().Read(ctx, tree.NewMemory().Build(only), nil)
	if err != nil {
		return "", false, fmt.Errorf("read fleet.yaml: %w", err)
	}
	return f.Policy.WriteBack.Branch, len(only) > 0 && len(f.Errors()) == 0, nil
}
