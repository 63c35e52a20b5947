package market

import (
	"fmt"

	"github.com/hashicorp/go-memdb"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Tables and indexes.
const (
	tableOffer = "offer"
	tableUsage = "usage"
	indexID    = "id"
)

// offerRow is what rarely changes of an offer. Rows are never modified once
// they are inserted.
type offerRow struct {
	provider, name string
	flavor         *v1alpha1.Flavor // without used and held
	price          *v1alpha1.Price
	location       v1alpha1.Location
	static         bool // from a file
	withdrawn      v1alpha1.Time
}

// usageRow is what changes with every report.
type usageRow struct {
	provider, name string
	used           v1alpha1.Resources
	held           map[string]v1alpha1.Resources
	refused        map[string]string
	// inUse is what contracts really use of what they hold.
	inUse map[string]v1alpha1.Resources
}

func schema() *memdb.DBSchema {
	return &memdb.DBSchema{Tables: map[string]*memdb.TableSchema{
		tableOffer: {Name: tableOffer, Indexes: map[string]*memdb.IndexSchema{
			indexID: {Name: indexID, Unique: true, Indexer: identity{}},
		}},
		tableUsage: {Name: tableUsage, Indexes: map[string]*memdb.IndexSchema{
			indexID: {Name: indexID, Unique: true, Indexer: identity{}},
		}},
	}}
}

// identity indexes rows by provider and name. By prefix, its argument is the
// provider.
type identity struct{}

func (identity) FromObject(raw any) (bool, []byte, error) {
	switch r := raw.(type) {
	case *offerRow:
		return true, terminated(r.provider, r.name), nil
	case *usageRow:
		return true, terminated(r.provider, r.name), nil
	}
	return false, nil, fmt.Errorf("index %T by identity: not a row of the market", raw)
}

func (identity) FromArgs(args ...any) ([]byte, error) {
	provider, name := args[0].(string), args[1].(string)
	return terminated(provider, name), nil
}

func (identity) PrefixFromArgs(args ...any) ([]byte, error) {
	if len(args) == 0 {
		return nil, nil
	}
	return terminated(args[0].(string)), nil
}

// terminated joins strings so that none is a prefix of another one's; names
// hold no zero byte.
func terminated(parts ...string) []byte {
	var b []byte
	for _, p := range parts {
		b = append(b, p...)
		b = append(b, 0)
	}
	return b
}

// The typed face of a transaction: errors of go-memdb are mistakes in the
// schema above and therefore bugs.

func put(txn *memdb.Txn, table string, row any) { must(txn.Insert(table, row)) }

func drop(txn *memdb.Txn, table string, row any) { must(txn.Delete(table, row)) }

func offersOf(txn *memdb.Txn, provider string) []*offerRow {
	return rows[*offerRow](txn, tableOffer, indexID, provider)
}

func usageOf(txn *memdb.Txn, provider string) []*usageRow {
	return rows[*usageRow](txn, tableUsage, indexID, provider)
}

func rows[R any](txn *memdb.Txn, table, index string, prefix any) []R {
	it, err := txn.Get(table, index+"_prefix", prefix)
	must(err)
	var out []R
	for raw := it.Next(); raw != nil; raw = it.Next() {
		out = append(out, raw.(R))
	}
	return out
}

func must(err error) {
	if err != nil {
		panic("market: " + err.Error())
	}
}
