package notify

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/test/env/envtest"
)

// receiver is a real HTTP server that takes what it gets, or refuses it.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	bodies []string
	types  []string
	status atomic.Int32
	asked  atomic.Int32
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.asked.Add(1)
		if s := int(r.status.Load()); s != 0 {
			http.Error(w, "no", s)
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if strings.HasPrefix(req.URL.Path, "/hooks") {
			b, _ := io.ReadAll(req.Body)
			r.bodies, r.types = append(r.bodies, string(b)), append(r.types, req.Header.Get("Content-Type"))
			return
		}
		e, err := cehttp.NewEventFromHTTPRequest(req)
		if err != nil || e.Validate() != nil {
			http.Error(w, fmt.Sprint(err, e.Validate()), http.StatusBadRequest)
			return
		}
		r.bodies, r.types = append(r.bodies, e.Subject()+" "+string(e.Data())), append(r.types, e.Type())
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) got() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string{}, r.bodies...)
}

// world is a notifier on a state directory, with the counts and the log of all
// its lives.
type world struct {
	t       *testing.T
	dir     string
	urls    sync.Map // "<tenant> <secret>/<key>"
	tenants map[string]*v1alpha1.Tenant
	history map[tree.Hash]*ledger.Ledger
	silent  atomic.Bool // another daemon speaks
	cas     *x509.CertPool

	mu     sync.Mutex
	counts map[string]int
	log    bytes.Buffer
}

func newWorld(t *testing.T) *world {
	return &world{t: t, dir: t.TempDir(), tenants: map[string]*v1alpha1.Tenant{}, history: map[tree.Hash]*ledger.Ledger{}, counts: map[string]int{}}
}

// tell subscribes a tenant at an address, by a Secret of that name.
func (w *world) tell(tenant, secret, url string, events ...string) {
	w.urls.Store(tenant+" "+secret+"/url", url)
	t := w.tenants[tenant]
	if t == nil {
		t = &v1alpha1.Tenant{Metadata: v1alpha1.Metadata{Name: tenant}}
		w.tenants[tenant] = t
	}
	t.Spec.Notify = append(t.Spec.Notify, v1alpha1.Notify{Events: events, URLSecretRef: v1alpha1.SecretKeyRef{Name: secret}, AllowInsecure: true})
}

// Write implements io.Writer: the log.
func (w *world) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.Write(p)
}

func (w *world) logged() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.String()
}

func (w *world) count(result string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.counts[result]
}

// start runs a notifier until the function it returns is called.
func (w *world) start() (n *Notifier, stop func()) {
	w.t.Helper()
	began := time.Now() // pauses are counted on a clock that runs
	n = New(Options{
		Dir: w.dir, Now: func() time.Time { return noon.Add(time.Hour + time.Since(began)) }, Log: slog.New(slog.NewTextHandler(w, nil)),
		Paces: Paces{Webhook: time.Millisecond, Chat: time.Millisecond, Mail: time.Millisecond, Retry: time.Millisecond, MaxRetry: 4 * time.Millisecond},
		Address: func(_ context.Context, tenant string, ref v1alpha1.SecretKeyRef) (string, error) {
			if u, ok := w.urls.Load(tenant + " " + ref.Name + "/" + ref.Key); ok {
				return u.(string), nil
			}
			return "", errors.New("no such Secret")
		},
		At: func(_ context.Context, head tree.Hash) (*ledger.Ledger, error) {
			if l := w.history[head]; l != nil {
				return l, nil
			}
			return nil, errors.New("no such commit")
		},
		Speaks: func() bool { return !w.silent.Load() }, CAs: w.cas,
		Count: func(_, result string, k int) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.counts[result] += k
		},
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- n.Run(ctx) }()
	return n, sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Error(err)
		}
	})
}

// at is a ledger with its head, which is remembered.
func (w *world) at(head byte, contracts ...*v1alpha1.Contract) *Snapshot {
	books, err := ledger.BooksOf(nil)
	if err != nil {
		w.t.Fatal(err)
	}
	s := &Snapshot{Fleet: "acme", Head: tree.Hash{head}, Ledger: holding(nil, contracts...), Tenants: w.tenants, Books: books}
	w.history[s.Head] = s.Ledger
	return s
}

