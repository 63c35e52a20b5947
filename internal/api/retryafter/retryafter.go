// Package retryafter bounds for how long an answer has its request wait: Kubernetes' client
// waits for as long as a Retry-After states, which is the server's word, or a proxy's.
//
// Invariant: no answer that was bounded states more than Most.
//
// Callers: package bulk of delivery and package replies of the agent, for each answer. It
// keeps nothing.
package retryafter

import (
	"net/http"
	"strconv"
	"time"
)

// Most is for how long an answer may ask to be left alone.
const Most = 10 * time.Second

// Bound has an answer ask for no more than Most; what is no number of seconds is taken for more.
func Bound(header http.Header) {
	text := header.Get("Retry-After")
	if text == "" {
		return
	}
	if wait, err := strconv.ParseUint(text, 10, 64); err != nil || wait > uint64(Most/time.Second) {
		header.Set("Retry-After", strconv.Itoa(int(Most/time.Second)))
	}
}
