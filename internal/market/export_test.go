package market

import (
	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"time"
)

// BlobFromNothing is what Blobs should hold of a provider.
func (s *Snapshot) BlobFromNothing(provider string) Blob { return writeBlob(s.Of(provider), nil).Blob }

// FromNothing are the offers made of what is known of their providers, and of
// nothing that was made before.
func (m *Market) FromNothing() (out []*model.Offer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	names := map[string]bool{}
	for name := range m.providers {
		names[name] = true
	}
	for name := range m.files {
		names[name] = true
	}
	for _, name := range sortedKeys(names) {
		if v := m.makeView(name, m.current.Load().Provider(name), nil); v != nil {
			out = append(out, v.offers...)
		}
	}
	return out
}

// Prices is how many prices are remembered in order to be shared.
func (m *Market) Prices() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.prices)
}

// NextOfAll is what Next should be, by all providers.
func (m *Market) NextOfAll() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.next()
}

const KeptPrices = keptPrices

// FromRows are the offers in the table, in order of its index.
func (s *Snapshot) FromRows() (out []*model.Offer) {
	list, _ := rows(s.txn, indexID)
	for _, l := range list {
		out = append(out, l.offers()...)
	}
	return out
}

// Providers are those that are known by a report.
func Providers(m *Market) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return sortedKeys(m.providers)
}
