package sources

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/generations"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Bounds of the search for who changed files. Beyond them, the oldest commit that was
// looked at stands for those before it.
const (
	// maxWalked is how many commits are followed to their parents.
	maxWalked = 5000
	// maxWork is what may be done for one head, in units: a byte that is decoded is one.
	// It takes about two seconds.
	maxWork = 256 << 20
	// objectWork and lookupWork are what an object and the search of a name in a
	// directory cost besides.
	objectWork = 1 << 10
	lookupWork = 16
	// keptDirs is how much of decoded directories is kept in each of two generations, in
	// bytes.
	keptDirs = 16 << 20
	// maxAuthor bounds the name of an author, in bytes.
	maxAuthor = 256
)

// errSpent: maxWork is done.
var errSpent = errors.New("too much work")

// historian looks into the commits of a source, within maxWork.
type historian struct {
	m       *mirror
	left    int64
	commits map[tree.Hash]past
	dirs    generations.Cache[tree.Hash, []tree.Entry]
}

// past is what is looked at of a commit.
type past struct {
	tree    tree.Hash
	parents []tree.Hash
	author  string
}

func newHistorian(m *mirror) *historian {
	h := &historian{m: m, left: maxWork, commits: map[tree.Hash]past{}}
	h.dirs.Most, h.dirs.Weigh = keptDirs, weight
	return h
}

// attribute finds the commit that last changed each file of a list: from the head back to
// the first commit in which it is not as in any parent. Where a file is as in an earlier
// copy, that knows. cut: the search ended before it had found all.
func (h *historian) attribute(ctx context.Context, head tree.Hash, list []v1alpha1.SourceCopyFile, was *v1alpha1.SourceCopy) (cut bool, err error) {
	open := map[tree.Hash][]int{} // indices into list, by the commit that has them as they are
	for i := range list {
		f := &list[i]
		if was != nil {
			if old := was.File(f.Path); old != nil && old.Hash == f.Hash {
				f.Commit, f.Author = old.Commit, old.Author
				continue
			}
		}
		open[head] = append(open[head], i)
	}
	queue := []tree.Hash{head}
	for walked := 0; len(queue) > 0; walked++ {
		at := queue[0]
		queue = queue[1:]
		here := open[at]
		delete(open, at)
		if len(here) == 0 {
			continue
		}
		commit, err := h.commit(at, true)
		if err != nil {
			return cut, err
		}
		look := commit.parents
		if walked >= maxWalked {
			cut, look = cut || len(look) > 0, nil
		}
		for _, parent := range look {
			var same []int
			same, here, err = h.split(ctx, list, here, commit.tree, parent)
			if err != nil && !errors.Is(err, errSpent) {
				return cut, err
			}
			if _, queued := open[parent]; !queued && len(same) > 0 {
				queue = append(queue, parent)
			}
			if len(same) > 0 {
				open[parent] = append(open[parent], same...)
			}
			if err != nil || len(here) == 0 {
				cut = cut || err != nil
				break
			}
		}
		for _, i := range here {
			list[i].Commit, list[i].Author = at.String(), commit.author
		}
	}
	return cut, nil
}

// split parts files into those that a parent has as its child has them, and the rest.
// With errSpent, what was not looked at is of the rest.
func (h *historian) split(ctx context.Context, list []v1alpha1.SourceCopyFile, files []int, child, parent tree.Hash) (same, rest []int, err error) {
	commit, err := h.commit(parent, false)
	if err != nil {
		return nil, files, err
	}
	alike := commit.tree == child
	if !alike {
		var a, b tree.Hash
		if a, err = h.find(ctx, child, intentsDir+"/"); err == nil {
			b, err = h.find(ctx, commit.tree, intentsDir+"/")
		}
		if err != nil {
			return nil, files, err
		}
		alike = a == b
	}
	if alike {
		return files, nil, nil
	}
	dir, dirHash := "", tree.Hash{} // of the file before: the next one is mostly next to it
	for n, i := range files {
		p := list[i].Path
		name := p[strings.LastIndexByte(p, '/')+1:]
		if in := p[:len(p)-len(name)]; in != dir {
			if dirHash, err = h.find(ctx, commit.tree, in); err != nil {
				return same, append(rest, files[n:]...), err
			}
			dir = in
		}
		is, err := h.find(ctx, dirHash, name)
		if err != nil {
			return same, append(rest, files[n:]...), err
		}
		if is.String() == list[i].Hash {
			same = append(same, i)
		} else {
			rest = append(rest, i)
		}
	}
	return same, rest, nil
}

