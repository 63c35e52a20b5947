package market

import (
	"slices"
	"time"
)

// removedFor is for how long a provider is out of the fleet before it is forgotten.
const removedFor = 10 * time.Minute

// Prune forgets each provider that is not known and has not been for ten minutes, with all
// that its agent reported; offers of files stay. It is called about once a minute while it is
// certain what is known. One that comes back must send its full list.
func (m *Market) Prune(known func(provider string) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.opts.Now()
	var due []string
	for name, p := range m.providers {
		switch {
		case known(name):
			p.removed = time.Time{}
		case p.removed.IsZero() || p.removed.After(now):
			p.removed = now
		case now.Sub(p.removed) >= removedFor:
			due = append(due, name)
		}
	}
	if len(due) == 0 {
		return
	}
	for _, name := range due {
		delete(m.providers, name)
	}
	slices.Sort(due)
	m.update(due)
}
