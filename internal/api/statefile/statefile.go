package statefile

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// Most is how large a state file is that is read. What is larger is damaged, and
// would not fit into the daemon's memory.
const Most = 64 << 20

// Read reads a state file: a regular one, because a pipe would hold the start up, of
// at most Most bytes.
func Read(name string) ([]byte, error) {
	is, err := os.Stat(name)
	switch {
	case err != nil:
		return nil, err
	case !is.Mode().IsRegular():
		return nil, fmt.Errorf("%s is a %s, not a file", name, kindOf(is.Mode()))
	case is.Size() > Most:
		return nil, fmt.Errorf("%s has %d bytes, more than the %d of any state file", name, is.Size(), Most)
	}
	return os.ReadFile(name) //nolint:gosec // the operator named the directory
}

func kindOf(m os.FileMode) string {
	switch {
	case m.IsDir():
		return "directory"
	case m&os.ModeNamedPipe != 0:
		return "pipe"
	case m&os.ModeSocket != 0:
		return "socket"
	}
	return "device"
}

// Kept is how many files set aside under one name are kept.
const Kept = 5

// SetAside renames a damaged file to `<name>.damaged-<time>` beside it and
// returns the new name, for the log. Of more than Kept such files the oldest
// are removed.
func SetAside(name string, now time.Time) (aside string, err error) {
	stem := name + ".damaged-"
	aside = stem + now.UTC().Format("20060102T150405Z")
	for n := 2; exists(aside); n++ {
		aside = stem + now.UTC().Format("20060102T150405Z") + "-" + strconv.Itoa(n)
	}
	if err := os.Rename(name, aside); err != nil {
		return "", fmt.Errorf("set %s aside: %w; move it away by hand", name, err)
	}
	older, err := filepath.Glob(globQuoted(stem) + "*")
	if err != nil {
		return aside, nil //nolint:nilerr // the file is set aside; only the number kept is not looked at
	}
	slices.Sort(older)
	for len(older) > Kept {
		_ = os.Remove(older[0]) // the next one tries again
		older = older[1:]
	}
	return aside, nil
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

// globQuoted quotes what filepath.Glob takes for a pattern.
func globQuoted(s string) string {
	var out []byte
	for i := range len(s) {
		switch s[i] {
		case '*', '?', '[', '\\':
			out = append(out, '\\')
		}
		out = append(out, s[i])
	}
	return string(out)
}

// RemoveTemporary removes the files that a process which was killed while it wrote
// a state file has left next to it: those called like the pattern (filepath.Match)
// in the directory.
func RemoveTemporary(dir, pattern string) {
	list, err := os.ReadDir(dir)
	if err != nil {
		return // there is no directory yet
	}
	for _, e := range list {
		if ok, err := filepath.Match(pattern, e.Name()); ok && err == nil {
			_ = os.Remove(filepath.Join(dir, e.Name())) // the next start tries again
		}
	}
}
