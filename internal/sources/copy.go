package sources

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/packs"
)

// Bounds of what is looked at of a source's head.
const (
	maxEntries = 20_000
	maxDepth   = 30
	maxPath    = 900 // bytes; the copy's prefix comes before it
	// maxIgnored is how many ignored paths are named.
	maxIgnored = 20
)

const intentsDir = "intents"

// content is what is taken of a source's head.
type content struct {
	files map[string][]byte // by path in the source
	list  []v1alpha1.SourceCopyFile
	// ignored are paths below intents/ that are not taken.
	ignored []string
	// cut: the history was not followed to the end; who changed a file may be the author
	// of a later commit that has it as it is.
	cut bool
}

// copier walks one head.
type copier struct {
	content
	m       *mirror
	entries int
	bytes   int64
}

// takeOf takes what a head has of some tenants. Who changed what is taken over from an
// earlier copy where the file is as it was.
func takeOf(ctx context.Context, m *mirror, head tree.Hash, tenants []string, was *v1alpha1.SourceCopy) (*content, error) {
	c, err := contentOf(ctx, m, head, tenants)
	if err != nil {
		return nil, err
	}
	c.cut, err = newHistorian(m).attribute(ctx, head, c.list, was)
	return &c.content, err
}

// contentOf takes what a head has of some tenants, and does not look who changed what.
func contentOf(ctx context.Context, m *mirror, head tree.Hash, tenants []string) (*copier, error) {
	c := &copier{m: m, content: content{files: map[string][]byte{}}}
	commit, err := m.commit(head)
	if err != nil {
		return nil, err
	}
	top, err := c.dir(ctx, commit.Tree)
	if err != nil {
		return nil, err
	}
	for _, e := range top {
		if e.Name != intentsDir {
			continue
		}
		if e.Kind != tree.Dir {
			return nil, fmt.Errorf("%s is no directory", intentsDir)
		}
		list, err := c.dir(ctx, e.Hash)
		if err != nil {
			return nil, err
		}
		for _, e := range list {
			p := path.Join(intentsDir, e.Name)
			if e.Kind != tree.Dir || !slices.Contains(tenants, e.Name) {
				c.ignore(p)
				continue
			}
			if err := c.walk(ctx, p, e.Hash, 0); err != nil {
				return nil, err
			}
		}
	}
	slices.SortFunc(c.list, func(a, b v1alpha1.SourceCopyFile) int { return strings.Compare(a.Path, b.Path) })
	return c, nil
}

func (c *copier) ignore(p string) {
	if len(c.ignored) < maxIgnored {
		c.ignored = append(c.ignored, p)
	}
}

// dir lists a directory, and counts.
func (c *copier) dir(ctx context.Context, h tree.Hash) ([]tree.Entry, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	list, err := c.m.entries(h)
	if c.entries += len(list); err == nil && c.entries > maxEntries {
		err = fmt.Errorf("it has more than %d entries, counted where they stand", maxEntries)
	}
	return list, err
}

func (c *copier) walk(ctx context.Context, dir string, h tree.Hash, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("%s is deeper than %d directories", dir, maxDepth)
	}
	list, err := c.dir(ctx, h)
	if err != nil {
		return err
	}
	for _, e := range list {
		p := path.Join(dir, e.Name)
		switch ext := path.Ext(e.Name); {
		case e.Kind == tree.Dir:
			if err := c.walk(ctx, p, e.Hash, depth+1); err != nil {
				return err
			}
		case e.Kind != tree.File && e.Kind != tree.Executable, ext != ".yaml" && ext != ".yml":
			c.ignore(p)
		default:
			if err := c.take(p, e.Hash); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *copier) take(p string, h tree.Hash) error {
	if err := gitobj.CheckPath(p); err != nil {
		return err
	}
	if len(p) > maxPath {
		return fmt.Errorf("a path is longer than %d bytes: %.60s…", maxPath, p)
	}
	if len(c.list) == v1alpha1.MaxSourceFiles {
		return fmt.Errorf("it has more than %d files of intents", v1alpha1.MaxSourceFiles)
	}
	data, err := c.m.read(h, gitobj.Blob, v1alpha1.MaxSourceFile)
	switch {
	case errors.Is(err, tree.ErrTooLarge):
		return fmt.Errorf("%s is larger than %d KiB", p, v1alpha1.MaxSourceFile>>10)
	case errors.Is(err, packs.ErrNotFound): // as it was asked to
		return fmt.Errorf("%s is larger than %d KiB: its server left it out", p, v1alpha1.MaxSourceFile>>10)
	}
	if err != nil {
		return err
	}
	if c.bytes += int64(len(data)); c.bytes > v1alpha1.MaxSourceBytes {
		return fmt.Errorf("its files of intents have more than %d MiB together", v1alpha1.MaxSourceBytes>>20)
	}
	c.files[p] = data
	c.list = append(c.list, v1alpha1.SourceCopyFile{Path: p, Hash: h.String()})
	return nil
}
