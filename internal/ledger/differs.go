package ledger

import "iter"

// Differs are the tenant and name of each intent of which l does not hold the
// very values of before: those that a read or With has changed, brought or
// taken away, and perhaps some that were read anew and are equal. It costs in
// proportion to what differs, because what did not change is shared.
func (l *Ledger) Differs(before *Ledger) iter.Seq2[string, string] {
	return func(yield func(tenant, intent string) bool) {
		both(l.tenants, before.tenants, func(tenant string, a, b *tenantNode) bool {
			return both(a.shardsOf(), b.shardsOf(), func(_ string, a, b *shardNode) bool {
				return both(a.intentsOf(), b.intentsOf(), func(intent string, _, _ *intentNode) bool {
					return yield(tenant, intent)
				})
			})
		})
	}
}

// both calls fn for each key whose values differ in a and b, with the zero
// value where it is missing, until fn returns false.
func both[V comparable](a, b map[string]V, fn func(key string, a, b V) bool) bool {
	for k, v := range a {
		if was := b[k]; was != v && !fn(k, v, was) {
			return false
		}
	}
	for k, was := range b {
		if _, still := a[k]; !still {
			var none V
			if !fn(k, none, was) {
				return false
			}
		}
	}
	return true
}

func (t *tenantNode) shardsOf() map[string]*shardNode {
	if t == nil {
		return nil
	}
	return t.shards
}

func (s *shardNode) intentsOf() map[string]*intentNode {
	if s == nil {
		return nil
	}
	return s.intents
}
