package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/memory"
	"github.com/spf13/pflag"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/cli/clonedir"
	"github.com/fleetbroker/fleetbroker/internal/cli/retyped"
	"github.com/fleetbroker/fleetbroker/internal/cli/watching"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/sources"
	"github.com/fleetbroker/fleetbroker/internal/trust"
)

// source is a fleet repo as a command reads it: the files of a directory, or a
// branch of a repository.
type source struct {
	// where it is, for messages.
	where string
	// inputs as they are, committed or not.
	inputs tree.Tree
	// branch and commit of the inputs; zero when they are no commit.
	branch string
	commit tree.Hash
	// changed says that the files differ from the commit.
	changed bool
	// repo is nil for a plain directory.
	repo    *git.Repository
	objects *objects
	// root is whose signatures count; nil: those whom the repository names.
	root *trust.Root
	// baseless is why the root finds nothing in the inputs to begin with; "": it does.
	baseless string
	proposal string // NAME=DIR: a source, and what a pull request of it would bring
}

// sourceFlags are the flags of commands that read a fleet repo by URL.
type sourceFlags struct {
	auth gitrepo.Auth
	root rootFlags

	dir, branch, proposal string
	// offers: the heads of pull requests, and those that were accepted, are wanted
	// too.
	offers bool
}

func (f *sourceFlags) register(fs *pflag.FlagSet) {
	fs.StringVarP(&f.dir, "dir", "C", "", "directory or URL of the fleet repo (default: around the working directory)")
	fs.StringVar(&f.branch, "branch", "main", "branch of the inputs, with a URL")
	fs.StringVar(&f.auth.User, "git-user", "", "user for git over https, with a URL")
	fs.StringVar(&f.auth.PasswordFile, "git-password-file", "", "file with the password or access token for git over https")
	fs.StringVar(&f.auth.SSHKeyFile, "git-ssh-key", "", "private key for git over ssh")
	f.root.register(fs)
}

// retyped is what a command that is to follow needs of them.
func (f *sourceFlags) retyped(signed bool, args ...string) retyped.Source {
	return retyped.Source{Signed: signed, Dir: cmp.Or(f.dir, strings.Join(args, "")), Branch: f.branch, TrustRoot: cmp.Or(f.root.file, os.Getenv("FLEETBROKER_TRUST_ROOT")), Auth: f.auth}
}

// open opens a directory or a URL, named as an argument or by -C. Without one, the
// fleet repo around the working directory is meant.
func (f *sourceFlags) open(ctx context.Context, args []string) (*source, error) {
	switch {
	case f.dir != "" && len(args) > 0:
		return nil, usagef("the fleet repo is named twice: -C %s and %s", f.dir, args[0])
	case f.dir != "":
		args = []string{f.dir}
	}
	root, err := f.root.read()
	if err != nil {
		return nil, err
	}
	s, err := f.opened(ctx, args)
	if err == nil {
		s.root, s.proposal = root, f.proposal
	}
	return s, err
}

func (f *sourceFlags) opened(ctx context.Context, args []string) (*source, error) {
	if len(args) == 0 {
		dir, err := findFleet(".")
		if err != nil {
			return nil, err
		}
		return openDir(dir)
	}
	if isURL(args[0]) {
		return f.openURL(ctx, args[0])
	}
	return openDir(args[0])
}

// isURL tells a URL, or git's user@host:path, from a directory.
func isURL(s string) bool {
	if strings.Contains(s, "://") {
		return true
	}
	host, path, ok := strings.Cut(s, ":")
	return ok && path != "" && strings.Contains(host, "@") && !strings.Contains(host, "/")
}

// fleetFile marks the top of a fleet repo.
const fleetFile = "fleet.yaml"

// findFleet is dir or the nearest directory above it that has a fleet.yaml.
func findFleet(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("find the fleet repo: %w", err)
	}
	for at := abs; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, fleetFile)); err == nil {
			if rel, err := filepath.Rel(abs, at); err == nil {
				return rel, nil
			}
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", hinted(fmt.Errorf("no fleet repo here: neither %s nor a directory above it has a %s", abs, fleetFile),
				"name its directory or URL, or make one: fleetbroker init fleet")
		}
	}
}

