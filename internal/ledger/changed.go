package ledger

// Changed calls f once for each intent of which state or contracts may differ
// between two ledgers, in no particular order. What the later was made from the
// earlier with (With, Read) is not looked at, so that it costs what changed.
func Changed(earlier, later *Ledger, f func(tenant, intent string)) {
	eachDiffering(earlier.tenants, later.tenants, func(tenant string, a, b *tenantNode) {
		var before, after map[string]*shardNode
		if a != nil {
			before = a.shards
		}
		if b != nil {
			after = b.shards
		}
		eachDiffering(before, after, func(_ string, a, b *shardNode) {
			var before, after map[string]*intentNode
			if a != nil {
				before = a.intents
			}
			if b != nil {
				after = b.intents
			}
			eachDiffering(before, after, func(intent string, _, _ *intentNode) { f(tenant, intent) })
		})
	})
}

// eachDiffering calls f with each key under which two maps hold different
// nodes; nil where one holds none.
func eachDiffering[N any](a, b map[string]*N, f func(key string, a, b *N)) {
	for key, x := range a {
		if y := b[key]; x != y {
			f(key, x, y)
		}
	}
	for key, y := range b {
		if _, both := a[key]; !both {
			f(key, nil, y)
		}
	}
}
