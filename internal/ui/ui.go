package ui

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"path"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/escape"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/audit"
	"github.com/fleetbroker/fleetbroker/internal/server/routes"
	"github.com/fleetbroker/fleetbroker/internal/trust"
	"github.com/fleetbroker/fleetbroker/internal/ui/changes"
	"github.com/fleetbroker/fleetbroker/internal/ui/judge"
	"github.com/fleetbroker/fleetbroker/internal/ui/view"
)

// Roots of pages and of their JSON.
const (
	Root    = "/ui"
	APIRoot = "/api/ui"
)

// Options of the dashboard.
type Options struct {
	// State is what the newest round knew, the same value until there is another; nil
	// before the fleet repo was read.
	State func() *view.Snapshot
	// Viewer is who sent a request.
	Viewer func(*http.Request) view.Viewer
	// History of the fleet repo; nil shows none.
	History History
	// Audited is the fleet repo as the audit reads it; nil audits nothing. Root is the trust
	// root that it is held to; nil for what the repository says of itself.
	Audited judge.Repo
	Root    *trust.Root
	// Capacity runs simulations; nil runs none.
	Capacity Capacity
	// Replica is this replica's name among others that Capacity knows, "" where it is alone.
	Replica string
	// CommitPage is the address of a commit's page on the forge, "" for none; may be nil.
	CommitPage func(commit string) string
	// PullPage is the address of a pull request's page there, "" for none; may be nil.
	PullPage func(number int) string
	// Stopping is closed when the port that serves a request is about to close; may be
	// nil.
	Stopping func(context.Context) <-chan struct{}
	Now      func() time.Time
	Log      *slog.Logger
}

// UI is the dashboard's handler.
type UI struct {
	opts    Options
	mux     *routes.Mux
	pages   *renderer
	history *history
	files   *changes.Follower
	judge   *judge.Judge
	offers  *offers
	streams *streams
	tokens  *tokens
	origin  *http.CrossOriginProtection

	mu     sync.Mutex
	model  *view.Model // the newest that was asked for
	making *making     // the one that follows it; nil for none
}

const (
	// modelAge is how long a model is used though nothing changed: costs go on.
	modelAge = 30 * time.Second
	// moment is how long a page waits for a newer model than there is.
	moment = 50 * time.Millisecond
)

//go:embed assets templates
var files embed.FS

// New makes the handler. Its templates are part of the program, so that it cannot fail.
func New(o Options) *UI {
	u := &UI{opts: o, mux: routes.NewMux(), history: &history{of: o.History}, offers: newOffers(), streams: newStreams(), tokens: newTokens(o.Replica), origin: http.NewCrossOriginProtection()}
	if o.History != nil {
		u.files = changes.New(o.History)
	}
	if o.Audited != nil {
		u.judge = judge.New(judge.Options{Repo: o.Audited, Base: audit.Options{Root: o.Root}, Now: o.Now, Log: o.Log})
	}
	u.pages = newRenderer(o.CommitPage, o.PullPage)
	for i := range pages {
		p := &pages[i]
		u.mux.Handle("GET "+Root+p.path, u.page(p))
		u.mux.Handle("GET "+APIRoot+p.api(), u.json(p))
	}
	u.mux.Handle("GET "+Root, http.RedirectHandler(Root+"/", http.StatusSeeOther))
	u.mux.Handle("GET /{$}", http.RedirectHandler(Root+"/", http.StatusSeeOther))
	u.mux.HandleFunc("GET "+Root+"/assets/{name}", u.asset)
	u.mux.HandleFunc("GET "+Root+"/events", u.events)
	u.planning()
	u.mux.HandleFunc("GET "+APIRoot+"/cost.csv", u.costCSV)
	u.mux.HandleFunc("GET "+APIRoot+"/openapi.json", u.describe)
	return u
}

