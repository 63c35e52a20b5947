package market

import (
	"fmt"
	"slices"

	"github.com/hashicorp/go-memdb"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// The table of providers and its indexes: by name, and by the classes and the
// regions of what they offer.
const (
	tableProvider = "provider"
	indexID       = "id"
	indexClass    = "class"
	indexRegion   = "region"
)

// listing is a row: what is known of one provider. It never changes; the next
// one takes its place when anything of it does.
type listing struct {
	provider string
	state    ProviderState
	// view is what it offers, nil when that is nothing.
	view *view
}

// offers are a row's, by name; none of a provider that is not known.
func (l *listing) offers() []*model.Offer {
	if l == nil || l.view == nil {
		return nil
	}
	return l.view.offers
}

func schema() *memdb.DBSchema {
	several := func(name string, of func(*model.Offer) string) *memdb.IndexSchema {
		return &memdb.IndexSchema{Name: name, AllowMissing: true, Indexer: shared{of}}
	}
	return &memdb.DBSchema{Tables: map[string]*memdb.TableSchema{
		tableProvider: {Name: tableProvider, Indexes: map[string]*memdb.IndexSchema{
			indexID:     {Name: indexID, Unique: true, Indexer: identity{}},
			indexClass:  several(indexClass, classOf),
			indexRegion: several(indexRegion, regionOf),
		}},
	}}
}

// ClassCPU is the class of flavors without accelerators.
const ClassCPU = "cpu"

// Class is what a flavor is asked for by: the model of its GPU, or ClassCPU.
func Class(f *v1alpha1.Flavor) string {
	if f.Spec.GPU == nil {
		return ClassCPU
	}
	return f.Spec.GPU.Model
}

func classOf(o *model.Offer) string { return Class(o.Flavor) }

func regionOf(o *model.Offer) string { return o.Location.Region }

// identity indexes providers by name.
type identity struct{}

func (identity) FromObject(raw any) (bool, []byte, error) {
	l, ok := raw.(*listing)
	if !ok {
		return false, nil, fmt.Errorf("index %T by provider: not a listing", raw)
	}
	return true, terminated(l.provider), nil
}

func (identity) FromArgs(args ...any) ([]byte, error) { return terminated(args[0].(string)), nil }

// shared indexes providers by what of their offers has, each value once.
type shared struct{ of func(*model.Offer) string }

func (s shared) FromObject(raw any) (bool, [][]byte, error) {
	l, ok := raw.(*listing)
	if !ok {
		return false, nil, fmt.Errorf("index %T by what it offers: not a listing", raw)
	}
	var values []string
	for _, o := range l.offers() {
		if v := s.of(o); v != "" && !slices.Contains(values, v) {
			values = append(values, v)
		}
	}
	keys := make([][]byte, len(values))
	for i, v := range values {
		keys[i] = terminated(v)
	}
	return len(keys) > 0, keys, nil
}

func (s shared) FromArgs(args ...any) ([]byte, error) { return terminated(args[0].(string)), nil }

// terminated makes no key a prefix of another one's; names hold no zero byte.
func terminated(name string) []byte { return append([]byte(name), 0) }

// Errors of go-memdb are mistakes in the schema and therefore bugs.
func must(err error) {
	if err != nil {
		panic("market: " + err.Error())
	}
}

// row is what a transaction has of a provider, nil for nothing.
func row(txn *memdb.Txn, provider string) *listing {
	raw, err := txn.First(tableProvider, indexID, provider)
	must(err)
	l, _ := raw.(*listing)
	return l
}

// rows are the listings under a value of an index, by provider; without a value
// all. The channel is closed once another transaction has changed any of them.
func rows(txn *memdb.Txn, index string, value ...any) (list []*listing, changed <-chan struct{}) {
	it, err := txn.Get(tableProvider, index, value...)
	must(err)
	for raw := it.Next(); raw != nil; raw = it.Next() {
		list = append(list, raw.(*listing)) //nolint:forcetypeassert // the table has no other
	}
	return list, it.WatchCh()
}
