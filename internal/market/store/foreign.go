package store

import (
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Manager is the field manager under which replicas write the store's objects.
const Manager = v1alpha1.FieldManager

// ForeignError says that the last writer of an object is another account than the
// daemon's. Nothing in the object counts; who it belongs to writes it again.
type ForeignError struct {
	// Manager is the field manager of that account, "" where it left none.
	Manager string
	// At is when it wrote, by the API server's clock.
	At time.Time
}

// Error says who, and what to do.
func (e *ForeignError) Error() string {
	return fmt.Sprintf("%q wrote it at %s, and only %q may; see who else has rights to the objects of market.fleetbroker.io, and apply install/broker/market.yaml", e.Manager, e.At.UTC().Format(time.RFC3339), Manager)
}

// Foreign leaves of an object's managed fields one entry where its last writer is not
// Manager, with that writer's name and time, and none where it is. Times are whole
// seconds: of two writers within one second Manager is not the last. An object without
// any entry was written by an account that hides its name.
func Foreign(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	var own time.Time
	var last *metav1.ManagedFieldsEntry
	at := func(e *metav1.ManagedFieldsEntry) time.Time {
		if e == nil || e.Time == nil {
			return time.Time{}
		}
		return e.Time.Time
	}
	for i := range entries {
		switch e := &entries[i]; {
		case e.Manager == Manager && e.Operation == metav1.ManagedFieldsOperationUpdate:
			own = later(own, at(e))
		case last == nil || at(e).After(at(last)):
			last = e
		}
	}
	switch {
	case last == nil && own.IsZero():
		return []metav1.ManagedFieldsEntry{{}}
	case last == nil || own.After(at(last)):
		return nil
	}
	return []metav1.ManagedFieldsEntry{{Manager: last.Manager, Operation: last.Operation, Time: last.Time}}
}

// told is the last foreign write of an object that was logged and counted.
type told struct {
	foreign ForeignError
	version string
}

// ours is a *ForeignError for an object whose last writer is not the daemon; each
// such write is logged and counted once. what names the object for people. The API has
// left of its managed fields what Foreign does.
func (s *Shared) ours(what string, o metav1.Object) error {
	entries := o.GetManagedFields()
	if len(entries) == 0 {
		return nil
	}
	found := told{ForeignError{Manager: entries[0].Manager}, o.GetResourceVersion()}
	if entries[0].Time != nil {
		found.foreign.At = entries[0].Time.Time
	}
	s.mu.Lock()
	was, known := s.foreign.last[what]
	news := !known || was != found
	if news {
		if !known && len(s.foreign.last) >= maxNoted {
			clear(s.foreign.last)
		}
		s.foreign.last[what] = found
		s.foreign.count++
	}
	s.mu.Unlock()
	if news {
		s.opts.Log.Warn("another account wrote an object of the market's store; the object is ignored", "object", what, "manager", found.foreign.Manager, "at", found.foreign.At, "remedy", "see who else has rights to the objects of market.fleetbroker.io, and apply install/broker/market.yaml")
	}
	return &found.foreign
}

// foreign are the writes by other accounts that this replica saw. Shared's lock guards it.
type foreign struct {
	last  map[string]told // by object
	count int
}

// forged reports whether an error says that another account wrote an object.
func forged(err error) bool {
	var foreign *ForeignError
	return errors.As(err, &foreign)
}

// rewriteSeen makes the next word of a cluster be written whatever it says: what the store has
// of it is not the daemon's.
func (s *Shared) rewriteSeen(cluster string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if was := s.seen[cluster]; was != nil {
		next := *was
		next.digest = ""
		s.setSeen(cluster, &next)
	}
	delete(s.beats.heard, observedBy+cluster)
}
