package agent

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
)

// board is where the newest list hangs for all senders.
type board struct {
	mu      sync.Mutex
	current *list
	waiting []chan struct{}
}

// list is one state of the cluster's flavors, encoded once for all brokers. It
// is never modified.
type list struct {
	// version counts changes, from 1.
	version uint64
	raw     []byte
	packed  []byte
	flavors int
	// honoured is wire.FlavorReport.Honoured, which goes beside the rest.
	honoured uint64
}

// post hangs up a list unless it is the one that hangs there, and reports
// whether it did.
func (b *board) post(flavors []v1alpha1.Flavor, demand *v1alpha1.Demand, honoured uint64) (bool, error) {
	if flavors == nil {
		flavors = []v1alpha1.Flavor{} // "nothing", not "unchanged"
	}
	raw, err := json.Marshal(wire.FlavorReport{Flavors: flavors, Demand: demand})
	if err != nil {
		return false, fmt.Errorf("encode %d flavors: %w", len(flavors), err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	next := &list{version: 1, raw: raw, flavors: len(flavors), honoured: honoured}
	if b.current != nil {
		if bytes.Equal(b.current.raw, raw) && b.current.honoured == honoured {
			return false, nil
		}
		next.version = b.current.version + 1
	}
	if next.packed, err = pack(raw); err != nil {
		return false, fmt.Errorf("pack %d flavors: %w", len(flavors), err)
	}
	b.current = next
	for _, ch := range b.waiting {
		select {
		case ch <- struct{}{}:
		default: // it has been told already
		}
	}
	return true, nil
}

// newest is what hangs there, nil at first.
func (b *board) newest() *list {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.current
}

// subscribe is told of every change from now on, and at once of one that was.
func (b *board) subscribe() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	ch := make(chan struct{}, 1)
	if b.current != nil {
		ch <- struct{}{}
	}
	b.waiting = append(b.waiting, ch)
	return ch
}

func pack(data []byte) ([]byte, error) {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
