package market

import "github.com/fleetbroker/fleetbroker/internal/api/model"

// Query chooses offers. What is empty chooses all.
type Query struct {
	// Provider by name.
	Provider string
	// Class of the flavor: the model of its GPU, or ClassCPU.
	Class string
	// Region in which the offer lies.
	Region string
}

// Select are the offers that a query chooses, in order of provider and name,
// those that are withdrawn included. The channel is closed once a snapshot may
// have others: some provider that has, had or will have one of them was changed.
func (s *Snapshot) Select(q Query) (offers []*model.Offer, changed <-chan struct{}) {
	index, value := indexID, []any{}
	switch {
	case q.Provider != "":
		value = append(value, q.Provider)
	case q.Class != "":
		index, value = indexClass, append(value, q.Class)
	case q.Region != "":
		index, value = indexRegion, append(value, q.Region)
	}
	list, changed := rows(s.txn, index, value...)
	for _, l := range list {
		for _, o := range l.offers() {
			if (q.Class == "" || classOf(o) == q.Class) && (q.Region == "" || regionOf(o) == q.Region) {
				offers = append(offers, o)
			}
		}
	}
	return offers, changed
}
