package server

import (
	"net/http"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/pki"
)

// podsHandler shows which pods use what contracts hold. The names of contracts tell
// tenants: an agent sees its own cluster's alone, a reader nothing.
func podsHandler(of Market) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		id := identityOf(r)
		if id.Role == pki.Reader {
			refuse(w, http.StatusForbidden, "Forbidden", "pods are shown to operators, and to agents of their own cluster; this certificate is a reader's")
			return
		}
		list := of.Pods()
		if id.Role == pki.Agent && id.Name != "" {
			list = slices.DeleteFunc(list, func(p wire.PodsReport) bool { return p.Cluster != id.Name })
		}
		w.Header().Set("Cache-Control", "no-store")
		answerJSON(w, http.StatusOK, list)
	}
}
