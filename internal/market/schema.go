package market

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/hashicorp/go-memdb"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Tables and indexes.
const (
	tableOffer = "offer"
	tableUsage = "usage"
	indexID    = "id"
	// indexPrice orders the offers of a class by price, then by identity.
	indexPrice = "price"
)

// offerRow is what rarely changes of an offer. Rows are never modified once
// they are inserted.
type offerRow struct {
	provider, name string
	flavor         *v1alpha1.Flavor // without used and held
	price          *v1alpha1.Price
	location       v1alpha1.Location
	class          Class
	micro          int64 // price of a unit and hour in millionths of the fleet's currency; unpriced is math.MaxInt64
	static         bool  // from a file
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

const unpriced = math.MaxInt64

// Class is what offers have in common that intents choose by first.
type Class struct {
	// Vendor and Model of the cards; empty without GPUs.
	Vendor, Model string
	// Memory of a unit, marketed size.
	Memory v1alpha1.Amount
}

// String is "nvidia-h100 80Gi", or "no GPU".
func (c Class) String() string {
	if c == (Class{}) {
		return "no GPU"
	}
	return c.Model + " " + c.Memory.Canonical(v1alpha1.Memory)
}

func schema() *memdb.DBSchema {
	return &memdb.DBSchema{Tables: map[string]*memdb.TableSchema{
		tableOffer: {Name: tableOffer, Indexes: map[string]*memdb.IndexSchema{
			indexID:    {Name: indexID, Unique: true, Indexer: identity{}},
			indexPrice: {Name: indexPrice, Unique: true, Indexer: byPrice{}},
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

// byPrice indexes offers by class, price and identity. By prefix, its argument
// is the class.
type byPrice struct{}

func (byPrice) FromObject(raw any) (bool, []byte, error) {
	r, ok := raw.(*offerRow)
	if !ok {
		return false, nil, fmt.Errorf("index %T by price: not an offer", raw)
	}
	b := classKey(r.class)
	// The sign is flipped so that byte order is numeric order.
	b = binary.BigEndian.AppendUint64(b, uint64(r.micro)^(1<<63)) //nolint:gosec // the bits are what is wanted
	return true, append(b, terminated(r.provider, r.name)...), nil
}

func (byPrice) FromArgs(args ...any) ([]byte, error) {
	return nil, fmt.Errorf("look up %v by price: only by class", args)
}

func (byPrice) PrefixFromArgs(args ...any) ([]byte, error) { return classKey(args[0].(Class)), nil }

func classKey(c Class) []byte {
	return binary.BigEndian.AppendUint64(terminated(c.Vendor, c.Model), uint64(c.Memory.Int64())) //nolint:gosec // sizes are not negative
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

func byClass(txn *memdb.Txn, c Class) []*offerRow {
	return rows[*offerRow](txn, tableOffer, indexPrice, c)
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
