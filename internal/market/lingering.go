package market

import (
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
)

// lingering is what flavors of a provider may hold beyond what it reported, by
// flavor and slice.
type lingering map[string]map[string]ledger.Had

// StillHeld says that a slice of a provider's flavor was made smaller, or a part of it on a
// node, and what it had. The provider may hold all of that yet, and what was
// heard of it so far may be older than the slice: its offer shows it as held, on the same
// nodes, or more where more was reported, until the provider gives its word again. Nothing is
// shown of a provider that has no agent, which nobody would take back.
func (m *Market) StillHeld(provider, flavor, slice string, had ledger.Had) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.providers[provider]
	if p == nil || p.reported[flavor] == nil {
		return
	}
	if p.lingering == nil {
		p.lingering = lingering{}
	}
	p.lingers = m.opts.Now()
	if p.lingering[flavor] == nil {
		p.lingering[flavor] = map[string]ledger.Had{}
	}
	p.lingering[flavor][slice] = p.lingering[flavor][slice].Max(had)
	m.update([]string{provider})
}

// on is a flavor as it is shown: the flavor itself where it holds no more than it
// reported.
func (l lingering) on(f *v1alpha1.Flavor) *v1alpha1.Flavor {
	shown := f
	for slice, had := range l[f.Metadata.Name] {
		shown = had.Shown(shown, slice)
	}
	return shown
}