// spend counts work; errSpent when there was too much before. What is begun is done.
func (h *historian) spend(units int) error {
	if h.left <= 0 {
		return errSpent
	}
	h.left -= int64(units)
	return nil
}

// commit reads a commit. One whose files are at issue is read even when no work is left:
// it says who they are of.
func (h *historian) commit(hash tree.Hash, must bool) (past, error) {
	if c, known := h.commits[hash]; known {
		return c, nil
	}
	if err := h.spend(objectWork); err != nil && !must {
		return past{}, err
	}
	c, err := h.m.commit(hash)
	if err != nil {
		return past{}, err
	}
	h.left -= int64(len(c.Message) + len(c.Signature) + len(c.Author.Name) + 48*len(c.Parents))
	p := past{c.Tree, c.Parents, oneLine(c.Author.String())}
	h.commits[hash] = p
	return p, nil
}

// dir lists a directory: nothing when it cannot be read. What an old tree has in the way
// is no finding of the head's.
func (h *historian) dir(hash tree.Hash) ([]tree.Entry, error) {
	if list, known := h.dirs.Get(hash); known {
		return list, nil
	}
	if err := h.spend(objectWork); err != nil {
		return nil, err
	}
	list, size, err := h.m.listed(hash)
	h.left -= int64(size)
	if err != nil && !errors.As(err, new(*tree.BrokenError)) {
		return nil, err
	}
	h.dirs.Put(hash, list)
	return list, nil
}

// weight is about what a decoded directory takes, in bytes.
func weight(list []tree.Entry) int {
	n := 64
	for i := range list {
		n += 64 + len(list[i].Name)
	}
	return n
}

// find is the hash of a path below a directory, zero when it is not there; with a slash
// at its end it is a directory's, and else a file's.
func (h *historian) find(ctx context.Context, at tree.Hash, p string) (tree.Hash, error) {
	for p != "" && !at.IsZero() {
		if err := cmp.Or(ctx.Err(), h.spend(lookupWork)); err != nil {
			return tree.Hash{}, err
		}
		list, err := h.dir(at)
		if err != nil {
			return tree.Hash{}, err
		}
		name, rest, below := strings.Cut(p, "/")
		i, found := slices.BinarySearchFunc(list, name, func(e tree.Entry, name string) int { return inOrder(e, name, below) })
		if !found {
			return tree.Hash{}, nil
		}
		at, p = list[i].Hash, rest
	}
	return at, nil
}

// inOrder compares an entry with a name, of a directory or not, in the order of git's
// trees: a directory's name counts with a slash at its end.
func inOrder(e tree.Entry, name string, dir bool) int {
	n := min(len(e.Name), len(name))
	return cmp.Or(cmp.Compare(e.Name[:n], name[:n]), cmp.Compare(after(e.Name, n, e.Kind == tree.Dir), after(name, n, dir)))
}

// after is what comes of a name after some bytes, as far as it counts.
func after(name string, n int, dir bool) int {
	switch {
	case len(name) > n:
		return int(name[n])
	case dir:
		return '/'
	}
	return 0
}

// oneLine is a name as it may stand in a file of the ledger.
func oneLine(s string) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "?")), " ")
	if len(s) > maxAuthor {
		s = strings.ToValidUTF8(s[:maxAuthor], "")
	}
	return s
}
