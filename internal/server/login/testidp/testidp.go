// Package testidp is an OpenID Connect provider for tests: it discovers, authorizes,
// exchanges codes and signs tokens as the standard asks, over TLS in the test's process,
// and lies where a test wants it to.
//
// It holds clients to the standard: a code works once, for the redirect URL and the client
// that asked for it, and with the verifier of its challenge alone. Tests of login, of the
// dashboard and of the daemon use it; no program does. It is safe for concurrent use.
package testidp

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// The client that the provider knows.
const (
	ClientID = "fleetbroker"
	Secret   = "a secret: with / signs & more"
)

// IDP is a running provider.
type IDP struct {
	// URL is its issuer, PEM the authority of its certificate.
	URL string
	PEM []byte

	t   testing.TB
	key *ecdsa.PrivateKey

	mu    sync.Mutex
	lies  Lies
	codes map[string]grant
	asked []url.Values
}

// Lies are what the provider does differently from what it should. The zero value is an
// honest one.
type Lies struct {
	// Claims of the account; those of the standard can be replaced.
	Claims map[string]any
	// UserInfo is what it says of the account beyond the token; nil has no such endpoint.
	UserInfo map[string]any
	// Key that signs in place of the provider's.
	Key *jose.SigningKey
	// Token in place of the whole ID token.
	Token string
	// Refuse is an error in place of a code.
	Refuse string
	// Answer in place of any answer.
	Answer http.HandlerFunc
}

type grant struct {
	redirect, challenge, nonce string
}

// New starts a provider, which ends with the test.
func New(t testing.TB) *IDP {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p := &IDP{t: t, key: key, codes: map[string]grant{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", p.describe)
	mux.HandleFunc("GET /keys", p.keys)
	mux.HandleFunc("GET /authorize", p.authorize)
	mux.HandleFunc("POST /token", p.token)
	mux.HandleFunc("GET /userinfo", p.userInfo)
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if answer := p.now().Answer; answer != nil {
			answer(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	p.URL, p.PEM = s.URL, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	return p
}

// Lie has the provider do so from now on.
func (p *IDP) Lie(l Lies) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lies = l
}

func (p *IDP) now() Lies {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lies
}

// Asked are the authorization requests so far.
func (p *IDP) Asked() []url.Values {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func (p *IDP) describe(w http.ResponseWriter, _ *http.Request) {
	about := map[string]any{
		"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys",
		"id_token_signing_alg_values_supported": []string{"ES256", "HS256", "none"}, "code_challenge_methods_supported": []string{"S256"},
	}
	if p.now().UserInfo != nil {
		about["userinfo_endpoint"] = p.URL + "/userinfo"
	}
	answer(w, http.StatusOK, about)
}

func (p *IDP) keys(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: p.key.Public(), KeyID: "1", Algorithm: "ES256", Use: "sig"}}})
}

// authorize agrees at once, as a provider does for an account that is signed in there.
func (p *IDP) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	p.mu.Lock()
	p.asked = append(p.asked, q)
	p.mu.Unlock()
	if q.Get("client_id") != ClientID || q.Get("response_type") != "code" || q.Get("code_challenge_method") != "S256" || q.Get("code_challenge") == "" {
		http.Error(w, "a request without client, code or challenge", http.StatusBadRequest)
		return
	}
	back := url.Values{"state": {q.Get("state")}}
	if why := p.now().Refuse; why != "" {
		back.Set("error", why)
	} else {
		code := rand.Text()
		p.mu.Lock()
		p.codes[code] = grant{q.Get("redirect_uri"), q.Get("code_challenge"), q.Get("nonce")}
		p.mu.Unlock()
		back.Set("code", code)
	}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

func (p *IDP) token(w http.ResponseWriter, r *http.Request) {
	id, secret, _ := r.BasicAuth()
	id, _ = url.QueryUnescape(id)
	secret, _ = url.QueryUnescape(secret)
	if id != ClientID || secret != Secret {
		answer(w, http.StatusUnauthorized, map[string]string{"error": "invalid_client"})
		return
	}
	p.mu.Lock()
	g, ok := p.codes[r.PostFormValue("code")]
	delete(p.codes, r.PostFormValue("code"))
	p.mu.Unlock()
	sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	if !ok || r.PostFormValue("grant_type") != "authorization_code" || r.PostFormValue("redirect_uri") != g.redirect || base64.RawURLEncoding.EncodeToString(sum[:]) != g.challenge {
		answer(w, http.StatusBadRequest, map[string]string{"error": "invalid_grant"})
		return
	}
	answer(w, http.StatusOK, map[string]any{"access_token": "access", "token_type": "Bearer", "expires_in": 60, "id_token": p.sign(g.nonce)})
}

func (p *IDP) sign(nonce string) string {
	l := p.now()
	if l.Token != "" {
		return l.Token
	}
	hash := sha256.Sum256([]byte("access"))
	said := map[string]any{
		"iss": p.URL, "aud": ClientID, "sub": "1234", "email": "ada@example.org", "nonce": nonce,
		"iat": time.Now().Unix(), "exp": time.Now().Add(time.Minute).Unix(), "at_hash": base64.RawURLEncoding.EncodeToString(hash[:16]),
	}
	maps.Copy(said, l.Claims)
	maps.DeleteFunc(said, func(_ string, v any) bool { return v == nil })
	key := jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: crypto.Signer(p.key), KeyID: "1"}}
	if l.Key != nil {
		key = *l.Key
	}
	signer, err := jose.NewSigner(key, nil)
	if err != nil {
		p.t.Errorf("sign: %v", err)
		return ""
	}
	doc, err := json.Marshal(said)
	if err != nil {
		p.t.Errorf("sign: %v", err)
		return ""
	}
	jws, err := signer.Sign(doc)
	if err != nil {
		p.t.Errorf("sign: %v", err)
		return ""
	}
	text, err := jws.CompactSerialize()
	if err != nil {
		p.t.Errorf("sign: %v", err)
	}
	return text
}

func (p *IDP) userInfo(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer access" {
		http.Error(w, fmt.Sprintf("no access token: %q", r.Header.Get("Authorization")), http.StatusUnauthorized)
		return
	}
	answer(w, http.StatusOK, p.now().UserInfo)
}
