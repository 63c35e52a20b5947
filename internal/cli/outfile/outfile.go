// Package outfile is a file that a command writes at its end, opened at its beginning: a
// path that cannot be written is an error before hours of work, not after them.
//
// Open makes a temporary file in the same directory; Replace puts the content in its
// place at once, so that a reader sees the old file or the new one; Discard takes the
// temporary file away. The commands of internal/cli call it. A File is used by one
// goroutine.
package outfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// File is a file to be written. The nil File writes nothing.
type File struct {
	name string
	temp *os.File
}

// Open finds out whether a file can be written; "" is none, and nil.
func Open(name string) (*File, error) {
	if name == "" {
		return nil, nil
	}
	info, err := os.Stat(name)
	switch {
	case err == nil && !info.Mode().IsRegular() && !info.IsDir():
		f, err := os.OpenFile(name, os.O_WRONLY, 0) //nolint:gosec // the user named it: a device or a pipe
		if err != nil {
			return nil, fmt.Errorf("write %s: %w", name, err)
		}
		return &File{temp: f}, nil
	case err == nil && info.IsDir():
		return nil, fmt.Errorf("write %s: it is a directory; name a file in it", name)
	case err == nil && info.Mode().Perm()&0o200 == 0:
		return nil, fmt.Errorf("write %s: it is read-only", name)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("write %s: %w", name, err)
	}
	if real, err := filepath.EvalSymlinks(name); err == nil {
		name = real // what a link leads to is replaced, not the link
	}
	temp, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if path := (*fs.PathError)(nil); errors.As(err, &path) { // the temporary file's name says nothing to people
		err = fmt.Errorf("in %s: %w", filepath.Dir(name), path.Err)
	}
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", name, err)
	}
	mode := fs.FileMode(0o644)
	if info != nil {
		mode = info.Mode().Perm()
	}
	if err := temp.Chmod(mode); err != nil {
		return nil, errors.Join(fmt.Errorf("write %s: %w", name, err), temp.Close(), os.Remove(temp.Name()))
	}
	return &File{name: name, temp: temp}, nil
}

// Replace makes the file what content is.
func (f *File) Replace(content []byte) error {
	if f == nil {
		return nil
	}
	name := f.name
	if name == "" {
		name = f.temp.Name()
	}
	if _, err := f.temp.Write(content); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err := f.temp.Close(); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if f.name == "" {
		return nil
	}
	if err := os.Rename(f.temp.Name(), f.name); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	f.name = ""
	return nil
}

// Discard takes away what was not put in its place; after Replace it does nothing.
func (f *File) Discard() {
	if f == nil || f.name == "" {
		return
	}
	_ = f.temp.Close()
	_ = os.Remove(f.temp.Name())
}

// Check is whether a file can be written, for one that another piece writes at the end.
func Check(name string) error {
	f, err := Open(name)
	f.Discard()
	return err
}
