package trust

import (
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/letgo"
)

// rereadEvery is how often a followed file is read at most.
const rereadEvery = 10 * time.Second

// Followed are the rewritten heads that a trust root accepts, as its file has them now. Keys
// are those of the start.
type Followed struct {
	file string
	log  *slog.Logger
	now  func() time.Time

	mu    sync.Mutex
	due   time.Time
	last  []letgo.Entry
	wrong string // why the file could not be read last, "" when it could
}

// Follow follows the file that a root was read from; nil without one. It is safe for
// concurrent use.
func Follow(file string, root *Root, now func() time.Time, log *slog.Logger) letgo.Source {
	if file == "" {
		return nil
	}
	return &Followed{file: file, log: log, now: now, last: root.Accept(), due: now().Add(rereadEvery)}
}

// Entries implements letgo.Source. While the file cannot be read they are the former ones.
func (f *Followed) Entries() []letgo.Entry {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := f.now(); now.Before(f.due) && now.After(f.due.Add(-2*rereadEvery)) {
		return f.last
	}
	f.due = f.now().Add(rereadEvery)
	root, err := Read(f.file)
	if err != nil {
		if f.wrong != err.Error() {
			f.wrong = err.Error()
			f.log.Warn("the trust root cannot be read again; what it last accepted of rewritten histories counts", "error", err)
		}
		return f.last
	}
	f.wrong, f.last = "", root.Accept()
	return f.last
}

// Accepted implements letgo.Source.
func (f *Followed) Accepted(branch string, commit tree.Hash) {
	f.log.Warn("rewritten history accepted by the trust root", "branch", branch, "commit", commit.String())
}

// Unreached implements letgo.Source.
func (f *Followed) Unreached(e letgo.Entry) {
	f.log.Warn("the trust root accepts a commit that no branch contains, which changes nothing: name the present head with its 40 digits, or remove the entry",
		"branch", strings.TrimPrefix(e.Branch, "refs/heads/"), "commit", e.Commit.String())
}
