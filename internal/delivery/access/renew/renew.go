// Package renew keeps the tokens of kubeconfigs good: a token that is bound to a
// ServiceAccount and ends is replaced, before it does, by one that the account asks for
// itself (TokenRequest), with the same lifetime.
//
// Invariants:
//   - Only tokens that say of themselves that they are a ServiceAccount's and end are
//     renewed; all others are used as they are.
//   - A renewed token belongs to the very token of the kubeconfig that it began with. Where
//     the kubeconfig has another one, that is used, and the renewed one forgotten.
//   - Tokens are kept in memory and, readable for their owner alone, in Dir, so that a
//     restart does not need the first one. They appear in no log and in no error.
//   - A renewal that fails leaves the token in use, and is tried again at the next call, at
//     most twice a minute.
//   - What is read of a token is never trusted: it decides when to ask, and whom for.
//
// Package access calls it for each configuration that it hands out. A Keeper is safe for
// concurrent use; two renewals of one cluster do not run at once.
package renew

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/fleetbroker/fleetbroker/internal/api/statefile"
)

const (
	// shortest is what API servers grant at least.
	shortest = 10 * time.Minute
	// pause between two attempts that failed.
	pause = 30 * time.Second
	// callTimeout bounds one TokenRequest.
	callTimeout = 10 * time.Second
)

// Keeper renews tokens. Its fields are not changed once it is in use.
type Keeper struct {
	// Dir of renewed tokens; "" keeps them in memory alone.
	Dir string
	// Now is the clock; Log may be nil.
	Now func() time.Time
	Log *slog.Logger

	mu   sync.Mutex
	held map[kubeconfig]*held
}

// kubeconfig is what a token may be shown to: another one of the same cluster, at another
// server or of another token, has tokens of its own. Who uses a former one shows it none of
// the newer.
type kubeconfig struct{ cluster, server, origin string }

// held is the newest token of a kubeconfig.
type held struct {
	mu sync.Mutex
	kept
	tried  time.Time
	failed string // why the last attempt failed, as it was logged
}

// kept is the content of a file of Dir.
type kept struct {
	// Origin is the SHA-256 of the kubeconfig's token, Token its newest successor.
	Origin string `json:"origin"`
	Token  string `json:"token"`
}

// claims are what a ServiceAccount's token says of itself.
type claims struct {
	Subject string `json:"sub"`
	Issued  int64  `json:"iat"`
	Ends    int64  `json:"exp"`
}

// Config is a configuration that uses the newest token for a cluster, renewed where it is
// due. BearerToken stays the kubeconfig's, by which two configurations are compared.
func (k *Keeper) Config(ctx context.Context, cluster string, config *rest.Config) *rest.Config {
	if _, _, _, ok := read(config.BearerToken); k == nil || !ok {
		return config
	}
	sum := sha256.Sum256([]byte(config.BearerToken))
	h := k.of(kubeconfig{cluster, config.Host, hex.EncodeToString(sum[:])})
	h.mu.Lock()
	defer h.mu.Unlock()
	k.load(cluster, h, config.BearerToken)
	if err := k.renew(ctx, cluster, h, config); err != nil {
		if text := err.Error(); text != h.failed && k.Log != nil {
			h.failed = text
			k.Log.Warn("token of a kubeconfig not renewed", "cluster", cluster, "error", err)
		}
	}
	out := rest.CopyConfig(config)
	out.Wrap(func(next http.RoundTripper) http.RoundTripper { return &transport{next: next, held: h} })
	return out
}

func (k *Keeper) of(of kubeconfig) *held {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.held == nil {
		k.held = map[kubeconfig]*held{}
	}
	h := k.held[of]
	if h == nil {
		h = &held{}
		k.held[of] = h
	}
	return h
}