func (w *world) until(what string, fn func() bool) {
	w.t.Helper()
	envtest.Eventually(w.t, what, func(context.Context) bool { return fn() })
}

// saw waits until a notifier has taken over a ledger.
func (w *world) saw(s *Snapshot) {
	w.t.Helper()
	w.until("the state file names the head", func() bool {
		text, err := os.ReadFile(filepath.Join(w.dir, stateFile))
		return err == nil && strings.Contains(string(text), s.Head.String())
	})
}

func many(from, n int) []*v1alpha1.Contract {
	var out []*v1alpha1.Contract
	for i := range n {
		out = append(out, contract(fmt.Sprintf("c%05d", from+i), "h100", int32(from+i)))
	}
	return out
}

// A webhook gets CloudEvents, a chat lines of text; what nobody asked for goes
// nowhere.
func TestWebhookAndChat(t *testing.T) {
	w, hook, slack := newWorld(t), newReceiver(t), newReceiver(t)
	w.tell("vision", "events", hook.URL+"/fleet", "all")
	w.tell("vision", "slack", "slack+"+slack.URL+"/hooks/s3cr3t", "degraded")
	n, stop := w.start()
	defer stop()
	a := contract("a", "h100", 0)
	first := w.at(1)
	n.Observe(first)
	w.saw(first)
	n.Observe(w.at(2, a))
	w.until("the webhook hears of it", func() bool { return len(hook.got()) == 1 })
	n.Observe(w.at(3, to(t, a, v1alpha1.PhaseDegraded, "NodeNotReady: <!channel> & more", later(time.Minute))))
	w.until("both hear of it", func() bool { return len(hook.got()) == 2 && len(slack.got()) == 1 })
	if got := hook.got()[0]; hook.types[0] != "io.fleetbroker.placed" || !strings.HasPrefix(got, "vision/llm/a {") || !strings.Contains(got, `"flavor":"h100"`) || !strings.Contains(got, `"hourly":"12"`) {
		t.Errorf("the webhook got %s %s", hook.types[0], got)
	}
	if got := slack.got()[0]; !strings.Contains(got, `[degraded] vision/llm is degraded on paris/h100: NodeNotReady: \u0026lt;!channel\u0026gt; \u0026amp; more`) {
		t.Errorf("the chat got %s", got)
	}
	if w.count("sent") != 3 || w.count("failed") != 0 {
		t.Errorf("counted %v", w.counts)
	}
}

// Of several daemons one tells. Who takes over tells what is new, and what the
// other may not have told any more.
func TestOneOfSeveralTells(t *testing.T) {
	w, hook := newWorld(t), newReceiver(t)
	w.tell("vision", "events", hook.URL, "placed", "degraded")
	w.silent.Store(true)
	n, stop := w.start()
	defer stop()
	n.Observe(w.at(1))
	a := contract("a", "h100", 0) // an hour ago
	second := w.at(2, a)
	n.Observe(second)
	w.saw(second)
	third := w.at(3, to(t, a, v1alpha1.PhaseDegraded, "NodeNotReady", later(time.Hour)))
	n.Observe(third)
	w.saw(third)
	if got := hook.asked.Load(); got != 0 {
		t.Errorf("one that does not speak has sent %d messages", got)
	}
	w.silent.Store(false)
	w.until("what is fresh is told by who takes over", func() bool { return len(hook.got()) == 1 })
	n.Observe(w.at(4, to(t, a, v1alpha1.PhaseDegraded, "NodeNotReady", later(time.Hour)), contract("b", "h100", 1)))
	w.until("what is new too", func() bool { return len(hook.got()) == 2 })
	if got := hook.types; got[0] != "io.fleetbroker.degraded" || got[1] != "io.fleetbroker.placed" {
		t.Errorf("told are %q", got)
	}
	if w.count("dropped") != 0 {
		t.Errorf("what another one told is counted as dropped: %v", w.counts)
	}
}

// A restart tells what happened meanwhile, and nothing twice; the first start of
// all tells nothing of what stands.
func TestRestart(t *testing.T) {
	w, hook := newWorld(t), newReceiver(t)
	w.tell("vision", "events", hook.URL, "placed")
	n, stop := w.start()
	n.Observe(w.at(1, many(0, 3)...))
	n.Observe(w.at(2, many(0, 5)...)) // at once: what came first is what stood
	w.until("two are told", func() bool { return w.count("sent") == 2 })
	stop()
	// It lands while nobody looks.
	third := w.at(3, many(0, 9)...)
	n, stop = w.start()
	n.Observe(third)
	w.until("four more are told", func() bool { return w.count("sent") == 6 })
	stop()
	fourth := w.at(4, many(0, 10)...)
	n, stop = w.start()
	n.Observe(third)
	n.Observe(fourth)
	w.until("the last is told", func() bool { return w.count("sent") == 7 })
	stop()
	for i, got := range hook.got() {
		if want := fmt.Sprintf("vision/llm/c%05d ", i+3); !strings.HasPrefix(got, want) {
			t.Errorf("event %d is %s, want %s", i, got, want)
		}
	}
}

// A receiver that is down gets all of it later, also after a restart; one that
// is up is not held up.
func TestOutage(t *testing.T) {
	w, down, up := newWorld(t), newReceiver(t), newReceiver(t)
	down.status.Store(http.StatusBadGateway)
	w.tell("vision", "down", down.URL, "placed")
	w.tell("vision", "up", up.URL, "placed")
	n, stop := w.start()
	first := w.at(1)
	n.Observe(first)
	w.saw(first)
	n.Observe(w.at(2, many(0, 5)...))
	w.until("the one that is up hears of it", func() bool { return len(up.got()) == 5 && down.asked.Load() > 3 })
	stop()
	if strings.Count(w.logged(), "a notification could not be sent; it is tried again") != 1 || !strings.Contains(w.logged(), "502 Bad Gateway") {
		t.Errorf("logged %s", w.logged())
	}
	down.status.Store(0)
	n, stop = w.start()
	defer stop()
	n.Observe(w.at(2, many(0, 5)...))
	w.until("the other hears of it", func() bool { return len(down.got()) == 5 })
	if len(up.got()) != 5 {
		t.Errorf("the one that was up got %d events, want 5", len(up.got()))
	}
}

// A storm becomes few messages to people, and an outbox keeps the newest
// thousand. Observing it takes no time.
func TestStorm(t *testing.T) {
	w, hook, slack := newWorld(t), newReceiver(t), newReceiver(t)
	hook.status.Store(http.StatusServiceUnavailable)
	w.tell("vision", "events", hook.URL, "placed")
	w.tell("vision", "slack", "slack+"+slack.URL+"/hooks/x", "placed")
	n, stop := w.start()
	defer stop()
	first := w.at(1)
	n.Observe(first)
	w.saw(first)
	n.Observe(w.at(2, many(0, 1500)...))
	w.until("the chat hears of it", func() bool { return len(slack.got()) > 0 })
	if got := slack.got()[0]; strings.Count(got, "[placed]") != maxLines || !strings.Contains(got, "and 980 more") {
		t.Errorf("the chat got %s", got)
	}
	if w.count("dropped") != 1000 { // 500 of each
		t.Errorf("counted %v", w.counts)
	}
	hook.status.Store(0)
	w.until("the webhook has the newest thousand", func() bool { return len(hook.got()) == 1000 })
	if got := hook.got()[0]; !strings.HasPrefix(got, "vision/llm/c00500 ") {
		t.Errorf("it begins with %s", got)
	}
}

// No address stands in a log, an error or a file.
func TestAddressesAreSecret(t *testing.T) {
	for name, url := range map[string]string{
		"nobody listens":     "https://127.0.0.1:1/services/T00/B00/s3cr3t",
		"no such host":       "https://ada:s3cr3t@nowhere.invalid/x",
		"a chat that is not": "slack+http://127.0.0.1:1/hooks/s3cr3t",
		"cards nobody takes": "teams+http://127.0.0.1:1/workflows/s3cr3t?sig=s3cr3t",
		"alerts for nobody":  "pagerduty+http://127.0.0.1:1/?routing_key=s3cr3t",
		"alerts, no key":     "pagerduty+http://127.0.0.1:1/s3cr3t",
		"no mail server":     "smtp://ada:s3cr3t@127.0.0.1:1/?from=a@example.org&to=b@example.org",
		"a bad scheme":       "ftp://ada:s3cr3t@example.org/x",
		"no address at all":  "s3cr3t",
		"no URL":             "https://s3cr3t:%zz",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.tell("vision", "events", url+"\n", "placed")
			n, stop := w.start()
			defer stop()
			first := w.at(1)
			n.Observe(first)
			w.saw(first)
			n.Observe(w.at(2, many(0, 1)...))
			w.until("it fails", func() bool { return w.count("failed") > 0 && strings.Contains(w.logged(), "could not be sent") })
			stop()
			text, err := os.ReadFile(filepath.Join(w.dir, stateFile))
			if err != nil || strings.Contains(w.logged()+string(text), "s3cr3t") || !strings.Contains(w.logged(), "secret=events") {
				t.Errorf("%v; logged %s; wrote %s", err, w.logged(), text)
			}
		})
	}
}

// A mailbox gets what came meanwhile as one mail: from this machine as it is,
// with STARTTLS, and over TLS, with a password that no server hears in the clear.
func TestMail(t *testing.T) {
	certificate, cas := certificate(t)
	for name, c := range map[string]struct {
		scheme, user string
		tls          *tls.Config
		wrapped      bool
	}{
		"plain":    {scheme: "smtp"},
		"STARTTLS": {scheme: "smtp", user: "fleet:p%40ss@", tls: certificate},
		"TLS":      {scheme: "smtps", user: "fleet:p%40ss@", tls: certificate, wrapped: true},
	} {
		t.Run(name, func(t *testing.T) {
			backend := &mailbox{needsAuth: c.user != ""}
			server := smtp.NewServer(backend)
			server.TLSConfig = c.tls
			l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			address := l.Addr().String()
			if c.wrapped {
				l = tls.NewListener(l, c.tls)
			}
			done := make(chan error, 1)
			go func() { done <- server.Serve(l) }()
			t.Cleanup(func() {
				_ = server.Close()
				if err := <-done; err != nil && !errors.Is(err, smtp.ErrServerClosed) {
					t.Error(err)
				}
			})
			w := newWorld(t)
			w.cas = cas
			w.tell("vision", "mail", c.scheme+"://"+c.user+address+"/?from=Fleet+%3Cfleet@example.org%3E&to=ada@example.org,bob@example.org", "placed")
			n, stop := w.start()
			defer stop()
			first := w.at(1)
			n.Observe(first)
			w.saw(first)
			n.Observe(w.at(2, many(0, 3)...))
			w.until("the mail is there", func() bool { return w.count("sent") == 3 })
			backend.mu.Lock()
			defer backend.mu.Unlock()
			if len(backend.mails) != 1 || strings.Join(backend.to, " ") != "ada@example.org bob@example.org" || backend.from != "fleet@example.org" {
				t.Fatalf("%d mails from %s to %v", len(backend.mails), backend.from, backend.to)
			}
			for _, want := range []string{"Subject: [acme] vision: 3 events\r\n", "[placed] vision/llm is placed on paris/h100", "To: <ada@example.org>, <bob@example.org>\r\n"} {
				if !strings.Contains(backend.mails[0], want) {
					t.Errorf("no %q in\n%s", want, backend.mails[0])
				}
			}
		})
	}
}

// Nobody gets a mail whose server is not who it says.
func TestMailServerThatNobodyVouchesFor(t *testing.T) {
	config, _ := certificate(t)
	l, err := tls.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		t.Fatal(err)
	}
	backend := &mailbox{}
	server := smtp.NewServer(backend)
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	w := newWorld(t)
	w.tell("vision", "mail", "smtps://"+l.Addr().String()+"/?from=fleet@example.org&to=ada@example.org", "placed")
	n, stop := w.start()
	defer stop()
	first := w.at(1)
	n.Observe(first)
	w.saw(first)
	n.Observe(w.at(2, many(0, 1)...))
	w.until("it fails", func() bool { return w.count("failed") > 0 })
	if !strings.Contains(w.logged(), "certificate") {
		t.Errorf("logged %s", w.logged())
	}
}

// certificate is a server's, with who vouches for it.
func certificate(t *testing.T) (*tls.Config, *x509.CertPool) {
	t.Helper()
	s := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(s.Close)
	cas := x509.NewCertPool()
	cas.AddCert(s.Certificate())
	return &tls.Config{Certificates: s.TLS.Certificates, MinVersion: tls.VersionTLS12}, cas
}

// mailbox is the backend of a real SMTP server.
type mailbox struct {
	needsAuth bool

	mu    sync.Mutex
	user  string
	from  string
	to    []string
	mails []string
}

func (m *mailbox) NewSession(*smtp.Conn) (smtp.Session, error) { return m, nil }
func (m *mailbox) Reset()                                      {}
func (m *mailbox) Logout() error                               { return nil }

// AuthMechanisms implements smtp.AuthSession.
func (m *mailbox) AuthMechanisms() []string { return []string{sasl.Plain} }

// Auth implements smtp.AuthSession.
func (m *mailbox) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if user != "fleet" || password != "p@ss" {
			return smtp.ErrAuthFailed
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		m.user = user
		return nil
	}), nil
}

func (m *mailbox) Mail(from string, _ *smtp.MailOptions) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.needsAuth && m.user == "" {
		return smtp.ErrAuthRequired
	}
	m.from = from
	return nil
}

func (m *mailbox) Rcpt(to string, _ *smtp.RcptOptions) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.to = append(m.to, to)
	return nil
}

func (m *mailbox) Data(r io.Reader) error {
	b, err := io.ReadAll(r)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mails = append(m.mails, string(b))
	return err
}

// A state file that cannot be read is set aside and named in the log, and the
// daemon goes on and writes a new one.
func TestNew_SetsADamagedStateFileAside(t *testing.T) {
	for name, damage := range map[string]func(file string) error{
		"cut":         func(f string) error { return os.WriteFile(f, []byte("{"), 0o600) },
		"empty":       func(f string) error { return os.WriteFile(f, nil, 0o600) },
		"zeroed":      func(f string) error { return os.WriteFile(f, make([]byte, 100), 0o600) },
		"no commit":   func(f string) error { return os.WriteFile(f, []byte(`{"head":"x"}`), 0o600) },
		"a directory": func(f string) error { return os.Mkdir(f, 0o700) },
	} {
		t.Run(name, func(t *testing.T) {
			hook, w := newReceiver(t), newWorld(t)
			if err := damage(filepath.Join(w.dir, stateFile)); err != nil {
				t.Fatal(err)
			}
			w.tell("vision", "events", hook.URL, "placed")
			n, stop := w.start()
			defer stop()
			first := w.at(1)
			n.Observe(first)
			w.saw(first)
			n.Observe(w.at(2, many(0, 1)...))
			w.until("it is told", func() bool { return len(hook.got()) == 1 })
			stop()
			list, err := filepath.Glob(filepath.Join(w.dir, stateFile+".damaged-*"))
			if err != nil || len(list) != 1 || !strings.Contains(w.logged(), list[0]) {
				t.Errorf("set aside: %v, %v; logged %s", list, err, w.logged())
			}
			if _, err := load(Options{Dir: w.dir}).Head.MarshalText(); err != nil {
				t.Errorf("what was written again: %v", err)
			}
		})
	}
}

// An address without TLS gets nothing unless the tenant's file allows it.
func TestNotifier_RefusesAddressesWithoutTLS(t *testing.T) {
	for _, scheme := range []string{"", "slack+", "teams+", "pagerduty+"} {
		hook, w := newReceiver(t), newWorld(t)
		w.tell("vision", "events", scheme+hook.URL+"/hooks/x", "placed")
		w.tenants["vision"].Spec.Notify[0].AllowInsecure = false
		n, stop := w.start()
		first := w.at(1)
		n.Observe(first)
		w.saw(first)
		n.Observe(w.at(2, many(0, 1)...))
		w.until("it fails", func() bool { return w.count("failed") > 0 && strings.Contains(w.logged(), "could not be sent") })
		stop()
		if hook.asked.Load() > 0 || !strings.Contains(w.logged(), "allowInsecure") {
			t.Errorf("%shttp: the receiver was asked %d times; logged %s", scheme, hook.asked.Load(), w.logged())
		}
	}
}
