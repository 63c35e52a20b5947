package statefile

import (
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
)

// Health knows which files of a state directory cannot be written at present, for
// /readyz and a metric. Its methods are safe for concurrent use; those of a nil
// Health do nothing.
type Health struct {
	log *slog.Logger

	mu      sync.Mutex
	failing map[string]error // by path
}

// NewHealth makes one of which nothing is known to fail. It logs each change once.
func NewHealth(log *slog.Logger) *Health { return &Health{log: log, failing: map[string]error{}} }

// Note takes the result of the newest attempt to write a file or directory; nil:
// it was written.
func (h *Health) Note(path string, err error) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	_, failed := h.failing[path]
	switch {
	case err != nil && !failed:
		h.log.Error("the state directory cannot be written; work goes on in memory, and a restart knows only what the remote has", "path", path, "error", err)
	case err == nil && failed:
		h.log.Info("the state directory is written again", "path", path)
	}
	if err == nil {
		delete(h.failing, path)
		return
	}
	h.failing[path] = err
}

// Err is what cannot be written, by path, nil when everything can.
func (h *Health) Err() error {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.failing) == 0 {
		return nil
	}
	var lines []string
	for _, path := range slices.Sorted(maps.Keys(h.failing)) {
		lines = append(lines, fmt.Sprintf("%s: %v", path, h.failing[path]))
	}
	return fmt.Errorf("the state directory cannot be written (%s); decisions go on, but a restart forgets what is not written: make room, or mount it writable", strings.Join(lines, "; "))
}

// Failing is how many files and directories cannot be written.
func (h *Health) Failing() int {
	if h == nil {
		return 0
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.failing)
}

// Temporary is the pattern of the names of files that Probe writes, for
// RemoveTemporary.
const Temporary = ".probe-*"

// probed is how many bytes Probe writes: a block.
const probed = 4096

// Probe writes a file to a directory and removes it: the error is why nothing can
// be written there.
func Probe(dir string) error {
	f, err := os.CreateTemp(dir, Temporary)
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, probed))
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if rerr := os.Remove(f.Name()); err == nil {
		err = rerr
	}
	return err
}