// policy lets a page load what this handler serves, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// Message is a page of words, for who is not let in yet.
type Message struct {
	Status      int
	Title, Text string
	// Link that goes on, with its words; "" for none.
	Link, Words string
}

// Say writes a message.
func (u *UI) Say(w http.ResponseWriter, r *http.Request, m Message) {
	secure(w.Header())
	u.pages.write(w, m.Status, "message", &document{Title: m.Title, Path: r.URL.Path, Outside: true, Data: m}, u.opts.Log)
}

// ServeHTTP answers for Root, APIRoot and everything below them.
func (u *UI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	secure(w.Header())
	if _, pattern := u.mux.Handler(r); pattern == "" {
		u.refuse(w, r, notFound("there is no such page"))
		return
	}
	u.mux.ServeHTTP(w, r)
}

// secure has browsers load the page's own files alone, and keep nothing.
func secure(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	h.Set("Vary", "Authorization, Cookie")
}

// Changed reports that a round is over. It never blocks, and costs nothing while no page
// follows.
func (u *UI) Changed() { u.streams.wake() }

// call is one request for a page.
type call struct {
	*http.Request

	ui    *UI
	model *view.Model
	sight view.Sight
	query view.Query
	who   view.Viewer
}

// problem is a request that cannot be answered.
type problem struct {
	status int
	reason string
	text   string
}

func (p *problem) Error() string { return p.text }

func notFound(text string) error {
	return &problem{http.StatusNotFound, "NotFound", text}
}

func badQuery(err error) error {
	return &problem{http.StatusBadRequest, "BadQuery", err.Error()}
}

// call reads a request.
func (u *UI) call(r *http.Request) (*call, error) {
	c := &call{Request: r, ui: u, who: u.opts.Viewer(r)}
	var err error
	if err = known(r.URL.Query()); err == nil {
		c.query, err = view.ParseQuery(r.URL.Query())
	}
	if err != nil {
		return nil, badQuery(err)
	}
	if c.model, err = u.newest(); err != nil {
		return nil, err
	}
	c.sight = c.who.Sight(c.model.Fleet)
	return c, nil
}

// newest is the model of the newest round. One that costs more than a moment to make is
// not waited for where there is a former one: the page shows that, says as of when, and
// is told when there is the newer one (events).
func (u *UI) newest() (*view.Model, error) {
	s := u.opts.State()
	if s == nil {
		return nil, &problem{http.StatusServiceUnavailable, wire.ReasonUnavailable, "The daemon has just started and has not read the fleet repo yet. Reload in a moment; /readyz says what it waits for."}
	}
	m, making := u.refresh(s)
	if making == nil {
		return m, nil
	}
	var enough <-chan time.Time
	if m != nil {
		timer := time.NewTimer(moment)
		defer timer.Stop()
		enough = timer.C
	}
	select {
	case <-making.done:
		return making.model, making.err
	case <-enough:
		return m, nil
	}
}

// making is a model that is being made.
type making struct {
	done  chan struct{}
	model *view.Model
	err   error
}

// refresh is the model there is, and the one that is being made where that is not the
// newest. There is one at a time.
func (u *UI) refresh(s *view.Snapshot) (*view.Model, *making) {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := u.opts.Now()
	if u.model != nil && u.model.Snapshot() == s && now.Sub(u.model.Now.Time) < modelAge {
		return u.model, nil
	}
	if u.making == nil {
		k := &making{done: make(chan struct{})}
		u.making = k
		go func() {
			k.model, k.err = makeModel(s, now)
			u.mu.Lock()
			u.making = nil
			if k.err == nil {
				u.model = k.model
			}
			u.mu.Unlock()
			close(k.done)
			u.streams.wake()
		}()
	}
	return u.model, u.making
}

// makeModel is view.Make, whose mistakes cost a page and never the daemon.
func makeModel(s *view.Snapshot, now time.Time) (m *view.Model, err error) {
	defer func() {
		if p := recover(); p != nil {
			m, err = nil, fmt.Errorf("make the dashboard's model: %v\n%s", p, debug.Stack())
		}
	}()
	return view.Make(s, now)
}

