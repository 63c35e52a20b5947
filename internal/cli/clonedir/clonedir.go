package clonedir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"github.com/go-git/go-git/v5/storage/filesystem/dotgit"
)

// Bounds of what lies outside objects, in bytes: a list of all refs, and each other file.
const (
	maxList = 64 << 20
	maxFile = 1 << 20
)

// largeObject is from how many bytes on an object is read when it is asked for, and not when
// it is found.
const largeObject = 64 << 20

// alternates names the repositories that another borrows objects from.
const alternates = "objects/info/alternates"

// Open opens the repository of a directory: the one in its .git, or that a file of this name
// points to, as in a worktree. The error is git.ErrRepositoryNotExists where there is none.
func Open(dir string) (*git.Repository, error) {
	at, err := gitDir(dir)
	if err != nil {
		return nil, err
	}
	var common billy.Filesystem
	switch to, err := pointed(filepath.Join(at, "commondir"), at); {
	case err == nil:
		if info, err := os.Stat(to); err != nil || !info.IsDir() {
			return nil, fmt.Errorf("%s names %s, which is no directory: clone again", filepath.Join(at, "commondir"), to)
		}
		common = osfs.New(to)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	files := guard{dotgit.NewRepositoryFilesystem(osfs.New(at), common), at}
	storage := filesystem.NewStorageWithOptions(files, cache.NewObjectLRUDefault(), filesystem.Options{LargeObjectThreshold: largeObject})
	packs, err := openPacks(files)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", at, err)
	}
	repo, err := git.Open(&packed{storage, packs}, nil)
	if err != nil && !errors.Is(err, git.ErrRepositoryNotExists) {
		return nil, fmt.Errorf("open %s: %w", at, err)
	}
	return repo, err
}

// gitDir is where the repository of a directory lies.
func gitDir(dir string) (string, error) {
	at, err := filepath.Abs(filepath.Join(dir, git.GitDirName))
	if err != nil {
		return "", fmt.Errorf("find the repository: %w", err)
	}
	info, err := os.Stat(at)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", git.ErrRepositoryNotExists
	case err != nil:
		return "", fmt.Errorf("find the repository: %w", err)
	case info.IsDir():
		return at, nil
	}
	to, err := pointed(at, filepath.Dir(at))
	if err != nil {
		return "", err
	}
	if info, err := os.Stat(to); err != nil || !info.IsDir() {
		return "", fmt.Errorf("%s names %s, which is no directory: clone again", at, to)
	}
	return to, nil
}

// pointed is the directory that a file names, from another.
func pointed(file, from string) (string, error) {
	info, err := os.Stat(file)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", file, err)
	}
	if err := fit(file, info, maxFile); err != nil {
		return "", err
	}
	text, err := os.ReadFile(file) //nolint:gosec // of the repository that the user named
	if err != nil {
		return "", fmt.Errorf("read %s: %w", file, err)
	}
	to := strings.TrimSpace(strings.TrimPrefix(string(text), "gitdir:"))
	if !filepath.IsAbs(to) {
		to = filepath.Join(from, to)
	}
	return to, nil
}

// fit refuses what is no file, or too large for one.
func fit(name string, info fs.FileInfo, most int64) error {
	switch {
	case !info.Mode().IsRegular():
		return fmt.Errorf("read %s: it is no regular file (%s): this clone is damaged, or was changed by hand; clone again", name, info.Mode().Type())
	case most > 0 && info.Size() > most:
		return fmt.Errorf("read %s: it has %d bytes, at most %d are read: this clone is damaged, or was changed by hand; clone again", name, info.Size(), most)
	}
	return nil
}

// guard lets open what fits.
type guard struct {
	billy.Filesystem
	at string
}

// Open implements billy.Filesystem.
func (g guard) Open(name string) (billy.File, error) {
	return g.OpenFile(name, os.O_RDONLY, 0)
}

// OpenFile implements billy.Filesystem.
func (g guard) OpenFile(name string, flag int, perm os.FileMode) (billy.File, error) {
	path := strings.TrimPrefix(filepath.ToSlash(filepath.Clean(name)), "/")
	if path == alternates {
		return nil, fs.ErrNotExist
	}
	most := int64(maxFile)
	switch {
	case strings.HasPrefix(path, "objects/"):
		most = 0
	case path == "packed-refs" || path == "shallow":
		most = maxList
	}
	info, err := g.Stat(name)
	if err == nil {
		err = fit(filepath.Join(g.at, name), info, most)
	}
	if err != nil {
		return nil, err
	}
	file, err := g.Filesystem.OpenFile(name, flag, perm)
	if err == nil && info.Size() > smallObject && loose.MatchString(path) {
		if err = holds(filepath.Join(g.at, name), file); err != nil {
			_ = file.Close()
			return nil, err
		}
	}
	return file, err //nolint:wrapcheck // go-git compares it
}

// loose is the name of an object that lies in no pack.
var loose = regexp.MustCompile(`^objects/[0-9a-f]{2}/[0-9a-f]{38}$`)

// Borrows reports whether a repository that Open opened names others for objects that it
// does not have.
func Borrows(storage any) bool {
	s, ok := storage.(interface{ Filesystem() billy.Filesystem })
	if !ok {
		return false
	}
	_, err := s.Filesystem().Stat(alternates)
	return err == nil
}

// Shallow reports whether a repository has its history cut off.
func Shallow(storage any) bool {
	s, ok := storage.(storer.ShallowStorer)
	if !ok {
		return false
	}
	cut, err := s.Shallow()
	return err == nil && len(cut) > 0
}
