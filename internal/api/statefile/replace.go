package statefile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
)

// Replace replaces a file by what write writes, with these permissions: a crash or an
// error leaves the old file or the new one whole. What a process that is killed leaves
// is called like Unfinished(name), for RemoveTemporary.
func Replace(name string, perm os.FileMode, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(name), Unfinished(name))
	if err != nil {
		return err
	}
	err = errors.Join(write(f), f.Chmod(perm), f.Sync())
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// ReplaceBy is Replace with the file's whole content.
func ReplaceBy(name string, perm os.FileMode, content []byte) error {
	return Replace(name, perm, func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}

// Unfinished is the pattern (filepath.Match) of the names of files that Replace writes
// for a name, in its directory.
func Unfinished(name string) string { return "." + filepath.Base(name) + "-*" }
