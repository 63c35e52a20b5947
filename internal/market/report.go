package market

import (
	"errors"
	"fmt"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
)

// ErrUnknownBase says that an unchanged list was reported for a generation
// that is not the one known: the full list is needed (412).
var ErrUnknownBase = errors.New("the list of this generation is not known here: send the full list")

// StaleEpochError says that a newer report is known (409).
type StaleEpochError = wire.StaleEpochError

// maxAhead is how far an epoch may be ahead of our clock. An agent's clock may be
// wrong; but who has the key of a certificate must not be able to take an epoch
// above which its successor finds none: what is reported later may be later.
const maxAhead = 366 * 24 * time.Hour

// lastEpoch is the highest epoch that is taken at a time.
func lastEpoch(now time.Time) uint64 {
	return uint64(max(now.Add(maxAhead).UnixNano(), int64(maxAhead)))
}

// ahead refuses a generation whose epoch no clock can have made.
func ahead(cluster string, generation wire.Generation, now time.Time) error {
	if generation.Epoch > lastEpoch(now) {
		return fmt.Errorf("report of %s: generation %s: its epoch is more than a year ahead of the daemon's clock (%s); epochs are nanoseconds since 1970: set the agent's clock and restart it", cluster, generation, now.UTC().Format(time.RFC3339))
	}
	return nil
}

// Check finds the first mistake in a full report, whatever is known of its
// provider; nil when Report would take it.
func (m *Market) Check(cluster string, generation wire.Generation, flavors []v1alpha1.Flavor) error {
	if err := ahead(cluster, generation, m.opts.Now()); err != nil {
		return err
	}
	if _, err := check(cluster, flavors); err != nil {
		return fmt.Errorf("report of %s: %w", cluster, err)
	}
	return nil
}

// Report takes a cluster's list of flavors, whole and at once; a flavor
// that it no longer names is withdrawn. Unless full, the list of that
// generation still holds and only its age is renewed. The errors are
// ErrUnknownBase, *StaleEpochError, or a mistake in the report, which then
// leaves everything as it was, the provider's age too.
func (m *Market) Report(cluster string, generation wire.Generation, flavors []v1alpha1.Flavor, full bool) error {
	return m.Told(cluster, generation, flavors, full, 0)
}

// Told is Report of a report that somebody else took, at most so long ago: it is as
// fresh as any, and proves nothing of what happened since it may have been given.
func (m *Market) Told(cluster string, generation wire.Generation, flavors []v1alpha1.Flavor, full bool, late time.Duration) error {
	now := m.opts.Now()
	if err := ahead(cluster, generation, now); err != nil {
		return err
	}
	var list map[string]*v1alpha1.Flavor
	if full {
		var err error
		if list, err = check(cluster, flavors); err != nil {
			return fmt.Errorf("report of %s: %w", cluster, err)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.providers[cluster]
	known := p != nil && p.agent
	switch {
	case known && generation.Cmp(p.generation) < 0:
		return &StaleEpochError{Last: p.generation}
	case !full && (!known || generation != p.generation):
		return ErrUnknownBase
	}
	if !known {
		p = &provider{withdrawn: map[string]withdrawal{}}
		m.providers[cluster] = p
	}
	p.agent, p.generation, p.heard, p.unheard = true, generation, now, false
	if now.After(m.latest) {
		m.latest = now
	}
	given := now.Add(-late)
	if given.After(p.given) {
		p.given = given
	}
	least := apart
	if late > 0 {
		least = apartThere
	}
	if p.word.IsZero() || given.Sub(p.word) >= least {
		p.before, p.word = p.word, given
	}
	lingered := p.lingering != nil && !given.Before(p.lingers)
	if lingered {
		p.lingering = nil
	}
	switch {
	case !full && lingered:
		m.update([]string{cluster})
		return nil
	case !full:
		m.aged(cluster, now)
		return nil
	}
	p.replace(list, v1alpha1.TimeOf(now))
	m.update([]string{cluster})
	if !known {
		m.signal() // one more is heard, which may end deafness even if it offers nothing
	}
	return nil
}

// replace makes list what the provider offers, and remembers what is missing
// from it as withdrawn.
func (p *provider) replace(list map[string]*v1alpha1.Flavor, now v1alpha1.Time) {
	for name, f := range p.reported {
		if list[name] == nil {
			p.withdrawn[name] = withdrawal{f, now}
		}
	}
	for name := range list {
		delete(p.withdrawn, name)
	}
	// An agent that renames its flavors with every report must not fill our memory.
	for name := range p.withdrawn {
		if len(p.withdrawn) <= maxFlavors {
			break
		}
		delete(p.withdrawn, name)
	}
	p.reported = list
}
