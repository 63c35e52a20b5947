package checker

import (
	"errors"
	"fmt"
	"io"
	"sort"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/storer"
)

// Violation is one broken invariant at one commit.
type Violation struct {
	Commit string
	What   string
}

func (v Violation) String() string { return v.Commit[:min(len(v.Commit), 10)] + ": " + v.What }

// change is one path that differs from the parent.
type change struct {
	path     string
	from, to plumbing.Hash
}

// history reads the first-parent line of a ref, oldest first.
func history(st storer.Storer, ref plumbing.ReferenceName, isOurs func(*object.Commit) bool) ([]*object.Commit, []Violation, error) {
	r, err := storer.ResolveReference(st, ref)
	if errors.Is(err, plumbing.ErrReferenceNotFound) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("resolve %s: %w", ref, err)
	}
	var out []*object.Commit
	var bad []Violation
	for h := r.Hash(); !h.IsZero(); {
		c, err := object.GetCommit(st, h)
		if err != nil {
			return nil, nil, fmt.Errorf("read commit %s: %w", h, err)
		}
		out = append(out, c)
		if len(c.ParentHashes) > 1 && isOurs(c) {
			bad = append(bad, Violation{h.String(), "a commit of the daemon has more than one parent"})
		}
		h = plumbing.ZeroHash
		if len(c.ParentHashes) > 0 {
			h = c.ParentHashes[0]
		}
	}
	for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
	return out, bad, nil
}

// isOurs recognises the daemon's commits by their trailer, as people would.
func isOurs(c *object.Commit) bool { return len(trailers(c.Message, "Plan")) > 0 }

// trailers returns the values of one trailer in the last paragraph.
func trailers(message, key string) []string {
	paragraphs := strings.Split(strings.TrimSpace(message), "\n\n")
	var out []string
	for _, line := range strings.Split(paragraphs[len(paragraphs)-1], "\n") {
		if rest, ok := strings.CutPrefix(line, key+": "); ok {
			out = append(out, rest)
		}
	}
	return out
}

// diff lists the changed files between two trees, descending only where hashes
// differ.
func diff(st storer.EncodedObjectStorer, a, b plumbing.Hash, prefix string, out *[]change) error {
	if a == b {
		return nil
	}
	left, err := entries(st, a)
	if err != nil {
		return err
	}
	right, err := entries(st, b)
	if err != nil {
		return err
	}
	names := map[string]bool{}
	for n := range left {
		names[n] = true
	}
	for n := range right {
		names[n] = true
	}
	sorted := make([]string, 0, len(names))
	for n := range names {
		sorted = append(sorted, n)
	}
	sort.Strings(sorted)
	for _, n := range sorted {
		l, r := left[n], right[n]
		if l.Hash == r.Hash {
			continue
		}
		lDir, rDir := dirHash(l), dirHash(r)
		if !lDir.IsZero() || !rDir.IsZero() {
			if err := diff(st, lDir, rDir, prefix+n+"/", out); err != nil {
				return err
			}
		}
		lFile, rFile := fileHash(l), fileHash(r)
		if lFile != rFile {
			*out = append(*out, change{prefix + n, lFile, rFile})
		}
	}
	return nil
}

func entries(st storer.EncodedObjectStorer, h plumbing.Hash) (map[string]object.TreeEntry, error) {
	out := map[string]object.TreeEntry{}
	if h.IsZero() {
		return out, nil
	}
	t, err := object.GetTree(st, h)
	if err != nil {
		return nil, fmt.Errorf("read tree %s: %w", h, err)
	}
	for _, e := range t.Entries {
		out[e.Name] = e
	}
	return out, nil
}

func dirHash(e object.TreeEntry) plumbing.Hash {
	if e.Name != "" && !e.Mode.IsFile() {
		return e.Hash
	}
	return plumbing.ZeroHash
}

func fileHash(e object.TreeEntry) plumbing.Hash {
	if e.Name != "" && e.Mode.IsFile() {
		return e.Hash
	}
	return plumbing.ZeroHash
}

func readBlob(st storer.EncodedObjectStorer, h plumbing.Hash) ([]byte, error) {
	b, err := object.GetBlob(st, h)
	if err != nil {
		return nil, fmt.Errorf("read blob %s: %w", h, err)
	}
	r, err := b.Reader()
	if err != nil {
		return nil, fmt.Errorf("read blob %s: %w", h, err)
	}
	defer func() { _ = r.Close() }()
	return io.ReadAll(r)
}
