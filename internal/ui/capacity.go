package ui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/strictjson"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/simulate/scenario"
	"github.com/fleetbroker/fleetbroker/internal/ui/view"
)

// Capacity runs simulations. *handed.Planner of internal/simulate/handed is one.
type Capacity interface {
	// Start begins one; the error is a *scenario.Bad or *scenario.Busy, or the daemon's own.
	Start(who string, in *scenario.Input, c scenario.Change) (scenario.Job, error)
	// Of are the jobs of one person, of all replicas of the daemon, the newest first, and the
	// replicas that did not answer.
	Of(ctx context.Context, who string) (all []scenario.Job, silent []string)
	// Job is one of them; the error is scenario.ErrNone or a *scenario.Away.
	Job(ctx context.Context, who, id string) (scenario.Job, error)
	// Cancel ends a job of one person; the errors are those of Job.
	Cancel(ctx context.Context, who, id string) error
	// Gave reports whether a page of another replica gave this person a token.
	Gave(ctx context.Context, replica, who, token string) bool
}

const (
	capacityPath = "/capacity"
	// tokenHeader has the token that a request has to show to change something; forms have
	// it in tokenField.
	tokenHeader = "X-CSRF-Token" //nolint:gosec // a name
	tokenField  = "token"
	// tokenLife is how long a page that was opened can be used.
	tokenLife = 12 * time.Hour
	// maxChange is how many bytes a request to simulate may have.
	maxChange = 64 << 10
)

// CapacityAnswer is what there is to plan with, and one's simulations of the last hour.
type CapacityAnswer struct {
	// Token to send as X-CSRF-Token with a request that begins or ends a simulation.
	Token string `json:"csrfToken"`
	// Providers that can be taken away, and whose prices can be changed.
	Providers []string       `json:"providers"`
	Jobs      []scenario.Job `json:"jobs"`
	// Running: one of them is under way.
	Running bool `json:"running"`
	// Silent are replicas of the daemon that did not say which of the jobs they have.
	Silent []string `json:"replicasSilent,omitempty"`
	// Change that a form begins with.
	Change scenario.Change `json:"defaults"`
}

// CapacityJobAnswer is one simulation.
type CapacityJobAnswer struct {
	Token string       `json:"csrfToken"`
	Job   scenario.Job `json:"job"`
}

// mayPlan is an error unless who asks may simulate: a simulation replays what all tenants
// asked for.
func (u *UI) mayPlan(who view.Viewer) error {
	switch {
	case u.opts.Capacity == nil:
		return notFound("This daemon runs no simulations.")
	case !who.All:
		return &problem{http.StatusForbidden, "Forbidden", "Simulations replay what all tenants asked for: they are for who sees all tenants."}
	}
	return nil
}

func capacityPage(c *call) (any, error) {
	if err := c.ui.mayPlan(c.who); err != nil {
		return nil, err
	}
	in := inputOf(c.model)
	all, silent := c.ui.opts.Capacity.Of(c.Context(), c.who.Identity)
	out := &CapacityAnswer{Token: c.ui.tokens.give(c.who.Identity, c.ui.opts.Now()), Providers: in.Providers(), Jobs: all, Silent: silent, Change: scenario.Change{Days: scenario.DefaultDays, Growth: "1.5"}}
	for i := range out.Jobs {
		out.Running = out.Running || out.Jobs[i].State == scenario.Running
	}
	return out, nil
}

func capacityJobPage(c *call) (any, error) {
	if err := c.ui.mayPlan(c.who); err != nil {
		return nil, err
	}
	job, err := c.ui.opts.Capacity.Job(c.Context(), c.who.Identity, c.PathValue("id"))
	if err != nil {
		return nil, notHad(err)
	}
	return &CapacityJobAnswer{Token: c.ui.tokens.give(c.who.Identity, c.ui.opts.Now()), Job: job}, nil
}

// notHad is why a simulation is refused or not found.
func notHad(err error) error {
	var away *scenario.Away
	switch {
	case errors.Is(err, scenario.ErrNone):
		return notFound("There is no such simulation of yours. Results are kept for an hour, until the replica of the daemon that made them ends.")
	case errors.As(err, &away) && away.Lost:
		return &problem{http.StatusGone, "ReplicaGone", "The " + away.Error() + ". Begin it again."}
	case errors.As(err, &away):
		return &problem{http.StatusServiceUnavailable, wire.ReasonUnavailable, "The " + away.Error() + ". Try again in a moment."}
	}
	return err
}

// inputOf is what a simulation needs of a model.
func inputOf(m *view.Model) *scenario.Input {
	s := m.Snapshot()
	return &scenario.Input{
		Now: m.Now, Policy: s.Fleet.Policy, Clusters: s.Fleet.Clusters, Tenants: s.Fleet.Tenants, Intents: s.Fleet.Intents,
		Ledger: s.Contracts, Offers: s.World.Offers, Commit: s.Ledger.String(),
	}
}

