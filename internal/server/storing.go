package server

import (
	"net/http"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/strictjson"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
)

// Of reports that the store is being told of at a time: their bytes as they were sent,
// and as how many bytes a small one counts. A store that is slow then delays reports that
// change something, and none of those that change nothing; and it is not asked by
// thousands at once.
const (
	storedAtOnce = 4 * maxReport
	storedLeast  = 64 << 10
)

// decode reads a body, of which a few are read at a time: none of those that are waits
// for a client, or for the store.
func (a *agents) decode(body []byte, into any) error {
	a.slots <- struct{}{}
	defer func() { <-a.slots }()
	return strictjson.Decode(body, into)
}

// toStore waits until the store may be told of a report of so many bytes, and answers for
// itself where the client does not wait so long. done is to be called afterwards.
func (a *agents) toStore(w http.ResponseWriter, r *http.Request, bytes int) (done func(), ok bool) {
	n := min(max(int64(bytes), storedLeast), storedAtOnce)
	if err := a.storing.Acquire(r.Context(), n); err != nil {
		refuseFor(w, http.StatusServiceUnavailable, wire.ReasonUnavailable, 2*time.Second, err)
		return nil, false
	}
	return func() { a.storing.Release(n) }, true
}
