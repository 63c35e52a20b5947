package tree

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // git's object names are SHA-1
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"
)

// Memory is a Store of objects in memory. Its hashes are those git would give,
// so a tree read from a checkout and from the repository agree. Safe for
// concurrent use.
type Memory struct {
	mu    sync.RWMutex
	dirs  map[Hash][]Entry
	files map[Hash][]byte
}

// NewMemory returns an empty store.
func NewMemory() *Memory {
	return &Memory{dirs: map[Hash][]Entry{}, files: map[Hash][]byte{}}
}

// Dir implements Store.
func (m *Memory) Dir(h Hash) ([]Entry, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	d, ok := m.dirs[h]
	if !ok {
		return nil, fmt.Errorf("directory %s: %w", h, fs.ErrNotExist)
	}
	return d, nil
}

// File implements Store.
func (m *Memory) File(h Hash, limit int64) ([]byte, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	b, ok := m.files[h]
	if !ok {
		return nil, fmt.Errorf("file %s: %w", h, fs.ErrNotExist)
	}
	if limit > 0 && int64(len(b)) > limit {
		return nil, ErrTooLarge
	}
	return b, nil
}

// Size implements Sizer.
func (m *Memory) Size(h Hash) (int64, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	b, ok := m.files[h]
	if !ok {
		return 0, fmt.Errorf("file %s: %w", h, fs.ErrNotExist)
	}
	return int64(len(b)), nil
}

// AddFile stores content and returns its hash.
func (m *Memory) AddFile(content []byte) Hash {
	h := BlobHash(content)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.files[h] = content
	return h
}

// AddDir stores a directory and returns its hash; entries are sorted in place
// into git's order.
func (m *Memory) AddDir(entries []Entry) Hash {
	Sort(entries)
	h := objectHash("tree", EncodeDir(entries))
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dirs[h] = entries
	return h
}

// Build stores files by slash-separated path and returns their tree.
func (m *Memory) Build(files map[string][]byte) Tree {
	type node struct {
		files map[string][]byte
		dirs  map[string]bool
	}
	nodes := map[string]*node{"": {map[string][]byte{}, map[string]bool{}}}
	var ensure func(dir string) *node
	ensure = func(dir string) *node {
		if n, ok := nodes[dir]; ok {
			return n
		}
		n := &node{map[string][]byte{}, map[string]bool{}}
		nodes[dir] = n
		parent, base := split(dir)
		ensure(parent).dirs[base] = true
		return n
	}
	for name, content := range files {
		dir, base := split(name)
		ensure(dir).files[base] = content
	}
	var store func(dir string) Hash
	store = func(dir string) Hash {
		n := nodes[dir]
		var entries []Entry
		for base, content := range n.files {
			entries = append(entries, Entry{base, File, m.AddFile(content)})
		}
		for base := range n.dirs {
			entries = append(entries, Entry{base, Dir, store(strings.TrimPrefix(dir+"/"+base, "/"))})
		}
		return m.AddDir(entries)
	}
	return Tree{m, store("")}
}

// FromDisk reads a directory (a checkout, or a plain one) into memory. `.git`
// is left out; symbolic links become Symlink entries and are not followed.
// Files over limit bytes (0: no limit) are an error.
func FromDisk(dir string, limit int64) (Tree, error) {
	m := NewMemory()
	root, err := m.fromDisk(dir, limit)
	return Tree{m, root}, err
}

func (m *Memory) fromDisk(dir string, limit int64) (Hash, error) {
	list, err := os.ReadDir(dir)
	if err != nil {
		return Hash{}, fmt.Errorf("read directory: %w", err)
	}
	entries := make([]Entry, 0, len(list))
	for _, d := range list {
		name := filepath.Join(dir, d.Name())
		if why := CheckName(d.Name()); why != "" && d.Name() != ".git" {
			return Hash{}, fmt.Errorf("read directory %s: %s: git will not have it; rename it", dir, why)
		}
		switch {
		case d.Name() == ".git":
		case d.IsDir():
			h, err := m.fromDisk(name, limit)
			if err != nil {
				return Hash{}, err
			}
			if sub, _ := m.Dir(h); len(sub) > 0 {
				entries = append(entries, Entry{d.Name(), Dir, h})
			}
		case d.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(name)
			if err != nil {
				return Hash{}, fmt.Errorf("read link: %w", err)
			}
			entries = append(entries, Entry{d.Name(), Symlink, m.AddFile([]byte(target))})
		case d.Type().IsRegular():
			kind, content, err := fileFromDisk(name, limit)
			if err != nil {
				return Hash{}, err
			}
			entries = append(entries, Entry{d.Name(), kind, m.AddFile(content)})
		}
	}
	return m.AddDir(entries), nil
}

// fileFromDisk reads a regular file with as few calls to the system as there can be: most of
// what reading a large fleet costs is these. A file that changes meanwhile is read to its end.
func fileFromDisk(name string, limit int64) (Kind, []byte, error) {
	f, err := os.Open(name) //nolint:gosec // the caller named the directory
	if err != nil {
		return 0, nil, fmt.Errorf("read file: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, nil, fmt.Errorf("read file: %w", err)
	}
	size := info.Size()
	if limit > 0 && size > limit {
		return 0, nil, fmt.Errorf("read %s: %w (%d bytes, at most %d)", name, ErrTooLarge, size, limit)
	}
	kind := File
	if info.Mode()&0o100 != 0 {
		kind = Executable
	}
	content := make([]byte, size+1) // one read that is not filled has reached the end
	n, err := f.Read(content)
	content = content[:n:n]
	if int64(n) != size && err == nil {
		var rest []byte
		rest, err = io.ReadAll(f)
		content = append(content, rest...)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, nil, fmt.Errorf("read file: %w", err)
	}
	if limit > 0 && int64(len(content)) > limit {
		return 0, nil, fmt.Errorf("read %s: %w (at most %d bytes)", name, ErrTooLarge, limit)
	}
	return kind, content, nil
}

// BlobHash is the name git gives to a file with this content.
func BlobHash(content []byte) Hash { return objectHash("blob", content) }

// DirHash is the name git gives to a directory; entries must be in git's order.
func DirHash(entries []Entry) Hash { return objectHash("tree", EncodeDir(entries)) }

// Sort puts entries into git's order: by name, a directory as if it ended in a
// slash.
func Sort(entries []Entry) {
	sort.Slice(entries, func(i, j int) bool { return sortKey(entries[i]) < sortKey(entries[j]) })
}

// EncodeDir is a tree object's body; entries must be in git's order.
func EncodeDir(entries []Entry) []byte {
	var b bytes.Buffer
	for _, e := range entries {
		b.WriteString(mode(e.Kind))
		b.WriteByte(' ')
		b.WriteString(e.Name)
		b.WriteByte(0)
		b.Write(e.Hash[:])
	}
	return b.Bytes()
}

func objectHash(kind string, body []byte) Hash {
	h := sha1.New() //nolint:gosec // git's object names are SHA-1
	fmt.Fprintf(h, "%s %d\x00", kind, len(body))
	h.Write(body)
	return Hash(h.Sum(nil))
}

func sortKey(e Entry) string {
	if e.Kind == Dir {
		return e.Name + "/"
	}
	return e.Name
}

func mode(k Kind) string {
	switch k {
	case Dir:
		return "40000"
	case Executable:
		return "100755"
	case Symlink:
		return "120000"
	case Submodule:
		return "160000"
	case Oversized:
		return "oversized" // of a name only: such a directory is in no repository
	default:
		return "100644"
	}
}

func split(name string) (dir, base string) {
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		return name[:i], name[i+1:]
	}
	return "", name
}
