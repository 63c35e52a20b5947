package laid

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/fleetbroker/fleetbroker/internal/api/strictjson"
)

// format of the lock file. A program refuses a newer one.
const format = 1

// suffix of the new version of a file that people edited.
const suffix = ".new"

// maxFile bounds what is read of one file, in bytes.
const maxFile = 16 << 20

// Lock is what was written, and by which version of the program.
type Lock struct {
	// Format of this file.
	Format int `json:"format"`
	// Version of the program that wrote the files.
	Version string `json:"version"`
	// Choices that the files were made by, such as the forge.
	Choices map[string]string `json:"choices,omitempty"`
	// Files are SHA-256 digests in hexadecimal, by slash-separated path.
	Files map[string]string `json:"files"`
}

// Outcome is what Write did, each list sorted, by path.
type Outcome struct {
	// Written are new and changed files, Removed those that are no longer generated.
	Written []string `json:"written,omitempty"`
	Removed []string `json:"removed,omitempty"`
	// Merged were edited and have a new version: both are in them now.
	Merged []string `json:"merged,omitempty"`
	// Edited are left as they are, and have no new version.
	Edited []string `json:"edited,omitempty"`
	// Conflicts are left as they are, and have a new version next to them.
	Conflicts []string `json:"conflicts,omitempty"`
	// Unchanged is how many files are as they were written.
	Unchanged int `json:"unchanged"`
}

// Counts is how many files were written, removed, left alone and kept, in one line.
func (o Outcome) Counts() string {
	merged := ""
	if len(o.Merged) > 0 {
		merged = fmt.Sprintf("%d merged, ", len(o.Merged))
	}
	return fmt.Sprintf("%d written, %d removed, %d unchanged, %s%d edited and kept", len(o.Written), len(o.Removed), o.Unchanged, merged, len(o.Edited)+len(o.Conflicts))
}

// KeptText names the files that were merged, and those that have a new version next to
// them, a line each; "" for none.
func (o Outcome) KeptText() string {
	text := ""
	for _, name := range o.Merged {
		text += fmt.Sprintf("merged: %s has what was edited and what is new; read it before you commit it\n", name)
	}
	for _, name := range o.Conflicts {
		text += fmt.Sprintf("kept: %s was edited; merge %[1]s.new into it and delete that\n", name)
	}
	return text
}

// Read reads a directory's lock; found is false where there is none.
func Read(dir, name string) (lock Lock, found bool, err error) {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return Lock{}, false, nil
	}
	if err != nil {
		return Lock{}, false, fmt.Errorf("read %s: %w", path.Join(dir, name), err)
	}
	defer root.Close() //nolint:errcheck // it was read only
	return readLock(root, name)
}

func readLock(root *os.Root, name string) (lock Lock, found bool, err error) {
	b, found, err := read(root, name)
	if err != nil || !found {
		return Lock{}, false, err
	}
	if err := yaml.Unmarshal(b, &lock); err != nil {
		return Lock{}, false, fmt.Errorf("read %s: it is damaged: %w; take it from the repository's history", name, damage(err))
	}
	if lock.Format > format {
		return Lock{}, false, fmt.Errorf("%s has format %d, written by fleetbroker %s, and this program knows formats up to %d: use that version or a newer one", name, lock.Format, lock.Version, format)
	}
	if lock.Format < 1 {
		return Lock{}, false, fmt.Errorf("%s has no format: it is not a lock of fleetbroker's, or is damaged; take it from the repository's history", name)
	}
	return lock, true, nil
}

// damage is why a lock cannot be read, in words: which field has what, or where it is no YAML.
func damage(err error) error {
	if words := strictjson.Words(err); words.Error() != err.Error() {
		return words
	}
	for cause := errors.Unwrap(err); cause != nil; cause = errors.Unwrap(cause) {
		err = cause
	}
	return err
}

// Write brings the files of dir to those given, by slash-separated path, and the lock
// called lockName with them. The directory is made where it does not exist.
func Write(dir, lockName string, files map[string][]byte, version string, choices map[string]string) (Outcome, error) {
	return lay(dir, lockName, "", files, version, choices)
}

// Merge is Write that merges: a new version of a file that people edited goes into it where
// the lines that they changed have not changed. For that it keeps the files as they were
// generated in a file called baseName. Where both changed, it does as Write.
func Merge(dir, lockName, baseName string, files map[string][]byte, version string, choices map[string]string) (Outcome, error) {
	return lay(dir, lockName, baseName, files, version, choices)
}

func lay(dir, lockName, baseName string, files map[string][]byte, version string, choices map[string]string) (Outcome, error) {
	var out Outcome
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // a repo is for its readers
		return out, fmt.Errorf("write into %s: %w", dir, err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return out, fmt.Errorf("write into %s: %w", dir, err)
	}
	defer root.Close() //nolint:errcheck // each file was closed
	old, _, err := readLock(root, lockName)
	if err != nil {
		return out, err
	}
	w := &writer{root: root, old: old.Files, out: &out, lock: Lock{Format: format, Version: version, Choices: choices, Files: map[string]string{}}}
	if baseName != "" {
		if w.base, err = readBase(root, baseName); err != nil {
			return out, err
		}
	}
	var wrong []error
	for _, name := range slices.Sorted(maps.Keys(files)) {
		wrong = append(wrong, w.file(name, files[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(old.Files)) {
		if _, still := files[name]; !still {
			wrong = append(wrong, w.gone(name))
		}
	}
	w.people = len(w.puts)
	if baseName != "" {
		packed, err := pack(baseName, files)
		wrong = append(wrong, err, w.replace(baseName, packed))
	}
	text, err := yaml.Marshal(w.lock)
	if err != nil {
		wrong = append(wrong, fmt.Errorf("write %s: %w", lockName, err))
	}
	text = append([]byte("# What fleetbroker wrote here, so that an update sees what people edited. Commit it; do not edit it.\n"), text...)
	if err := all(append(wrong, w.replace(lockName, text))); err != nil {
		return Outcome{}, err
	}
	if err := w.apply(); err != nil {
		return Outcome{}, err
	}
	return out, nil
}

// all are errors in one line, nil for none.
func all(errs []error) (err error) {
	for _, next := range errs {
		switch {
		case err == nil:
			err = next
		case next != nil:
			err = fmt.Errorf("%w; %w", err, next)
		}
	}
	return err
}

// writer finds out what is to be written and removed, and changes nothing before apply.
type writer struct {
	root *os.Root
	old  map[string]string
	base map[string][]byte // files as they were generated the last time, where they are kept
	lock Lock
	out  *Outcome

	puts    []file // in the order in which they are written
	people  int    // so many of them, the first, are not our own
	removes []string
}

// file is one that is to be written; temp has its content when it is staged.
type file struct {
	name, temp string
	content    []byte
}

func (w *writer) put(name string, content []byte) {
	w.puts = append(w.puts, file{name: name, content: content})
}

// replace is put for a file of our own, which nobody edits, where it has another content.
func (w *writer) replace(name string, content []byte) error {
	have, found, err := read(w.root, name)
	if err == nil && !(found && bytes.Equal(have, content)) {
		w.put(name, content)
	}
	return err
}

// apply writes all new files next to those that they replace, and only when each of them is
// written puts them in their places: an error before that leaves every file as it was. Those
// of our own come last, after what is removed.
func (w *writer) apply() (err error) {
	defer func() {
		for i := range w.puts {
			if temp := w.puts[i].temp; err != nil && temp != "" {
				_ = w.root.Remove(temp) // there is none where it has taken its place
			}
		}
	}()
	for i := range w.puts {
		if err := w.puts[i].stage(w.root); err != nil {
			return err
		}
	}
	if err := w.place(w.puts[:w.people]); err != nil {
		return err
	}
	for _, name := range w.removes {
		if err := w.root.Remove(name); err != nil {
			return fmt.Errorf("remove %s: %w", name, err)
		}
		for at := path.Dir(name); at != "." && w.root.Remove(at) == nil; at = path.Dir(at) { // an empty directory
		}
	}
	return w.place(w.puts[w.people:])
}

// place puts staged files in their places.
func (w *writer) place(staged []file) error {
	for _, f := range staged {
		if err := w.root.Rename(f.temp, f.name); err != nil {
			return fmt.Errorf("write %s: %w", f.name, err)
		}
	}
	return nil
}

// file finds out whether one file is written, or left and why.
func (w *writer) file(name string, content []byte) error {
	have, found, err := read(w.root, name)
	if err != nil {
		return err
	}
	want := digest(content)
	w.lock.Files[name] = want
	switch {
	case found && bytes.Equal(have, content):
		w.out.Unchanged++
		return nil
	case !found && w.old[name] != "":
		w.out.Edited = append(w.out.Edited, name) // people deleted it
		return nil
	case !found || w.old[name] == digest(have):
		w.out.Written = append(w.out.Written, name)
		w.put(name, content)
		return nil
	case w.old[name] == want:
		w.out.Edited = append(w.out.Edited, name)
		if kept := w.old[name+suffix]; kept != "" {
			if _, found, err := read(w.root, name+suffix); err == nil && found {
				w.lock.Files[name+suffix] = kept
			}
		}
		return nil
	}
	beside, found, err := read(w.root, name+suffix)
	if err != nil {
		return err
	}
	// What base has is not all in the file while the version before is still next to it: a
	// merge would take what is missing for an edit, and it would be lost.
	pending := found && w.old[name+suffix] != ""
	if merged, clean := w.merged(name, have, content); clean && !pending {
		if bytes.Equal(merged, have) { // people have taken it over by hand
			w.out.Edited = append(w.out.Edited, name)
			return nil
		}
		w.out.Merged = append(w.out.Merged, name)
		w.put(name, merged)
		return nil
	}
	w.out.Conflicts = append(w.out.Conflicts, name)
	if found && !bytes.Equal(beside, content) && w.old[name+suffix] != digest(beside) {
		return fmt.Errorf("%s has a new version, and %s was edited: merge it into %[1]s, delete it, and try again", name, name+suffix)
	}
	w.lock.Files[name+suffix] = want
	w.put(name+suffix, content)
	return nil
}

// gone finds out whether to remove a file that is no longer generated.
func (w *writer) gone(name string) error {
	if w.lock.Files[name] != "" {
		return nil // NAME.new of this run
	}
	if !fs.ValidPath(name) || slices.Contains(strings.Split(name, "/"), ".git") { // the lock was edited
		return nil
	}
	have, found, err := read(w.root, name)
	switch {
	case err != nil || !found:
		return err
	case digest(have) != w.old[name]:
		w.out.Edited = append(w.out.Edited, name)
		slices.Sort(w.out.Edited)
		return nil
	}
	w.out.Removed, w.removes = append(w.out.Removed, name), append(w.removes, name)
	return nil
}

func read(root *os.Root, name string) (content []byte, found bool, err error) {
	info, err := root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, false, nil
	case err != nil:
		return nil, false, fmt.Errorf("read %s: %w", name, err)
	case !info.Mode().IsRegular():
		return nil, false, fmt.Errorf("read %s: it is not a file; move it away", name)
	case info.Size() > maxFile:
		return nil, false, fmt.Errorf("read %s: it has %d bytes, more than %d; move it away", name, info.Size(), maxFile)
	}
	if content, err = root.ReadFile(name); err != nil {
		return nil, false, fmt.Errorf("read %s: %w", name, err)
	}
	return content, true, nil
}

// stage writes the file's content next to it.
func (f *file) stage(root *os.Root) error {
	if err := root.MkdirAll(path.Dir(f.name), 0o755); err != nil {
		return fmt.Errorf("write %s: %w", f.name, err)
	}
	f.temp = f.name + "." + rand.Text() + ".tmp"
	to, err := root.OpenFile(f.temp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("write %s: %w", f.name, err)
	}
	_, err = to.Write(f.content)
	if err = errors.Join(err, to.Close()); err != nil {
		return fmt.Errorf("write %s: %w", f.name, err)
	}
	return nil
}

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}
