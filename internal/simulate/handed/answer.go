package handed

import (
	"encoding/json"
	"io"
	"net/http"

	"github.com/fleetbroker/fleetbroker/internal/api/strictjson"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/simulate/scenario"
)

// What a replica asks of another one.
const (
	doList   = "list"
	doShow   = "show"
	doCancel = "cancel"
	doToken  = "token"
)

// maxQuestion bounds a question in bytes.
const maxQuestion = 16 << 10

// reasonNone refuses what is asked of a job that somebody does not have.
const reasonNone = "NotFound"

// question is what a replica asks, for somebody whom it knows.
type question struct {
	Do  string `json:"do"`
	Who string `json:"who"`
	// ID of the job to show or cancel.
	ID string `json:"id,omitempty"`
	// Token that somebody showed as this replica's.
	Token string `json:"token,omitempty"`
}

// reply has the jobs asked for, or whether the token is this replica's.
type reply struct {
	Jobs  []scenario.Job `json:"jobs,omitempty"`
	Given bool           `json:"given,omitempty"`
}

// ServeHTTP answers another replica (POST wire.HandedSimulationsPath). Who asks is known to
// be one: the agents' port lets nobody else ask.
func (p *Planner) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var q question
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxQuestion))
	if err == nil {
		err = strictjson.Decode(text, &q)
	}
	if err != nil {
		write(w, http.StatusBadRequest, wire.Error{Error: "read the question: " + err.Error(), Reason: "BadRequest"})
		return
	}
	out, ok := reply{}, true
	switch q.Do {
	case doList:
		out.Jobs = p.Jobs.Of(q.Who)
	case doShow:
		var job scenario.Job
		job, ok = p.Jobs.Job(q.Who, q.ID)
		out.Jobs = []scenario.Job{job}
	case doCancel:
		ok = p.Jobs.Cancel(q.Who, q.ID)
	case doToken:
		out.Given = p.given(q.Who, q.Token)
	default:
		write(w, http.StatusBadRequest, wire.Error{Error: "do is list, show, cancel or token", Reason: "BadRequest"})
		return
	}
	if !ok {
		write(w, http.StatusNotFound, wire.Error{Error: scenario.ErrNone.Error(), Reason: reasonNone})
		return
	}
	write(w, http.StatusOK, out)
}

func write(w http.ResponseWriter, status int, v any) {
	doc, err := json.Marshal(v)
	if err != nil {
		status, doc = http.StatusInternalServerError, []byte(`{"error":"the answer cannot be written","reason":"Internal"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(doc) // a replica that has gone is nobody to answer
}
