// Package ordered is maps in order of their keys that never change: an Edit
// makes the next one, which shares with the one before all that was not
// touched. Rooms keep their indexes of contracts in them.
//
// A map is a B-tree that copies on write. An entry costs little more than its
// key and value (a radix tree with its nodes and watch channels took ten times
// as much), and an edit copies the few nodes on the way to it.
//
// Maps are safe for concurrent use; an Edit belongs to one goroutine.
package ordered

import (
	"iter"
	"strings"
	"sync"

	"github.com/tidwall/btree"
)

// Map is an immutable map from text to values. The zero value is empty.
type Map[V any] struct{ t *shared[V] }

// shared is a tree that is only read, but for being marked as copied, one
// goroutine at a time.
type shared[V any] struct {
	copying sync.Mutex
	b       *btree.BTreeG[entry[V]]
}

type entry[V any] struct {
	key   string
	value V
}

// Len is how many keys there are.
func (m Map[V]) Len() int {
	if m.t == nil {
		return 0
	}
	return m.t.b.Len()
}

// Get is the value of a key.
func (m Map[V]) Get(key string) (value V, there bool) {
	if m.t == nil {
		return value, false
	}
	e, there := m.t.b.Get(entry[V]{key: key})
	return e.value, there
}

// Seek is the first key that does not go before one.
func (m Map[V]) Seek(key string) (found string, there bool) {
	for k := range m.From(key) {
		return k, true
	}
	return "", false
}

// From is all keys that do not go before one, in order, with their values.
func (m Map[V]) From(key string) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		if m.t != nil {
			m.t.b.Ascend(entry[V]{key: key}, func(e entry[V]) bool { return yield(e.key, e.value) })
		}
	}
}

// Under is all keys that begin with a prefix, in order, with their values.
func (m Map[V]) Under(prefix string) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for k, v := range m.From(prefix) {
			if !strings.HasPrefix(k, prefix) || !yield(k, v) {
				return
			}
		}
	}
}

// Edit is a map that is being made of another one.
type Edit[V any] struct{ b *btree.BTreeG[entry[V]] }

// Edit begins the next map; m stays as it is.
func (m Map[V]) Edit() *Edit[V] {
	if m.t == nil {
		less := func(a, b entry[V]) bool { return a.key < b.key }
		return &Edit[V]{btree.NewBTreeGOptions(less, btree.Options{NoLocks: true})}
	}
	m.t.copying.Lock()
	defer m.t.copying.Unlock()
	return &Edit[V]{m.t.b.Copy()}
}

// Get is the value of a key as it stands now.
func (e *Edit[V]) Get(key string) (value V, there bool) {
	x, there := e.b.Get(entry[V]{key: key})
	return x.value, there
}

// Set gives a key a value. The key's text is kept.
func (e *Edit[V]) Set(key string, value V) { e.b.Set(entry[V]{key, value}) }

// Delete takes a key out, if it is there.
func (e *Edit[V]) Delete(key string) { e.b.Delete(entry[V]{key: key}) }

// Done is the map as edited. The Edit must not be used any more.
func (e *Edit[V]) Done() Map[V] { return Map[V]{&shared[V]{b: e.b}} }
