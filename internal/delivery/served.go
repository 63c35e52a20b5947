package delivery

import "github.com/fleetbroker/fleetbroker/internal/api/logs"

// unserved logs why a session ended, once for each reason: a cluster that cannot be
// reached is tried again for as long as it takes.
func (w *worker) unserved(err error) {
	reason := logs.Cause(err)
	w.mu.Lock()
	known := w.said == reason
	w.said = reason
	w.mu.Unlock()
	if !known {
		w.log.Warn("cluster is not served", "error", err)
	}
}

// served logs that a cluster which was not served is.
func (w *worker) served() {
	w.mu.Lock()
	was := w.said
	w.said = ""
	w.mu.Unlock()
	if was != "" {
		w.log.Info("cluster is served again")
	}
}
