package store

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Refusal is why a store that is reached takes no write.
type Refusal string

// The refusals.
const (
	// RefusalForbidden: the account may not, or an admission policy says no.
	RefusalForbidden Refusal = "forbidden"
	// RefusalQuota: the namespace may have no more objects.
	RefusalQuota Refusal = "quota"
	// RefusalFull: the cluster's etcd is full.
	RefusalFull Refusal = "full"
	// RefusalInvalid: an object is not as the definitions want it.
	RefusalInvalid Refusal = "invalid"
)

// remedies are by refusal, the cheapest first.
var remedies = map[Refusal]string{
	RefusalForbidden: "apply install/broker/rbac.yaml and market.yaml to the daemon's namespace, with the account that it runs as",
	RefusalQuota:     "raise the ResourceQuota of the daemon's namespace (install/broker/market.yaml)",
	RefusalFull:      "compact and defragment etcd, then disarm its alarm; or raise its --quota-backend-bytes",
	RefusalInvalid:   "apply the definitions of this version: kubectl apply -f install/broker/crds.yaml",
}

// RefusedError says that the store was reached and took no write: what it has stays,
// and to try again changes nothing before somebody does something.
type RefusedError struct {
	Why   Refusal
	Cause error
}

// Error says why, and what to do.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("the market's store refuses it (%s): %v; %s", e.Why, e.Cause, remedies[e.Why])
}

// Unwrap gives what the store said.
func (e *RefusedError) Unwrap() error { return e.Cause }

// refusedBy is a refusal among errors, nil for none.
func refusedBy(err error) *RefusedError {
	var refused *RefusedError
	if errors.As(err, &refused) {
		return refused
	}
	return nil
}

// failed is an error of a write for who asked for it: a refusal, or a store that cannot
// be reached.
func failed(err error) error {
	if refused := refusedBy(err); refused != nil {
		return refused
	}
	return &CutError{err.Error()}
}

// Bounds of what is remembered of refusals, and for how long one counts that did not
// happen again.
const (
	maxRefusals  = 1000
	refusedFor   = 10 * time.Minute
	maxSaid      = 3
	maxSaidRunes = 400
)

// refusal is that an object's last write was refused.
type refusal struct {
	err *RefusedError
	at  time.Time
}

// wrote notes what became of a write of an object.
func (s *Shared) wrote(kind, name string, err error) {
	result := "ok"
	refused := refusedBy(err)
	switch {
	case err == nil:
	case refused != nil:
		result = "refused"
	case errors.Is(err, ErrConflict), errors.Is(err, ErrNotFound):
		result = "conflict"
	default:
		result = "error"
	}
	if s.opts.Observer != nil {
		s.opts.Observer.StoreWrote(kind, result)
	}
	object := kind + " " + name
	s.mu.Lock()
	was, known := s.refused[object]
	now := s.opts.Now()
	switch {
	case refused != nil:
		if !known && len(s.refused) >= maxRefusals {
			clear(s.refused)
		}
		s.refused[object] = refusal{refused, now}
	case err == nil:
		delete(s.refused, object)
	}
	s.mu.Unlock()
	if refused != nil && (!known || was.err.Why != refused.Why) {
		s.opts.Log.Warn("the market's store refuses a write", "object", object, "why", refused.Why, "error", refused.Cause, "remedy", remedies[refused.Why])
	}
}

// refusals are the objects whose last write was refused, by name; mu is held.
func (s *Shared) refusals(now time.Time) map[string]*RefusedError {
	out := map[string]*RefusedError{}
	for object, r := range s.refused {
		if now.Sub(r.at) >= refusedFor {
			delete(s.refused, object)
			continue
		}
		out[object] = r.err
	}
	return out
}

// Err says which writes the store refuses and why, nil for none: it may take others.
func (st Status) Err() error {
	if len(st.Refused) == 0 {
		return nil
	}
	names := slices.Sorted(maps.Keys(st.Refused))
	text := ""
	for _, name := range names[:min(len(names), maxSaid)] {
		said := []rune(fmt.Sprintf("%s: %v", name, st.Refused[name]))
		if len(said) > maxSaidRunes {
			said = append(said[:maxSaidRunes], '…')
		}
		if text != "" {
			text += "; "
		}
		text += string(said)
	}
	if more := len(names) - maxSaid; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return errors.New(text)
}
