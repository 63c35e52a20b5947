// Package ordered is maps in order of their keys that never change: an Edit
// makes the next one, which shares with the one before all that was not
// touched. It is the one persistent map of the house: the ledger, the manifests
// and what the verifier holds back are indexed by it, and what clusters observe
// of contracts.
//
// A map is a B+ tree that copies on write. An entry costs little more than its
// key and value (a radix tree with its nodes and watch channels took ten times
// as much), and an edit copies the few nodes on the way to it. What two maps
// share is known by the addresses of their nodes: Differs costs what is
// different, not what there is. No library that was found shows the nodes that
// two trees share, which is why the tree is our own.
//
// # Invariants
//
//   - A node is changed by the Edit that made it alone, and never after Done.
//   - Entries are in order of their keys, each key once; all leaves are equally
//     deep; no node but the root is empty.
//
// # Concurrency
//
// Maps are safe for concurrent use; an Edit belongs to one goroutine. Any number
// of Edits may begin from one map.
package ordered

import (
	"iter"
	"slices"
	"strings"
)

// Map is an immutable map from text to values. The zero value is empty.
type Map[V any] struct {
	root  *node[V]
	count int
}

type entry[V any] struct {
	key   string
	value V
}

// Len is how many keys there are.
func (m Map[V]) Len() int { return m.count }

// Get is the value of a key.
func (m Map[V]) Get(key string) (value V, there bool) { return m.root.get(key) }

// Seek is the first key that does not go before one.
func (m Map[V]) Seek(key string) (found string, there bool) {
	for k := range m.From(key) {
		return k, true
	}
	return "", false
}

// All is all keys, in order, with their values.
func (m Map[V]) All() iter.Seq2[string, V] { return m.From("") }

// From is all keys that do not go before one, in order, with their values.
func (m Map[V]) From(key string) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) { m.root.from(key, yield) }
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
type Edit[V any] struct {
	root  *node[V]
	count int
	owner *owner
}

// owner marks the nodes that an Edit has made. It has a size: two owners never
// have one address.
type owner struct{ _ byte }

// Edit begins the next map; m stays as it is.
func (m Map[V]) Edit() *Edit[V] { return &Edit[V]{m.root, m.count, new(owner)} }

// Get is the value of a key in the map as edited so far.
func (e *Edit[V]) Get(key string) (value V, there bool) { return e.root.get(key) }

// Set gives a key a value. The key's text is kept.
func (e *Edit[V]) Set(key string, value V) {
	if e.root == nil {
		e.root = &node[V]{owner: e.owner}
	}
	root, right, added := e.root.set(e.owner, entry[V]{key, value}, true)
	if right != nil {
		root = &node[V]{owner: e.owner, kids: []kid[V]{{root.first(), root}, {right.first(), right}}}
	}
	e.root = root
	if added {
		e.count++
	}
}

// Delete removes a key, if it is there.
func (e *Edit[V]) Delete(key string) {
	if _, there := e.root.get(key); !there {
		return
	}
	e.root = e.root.remove(e.owner, key)
	for len(e.root.kids) == 1 {
		e.root = e.root.kids[0].node
	}
	if e.count--; e.count == 0 {
		e.root = nil
	}
}

// Done is the map as edited. The Edit must not be used any more.
func (e *Edit[V]) Done() Map[V] {
	m := Map[V]{e.root, e.count}
	e.root, e.owner = nil, nil
	return m
}

// Differs are the keys whose values are not the same in m and in before, in
// order: those that only one of them has, and those for which same is false. It
// costs what differs, as long as one map was made from the other.
func (m Map[V]) Differs(before Map[V], same func(a, b V) bool) iter.Seq[string] {
	return func(yield func(string) bool) {
		now, was := cursorOf(m.root), cursorOf(before.root)
		for skipShared(&now, &was) {
			a, b := now.entry(), was.entry()
			switch {
			case b == nil || a != nil && a.key < b.key:
				now.next()
				if !yield(a.key) {
					return
				}
			case a == nil || b.key < a.key:
				was.next()
				if !yield(b.key) {
					return
				}
			default:
				now.next()
				was.next()
				if !same(a.value, b.value) && !yield(a.key) {
					return
				}
			}
		}
	}
}

// cursor walks a tree in order. What is still to come is its leaf from at on,
// then the nodes of stack, the last one first.
type cursor[V any] struct {
	leaf  []entry[V]
	stack []*node[V]
}

func cursorOf[V any](root *node[V]) cursor[V] {
	if root == nil {
		return cursor[V]{}
	}
	return cursor[V]{stack: []*node[V]{root}}
}

// entry is the next one, nil at the end.
func (c *cursor[V]) entry() *entry[V] {
	for len(c.leaf) == 0 {
		if len(c.stack) == 0 {
			return nil
		}
		c.open()
	}
	return &c.leaf[0]
}

func (c *cursor[V]) next() { c.leaf = c.leaf[1:] }

// open puts the children of the next node in its place, or its entries.
func (c *cursor[V]) open() {
	n := c.stack[len(c.stack)-1]
	c.stack = c.stack[:len(c.stack)-1]
	if n.kids == nil {
		c.leaf = n.entries
		return
	}
	for _, k := range slices.Backward(n.kids) {
		c.stack = append(c.stack, k.node)
	}
}

// skipShared moves two cursors beyond the nodes that are next in both, and
// reports whether anything is left in either.
func skipShared[V any](a, b *cursor[V]) bool {
	for len(a.leaf) == 0 && len(b.leaf) == 0 && len(a.stack) > 0 && len(b.stack) > 0 {
		x, y := a.stack[len(a.stack)-1], b.stack[len(b.stack)-1]
		switch {
		case x == y:
			a.stack, b.stack = a.stack[:len(a.stack)-1], b.stack[:len(b.stack)-1]
		case x.depth() > y.depth():
			a.open()
		case x.depth() < y.depth():
			b.open()
		default:
			a.open()
			b.open()
		}
	}
	return a.entry() != nil || b.entry() != nil
}
