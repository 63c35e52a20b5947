package requests

import (
	"net/http"
	"slices"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
)

// Request is one that would be written.
type Request struct{ Tenant, Path string }

// Why is what the reader reports of a request's file, never empty.
func Why(f *fleet.Fleet, path string) string {
	if why := at(f, path); why != "" {
		return why
	}
	return "the request cannot be read as an intent"
}

// Refused are those of a round's requests with which nothing is read of their tenant's, by
// path, with what they are answered; nil when the fleet that has all of them is read. The
// only request of a tenant is refused by the limit, and so are all where nothing was read
// before them either; of several the later half has to come again, and the caller reads
// and asks again without those. Requests are in the order in which they came.
func Refused(before, with *fleet.Fleet, requests []Request) map[string]*wire.Refusal {
	var out map[string]*wire.Refusal
	refuse := func(path string, why *wire.Refusal) {
		if out == nil {
			out = map[string]*wire.Refusal{}
		}
		out[path] = why
	}
	of := map[string][]string{}
	for _, q := range requests {
		if !slices.Contains(of[q.Tenant], q.Path) { // two clients may send the same one
			of[q.Tenant] = append(of[q.Tenant], q.Path)
		}
	}
	for tenant, paths := range of {
		why := at(with, "requests/"+tenant)
		switch {
		case why == "":
		case len(paths) == 1 || at(before, "requests/"+tenant) != "":
			for _, p := range paths {
				refuse(p, &wire.Refusal{Status: http.StatusConflict, Body: wire.Error{Error: "nothing is reserved: " + why, Reason: lifecycle.CodeQuota}})
			}
		default:
			for _, p := range paths[len(paths)/2:] {
				refuse(p, &wire.Refusal{Status: http.StatusServiceUnavailable, RetryAfter: time.Second,
					Body: wire.Error{Error: "more requests of a tenant came at once than it may have intents; ask again", Reason: wire.ReasonUnavailable}})
			}
		}
	}
	return out
}

// at is the first thing that the reader reports of a path, "" where there is none.
func at(f *fleet.Fleet, path string) string {
	for _, d := range f.Diagnostics {
		if d.File == path {
			return d.Message
		}
	}
	return ""
}
