package market

import (
	"fmt"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/hashicorp/go-memdb"
)

// The table of offers and its index.
const (
	tableOffer = "offer"
	indexID    = "id"
)

func schema() *memdb.DBSchema {
	return &memdb.DBSchema{Tables: map[string]*memdb.TableSchema{
		tableOffer: {Name: tableOffer, Indexes: map[string]*memdb.IndexSchema{
			indexID: {Name: indexID, Unique: true, Indexer: identity{}},
		}},
	}}
}

// identity indexes offers by provider and name.
type identity struct{}

func (identity) FromObject(raw any) (bool, []byte, error) {
	o, ok := raw.(*model.Offer)
	if !ok {
		return false, nil, fmt.Errorf("index %T by identity: not an offer", raw)
	}
	return true, terminated(o.Flavor.Metadata.Namespace, o.Flavor.Metadata.Name), nil
}

func (identity) FromArgs(args ...any) ([]byte, error) {
	provider, name := args[0].(string), args[1].(string)
	return terminated(provider, name), nil
}

// terminated joins strings so that none is a prefix of another one's; names
// hold no zero byte.
func terminated(provider, name string) []byte {
	return append(append(append([]byte(provider), 0), name...), 0)
}

// write brings a provider's rows in line with its view. Errors of go-memdb are
// mistakes in the schema and therefore bugs.
func write(txn *memdb.Txn, before, now *view) {
	if before != nil {
		for _, o := range before.offers {
			if now.offer(o.Flavor.Metadata.Name) == nil {
				must(txn.Delete(tableOffer, o))
			}
		}
	}
	if now != nil {
		for _, o := range now.offers {
			if before.offer(o.Flavor.Metadata.Name) != o {
				must(txn.Insert(tableOffer, o))
			}
		}
	}
}

func must(err error) {
	if err != nil {
		panic("market: " + err.Error())
	}
}
