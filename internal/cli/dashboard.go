package cli

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/pki"
	"github.com/fleetbroker/fleetbroker/internal/reconciler"
	"github.com/fleetbroker/fleetbroker/internal/server"
	"github.com/fleetbroker/fleetbroker/internal/server/login"
	"github.com/fleetbroker/fleetbroker/internal/simulate/handed"
	"github.com/fleetbroker/fleetbroker/internal/simulate/jobs"
	"github.com/fleetbroker/fleetbroker/internal/sources"
	"github.com/fleetbroker/fleetbroker/internal/ui"
	"github.com/fleetbroker/fleetbroker/internal/ui/view"
)

// dashboard makes the pages of the operators' port, from the newest round's view.
func (d *daemon) dashboard(certs *pki.Files, commitPage func(string) string, pullPage func(int) string) *ui.UI {
	var board *ui.UI
	peers := d.shared.Peers(certs)
	d.jobs = jobs.New(jobs.Options{Now: d.now, Log: d.log, Changed: func() { board.Changed() }, Replica: peers.Name()})
	d.simulations = handed.New(d.jobs, peers, func(who, token string) bool { return board.Given(who, token) })
	board = ui.New(ui.Options{
		State: (&snapshots{of: d.loop.View, heard: d.market, sources: d.sources}).newest,
		Viewer: func(r *http.Request) view.Viewer {
			c := server.CallerOf(r)
			return view.Viewer{Name: c.Name, Identity: c.Identity, SignedIn: c.SignedIn, All: c.All, Groups: c.Groups}
		},
		History: d.repo, Audited: d.repo, Root: d.root, Capacity: d.simulations, Replica: peers.Name(), CommitPage: commitPage, PullPage: pullPage, Stopping: server.Stopping, Now: d.now, Log: d.log,
	})
	d.observer.Each(board.Changed)
	return board
}

// signIn is what logins need of the daemon.
func (d *daemon) signIn(board *ui.UI) login.Options {
	return login.Options{
		Show:   func(w http.ResponseWriter, r *http.Request, p login.Page) { board.Say(w, r, ui.Message(p)) },
		Listed: func(group string) bool { return view.Listed(d.loop.View().Fleet, group) },
		Now:    d.now, Log: d.log,
	}
}

// snapshots turns views into snapshots, each once.
type snapshots struct {
	of    func() *reconciler.View
	heard interface {
		Heard(provider string) time.Time
	}

	sources *sources.Keeper

	mu    sync.Mutex
	last  *reconciler.View
	seen  uint64
	snap  *view.Snapshot
	count int
}

func (s *snapshots) newest() *view.Snapshot {
	v := s.of()
	if v.Fleet == nil || v.Plan == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.sources.Version()
	if v == s.last && seen == s.seen {
		return s.snap
	}
	s.count++
	s.last, s.seen, s.snap = v, seen, &view.Snapshot{
		Notices: notices(v), Inputs: v.Inputs, Ledger: v.Ledger, Fleet: v.Fleet, Contracts: v.Contracts, World: &v.World, Plan: v.Plan,
		States: v.States(), Heard: s.heard.Heard, Sources: s.sources.Status(), Version: fmt.Sprintf("%d-%s", s.count, v.Ledger.Short()),
	}
	return s.snap
}

// notices are what of a view everybody has to see first.
func notices(v *reconciler.View) []view.Notice {
	var out []view.Notice
	add := func(level, text, link string) {
		if text != "" {
			out = append(out, view.Notice{Level: level, Text: text, Link: link})
		}
	}
	add("error", v.Trouble, "")
	add("warning", v.Withheld, "")
	if v.Deaf {
		add("warning", "fewer than half of the providers that hold contracts report: nothing is moved, refused or queued until they do", "")
	}
	add("warning", v.Plan.HeldBack, "")
	if v.Offered != "" {
		link := ""
		if strings.HasPrefix(v.Offered, "https://") || strings.HasPrefix(v.Offered, "http://") {
			link = v.Offered
		}
		add("info", "decisions wait for review in a pull request", link)
	}
	for _, f := range v.Unverified() {
		add("warning", f.String(), "")
	}
	for _, d := range v.Fleet.Errors() {
		add("warning", d.String(), "")
	}
	for _, a := range v.Trust.Alarms {
		add("error", a, "")
	}
	const most = 8
	if n := len(out); n > most {
		out = append(out[:most:most], view.Notice{Level: "warning", Text: fmt.Sprintf("and %d more: see `fleetbroker status`", n-most)})
	}
	return out
}
