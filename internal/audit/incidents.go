package audit

import (
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
)

// Incident is a commit of another account on the ledger, of which the daemon has
// put back everything.
type Incident struct {
	// Commit, who made it (as the committer wrote it), when (RFC 3339) and its subject.
	Commit  string `json:"commit"`
	By      string `json:"by"`
	At      string `json:"at"`
	Subject string `json:"subject"`
	// Paths of the generated files that it changed.
	Paths []string `json:"paths"`
	// Undone is the daemon's commit that put back the last of them, UndoneAt when.
	Undone   string `json:"undone"`
	UndoneAt string `json:"undoneAt"`
}

// Open are the violations that count: those that no commit of the daemon has
// undone, and those that were but of commits which the auditor has not accepted.
func (r *Report) Open(accepted ...tree.Hash) []Violation {
	return slices.DeleteFunc(slices.Clone(r.Violations), func(v Violation) bool {
		return v.Undone != "" && slices.ContainsFunc(accepted, func(h tree.Hash) bool { return h.String() == v.Commit })
	})
}

// first leaves those violations that were undone, and those of the first commit
// of which they were not.
func (r *Report) first() {
	i := slices.IndexFunc(r.Violations, func(v Violation) bool { return v.Undone == "" })
	if i < 0 {
		return
	}
	at := r.Violations[i].Commit
	r.Violations = slices.DeleteFunc(r.Violations, func(v Violation) bool { return v.Undone == "" && v.Commit != at })
}

// edit is a commit of another account until it is undone.
type edit struct {
	Incident
	// from and to are where its violations are in the report.
	from, to int
	// paths that nobody has put back.
	paths map[string]bool
}

// edit notes the commit as another account's: its violations begin at from.
func (v *verifier) edit(from int, changes []change) {
	to := len(v.report.Violations)
	if from == to {
		return
	}
	e := &edit{
		Incident: Incident{Commit: v.c.Hash.String(), By: v.c.Committer.String(), At: stamp(v.c.Committer.When), Subject: gitobj.Subject(v.c.Message), Paths: []string{}},
		from:     from, to: to, paths: map[string]bool{},
	}
	for _, ch := range slices.Concat(changes, v.c.dropped) {
		if !e.paths[ch.path] {
			e.paths[ch.path] = true
			e.Paths = append(e.Paths, ch.path)
		}
	}
	v.edits = append(v.edits, e)
	v.covered += to - from
}

// settle closes the edits of which everything is put back, with an undo of the
// daemon's.
func (v *verifier) settle() {
	v.edits = slices.DeleteFunc(v.edits, func(e *edit) bool {
		if len(e.paths) > 0 {
			return false
		}
		e.Undone, e.UndoneAt = v.c.Hash.String(), stamp(v.c.Committer.When)
		for i := e.from; i < e.to; i++ {
			v.report.Violations[i].Undone = e.Undone
		}
		v.report.Incidents = append(v.report.Incidents, e.Incident)
		return true
	})
}

// foreign are changes by another account: none is allowed. What they leave is
// what the next commit stands on.
func (v *verifier) foreign(begin int, changes []change) error {
	for _, ch := range changes {
		if _, known := v.edited[ch.path]; !known {
			v.edited[ch.path] = ch.before
		}
		verb := "changed"
		switch {
		case ch.before.Hash.IsZero():
			verb = "added"
		case ch.after.Hash.IsZero():
			verb = "deleted"
		}
		v.fault(ch.path, "foreign", "%s by %s, who is not the daemon: %s", verb, v.c.Committer, gitobj.Subject(v.c.Message))
	}
	for _, ch := range v.c.dropped {
		if _, known := v.edited[ch.path]; !known {
			v.edited[ch.path] = ch.before
		}
		v.fault(ch.path, "foreign", "rolled back by a merge of %s, who is not the daemon: %s", v.c.Committer, gitobj.Subject(v.c.Message))
	}
	v.edit(begin, changes)
	_, err := v.take(v.reader, changes)
	return err
}

// undone puts back what stood there before foreign hands, and nothing else.
func (v *verifier) undone(changes []change) error {
	for _, ch := range changes {
		was, edited := v.edited[ch.path]
		switch {
		case !edited:
			v.fault(ch.path, "foreign", "undone, but nobody else had changed it")
		case was.Hash != ch.after.Hash:
			v.fault(ch.path, "foreign", "undone to %s, but it was %s before", short(ch.after.Hash), short(was.Hash))
		default:
			for _, e := range v.edits {
				delete(e.paths, ch.path)
			}
		}
		delete(v.edited, ch.path)
	}
	_, err := v.take(v.reader, changes)
	return err
}
