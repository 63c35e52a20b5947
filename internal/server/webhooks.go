package server

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net/http"
	"strings"
)

// maxWebhook bounds a payload. GitHub sends up to 25 MB, but such a push is
// seen at the next poll just as well.
const maxWebhook = 3 << 20

// Webhooks is what the webhooks' port is made of.
type Webhooks struct {
	// Secret of a forge ("github", "gitlab", "gitea", "generic"); empty means that the forge is not configured.
	Secret func(forge string) []byte
	// Trigger asks for a fetch. It must not block and may be called at any rate.
	Trigger func(forge string)
}

// proof reports whether a request shows that its sender knows the secret.
type proof func(r *http.Request, body, secret []byte) bool

// proofs by forge, each as its documentation says:
// docs.github.com "Validating webhook deliveries", docs.gitlab.com "Webhooks:
// secret token", docs.gitea.com "Webhooks"; generic as Flux's generic-hmac, or
// a bearer token for those who cannot sign.
var proofs = map[string]proof{
	"github": func(r *http.Request, body, secret []byte) bool {
		return signed(strings.TrimPrefix(r.Header.Get("X-Hub-Signature-256"), "sha256="), body, secret)
	},
	"gitea": func(r *http.Request, body, secret []byte) bool {
		return signed(r.Header.Get("X-Gitea-Signature"), body, secret)
	},
	"gitlab": func(r *http.Request, _, secret []byte) bool {
		return same([]byte(r.Header.Get("X-Gitlab-Token")), secret)
	},
	"generic": func(r *http.Request, body, secret []byte) bool {
		if signature := r.Header.Get("X-Signature"); signature != "" {
			return signed(strings.TrimPrefix(signature, "sha256="), body, secret)
		}
		token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		return ok && same([]byte(token), secret)
	},
}

// NewWebhooks is the handler of the webhooks' port.
func NewWebhooks(o Webhooks) http.Handler {
	mux := http.NewServeMux()
	for forge, proves := range proofs {
		mux.HandleFunc("POST /hooks/"+forge, func(w http.ResponseWriter, r *http.Request) {
			secret := o.Secret(forge)
			if len(secret) == 0 {
				refuse(w, http.StatusNotFound, "NotConfigured", "no secret is configured for %s webhooks", forge)
				return
			}
			body, err := readBody(w, r, maxWebhook)
			if err != nil {
				refuseBody(w, err, maxWebhook)
				return
			}
			if !proves(r, body, secret) {
				refuse(w, http.StatusUnauthorized, "BadSignature", "the request does not prove knowledge of the secret for %s webhooks", forge)
				return
			}
			o.Trigger(forge)
			answerJSON(w, http.StatusAccepted, map[string]string{"status": "fetching"})
		})
	}
	return jsonErrors(mux)
}

// signed compares an HMAC-SHA256 in hexadecimal.
func signed(signature string, body, secret []byte) bool {
	got, err := hex.DecodeString(signature)
	if err != nil {
		return false
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write(body)
	return hmac.Equal(got, mac.Sum(nil))
}

// same compares in a time that depends on neither content nor length.
func same(a, b []byte) bool {
	x, y := sha256.Sum256(a), sha256.Sum256(b)
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}
