package server

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"iter"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/fleetbroker/fleetbroker/internal/server/routes"
	"github.com/fleetbroker/fleetbroker/internal/tracing"
)

// maxWebhook bounds a payload. GitHub sends up to 25 MB, but such a push is
// seen at the next poll just as well.
const maxWebhook = 3 << 20

// Webhooks is what the webhooks' port is made of.
type Webhooks struct {
	// Secret of a forge ("github", "gitlab", "gitea", "generic"); empty means that the forge is not configured.
	Secret func(forge string) []byte
	// Trigger asks for a fetch. It must not block; it is called ten times at once at most, then each fifth of a second.
	Trigger func(forge string)
	// Source is what webhooks of a tenant's own repository are held to, by its name in
	// fleet.yaml: the type of its forge and its secret, which is empty where it takes
	// none; it must not block. Sourced is Trigger for it. Both may be nil.
	Source  func(name string) (forge string, secret []byte)
	Sourced func(name string)
}

// proof is what a request shows of the secret: the secret itself, or the
// signature of its body in hexadecimal; both are empty where it shows nothing.
type proof func(r *http.Request) (token, signature string)

// proofs by forge, each as its documentation says:
// docs.github.com "Validating webhook deliveries", docs.gitlab.com "Webhooks:
// secret token", docs.gitea.com "Webhooks"; generic as Flux's generic-hmac, or
// a bearer token for those who cannot sign.
var proofs = map[string]proof{
	"github": func(r *http.Request) (string, string) {
		return "", strings.TrimPrefix(r.Header.Get("X-Hub-Signature-256"), "sha256=")
	},
	"gitea": func(r *http.Request) (string, string) { return "", r.Header.Get("X-Gitea-Signature") },
	"gitlab": func(r *http.Request) (string, string) {
		return r.Header.Get("X-Gitlab-Token"), ""
	},
	"generic": func(r *http.Request) (string, string) {
		if signature := r.Header.Get("X-Signature"); signature != "" {
			return "", strings.TrimPrefix(signature, "sha256=")
		}
		token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if token == r.Header.Get("Authorization") {
			token = ""
		}
		return token, ""
	},
}

// nobodys is a secret that nobody knows, for sources that there are not.
var nobodys = func() []byte {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // it does not fail
	return secret
}()

// NewWebhooks is the handler of the webhooks' port. A payload is not kept: it is
// read through the hash of its signature, or thrown away, and not at all for who
// cannot know the secret, so that many senders at once take no memory.
func NewWebhooks(o Webhooks) http.Handler {
	mux := routes.NewMux()
	o.register(mux)
	return jsonErrors(mux.ServeMux)
}

func (o *Webhooks) register(mux *routes.Mux) {
	c := &calls{trigger: o.Trigger, limiter: rate.NewLimiter(rate.Every(callPause), callsAtOnce)}
	for forge, shows := range proofs {
		mux.HandleFunc("POST /hooks/"+forge, func(w http.ResponseWriter, r *http.Request) {
			secret := o.Secret(forge)
			if len(secret) == 0 {
				refuse(w, http.StatusNotFound, "NotConfigured", "no secret is configured for %s webhooks", forge)
				return
			}
			if proven(w, r, shows, secret, slices.Values([]proof{shows}), "the request does not prove knowledge of the secret for "+forge+" webhooks") {
				tracing.News(r.Context())
				c.call(forge)
				answerJSON(w, http.StatusAccepted, map[string]string{"status": "fetching"})
			}
		})
	}
	if o.Source != nil {
		s := &sourceCalls{trigger: o.Sourced, of: map[string]*calls{}}
		mux.HandleFunc("POST /hooks/sources/{name}", func(w http.ResponseWriter, r *http.Request) {
			name := r.PathValue("name")
			forge, secret := o.Source(name)
			shows := proofs[forge]
			if len(secret) == 0 || shows == nil { // answered as any other, so that nobody learns which sources there are
				shows, secret = proofs["generic"], nobodys
			}
			if proven(w, r, shows, secret, maps.Values(proofs), "the request does not prove knowledge of the secret of such a source: it is the key webhook-secret of its credentials, and read with the source") {
				tracing.News(r.Context())
				s.call(name)
				answerJSON(w, http.StatusAccepted, map[string]string{"status": "fetching"})
			}
		})
	}
}

// proven reports whether a request proves knowledge of a secret, as shows finds it; one
// that does not is answered with refusal. The body is read for who shows the secret, or what
// is a signature in any of the forms.
func proven(w http.ResponseWriter, r *http.Request, shows proof, secret []byte, forms iter.Seq[proof], refusal string) bool {
	token, signature := shows(r)
	mac := hmac.New(sha256.New, secret)
	ok := same([]byte(token), secret)
	want, _ := hex.DecodeString(signature)
	read := ok
	for form := range forms {
		_, signature := form(r)
		sum, err := hex.DecodeString(signature)
		read = read || err == nil && len(sum) == mac.Size()
	}
	if read {
		if err := copyBody(mac, w, r, maxWebhook); err != nil {
			refuseBody(w, err, maxWebhook)
			return false
		}
		ok = ok || hmac.Equal(want, mac.Sum(nil))
	}
	if !ok {
		refuse(w, http.StatusUnauthorized, "BadSignature", "%s", refusal)
	}
	return ok
}

// sourceCalls are the calls of each source, whose secrets alone lead to one: a source
// that calls without end delays no other. It may be used concurrently.
type sourceCalls struct {
	trigger func(name string)

	mu sync.Mutex
	of map[string]*calls // of names that had a secret: at most one for each source there ever was
}

func (s *sourceCalls) call(name string) {
	s.mu.Lock()
	c := s.of[name]
	if c == nil {
		c = &calls{trigger: s.trigger, limiter: rate.NewLimiter(rate.Every(callPause), callsAtOnce)}
		s.of[name] = c
	}
	s.mu.Unlock()
	c.call(name)
}

// The git server and the forge are asked for so many calls at once, and then once
// each pause: a delivery that is sent again and again, or a forge that is beside
// itself, keeps neither busy.
const (
	callsAtOnce = 10
	callPause   = 200 * time.Millisecond
)

// calls passes calls on, those that come too fast as one and later. It may be used
// concurrently.
type calls struct {
	trigger func(forge string)
	limiter *rate.Limiter

	mu      sync.Mutex
	waiting bool // one is booked
}

// call passes one on, now or within a pause.
func (c *calls) call(forge string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting {
		return // the one that is booked sees what this one is about
	}
	wait := c.limiter.Reserve().Delay()
	if wait == 0 {
		c.trigger(forge)
		return
	}
	c.waiting = true
	time.AfterFunc(wait, func() {
		c.mu.Lock()
		c.waiting = false
		c.mu.Unlock()
		c.trigger(forge)
	})
}

// same compares in a time that depends on neither content nor length.
func same(a, b []byte) bool {
	x, y := sha256.Sum256(a), sha256.Sum256(b)
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}
