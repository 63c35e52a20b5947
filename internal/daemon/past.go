package daemon

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/fleetbroker/fleetbroker/internal/api/statefile"
)

const (
	// pastFile is the note's name in the state directory.
	pastFile = "led.json"
	// noteEvery is how often the note is renewed.
	noteEvery = 30 * time.Second
	// resumeAfter is how long a replica that has just started waits for the store before it
	// goes by its note: one that starts while all is well knows who leads long before.
	resumeAfter = time.Minute
	// oldPast is after what time without a note this replica is not the last one that led.
	oldPast = time.Hour
	// askTimeout bounds the look whether the Lease can be read.
	askTimeout = 5 * time.Second
)

// Past is what a state directory notes of when this replica led, so that the last one that
// led goes on after a restart while the store is out of reach. It is a hint: what the
// Lease or the ledger says of another one counts above it. Safe for concurrent use.
type Past struct {
	dir   string
	state *statefile.Health
	now   func() time.Time

	mu    sync.Mutex
	note  note
	noted time.Time // when it was written last
	since time.Time // since when the store is out of reach of this start
	wrote wrote
}

// note is the file's content; the zero one: it has not led, or another one has since.
type note struct {
	// Replica that led.
	Replica string `json:"replica"`
	// Held is when it had the Lease last, and Led when it decided last, with or without it.
	Held time.Time `json:"held"`
	Led  time.Time `json:"led"`
}

// wrote is who wrote the newest commit of a daemon on the ledger, and when.
type wrote struct {
	replica string
	at      time.Time
}

// NewPast reads the note of a state directory; "" keeps none. What cannot be read counts as
// none, and the next note replaces it.
func NewPast(dir string, state *statefile.Health, now func() time.Time) *Past {
	p := &Past{dir: dir, state: state, now: now}
	if dir == "" || statefile.ReadJSON(p.file(), &p.note) != nil {
		p.note = note{}
	}
	return p
}

func (p *Past) file() string { return filepath.Join(p.dir, pastFile) }

// leads notes that a replica decides, by the Lease or without it.
func (p *Past) leads(replica string, lease bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	due := p.note.Replica != replica || now.Sub(p.noted) >= noteEvery || now.Before(p.noted)
	if p.note.Replica, p.note.Led = replica, now; lease {
		p.note.Held = now
	}
	if due {
		p.save(now)
	}
}

// over notes that another replica has led since.
func (p *Past) over() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.note != (note{}) {
		p.note = note{}
		p.save(p.now())
	}
}

// save writes the note. mu is held.
func (p *Past) save(now time.Time) {
	p.noted = now
	if p.dir != "" {
		p.state.Note(p.file(), statefile.ReplaceJSON(p.file(), p.note))
	}
}

// Wrote takes over which replica wrote the newest commit of a daemon on the ledger, and
// when; "" is none.
func (e *Election) Wrote(replica string, at time.Time) {
	if e == nil || e.Past == nil {
		return
	}
	e.Past.mu.Lock()
	e.Past.wrote = wrote{replica, at}
	e.Past.mu.Unlock()
	if !e.holds.Load() && e.Past.another(e.Identity) && e.last.Swap(false) {
		e.Past.over()
		e.Log.Info("decides no more: the ledger shows that another replica does", "replica", replica)
		e.changed()
	}
}

// another reports whether another replica than this one wrote to the ledger after this
// one had the Lease last.
func (p *Past) another(self string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.wrote.replica != "" && p.wrote.replica != self && p.wrote.at.After(p.note.Held)
}

// resume lets a replica that was restarted while the store was out of reach go on as the
// last one that led: for a minute it has heard of nobody else, neither the Lease nor the
// ledger shows another one since, and the API server does not answer.
func (e *Election) resume(ctx context.Context, lock resourcelock.Interface) {
	p := e.Past
	if p == nil || e.last.Load() || e.Cut == nil {
		return
	}
	now := p.now()
	p.mu.Lock()
	switch led := p.note.Replica == e.Identity && now.Sub(p.note.Led) < oldPast; {
	case !led || e.Cut() == "":
		p.since = time.Time{}
	case p.since.IsZero():
		p.since = now
	}
	due := !p.since.IsZero() && now.Sub(p.since) >= resumeAfter
	p.mu.Unlock()
	if !due {
		return
	}
	if p.another(e.Identity) {
		p.over()
		return
	}
	asking, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	record, _, err := lock.Get(asking)
	switch {
	case ctx.Err() != nil:
	case !answered(err):
		e.last.Store(true)
		e.Log.Info("decides on by the ledger: this replica led before it started again, and the market's store is out of reach")
		e.changed()
	case err == nil && record.HolderIdentity != "" && record.HolderIdentity != e.Identity:
		p.over()
	default: // the elections decide
		p.mu.Lock()
		p.since = time.Time{}
		p.mu.Unlock()
	}
}

// keep notes that this replica decides, where it does.
func (e *Election) keep() {
	if e.Past != nil && e.Leads() {
		e.Past.leads(e.Identity, e.Holds())
	}
}

// answered reports whether the API server answered a request, be it with a refusal. One
// whose own store is out of reach did not.
func answered(err error) bool {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status().Code < http.StatusInternalServerError && status.Status().Code != http.StatusTooManyRequests
	}
	return err == nil
}
