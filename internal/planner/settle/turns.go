package settle

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
)

// Where turns are. The order of those that wait is one that their names draw once and for
// all; each minute begins at another place of it, by parts of the golden ratio for tenants and
// of the silver one for a tenant's intents: both would else be first together again and again.
// Of n of which one has its turn a minute, each has it at least once in any 2.2·n minutes; of n
// of each of t tenants of which one in all has it, in 5·t·n; and sooner where more have. By the
// rules before draft.RulesTurnsRotate the order was another draw each minute, and one could wait
// for as long as it had no luck.

// Bidder is a job that wants offers looked at.
type Bidder struct {
	Job   *draft.Job
	turn  int // among its tenant's
	seen  int // 0: was not looked at yet as it is now
	books bool
	Lot   uint64
}

// asks is for how many replicas it wants places.
func (b *Bidder) asks() int {
	if b.books {
		return int(b.Job.Replicas())
	}
	return len(b.Job.Tasks) + len(b.Job.News)
}

// TurnsOf is how long turns stay where they are.
const TurnsOf = time.Minute

// turns is where turns are in a minute: they rotate, or are drawn for it.
type turns struct {
	minute  int64
	rotates bool
}

// lot is a name's, whatever the minute where turns rotate.
func (t turns) lot(tenant, name string) uint64 {
	if t.rotates {
		return Lot(0, tenant, name)
	}
	return Lot(t.minute, tenant, name)
}

// Parts of 2⁶⁴: (√5 − 1) ÷ 2, and √2 − 1.
const (
	golden = 0x9E3779B97F4A7C15
	silver = 0x6A09E667F3BCC908
)

// first is which of n is the first, by steps of such a part; of those drawn it is the first.
func (t turns) first(n int, step uint64) int {
	if !t.rotates {
		return 0
	}
	return firstOf(t.minute, n, step)
}

// firstOf is which of n is the first in a minute, by steps of such a part.
func firstOf(minute int64, n int, step uint64) int {
	at, _ := bits.Mul64(uint64(minute/int64(TurnsOf.Seconds()))*step, uint64(n)) //nolint:gosec // any 64 bits do
	return int(at)                                                               //nolint:gosec // less than n
}

// rotateSeen has each tenant's bidders that were seen begin where turns are. They
// are by tenant, and those that were seen last.
func (t turns) rotateSeen(list []Bidder) {
	for from := 0; from < len(list); {
		to := from + 1
		for to < len(list) && list[to].Job.TenantName == list[from].Job.TenantName {
			to++
		}
		for from < to && list[from].seen == 0 {
			from++
		}
		if n := to - from; n > 1 {
			first := t.first(n, silver)
			slices.Reverse(list[from : from+first])
			slices.Reverse(list[from+first : to])
			slices.Reverse(list[from:to])
		}
		from = to
	}
}

// lotTenants gives all bidders the lot of their tenant.
func (t turns) lotTenants(list []Bidder) {
	lots := map[string]uint64{}
	var names []string
	for i := range list {
		if name := list[i].Job.TenantName; i == 0 || name != list[i-1].Job.TenantName {
			lots[name] = t.lot(name, "")
			names = append(names, name)
		}
	}
	if t.rotates {
		slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(lots[a], lots[b]), strings.Compare(a, b)) })
		first := t.first(len(names), golden)
		for i, name := range names {
			lots[name] = uint64((i - first + len(names)) % len(names)) //nolint:gosec // not below 0
		}
	}
	for i := range list {
		list[i].Lot = lots[list[i].Job.TenantName]
	}
}

// Lot is a number drawn for a name at an instant.
func Lot(at int64, tenant, name string) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %s/%s", at, tenant, name)
	x := h.Sum64()
	x ^= x >> 33 // FNV's upper bits hardly see the last letters
	x *= 0xff51afd7ed558ccd
	return x ^ x>>33
}
