package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/pki"
	"github.com/fleetbroker/fleetbroker/internal/server/profiles"
	"github.com/fleetbroker/fleetbroker/internal/server/routes"
)

// Check is one thing that must be well before the daemon is ready.
type Check struct {
	// Name of what is checked, such as "repository".
	Name string
	// Run says what is wrong, and with what consequence; it must not block.
	Run func() error
}

// Operators is what the operators' port is made of. The port is read-only but for logins and
// simulations, and either on the loopback interface alone or guarded.
type Operators struct {
	// Metrics to expose.
	Metrics *Metrics
	// Alive fails when only a restart helps; may be nil.
	Alive func() error
	// Ready holds the checks of /readyz.
	Ready []Check
	// Agents holds the checks of /readyz/agents: what must be well before a balancer
	// sends agents here.
	Agents []Check
	// Market for GET /market; may be nil.
	Market Market
	// Dashboard serves /ui/ and /api/ui/; may be nil. Caller says who asks it.
	Dashboard http.Handler
	// Trust is what signatures are held to; may be nil.
	Trust func() wire.Trust
	// Sources are the tenants' own repositories; may be nil.
	Sources func() []wire.SourceStatus
	// Profiling serves Go's profiles, to operators alone.
	Profiling bool
	// Guard of all but the probes; nil on the loopback interface.
	Guard *Guard
}

// Paths of probes, which nobody needs a token for.
const (
	healthPath      = "/healthz"
	readyPath       = "/readyz"
	agentsReadyPath = "/readyz/agents"
	// assetsPath is below the dashboard's.
	assetsPath = "/ui/assets/"
)

// NewOperators is the handler of the operators' port.
func NewOperators(o Operators) http.Handler {
	mux := routes.NewMux()
	o.register(mux)
	open, guarded := jsonErrors(mux.ServeMux), o.Guard.protect(jsonErrors(mux.ServeMux))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// A kubelet's probe shows nothing, and learns no more than yes or no.
		if probe := slices.Contains([]string{healthPath, readyPath, agentsReadyPath}, r.URL.Path); probe && anonymous(r) {
			open.ServeHTTP(w, r)
			return
		}
		if o.Guard != nil {
			switch path := r.URL.Path; {
			case o.Guard.Login.Serves(path):
				o.Guard.Login.ServeHTTP(w, r)
				return
			case r.Method == http.MethodGet && strings.HasPrefix(path, assetsPath): // files of the program, which pages for those who are not let in have too
				open.ServeHTTP(w, r)
				return
			}
		}
		guarded.ServeHTTP(w, r)
	})
}

// register has all routes beside those of logins.
func (o *Operators) register(mux *routes.Mux) {
	mux.Handle("GET /metrics", o.metrics())
	mux.HandleFunc("GET "+healthPath, o.healthz)
	mux.HandleFunc("GET "+readyPath, o.readiness(o.Ready))
	mux.HandleFunc("GET "+agentsReadyPath, o.readiness(o.Agents))
	if o.Market != nil {
		mux.Handle("GET /market", o.withTrust(polled(marketHandler(o.Market).ServeHTTP)))
		mux.Handle("GET "+wire.PodsPath, polled(podsHandler(o.Market)))
	}
	if o.Profiling {
		mux.Handle("GET "+profiles.Path, profiles.Handler(mayProfile))
	}
	if o.Dashboard != nil {
		for _, pattern := range []string{"GET /{$}", "GET /ui", "GET /ui/", "GET /api/ui/", "POST /ui/capacity", "POST /ui/capacity/", "POST /api/ui/capacity", "DELETE /api/ui/capacity/"} {
			mux.Handle(pattern, o.Dashboard)
		}
	}
}

// metrics are no reader's: their labels name tenants, with budgets and spend.
func (o *Operators) metrics() http.Handler {
	serve := o.Metrics.Handler()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if id := identityOf(r); id.Role == pki.Reader {
			refuse(w, http.StatusForbidden, "Forbidden", "the certificate of %s is a reader's, and metrics name tenants: show an operator's, or a token that may get /metrics", id.Name)
			return
		}
		serve.ServeHTTP(w, r)
	})
}

func (o *Operators) healthz(w http.ResponseWriter, r *http.Request) {
	if o.Alive == nil {
		answerJSON(w, http.StatusOK, map[string]string{"status": "ok"})
		return
	}
	switch err := o.Alive(); {
	case err == nil:
		answerJSON(w, http.StatusOK, map[string]string{"status": "ok"})
	case o.hidden(r):
		refuse(w, http.StatusInternalServerError, "Unhealthy", "authenticate with a token or an operator's certificate to see why")
	default:
		refuse(w, http.StatusInternalServerError, "Unhealthy", "%v", err)
	}
}

// readiness answers whether all of some checks pass.
func (o *Operators) readiness(checks []Check) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { o.check(checks, w, r) }
}

func (o *Operators) check(checks []Check, w http.ResponseWriter, r *http.Request) {
	answer, status := wire.Readiness{Ready: true, Checks: []wire.CheckResult{}}, http.StatusOK
	for _, check := range checks {
		result := wire.CheckResult{Name: check.Name, OK: true}
		if err := check.Run(); err != nil {
			result.OK, result.Reason = false, err.Error()
			answer.Ready, status = false, http.StatusServiceUnavailable
		}
		answer.Checks = append(answer.Checks, result)
	}
	switch {
	case o.hidden(r):
		answer.Checks = []wire.CheckResult{}
	case o.Trust != nil:
		trust := o.Trust()
		answer.Trust = &trust
	}
	answerJSON(w, status, answer)
}

// headerAlarms is how many alarms a header has at most; a reader's has their number alone.
const headerAlarms = 10

// withTrust adds what signatures are held to to an answer's header.
func (o *Operators) withTrust(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if o.Trust != nil {
			most := headerAlarms
			if identityOf(r).Role == pki.Reader { // alarms quote refs and paths, which may name tenants
				most = 0
			}
			if text, err := json.Marshal(o.Trust().Showing(most)); err == nil {
				w.Header().Set(wire.HeaderTrust, ascii(text))
			}
		}
		if o.Sources != nil && identityOf(r).Role != pki.Reader { // reasons name tenants' files
			if text, err := json.Marshal(wire.FrozenOf(o.Sources())); err == nil {
				w.Header().Set(wire.HeaderSources, ascii(text))
			}
		}
		h.ServeHTTP(w, r)
	})
}

// ascii is JSON without bytes that a header does not carry.
func ascii(text []byte) string {
	var b strings.Builder
	for _, r := range string(text) {
		if r < utf8.RuneSelf {
			b.WriteRune(r)
		} else {
			for _, u := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&b, `\u%04x`, u)
			}
		}
	}
	return b.String()
}

// hidden reports whether reasons, which name tenants and clusters, are kept
// from who asks: a probe that shows nothing, and a reader.
func (o *Operators) hidden(r *http.Request) bool {
	return o.Guard != nil && (anonymous(r) || identityOf(r).Role == pki.Reader)
}
