package market

import (
	"maps"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// lingering is what flavors of a provider may hold beyond what it reported, by
// flavor and slice, in the flavors' names.
type lingering map[string]map[string]v1alpha1.Resources

// StillHeld says that a slice of a provider's flavor was made smaller and what it
// had, in the flavor's names. The provider may hold all of that yet, and what was
// heard of it so far may be older than the slice: its offer shows it as held,
// or more where more was reported, until the provider gives its word again. Nothing is
// shown of a provider that has no agent, which nobody would take back.
func (m *Market) StillHeld(provider, flavor, slice string, had v1alpha1.Resources) {
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
		p.lingering[flavor] = map[string]v1alpha1.Resources{}
	}
	p.lingering[flavor][slice] = p.lingering[flavor][slice].Max(had)
	m.update([]string{provider})
}

// on is a flavor as it is shown: the flavor itself where it holds no more than it
// reported.
func (l lingering) on(f *v1alpha1.Flavor) *v1alpha1.Flavor {
	var held map[string]v1alpha1.Resources
	for slice, had := range l[f.Metadata.Name] {
		most := f.Spec.Held[slice].Max(had)
		if most.Equal(f.Spec.Held[slice]) {
			continue
		}
		if held == nil {
			if held = maps.Clone(f.Spec.Held); held == nil {
				held = map[string]v1alpha1.Resources{}
			}
		}
		held[slice] = most
	}
	if held == nil {
		return f
	}
	shown := *f
	shown.Spec.Held = held
	return &shown
}