// load brings h to the kubeconfig's token: to its successor where one is known.
func (k *Keeper) load(cluster string, h *held, token string) {
	sum := sha256.Sum256([]byte(token))
	origin := hex.EncodeToString(sum[:])
	if h.Origin == origin {
		return
	}
	h.kept, h.tried, h.failed = kept{Origin: origin, Token: token}, time.Time{}, ""
	if k.Dir == "" {
		return
	}
	text, err := statefile.Read(k.file(cluster))
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	var was kept
	if err == nil {
		err = json.Unmarshal(text, &was)
	}
	if err != nil {
		if k.Log != nil {
			k.Log.Warn("renewed token not read, the kubeconfig's is used", "cluster", cluster, "file", k.file(cluster))
		}
		return
	}
	if _, _, _, ok := read(was.Token); ok && was.Origin == origin {
		h.Token = was.Token
	}
}

func (k *Keeper) file(cluster string) string {
	return filepath.Join(k.Dir, filepath.Base(cluster)+".token")
}

// renew asks for a successor once less than half of the token's life is left.
func (k *Keeper) renew(ctx context.Context, cluster string, h *held, config *rest.Config) error {
	now := k.Now()
	namespace, name, life, ok := read(h.Token)
	if !ok || life.ends.Sub(now) > life.ends.Sub(life.issued)/2 || now.Sub(h.tried) < pause {
		return nil
	}
	h.tried = now
	as := rest.CopyConfig(config)
	as.BearerToken, as.Timeout = h.Token, callTimeout
	client, err := kubernetes.NewForConfig(as)
	if err != nil {
		return err
	}
	seconds := int64(max(life.ends.Sub(life.issued), shortest).Seconds())
	answer, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("ask for a token of ServiceAccount %s/%s, which ends at %s: %w", namespace, name, life.ends.UTC().Format(time.RFC3339), err)
	}
	if _, _, got, ok := read(answer.Status.Token); !ok || got.ends.Before(life.ends) {
		return fmt.Errorf("ask for a token of ServiceAccount %s/%s: the cluster's answer ends before %s", namespace, name, life.ends.UTC().Format(time.RFC3339))
	}
	h.Token, h.failed = answer.Status.Token, ""
	if k.Log != nil {
		k.Log.Info("token of a kubeconfig renewed", "cluster", cluster)
	}
	if k.Dir == "" {
		return nil
	}
	text, err := json.Marshal(h.kept)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(k.Dir, 0o700); err != nil {
		return fmt.Errorf("keep the renewed token: %w", err)
	}
	if err := statefile.ReplaceBy(k.file(cluster), 0o600, text); err != nil {
		return fmt.Errorf("keep the renewed token: %w", err)
	}
	return nil
}

type span struct{ issued, ends time.Time }

// read reads what a token says of itself; ok is false for any but a ServiceAccount's that
// ends.
func read(token string) (namespace, name string, life span, ok bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return "", "", span{}, false
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return "", "", span{}, false
	}
	var c claims
	if err := json.Unmarshal(text, &c); err != nil {
		return "", "", span{}, false
	}
	account, is := strings.CutPrefix(c.Subject, "system:serviceaccount:")
	namespace, name, found := strings.Cut(account, ":")
	if !is || !found || namespace == "" || name == "" || strings.ContainsAny(account, "/?#% ") || c.Ends <= c.Issued || c.Issued <= 0 {
		return "", "", span{}, false
	}
	return namespace, name, span{time.Unix(c.Issued, 0), time.Unix(c.Ends, 0)}, true
}

// Ends is when a ServiceAccount's token ends; ok is false for any other.
func Ends(token string) (at time.Time, ok bool) {
	_, _, life, ok := read(token)
	return life.ends, ok
}

// transport shows the newest token in place of the kubeconfig's.
type transport struct {
	next http.RoundTripper
	held *held
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	t.held.mu.Lock()
	token := t.held.Token
	t.held.mu.Unlock()
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+token)
	return t.next.RoundTrip(r)
}

// WrappedRoundTripper is what client-go unwraps to find the transport below.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }
