package server

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	authenticationv1 "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationv1 "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"

	"github.com/fleetbroker/fleetbroker/internal/pki"
	"github.com/fleetbroker/fleetbroker/internal/server/login"
)

// Guard lets those through to the operators' port, where it is not on the
// loopback interface, who show a certificate of the fleet's authority with the
// role operator or reader, or a token that the cluster's API server knows and
// whose holder may `get` the path (a nonResourceURL of RBAC). The dashboard opens to a
// session of its Login too.
type Guard struct {
	revocations   *Revocations
	now           func() time.Time
	log           *slog.Logger
	authenticator authenticator.Request // nil where no cluster reviews tokens
	authorizer    authorizer.Authorizer
	// Login lets people in to the dashboard, and to it alone; nil for nobody.
	Login *login.Login
	// Show writes a page for people who are not let in; nil answers them in JSON.
	Show func(http.ResponseWriter, *http.Request, login.Page)
}

// How long the API server's word is taken for: a token that was revoked works
// for at most this long.
const (
	tokenTTL  = time.Minute
	allowTTL  = time.Minute
	denyTTL   = 10 * time.Second
	reviewFor = 10 * time.Second
)

// NewGuard makes a guard. config reaches the API server that reviews tokens;
// nil takes certificates alone.
func NewGuard(config *rest.Config, revocations *Revocations, now func() time.Time, log *slog.Logger) (*Guard, error) {
	g := &Guard{revocations: revocations, now: now, log: log}
	if config == nil {
		return g, nil
	}
	tokens, err := authenticationv1.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("review tokens: %w", err)
	}
	access, err := authorizationv1.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("review tokens: %w", err)
	}
	backoff := &wait.Backoff{Duration: 500 * time.Millisecond, Factor: 1.5, Jitter: 0.2, Steps: 3}
	g.authenticator, _, err = authenticatorfactory.DelegatingAuthenticatorConfig{
		Anonymous: &apiserver.AnonymousAuthConfig{Enabled: false}, CacheTTL: tokenTTL,
		TokenAccessReviewClient: tokens, TokenAccessReviewTimeout: reviewFor, WebhookRetryBackoff: backoff,
	}.New()
	if err != nil {
		return nil, fmt.Errorf("review tokens: %w", err)
	}
	g.authorizer, err = authorizerfactory.DelegatingAuthorizerConfig{
		SubjectAccessReviewClient: access, AllowCacheTTL: allowTTL, DenyCacheTTL: denyTTL, WebhookRetryBackoff: backoff,
	}.New()
	if err != nil {
		return nil, fmt.Errorf("review tokens: %w", err)
	}
	return g, nil
}

// GuardTLS is the TLS of a guarded port: a client's certificate is asked for
// and need not be given.
func GuardTLS(source TLSSource, log *slog.Logger) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			m := load(source, log)
			return &tls.Config{
				MinVersion:             tls.VersionTLS12, // Prometheus and kubelets of older clusters
				NextProtos:             []string{"h2", "http/1.1"},
				Certificates:           []tls.Certificate{m.Pair},
				ClientAuth:             tls.VerifyClientCertIfGiven,
				ClientCAs:              m.Authorities,
				SessionTicketsDisabled: true,
			}, nil
		},
	}
}

// anonymous reports whether a request shows nothing at all.
func anonymous(r *http.Request) bool { return peer(r) == nil && r.Header.Get("Authorization") == "" }

// protect lets through to next whom the guard lets through, each within the limits of one
// identity; a nil guard lets everybody.
func (g *Guard) protect(next http.Handler) http.Handler {
	if g == nil {
		return next
	}
	next = newLimiter(Limits{}, g.now).limit(costOf, func(*http.Request) {}, next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if peer(r) != nil {
			g.certified(w, r, next)
			return
		}
		if g.Login != nil && anonymous(r) && login.OnDashboard(r.URL.Path) {
			g.signedIn(w, r, next)
			return
		}
		g.reviewed(w, r, next)
	})
}

func (g *Guard) certified(w http.ResponseWriter, r *http.Request, next http.Handler) {
	authenticate(g.revocations, g.now, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if id := identityOf(r); id.Role != pki.Operator && id.Role != pki.Reader {
			g.turnAway(w, r, http.StatusForbidden, "Forbidden", "the certificate of %s (%s) is not an operator's or reader's", id.Name, id.Role)
			return
		}
		next.ServeHTTP(w, calledBy(r, Caller{Name: identityOf(r).Name, Identity: "certificate:" + identityOf(r).Name, All: identityOf(r).Role == pki.Operator}))
	})).ServeHTTP(w, r)
}