// openDir reads the files of a directory as they are. When it is a git
// checkout, its commit and its other branches are known too.
func openDir(dir string) (*source, error) {
	if _, err := os.Stat(filepath.Join(dir, fleetFile)); errors.Is(err, fs.ErrNotExist) {
		hint := "make one to start from: fleetbroker init " + dir
		if _, err := os.Stat(filepath.Join(dir, "objects")); err == nil { // bare
			if abs, err := filepath.Abs(dir); err == nil {
				hint = "a bare repository is read by its URL: file://" + filepath.ToSlash(abs)
			}
		}
		return nil, hinted(fmt.Errorf("%s is no fleet repo: it has no %s", dir, fleetFile), hint)
	}
	inputs, err := tree.FromDisk(dir, 0)
	if err != nil {
		return nil, err
	}
	s := &source{where: dir, inputs: inputs}
	repo, err := clonedir.Open(dir)
	if errors.Is(err, git.ErrRepositoryNotExists) {
		return s, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open the git repository of %s: %w", dir, err)
	}
	s.repo, s.objects = repo, &objects{storage: repo.Storer}
	head, err := repo.Head()
	if errors.Is(err, plumbing.ErrReferenceNotFound) {
		s.changed = true
		return s, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read HEAD of %s: %w", dir, err)
	}
	s.commit = tree.Hash(head.Hash())
	if head.Name().IsBranch() {
		s.branch = head.Name().Short()
	}
	committed, err := s.tree(s.commit)
	if err != nil {
		return nil, err
	}
	s.changed, err = inputsDiffer(committed, inputs)
	return s, err
}

// maxClone bounds what a repository that is read by its URL holds in memory, in
// bytes.
const maxClone = 8 << 30

// openURL fetches a repository into memory.
func (f *sourceFlags) openURL(ctx context.Context, url string) (*source, error) {
	remote, err := gitrepo.Dial(url, f.auth)
	if err != nil {
		return nil, err
	}
	storage := memory.NewStorage()
	var refs map[string]tree.Hash
	choose := func(all map[string]tree.Hash) (want, have []tree.Hash) {
		refs = all
		for _, name := range sortedNames(all) {
			if strings.HasPrefix(name, "refs/heads/") || f.offers && (mayBeOffer(name) || strings.HasPrefix(name, "refs/fleetbroker/accepted/")) {
				want = append(want, all[name])
			}
		}
		return want, nil
	}
	err = remote.Fetch(ctx, choose, func(pack io.Reader) error { return gitobj.StorePack(pack, maxClone, storage) })
	if err != nil {
		return nil, hinted(err, "is that the repository's URL, and can it be reached from here? One that asks who you are: --git-user and --git-password-file, or --git-ssh-key")
	}
	commit, ok := refs[gitrepo.Branch(f.branch)]
	if !ok {
		return nil, hinted(fmt.Errorf("%s has no branch %s", url, f.branch), "name the branch of the inputs with --branch")
	}
	for _, name := range sortedNames(refs) {
		if err := storage.SetReference(plumbing.NewHashReference(plumbing.ReferenceName(name), plumbing.Hash(refs[name]))); err != nil {
			return nil, fmt.Errorf("fetch %s: %w", url, err)
		}
	}
	head := plumbing.NewSymbolicReference(plumbing.HEAD, plumbing.ReferenceName(gitrepo.Branch(f.branch)))
	if err := storage.SetReference(head); err != nil {
		return nil, fmt.Errorf("fetch %s: %w", url, err)
	}
	repo, err := git.Open(storage, nil)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", url, err)
	}
	s := &source{where: url, branch: f.branch, commit: commit, repo: repo, objects: &objects{storage: storage}}
	s.inputs, err = s.tree(commit)
	return s, err
}

// inputNames are what people write at the top of a fleet repo.
var inputNames = []string{fleetFile, "clusters", "tenants", "flavors", "prices", "intents", "bases", "pki", "overlays"}