// version of what pages show now.
func (u *UI) version() string {
	if s := u.opts.State(); s != nil {
		u.refresh(s)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.model == nil {
		return ""
	}
	return u.model.Snapshot().Version
}

// page serves a page as HTML, or sends to its JSON.
func (u *UI) page(p *page) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if q := r.URL.Query(); q.Get("o") == "json" {
			q.Del("o")
			to := url.URL{Path: APIRoot + strings.TrimPrefix(r.URL.Path, Root), RawQuery: q.Encode()}
			if to.Path == APIRoot+"/" {
				to.Path = APIRoot + "/fleet"
			}
			http.Redirect(w, r, to.String(), http.StatusSeeOther) //nolint:gosec // a path of this server
			return
		}
		c, err := u.call(r)
		var data any
		if err == nil {
			data, err = p.shown(c)
		}
		if err != nil {
			u.refuse(w, r, err)
			return
		}
		u.pages.write(w, http.StatusOK, p.template, &document{Title: p.title(c), Nav: p.nav, Head: c.model.Head(c.sight), Viewer: c.who, All: c.sight.All(), Plans: u.mayPlan(c.who) == nil, Query: c.query, Path: r.URL.Path, JSON: jsonOf(r.URL), Data: data}, u.opts.Log)
	})
}

// jsonOf is where a page's JSON is.
func jsonOf(at *url.URL) string {
	q := at.Query()
	q.Set("o", "json")
	return (&url.URL{Path: at.Path, RawQuery: q.Encode()}).String()
}

// answer is a page as JSON.
type answer struct {
	view.Head

	Data any `json:"data"`
}

// jsonSize is how many rows of a list an answer has unless the query says otherwise.
const jsonSize = 1000

// json serves a page as JSON.
func (u *UI) json(p *page) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := u.call(r)
		var data any
		if err == nil {
			if !r.URL.Query().Has("size") {
				c.query.Size = jsonSize
			}
			data, err = p.shown(c)
		}
		if err != nil {
			u.refuse(w, r, err)
			return
		}
		writeJSON(w, http.StatusOK, answer{c.model.Head(c.sight), data})
	})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	doc, err := json.Marshal(v)
	if err != nil {
		status, doc = http.StatusInternalServerError, []byte(`{"error":"the answer cannot be written","reason":"Internal"}`)
	}
	w.WriteHeader(status)
	_, _ = w.Write(append(escape.JSON(doc), '\n')) // fails where the client is gone
}

// refuse answers with an error, as JSON or as a page.
func (u *UI) refuse(w http.ResponseWriter, r *http.Request, err error) {
	var p *problem
	if !errors.As(err, &p) {
		u.opts.Log.Error("a page of the dashboard failed", "path", r.URL.Path, "error", err)
		p = &problem{http.StatusInternalServerError, "Internal", "The page cannot be made; the daemon's log has the reason."}
	}
	if p.status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "5")
	}
	if strings.HasPrefix(r.URL.Path, APIRoot) {
		writeJSON(w, p.status, wire.Error{Error: escape.Reason(p.text), Reason: p.reason})
		return
	}
	u.pages.write(w, p.status, "error", &document{Title: http.StatusText(p.status), Viewer: u.opts.Viewer(r), Path: r.URL.Path, Data: p.text}, u.opts.Log)
}

// asset serves a file of the program. Its address has its digest, so that it never
// changes there.
func (u *UI) asset(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	b, err := files.ReadFile("assets/" + name)
	if err != nil {
		u.refuse(w, r, notFound("there is no such file"))
		return
	}
	w.Header().Set("Content-Type", mime.TypeByExtension(path.Ext(name)))
	if r.URL.Query().Get("v") == digestOf(b) {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	_, _ = w.Write(b)
}

func digestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:6])
}