// signedIn lets those through who signed in.
func (g *Guard) signedIn(w http.ResponseWriter, r *http.Request, next http.Handler) {
	if s := g.Login.Session(r); s != nil {
		next.ServeHTTP(w, calledBy(r, Caller{Name: s.Name, Identity: "oidc:" + s.Subject, Groups: s.Groups, All: g.Login.Everything(s), SignedIn: true}))
		return
	}
	g.turnAway(w, r, http.StatusUnauthorized, "Unauthorized", "sign in at %s, or show an operator's or reader's certificate or a token of the daemon's cluster", login.LoginPath)
}

// turnAway answers who is not let in: people who open the dashboard by a page, others in JSON.
func (g *Guard) turnAway(w http.ResponseWriter, r *http.Request, status int, reason, format string, args ...any) {
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	if !g.Login.TurnAway(g.Show, w, r, status, fmt.Sprintf(format, args...)) {
		refuse(w, status, reason, format, args...)
	}
}

func (g *Guard) reviewed(w http.ResponseWriter, r *http.Request, next http.Handler) {
	if g.authenticator == nil || anonymous(r) {
		g.turnAway(w, r, http.StatusUnauthorized, "Unauthorized", "show an operator's or reader's certificate, or a token of the daemon's cluster")
		return
	}
	who, ok, err := g.authenticator.AuthenticateRequest(r)
	if err != nil || !ok {
		if err != nil {
			g.log.Warn("a token could not be reviewed", "error", err)
		}
		g.turnAway(w, r, http.StatusUnauthorized, "Unauthorized", "the daemon's cluster does not know this token")
		return
	}
	decision, _, err := g.authorizer.Authorize(r.Context(), authorizer.AttributesRecord{
		User: who.User, Verb: strings.ToLower(r.Method), Path: r.URL.Path,
	})
	if err != nil {
		g.log.Warn("an access could not be reviewed", "user", who.User.GetName(), "error", err)
	}
	if decision != authorizer.DecisionAllow {
		g.turnAway(w, r, http.StatusForbidden, "Forbidden", "%s may not %s %s: bind it to a ClusterRole with that nonResourceURL", who.User.GetName(), strings.ToLower(r.Method), r.URL.Path)
		return
	}
	next.ServeHTTP(w, calledBy(r, Caller{Name: who.User.GetName(), Identity: "token:" + who.User.GetName(), Groups: who.User.GetGroups(), All: g.mayList(r, who.User)}))
}

// mayList reports whether a token's holder sees every tenant on the dashboard: who may
// list it, and not only get it.
func (g *Guard) mayList(r *http.Request, who user.Info) bool {
	if !login.OnDashboard(r.URL.Path) {
		return false // nobody asks
	}
	decision, _, err := g.authorizer.Authorize(r.Context(), authorizer.AttributesRecord{User: who, Verb: "list", Path: "/ui/"})
	if err != nil {
		g.log.Warn("an access could not be reviewed", "user", who.GetName(), "error", err)
	}
	return decision == authorizer.DecisionAllow
}

// Caller is who sent a request to the operators' port.
type Caller struct {
	// Name of the certificate, of the token's holder or of the account; "" on the loopback
	// interface.
	Name string
	// Identity is the same, and never that of another: the kind of it comes first.
	Identity string
	// Groups of the token's holder or of the account.
	Groups []string
	// SignedIn: by a session that a logout ends.
	SignedIn bool
	// All tenants are shown to the caller: an operator's certificate, a token whose holder
	// may list /ui/, an account of the operators' groups, and everybody on an unguarded port. A reader's certificate reads what
	// everybody may see, which no tenant's rows are.
	All bool
}

// mayProfile refuses readers' certificates: of a token its ClusterRole says whether it may.
func mayProfile(w http.ResponseWriter, r *http.Request) bool {
	if c := CallerOf(r); strings.HasPrefix(c.Identity, "certificate:") && !c.All {
		refuse(w, http.StatusForbidden, "Forbidden", "profiles are for operators: the certificate of %s is a reader's", c.Name)
		return false
	}
	return true
}

type callerKey struct{}

func calledBy(r *http.Request, c Caller) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), callerKey{}, c))
}

// CallerOf is who sent a request that the guard let through.
func CallerOf(r *http.Request) Caller {
	c, guarded := r.Context().Value(callerKey{}).(Caller)
	if !guarded {
		return Caller{All: true}
	}
	return c
}
