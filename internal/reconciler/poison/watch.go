package poison

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/statefile"
)

// File is the name of the notes in the state directory.
const File = "reading.json"

// Stages of work on a piece.
const (
	Read = "read"
	Plan = "plan"
)

// notes are what is kept.
type notes struct {
	// Version of the form.
	Version int `json:"version"`
	// Program that found pieces good: another one tries again.
	Program string `json:"program"`
	// Open are the stages under way, with the pieces that are not known to be good.
	Open map[string]Pieces `json:"open,omitempty"`
	// Good are the pieces that a stage was through with, by stage.
	Good map[string]Pieces `json:"good,omitempty"`
}

const version = 1

// Watch keeps the notes of one process.
type Watch struct {
	name string // "" keeps none
	log  *slog.Logger

	mu       sync.Mutex
	notes    notes
	suspects Pieces
	told     bool // that the notes cannot be written
}

// Open reads the notes of a state directory; without one nothing is kept.
// program names this program's version.
func Open(dir, program string, now time.Time, log *slog.Logger) *Watch {
	w := &Watch{log: log, suspects: Pieces{}, notes: notes{Version: version, Program: program, Good: map[string]Pieces{}}}
	if dir == "" {
		return w
	}
	w.name = filepath.Join(dir, File)
	found, err := load(w.name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return w
	case err != nil:
		aside, moveErr := statefile.SetAside(w.name, now)
		if moveErr != nil {
			log.Warn("the notes of what was being read are damaged and cannot be set aside; nothing is suspected", "file", w.name, "error", errors.Join(err, moveErr))
			return w
		}
		log.Warn("the notes of what was being read are damaged and set aside; nothing is suspected", "file", w.name, "aside", aside, "error", err)
		return w
	}
	for _, pieces := range found.Open {
		maps.Copy(w.suspects, pieces)
	}
	if found.Program == program && found.Good != nil {
		w.notes.Good = found.Good
	}
	for path, hash := range w.suspects {
		for _, good := range w.notes.Good {
			if good[path] == hash {
				delete(good, path)
			}
		}
	}
	return w
}

func load(name string) (notes, error) {
	var n notes
	content, err := statefile.Read(name)
	if err != nil {
		return n, err
	}
	d := json.NewDecoder(bytes.NewReader(content))
	d.DisallowUnknownFields()
	if err := d.Decode(&n); err != nil {
		return n, err
	}
	if n.Version != version {
		return n, fmt.Errorf("version %d is not known", n.Version)
	}
	return n, nil
}

// Suspects are the pieces on which the process before this one was at work when
// it ended, and that were not tried since.
func (w *Watch) Suspects() Pieces {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.suspects)
}

// Suspect adds a piece.
func (w *Watch) Suspect(path, hash string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.suspects[path] = hash
}

// Tried takes a piece out of the suspects.
func (w *Watch) Tried(path string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.suspects, path)
}

// Begin notes that a stage begins on pieces, those that are not known to be
// good.
func (w *Watch) Begin(stage string, pieces Pieces) {
	w.mu.Lock()
	defer w.mu.Unlock()
	open := Pieces{}
	for path, hash := range pieces {
		if w.notes.Good[stage][path] != hash {
			open[path] = hash
		}
	}
	if len(open) == 0 {
		return
	}
	if w.notes.Open == nil {
		w.notes.Open = map[string]Pieces{}
	}
	w.notes.Open[stage] = open
	w.write()
}

// Done notes that a stage is through with what Begin named: with all of the
// pieces, and no others are known.
func (w *Watch) Done(stage string, pieces Pieces) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.notes.Open[stage]) == 0 && maps.Equal(w.notes.Good[stage], pieces) {
		return
	}
	delete(w.notes.Open, stage)
	w.notes.Good[stage] = maps.Clone(pieces)
	w.write()
}

// Stop notes that the process ends while stages are under way, by nobody's fault; nothing
// is noted any more.
func (w *Watch) Stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.notes.Open) > 0 {
		w.notes.Open = nil
		w.write()
	}
	w.name = ""
}

// write writes the notes. That they cannot be written costs only that nothing is
// suspected after the process ends.
func (w *Watch) write() {
	if w.name == "" {
		return
	}
	content, err := json.Marshal(w.notes)
	if err == nil {
		next := w.name + ".new"
		if err = os.WriteFile(next, content, 0o600); err == nil {
			err = os.Rename(next, w.name)
		}
	}
	if err != nil && !w.told {
		w.log.Warn("what is being read cannot be noted", "file", w.name, "error", err)
	}
	w.told = err != nil
}