// inputsDiffer compares what people write in two trees.
func inputsDiffer(a, b tree.Tree) (bool, error) {
	for _, name := range inputNames {
		ea, erra := a.Find(name)
		eb, errb := b.Find(name)
		if erra != nil && !errors.Is(erra, fs.ErrNotExist) {
			return false, erra
		}
		if errb != nil && !errors.Is(errb, fs.ErrNotExist) {
			return false, errb
		}
		if ea.Hash != eb.Hash {
			return true, nil
		}
	}
	return false, nil
}

// tree of a commit.
func (s *source) tree(commit tree.Hash) (tree.Tree, error) {
	c, _, err := s.commitAt(commit)
	if err != nil {
		return tree.Tree{}, err
	}
	return tree.Tree{Store: s.objects, Root: c.Tree}, nil
}

// commitAt is a commit, and its body as it is stored.
func (s *source) commitAt(h tree.Hash) (c gitobj.CommitData, raw []byte, err error) {
	if raw, err = s.objects.Commit(h); err != nil {
		return c, nil, err
	}
	if c, err = gitobj.ParseCommit(raw); err != nil {
		return c, nil, fmt.Errorf("read commit %s: %w", h.Short(), err)
	}
	return c, raw, nil
}

// ledger is the tree in which the contracts stand: the configured branch as the
// remote had it when last fetched, else the local one. A plain directory has
// its own. found is false where there is no such branch, as before the first
// contract.
func (s *source) ledger(branch string) (t tree.Tree, found bool, err error) {
	if s.repo == nil {
		t, err = sources.Proposed(s.inputs, s.proposal)
		return t, true, err
	}
	for _, ref := range s.ledgerRefs(branch) {
		h, err := s.repo.ResolveRevision(plumbing.Revision(ref))
		if err != nil {
			continue
		}
		if t, err = s.tree(tree.Hash(*h)); err == nil {
			t, err = sources.Proposed(t, s.proposal)
		}
		return t, true, err
	}
	t, err = sources.Proposed(t, s.proposal)
	return t, s.proposal != "", err
}

func (s *source) ledgerRefs(branch string) []string {
	refs := []string{"refs/remotes/origin/" + branch}
	if remotes, err := s.repo.Remotes(); err == nil {
		for _, r := range remotes {
			refs = append(refs, "refs/remotes/"+r.Config().Name+"/"+branch)
		}
	}
	return append(refs, gitrepo.Branch(branch))
}

// cloned reports whether the repository has a remote that may know more.
func (s *source) cloned() bool {
	if s.repo == nil {
		return false
	}
	remotes, err := s.repo.Remotes()
	return err == nil && len(remotes) > 0
}

// remote is the name of the remote that hints and fetches name: origin, where there are
// several.
func (s *source) remote() string {
	if s.repo != nil {
		if remotes, err := s.repo.Remotes(); err == nil && len(remotes) == 1 {
			return remotes[0].Config().Name
		}
	}
	return "origin"
}

// base is the tree of the newest commit that rev and the inputs have in common:
// what a pull request is compared with.
func (s *source) base(rev string) (tree.Tree, error) {
	h, err := s.revision(rev)
	if err != nil {
		return tree.Tree{}, err
	}
	theirs, err := s.repo.CommitObject(plumbing.Hash(h))
	if err != nil {
		return tree.Tree{}, fmt.Errorf("--base %s: %w", rev, err)
	}
	ours, err := s.repo.CommitObject(plumbing.Hash(s.commit))
	if err != nil {
		return tree.Tree{}, fmt.Errorf("read commit %s: %w", s.commit.Short(), err)
	}
	common, err := ours.MergeBase(theirs)
	if err != nil {
		return tree.Tree{}, s.objects.cutOff(fmt.Errorf("--base %s: find the common commit: %w", rev, err))
	}
	if len(common) == 0 {
		return s.tree(h)
	}
	return s.tree(tree.Hash(common[0].Hash))
}

