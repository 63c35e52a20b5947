package proposing

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/forge"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
)

// maxFile bounds the file that is there, in bytes.
const maxFile = 16 << 20

// Change is a file and what is said of it.
type Change struct {
	// Path below the top of the fleet repo, and its whole new content.
	Path    string
	Content []byte
	// Prefix of the branch, such as prices/aws; a digest of the content follows.
	Prefix string
	// Title of commit and pull request, Body of the pull request.
	Title, Body string
}

// Outcome is what was done.
type Outcome struct {
	// Same is that the inputs have the content already: nothing else is set.
	Same bool `json:"same,omitempty"`
	// Branch, and whether it was made now; else it stood already.
	Branch string `json:"branch,omitempty"`
	Made   bool   `json:"made,omitempty"`
	// Number and URL of the pull request; 0 without a forge, or where somebody has closed it.
	Number int64  `json:"number,omitempty"`
	URL    string `json:"url,omitempty"`
	// Closed are the numbers of older pull requests that it replaces.
	Closed []int64 `json:"closed,omitempty"`
}

// Text is an outcome for people.
func (o *Outcome) Text(path string) string {
	switch {
	case o.Same:
		return path + " is as it was: nothing to propose\n"
	case o.Number > 0:
		text := fmt.Sprintf("proposed %s: #%d %s\n", path, o.Number, o.URL)
		for _, n := range o.Closed {
			text += fmt.Sprintf("closed #%d, which it replaces\n", n)
		}
		return text
	case o.Made:
		return fmt.Sprintf("proposed %s on branch %s: open a pull request for it, or name the --forge\n", path, o.Branch)
	}
	return fmt.Sprintf("%s is proposed on branch %s already; delete that to have it proposed again\n", path, o.Branch)
}

// Propose proposes a change of the branch base; f may be nil: then the branch alone is made.
func Propose(ctx context.Context, remote gitrepo.Remote, f forge.Forge, base string, by gitrepo.Identity, now time.Time, c Change) (out Outcome, err error) {
	repo, err := gitrepo.Open(ctx, remote, gitrepo.Options{Inputs: base, Ledger: base, Identity: by})
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, repo.Close()) }()
	heads, err := repo.Fetch(ctx)
	if err != nil {
		return out, fmt.Errorf("propose %s: %w", c.Path, err)
	}
	if heads.Inputs.Commit.IsZero() {
		return out, fmt.Errorf("propose %s: the fleet repo has no branch %s", c.Path, base)
	}
	have, err := heads.Inputs.Tree.ReadFile(c.Path, maxFile)
	switch {
	case err == nil && bytes.Equal(have, c.Content):
		return Outcome{Same: true}, nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return out, fmt.Errorf("propose %s: %w", c.Path, err)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%d\x00%s%s", len(have), have, c.Content))
	out.Branch = c.Prefix + "-" + hex.EncodeToString(sum[:4])
	if out.Made, err = repo.Propose(ctx, gitrepo.Proposal{
		Branch: out.Branch, Puts: map[string][]byte{c.Path: c.Content}, When: now, Message: gitrepo.Message("", []string{c.Title}, nil),
	}); err != nil {
		return out, err
	}
	if f == nil {
		return out, nil
	}
	return out, open(ctx, f, base, c, &out)
}

// open has a pull request for the branch, and closes those that it replaces. A branch that
// stood already and has none was closed by somebody: it is left alone.
func open(ctx context.Context, f forge.Forge, base string, c Change, out *Outcome) error {
	all, err := f.Open(ctx, base)
	if err != nil {
		return fmt.Errorf("list pull requests: %w", err)
	}
	ours := func(pr forge.PullRequest) bool { return !pr.Fork && pr.HeadBranch == out.Branch }
	if !out.Made && !slices.ContainsFunc(all, ours) {
		return nil
	}
	pr, err := f.Save(ctx, forge.Draft{Head: out.Branch, Base: base, Title: c.Title, Body: c.Body})
	if err != nil {
		return fmt.Errorf("open a pull request for %s: %w", out.Branch, err)
	}
	out.Number, out.URL = pr.Number, pr.URL
	for _, older := range all {
		if older.Number == pr.Number || older.Fork || older.Author != pr.Author || !strings.HasPrefix(older.HeadBranch, c.Prefix+"-") {
			continue
		}
		if err := f.Close(ctx, older.Number); err != nil {
			return fmt.Errorf("close #%d, which #%d replaces: %w", older.Number, pr.Number, err)
		}
		out.Closed = append(out.Closed, older.Number)
	}
	return nil
}
