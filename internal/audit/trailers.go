package audit

import (
	"regexp"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
)

// notDecided are the values of Plan of commits that decide nothing.
var notDecided = map[string]bool{"undo": true, "sweep": true, "policies": true, "render": true, "set-aside": true, "sources": true, "accept": true}

// maxBehind is how much the time of a round may be before that of a commit that
// landed while it was planned and pushed: a push has 10 minutes.
const maxBehind = 10 * time.Minute

// trailers checks those that stand once, and returns the round's time.
func (v *verifier) trailers(inputs bool) v1alpha1.Time {
	if _, err := tree.ParseHash(v.c.Trailer("Market")); err != nil {
		v.fault("", "trailers", "Market names no tree: %q", v.c.Trailer("Market"))
	}
	if !inputs {
		v.fault("", "trailers", "Inputs names no commit of the inputs: %q", v.c.Trailer("Inputs"))
	}
	at, err := time.Parse(time.RFC3339, v.c.Trailer("Now"))
	if err != nil {
		v.fault("", "trailers", "Now is no time: %q", v.c.Trailer("Now"))
		at = v.c.Committer.When
	}
	if at.After(v.c.Committer.When) {
		v.fault("", "trailers", "Now is %s, after the commit was made (%s)", stamp(at), stamp(v.c.Committer.When))
	}
	if v.now.Sub(at) > maxBehind {
		v.fault("", "trailers", "Now is %s, more than %s before that of a commit that it follows (%s)", stamp(at), maxBehind, stamp(v.now))
	}
	if at.After(v.now) {
		v.now = at
	}
	return v1alpha1.TimeOf(at)
}

// plain judges the trailers of a commit that decides nothing. One of a ledger's
// first form may have none.
func (v *verifier) plain(inputs bool) {
	if v.c.Trailer(gitrepo.LedgerTrailer) == "" {
		return
	}
	v.trailers(inputs)
	for _, of := range []string{"Round", "Contract"} {
		if has := v.c.Trailer(of); has != "" {
			v.fault("", "trailers", "%s is %q, and the commit decides nothing", of, has)
		}
	}
}

// round demands the record of what was known with each commit that places or
// decides again, from the first that has one on. What it holds is for replay.
func (v *verifier) round(d *delta) {
	if has := v.c.Trailer("Round"); has != "" {
		if _, err := tree.ParseHash(has); err != nil {
			v.fault("", "trailers", "Round names no record: %q", has)
		}
		v.recorded = true
		return
	}
	if !v.recorded {
		return
	}
	for _, p := range d.contracts {
		if p.After != nil && (p.Before == nil || p.Before.Decision.Market != p.After.Decision.Market) {
			v.fault(p.path, "trailers", "the commit has no Round, so that what it decides cannot be decided again")
			return
		}
	}
}

// about finds the intent in a line of a message: "place vision/train on ...".
var about = regexp.MustCompile(`^[a-z]+ (?:[a-z0-9.-]+ ){0,5}?([a-z0-9-]+)/([a-z0-9.-]+)(?:[ ,:]|$)`)

// said checks that the intents of which the message speaks are those that the
// commit changes. What people merge they word themselves.
func (v *verifier) said(changes []change, d *delta) {
	if len(v.c.Parents) > 1 || !v.c.Proof.IsZero() {
		return
	}
	touched := map[string]bool{}
	for _, p := range d.contracts {
		for _, c := range []*v1alpha1.Contract{p.Before, p.After} {
			if c != nil {
				touched[c.Metadata.Namespace+"/"+c.Spec.Intent.Name] = true
			}
		}
	}
	for _, pair := range d.states {
		for _, st := range pair {
			if st != nil {
				touched[st.Metadata.Namespace+"/"+st.Metadata.Name] = true
			}
		}
	}
	for _, ch := range changes { // a request's file is called by its id
		if parts := strings.Split(ch.path, "/"); parts[0] == ledger.RequestsRoot && len(parts) > 1 {
			touched[parts[1]] = true
		}
	}
	text, _, _ := strings.Cut(v.c.Message, "\n\nContract: ")
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if m := about.FindStringSubmatch(line); m != nil && !touched[m[1]+"/"+m[2]] && !touched[m[1]] {
			v.fault("", "trailers", "the message says %q, and the commit changes nothing of %s/%s", line, m[1], m[2])
		}
	}
}