// planning answers requests that begin and end simulations: the only ones that change
// something here.
func (u *UI) planning() {
	u.mux.HandleFunc("POST "+Root+capacityPath, u.write(func(w http.ResponseWriter, r *http.Request, c *call) error {
		change, err := formChange(r)
		if err != nil {
			return err
		}
		job, err := u.begin(c, change)
		if err == nil {
			http.Redirect(w, r, Root+capacityPath+"/"+job.ID, http.StatusSeeOther)
		}
		return err
	}))
	u.mux.HandleFunc("POST "+Root+capacityPath+"/{id}/cancel", u.write(func(w http.ResponseWriter, r *http.Request, c *call) error {
		if err := u.opts.Capacity.Cancel(r.Context(), c.who.Identity, r.PathValue("id")); err != nil {
			return notHad(err)
		}
		http.Redirect(w, r, Root+capacityPath, http.StatusSeeOther)
		return nil
	}))
	u.mux.HandleFunc("POST "+APIRoot+capacityPath, u.write(func(w http.ResponseWriter, r *http.Request, c *call) error {
		var change scenario.Change
		if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind != "application/json" {
			return &problem{http.StatusUnsupportedMediaType, "BadRequest", "the body has to be JSON: send Content-Type: application/json"}
		}
		text, err := io.ReadAll(r.Body)
		if err == nil {
			err = strictjson.Decode(text, &change)
		}
		if err != nil {
			return &problem{http.StatusBadRequest, "BadRequest", err.Error()}
		}
		job, err := u.begin(c, change)
		if err == nil {
			w.Header().Set("Location", APIRoot+capacityPath+"/"+job.ID)
			writeJSON(w, http.StatusAccepted, answer{c.model.Head(c.sight), CapacityJobAnswer{Token: u.tokens.give(c.who.Identity, u.opts.Now()), Job: job}})
		}
		return err
	}))
	u.mux.HandleFunc("DELETE "+APIRoot+capacityPath+"/{id}", u.write(func(w http.ResponseWriter, r *http.Request, c *call) error {
		if err := u.opts.Capacity.Cancel(r.Context(), c.who.Identity, r.PathValue("id")); err != nil {
			return notHad(err)
		}
		w.WriteHeader(http.StatusNoContent)
		return nil
	}))
}

// write lets a request through that changes something: of who may plan, with a token that
// a page of theirs had, and not from another site.
func (u *UI) write(serve func(http.ResponseWriter, *http.Request, *call) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxChange)
		c, err := u.call(r)
		if err == nil {
			err = u.mayPlan(c.who)
		}
		if err == nil {
			err = u.shown(r, c.who)
		}
		if err == nil {
			err = serve(w, r, c)
		}
		if err != nil {
			u.refuse(w, r, err)
		}
	}
}

// shown is an error unless a request comes from a page of this dashboard.
func (u *UI) shown(r *http.Request, who view.Viewer) error {
	if err := u.origin.Check(r); err != nil {
		return &problem{http.StatusForbidden, "CrossOrigin", "The request comes from a page of another site."}
	}
	token := r.Header.Get(tokenHeader)
	if token == "" {
		if err := r.ParseForm(); err != nil {
			return &problem{http.StatusBadRequest, "BadRequest", "the form cannot be read"}
		}
		token = r.PostForm.Get(tokenField)
	}
	if of := u.tokens.replicaOf(token); !u.Given(who.Identity, token) && (of == "" || !u.opts.Capacity.Gave(r.Context(), of, who.Identity, token)) {
		return &problem{http.StatusForbidden, "BadToken", "The page is too old, or of a replica of the daemon that is gone: open it again. (Programs send the csrfToken of " + APIRoot + capacityPath + " as " + tokenHeader + ".)"}
	}
	return nil
}

// begin begins a simulation.
func (u *UI) begin(c *call, change scenario.Change) (scenario.Job, error) {
	job, err := u.opts.Capacity.Start(c.who.Identity, inputOf(c.model), change)
	var bad *scenario.Bad
	var busy *scenario.Busy
	switch {
	case errors.As(err, &bad):
		return job, &problem{http.StatusBadRequest, "BadChange", bad.Text}
	case errors.As(err, &busy):
		return job, &problem{http.StatusTooManyRequests, "Busy", busy.Text}
	case err != nil:
		return job, err //nolint:wrapcheck // says what it is of
	}
	return job, nil
}

// formChange is the change that a form asks for.
func formChange(r *http.Request) (c scenario.Change, err error) {
	if err := r.ParseForm(); err != nil {
		return c, &problem{http.StatusBadRequest, "BadRequest", "the form cannot be read"}
	}
	f := r.PostForm
	if text := f.Get("days"); text != "" {
		if c.Days, err = strconv.Atoi(text); err != nil {
			return c, &problem{http.StatusBadRequest, "BadChange", fmt.Sprintf("days: %.20q is no number", text)}
		}
	}
	c.Growth, c.Unlimited = f.Get("growth"), f.Get("unlimited") != ""
	for _, name := range f["without"] {
		if name != "" {
			c.Without = append(c.Without, name)
		}
	}
	if times := strings.TrimSpace(f.Get("times")); times != "" && times != "1" {
		c.Prices = []scenario.Price{{Of: f.Get("of"), Times: times}}
	}
	return c, nil
}
