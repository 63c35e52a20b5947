package market

import (
	"fmt"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
)

// Restore takes a list that a store has kept of a provider: what its agent said
// before this market listened, or says to another replica that is not to be
// trusted with the time. The offers are shown and sell nothing before the agent
// is heard; from its silence until then nothing follows before its grace has
// passed since the market listens. A list that is not newer than the known one
// changes nothing. An error is a mistake in it, and changes nothing either.
func (m *Market) Restore(cluster string, generation wire.Generation, flavors []v1alpha1.Flavor) error {
	list, err := check(cluster, flavors)
	if err != nil {
		return fmt.Errorf("list of %s: %w", cluster, err)
	}
	now := m.opts.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.providers[cluster]
	switch {
	case p == nil:
		p = &provider{withdrawn: map[string]withdrawal{}}
		m.providers[cluster] = p
	case p.agent && generation.Cmp(p.generation) <= 0:
		return nil
	}
	if !p.agent {
		p.agent, p.unheard, p.heard = true, true, m.listens
	}
	p.generation = generation
	p.replace(list, v1alpha1.TimeOf(now))
	m.update([]string{cluster})
	return nil
}

// Vouch says that a provider with an agent is heard, and that what it offers now is
// not known: it sells nothing, and is not silent.
func (m *Market) Vouch(cluster string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.providers[cluster]
	if p == nil || !p.agent || m.cut {
		return
	}
	now := m.opts.Now()
	p.heard, p.unheard = now, true
	m.aged(cluster, now)
}

// Cut says that nobody can be heard: whoever brings the reports is cut off. The
// market is deaf and nobody's silence counts until Listen.
func (m *Market) Cut() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cut {
		return
	}
	m.cut = true
	m.again()
}

// Listen says that agents can be heard again, or from now on: every grace begins
// anew, and who is heard from now on sells again.
func (m *Market) Listen() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cut, m.listens = false, m.opts.Now()
	for _, p := range m.providers {
		if p.agent {
			p.heard, p.unheard = m.listens, true
		}
	}
	m.again()
}

// again publishes the market after what counts as heard has changed for all.
func (m *Market) again() {
	now, dirty := m.opts.Now(), map[string]bool{}
	m.refresh(now, dirty)
	for name, p := range m.providers {
		if p.agent {
			dirty[name] = true // since when it is not heard is another time
		}
	}
	generation := m.current.Load().generation
	m.publish(now, nil, dirty, true)
	if published := m.current.Load(); published.generation == generation {
		next := *published
		next.generation++
		m.current.Store(&next)
		m.signal()
	}
}
