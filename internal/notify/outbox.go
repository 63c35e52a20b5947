package notify

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/statefile"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Bounds of what is kept for a destination that does not answer.
const (
	maxPending = 1000
	maxAge     = 24 * time.Hour
	// handover is how long one that does not speak keeps what another is telling:
	// longer than the other may be dead before that is noticed.
	handover = 30 * time.Second
)

// target is a destination: the Secret's key of a tenant.
type target struct {
	Tenant string `json:"tenant"`
	Secret string `json:"secret"`
	Key    string `json:"key"`
}

func (t target) String() string { return t.Tenant + " " + t.Secret + "/" + t.Key }

// outbox is what survives a restart.
type outbox struct {
	// Head of the ledger up to which events were derived.
	Head hash `json:"head"`
	// Due are the ids of what only the clock brings and was told: as long as it is
	// due it is not told again.
	Due map[string]bool `json:"due"`
	// Sources are those of which their tenants were told that they are frozen, and since
	// when.
	Sources map[string]v1alpha1.Time `json:"sources,omitempty"`
	// Pending events of each target, oldest first.
	Pending []pending `json:"pending"`
}

// hash is a commit as text, "" for none.
type hash tree.Hash

// MarshalText implements encoding.TextMarshaler.
func (h hash) MarshalText() ([]byte, error) {
	if tree.Hash(h).IsZero() {
		return nil, nil
	}
	return []byte(tree.Hash(h).String()), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (h *hash) UnmarshalText(text []byte) error {
	*h = hash{}
	if len(text) == 0 {
		return nil
	}
	parsed, err := tree.ParseHash(string(text))
	*h = hash(parsed)
	return err
}

type pending struct {
	Target target  `json:"target"`
	Events []Event `json:"events"`
}

// stateFile lies in the state directory.
const stateFile = "notify.json"

// load reads the state, nil at the first start. A file that cannot be read is
// set aside and logged: it holds notices only, and must not keep a daemon from
// starting.
func load(o Options) *outbox {
	if o.Dir == "" {
		return nil
	}
	statefile.RemoveTemporary(o.Dir, statefile.Unfinished(stateFile))
	name := filepath.Join(o.Dir, stateFile)
	text, err := statefile.Read(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	box := newOutbox()
	if err == nil {
		err = json.Unmarshal(text, box)
	}
	if err == nil {
		return box
	}
	aside, moveErr := statefile.SetAside(name, o.Now())
	if moveErr != nil {
		o.Log.Error("the file of notifications cannot be read, and cannot be set aside; what was pending in it is not sent",
			"file", name, "error", errors.Join(err, moveErr))
		return nil
	}
	o.Log.Error("the file of notifications cannot be read and is set aside; what was pending in it is not sent",
		"file", name, "aside", aside, "error", err)
	return nil
}

func newOutbox() *outbox { return &outbox{Due: map[string]bool{}, Pending: []pending{}} }

// save writes the state whole or not at all.
func (o *outbox) save(dir string) error {
	if dir == "" {
		return nil
	}
	text, err := json.Marshal(o)
	if err != nil {
		return fmt.Errorf("write what was notified: %w", err)
	}
	if err := statefile.ReplaceBy(filepath.Join(dir, stateFile), 0o600, text); err != nil {
		return fmt.Errorf("write what was notified: %w", err)
	}
	return nil
}

// fresh is what of the events that are due now was not due before.
func (o *outbox) fresh(due []Event) []Event {
	var out []Event
	is := map[string]bool{}
	for _, e := range due {
		if !o.Due[e.ID] {
			out = append(out, e)
		}
		is[e.ID] = true
	}
	o.Due = is
	return out
}

// put appends events for a target and returns how many older ones had to go.
func (o *outbox) put(t target, events []Event) (dropped int) {
	p := o.of(t)
	p.Events = append(p.Events, events...)
	if n := len(p.Events) - maxPending; n > 0 {
		p.Events = slices.Clone(p.Events[n:])
		return n
	}
	return 0
}

func (o *outbox) of(t target) *pending {
	for i := range o.Pending {
		if o.Pending[i].Target == t {
			return &o.Pending[i]
		}
	}
	o.Pending = append(o.Pending, pending{Target: t})
	return &o.Pending[len(o.Pending)-1]
}

// expire drops what is older, of one target.
func (p *pending) expire(now time.Time, age time.Duration) (dropped int) {
	for len(p.Events) > 0 && now.Sub(p.Events[0].At.Time) > age {
		p.Events = p.Events[1:]
		dropped++
	}
	return dropped
}

// taken removes events that were sent.
func (o *outbox) taken(t target, ids map[string]bool) {
	p := o.of(t)
	p.Events = slices.DeleteFunc(p.Events, func(e Event) bool { return ids[e.ID] })
	if len(p.Events) == 0 {
		o.Pending = slices.DeleteFunc(o.Pending, func(p pending) bool { return p.Target == t })
	}
}