// revision is the commit that --base names.
func (s *source) revision(rev string) (tree.Hash, error) {
	if s.repo == nil || s.commit.IsZero() {
		return tree.Hash{}, hinted(fmt.Errorf("--base %s: %s has no commits to compare with", rev, s.where), "leave --base out, or commit first")
	}
	h, err := s.repo.ResolveRevision(plumbing.Revision(rev))
	if err != nil {
		return tree.Hash{}, hinted(fmt.Errorf("--base %s: no such revision in %s", rev, s.where), s.fetchHint(rev))
	}
	return tree.Hash(*h), nil
}

// branches are those of the repository, its remotes' as origin/main.
func (s *source) branches() []string {
	var out []string
	refs, err := s.repo.References()
	if err != nil {
		return nil
	}
	_ = refs.ForEach(func(r *plumbing.Reference) error {
		if name := r.Name(); (name.IsBranch() || name.IsRemote()) && r.Type() == plumbing.HashReference {
			out = append(out, name.Short())
		}
		return nil
	})
	slices.Sort(out)
	return out
}

// fetchHint is what makes a revision known that --base names.
func (s *source) fetchHint(rev string) string {
	remote := s.remote()
	branch, tracked := strings.CutPrefix(rev, remote+"/")
	hint := "fetch it: " + watching.Command(remote, branch)
	if !tracked {
		hint += ", and name it --base " + remote + "/" + branch
	}
	if plumbing.IsHash(rev) {
		hint = "fetch it: git fetch " + remote + " " + rev
	}
	return hint
}

// lastChange is the commit that last changed a path, and its author; empty when
// that is not known.
func (s *source) lastChange(path string) (commit, author string) {
	if s.repo == nil || s.commit.IsZero() {
		return "", ""
	}
	log, err := s.repo.Log(&git.LogOptions{From: plumbing.Hash(s.commit), FileName: &path})
	if err != nil {
		return "", ""
	}
	defer log.Close()
	var c *object.Commit
	if c, err = log.Next(); err != nil {
		return "", ""
	}
	return c.Hash.String(), c.Author.Name + " <" + c.Author.Email + ">"
}

// commitText is the commit of the inputs, "" when they are none.
func (s *source) commitText() string {
	if s.commit.IsZero() {
		return ""
	}
	return s.commit.String()
}

// older are trees in which a broken fleet, tenant or cluster file may still be
// good: the commit that the files differ from.
func (s *source) older() []tree.Tree {
	if !s.changed || s.commit.IsZero() {
		return nil
	}
	t, err := s.tree(s.commit)
	if err != nil {
		return nil
	}
	return []tree.Tree{t}
}

// readFleet reads the inputs, and the requests that came through the API from
// the ledger beside them: without those, what was reserved for them would look
// as if nobody wanted it any more.
func (s *source) readFleet(ctx context.Context) (*fleet.Fleet, error) {
	inputs, findings, err := s.verified(ctx)
	if err != nil {
		return nil, err
	}
	f, err := s.fleetAt(ctx, inputs, s.older())
	if err != nil {
		return nil, fmt.Errorf("read the inputs of %s: %w", s.where, err)
	}
	f.Diagnostics = append(f.Diagnostics, findings...)
	return f, nil
}

// fleetAt reads the inputs of a tree, with the ledger's requests as they are
// now.
func (s *source) fleetAt(ctx context.Context, t tree.Tree, older []tree.Tree) (*fleet.Fleet, error) {
	reader := fleet.NewReader()
	src := fleet.Sources{Inputs: t, Older: older}
	branch, good, err := branchOf(ctx, t)
	if err == nil && good { // before anything else is read: the ledger lists what is not to be
		if src.Ledger, _, err = s.ledger(branch); err == nil {
			return reader.ReadAll(ctx, src)
		}
	}
	f, err := reader.ReadAll(ctx, src)
	if err != nil {
		return nil, err
	}
	var found bool
	if src.Ledger, found, err = s.ledger(f.Policy.WriteBack.Branch); err != nil || !found {
		return f, err
	}
	return reader.ReadAll(ctx, src)
}
