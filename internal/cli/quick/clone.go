package quick

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/fleetbroker/fleetbroker/internal/api/hints"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/demo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
)

// clone is the team's clone of the fleet repo, on disk.
type clone struct {
	dir    string
	remote gitrepo.Remote
	repo   *git.Repository
	has    map[string]tree.Hash // refs of the remote when it was fetched last
}

// maxFetch bounds what a fetch brings, in bytes.
const maxFetch = 64 << 20

// make founds the clone and fetches everything.
func (c *clone) make(remote gitrepo.Remote) (err error) {
	c.remote = remote
	if there, err := os.ReadDir(c.dir); err == nil && len(there) > 0 {
		return hints.On(fmt.Errorf("%s is not empty", c.dir), "name another with --dir")
	}
	if c.repo, err = git.PlainInitWithOptions(c.dir, &git.PlainInitOptions{InitOptions: git.InitOptions{DefaultBranch: plumbing.NewBranchReferenceName(inputs)}}); err != nil {
		return fmt.Errorf("make the team's clone %s: %w", c.dir, err)
	}
	if _, err := c.repo.CreateRemote(&config.RemoteConfig{Name: "origin", URLs: []string{"https://git.example.org/acme/fleet.git"}}); err != nil {
		return fmt.Errorf("make the team's clone %s: %w", c.dir, err)
	}
	return c.fetch(context.Background())
}

// fetch brings the remote's branches as origin/<branch>.
func (c *clone) fetch(ctx context.Context) error {
	refs, err := c.remote.Refs(ctx)
	if err != nil {
		return err
	}
	maps.DeleteFunc(refs, func(ref string, _ tree.Hash) bool { return !strings.HasPrefix(ref, "refs/heads/") })
	if maps.Equal(refs, c.has) {
		return nil
	}
	choose := func(map[string]tree.Hash) (want, have []tree.Hash) {
		return slices.Collect(maps.Values(refs)), slices.Collect(maps.Values(c.has))
	}
	if err := c.remote.Fetch(ctx, choose, func(pack io.Reader) error { return gitobj.StorePack(pack, maxFetch, c.repo.Storer) }); err != nil {
		return fmt.Errorf("fetch into the team's clone: %w", err)
	}
	for ref, h := range refs {
		name := plumbing.NewRemoteReferenceName("origin", strings.TrimPrefix(ref, "refs/heads/"))
		if err := c.repo.Storer.SetReference(plumbing.NewHashReference(name, plumbing.Hash(h))); err != nil {
			return fmt.Errorf("fetch into the team's clone: %w", err)
		}
	}
	c.has = refs
	return nil
}

// checkOut puts the worktree on a branch as the remote has it.
func (c *clone) checkOut(branch string) error {
	w, err := c.repo.Worktree()
	if err != nil {
		return err
	}
	at, err := c.repo.Reference(plumbing.NewRemoteReferenceName("origin", branch), true)
	if err != nil {
		return fmt.Errorf("check out %s: %w", branch, err)
	}
	name := plumbing.NewBranchReferenceName(branch)
	if err := c.repo.Storer.SetReference(plumbing.NewHashReference(name, at.Hash())); err != nil {
		return fmt.Errorf("check out %s: %w", branch, err)
	}
	if err := w.Checkout(&git.CheckoutOptions{Branch: name, Force: true}); err != nil {
		return fmt.Errorf("check out %s: %w", branch, err)
	}
	return nil
}

// log is the commits of a branch of the remote, the newest first; none where it does not
// exist.
func (c *clone) log(branch string) ([]demo.Commit, error) {
	at, err := c.repo.Reference(plumbing.NewRemoteReferenceName("origin", branch), true)
	if errors.Is(err, plumbing.ErrReferenceNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	commits, err := c.repo.Log(&git.LogOptions{From: at.Hash()})
	if err != nil {
		return nil, err
	}
	var out []demo.Commit
	err = commits.ForEach(func(k *object.Commit) error {
		out = append(out, demo.Commit{
			Hash: k.Hash.String()[:7], Author: k.Author.Name, Date: k.Author.When.Format("2006-01-02 15:04:05 -0700"), Message: strings.TrimSpace(k.Message),
		})
		return nil
	})
	return out, err
}
